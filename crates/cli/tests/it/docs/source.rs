//! Facts of the code that have no public name: numbers and lists as they are written
//! in the sources of a crate, wherever in it they are.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::root;

/// The sources of a crate, one after the other.
pub(crate) fn of(name: &str) -> String {
    let mut text = String::new();
    gather(&root().join("crates").join(name).join("src"), &mut text);
    assert!(!text.is_empty(), "{name} has no sources");
    text
}

fn gather(folder: &Path, text: &mut String) {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The value of a number with a name, which must have one definition.
pub(crate) fn number(name: &str, constant: &str) -> u64 {
    let pattern = format!(r"\b{constant}: u(?:8|16|32|64|size) = ([^;]+);");
    let text = of(name);
    let found: Vec<_> = Regex::new(&pattern)
        .unwrap()
        .captures_iter(&text)
        .map(|found| value(&found[1]))
        .collect();
    let definitions = found.len();
    assert_eq!(definitions, 1, "definitions of `{constant}` in {name}");
    found.into_iter().sum()
}

/// Numbers, `<<` and `*`.
pub(crate) fn value(expression: &str) -> u64 {
    let plain = expression.replace('_', "");
    if let Some((left, right)) = plain.split_once("<<") {
        return value(left) << value(right);
    }
    let factors = plain.split('*').map(|factor| factor.trim().parse::<u64>());
    factors.map(|factor| factor.expect(expression)).product()
}

/// The text between two others, the first of its kind.
pub(crate) fn between<'t>(text: &'t str, open: &str, close: &str) -> &'t str {
    let (_, rest) = text.split_once(open).expect(open);
    rest.split_once(close).expect(close).0
}

/// All texts in quotation marks.
pub(crate) fn quoted(text: &str) -> Vec<String> {
    let found = Regex::new(r#""([^"]*)""#).unwrap();
    let words = found.captures_iter(text).map(|found| found[1].to_owned());
    words.collect()
}

#[test]
fn numbers_are_read_as_they_are_written() {
    for (written, meant) in [
        ("64", 64),
        ("1_000", 1_000),
        ("32 << 10", 32_768),
        ("4 * 1024 * 1024", 4_194_304),
    ] {
        assert_eq!(value(written), meant);
    }
}
