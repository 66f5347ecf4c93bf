//! Enums that are written as words: in documents, settings, the audit and sentences.

/// An enum that is written as a word. [`words!`](crate::words!) implements it.
pub trait Word: Copy + Sized + 'static {
    /// Every variant.
    const ALL: &'static [Self];
    /// How it is written.
    fn word(self) -> &'static str;
}

/// The words of an enum, for a sentence: `A, B or C`.
#[must_use]
pub fn words<T: Word>() -> String {
    let words: Vec<_> = T::ALL.iter().map(|variant| variant.word()).collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// An enum with a word for each of its variants, or the words of an enum that is
/// defined elsewhere. Either way no variant can be without a word or missing from the
/// list.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $access:vis enum $name:ident {
        $($(#[$note:meta])* $value:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        $access enum $name {
            $($(#[$note])* $value,)+
        }

        $crate::words! { $name { $($value = $word,)+ } }
    };
    ($name:ident { $($value:ident = $word:literal,)+ }) => {
        impl $crate::word::Word for $name {
            const ALL: &'static [$name] = &[$($name::$value),+];

            fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }
        }
    };
}
