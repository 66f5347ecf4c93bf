//! New lines of `secrets.env`. Old lines stay. A new line reads back as exactly its value,
//! or it is not added.

use model::Environment;

/// A line that means exactly this value; nothing if none does.
pub(crate) fn line(name: &str, value: &str) -> Option<String> {
    let spellings = [
        format!("{name}={value}"),
        format!("{name}=\"{value}\""),
        format!("{name}='{value}'"),
    ];
    spellings.into_iter().find(|line| {
        let mut read = Environment::empty();
        read.read_lines(line).is_ok() && read.get(name) == Some(value)
    })
}

/// Whether a value can stand in the file.
pub(crate) fn fits(value: &str) -> bool {
    !value.contains(['\n', '\r', '\0']) && line("NAME", value).is_some()
}

/// The file of secrets with more values.
#[must_use]
pub fn with(text: &str, pairs: &[(String, String)]) -> String {
    let mut new = text.to_owned();
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    for (name, value) in pairs {
        new.extend(line(name, value));
        new.push('\n');
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_back_as_it_was() {
        for value in [
            "plain",
            "a=b",
            " spaces ",
            "\"quoted\"",
            "'single'",
            "# no comment",
            "a\"b",
            "$HOME ${X}",
        ] {
            assert!(fits(value), "{value:?}");
            let pairs = [("NAME".to_owned(), value.to_owned())];
            let mut read = Environment::empty();
            read.read_lines(&with("OLD=1", &pairs)).expect("lines");
            assert_eq!(read.get("NAME"), Some(value), "{value:?}");
            assert_eq!(read.get("OLD"), Some("1"), "{value:?}");
        }
        for value in ["a\nb", "a\rb", "a\0b"] {
            assert!(!fits(value), "{value:?}");
        }
    }
}
