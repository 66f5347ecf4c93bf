//! Characters that make a script read differently from how it runs.

pub(crate) use model::unseen::{is_blank_letter, is_direction, is_invisible, is_joiner};

/// Whether a name imitates another: it mixes plain Latin with letters that look like
/// Latin, or is made of such letters alone. `имя` and `größe` are fine.
pub(crate) fn is_homograph(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    let mut has_lookalike = false;
    let mut has_latin = false;
    let mut has_own = false;
    for character in name.chars() {
        if character.is_ascii_alphabetic() {
            has_latin = true;
        } else if looks_latin(character) {
            has_lookalike = true;
        } else if character.is_alphabetic() {
            has_own = true;
        }
    }
    has_lookalike && (has_latin || !has_own)
}

/// Letters of other scripts, and other forms of Latin letters, that a reader
/// takes for plain Latin ones.
fn looks_latin(character: char) -> bool {
    matches!(character,
        // Cyrillic
        'а' | 'е' | 'о' | 'р' | 'с' | 'у' | 'х' | 'ѕ' | 'і' | 'ј' | 'ԁ' | 'ԛ' | 'ԝ' | 'һ' | 'ӏ' | 'ү' | 'ѵ' | 'в'
        | 'к' | 'А' | 'В' | 'Е' | 'К' | 'М' | 'Н' | 'О' | 'Р' | 'С' | 'Т' | 'Х' | 'У' | 'Ѕ' | 'І' | 'Ј' | 'Ѵ' | 'Ӏ'
        // Greek
        | 'ο' | 'ν' | 'ι' | 'κ' | 'Α' | 'Β' | 'Ε' | 'Ζ' | 'Η' | 'Ι' | 'Κ' | 'Μ' | 'Ν' | 'Ο' | 'Ρ' | 'Τ' | 'Υ' | 'Χ'
        | 'ϲ' | 'ϳ'
        // Armenian
        | 'օ' | 'ո' | 'ս' | 'ց' | 'հ' | 'Տ' | 'Լ'
        // Cherokee
        | 'Ꭰ' | 'Ꭱ' | 'Ꭲ' | 'Ꭺ' | 'Ꭻ' | 'Ꭼ' | 'Ꮃ' | 'Ꮇ' | 'Ꮋ' | 'Ꮐ' | 'Ꮓ' | 'Ꮪ' | 'Ꮩ' | 'Ꮯ' | 'Ꮲ'
        // Other forms of Latin letters
        | 'ı' | 'ɑ' | 'ɡ' | 'ɩ' | 'ⅰ' | 'ⅼ' | 'ⅽ' | 'ⅾ' | 'ⅿ'
        | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(is_homograph(name), expected, "{name}");
    }

    #[test]
    fn names_of_any_language_are_names() {
        for name in [
            "имя",
            "größe",
            "数据",
            "λ1",
            "Δt",
            "naïve",
            "θ",
            "πr",
            "данные2",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn lookalike_names_are_reported() {
        for name in ["еval", "саllTool", "сосо", "ｅval", "𝐞val", "ΑΒΕ", "usеr"] {
            check(name, true);
        }
    }
}
