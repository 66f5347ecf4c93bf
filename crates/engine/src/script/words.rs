//! What the engine says when a script fails, in words that name what to do. The engine's
//! own are short and speak of its insides.

/// The message of an uncaught error, for the author of the script.
pub(crate) fn plain(message: &str) -> String {
    let need = "`for … of`, `...` and `[a, b] = …` need an array";
    if message.is_empty() {
        return String::from(
            "the script threw an error without a message; write `throw new Error('what went wrong')`",
        );
    }
    if let Some(found) = message.strip_prefix("cannot read property 'Symbol.iterator' of ") {
        return format!("{found} is not a list: {need}");
    }
    if let Some(found) = message.strip_prefix("cannot read property 'Symbol.asyncIterator' of ") {
        return format!("{found} is not a list: {need}");
    }
    if let Some(name) = between(message, "'", "' is read-only") {
        return format!("`{name}` cannot be assigned to: it is a `const` or read only");
    }
    if let Some(name) = message.strip_suffix(" is not initialized") {
        return format!("`{name}` is used before the line that declares it");
    }
    let plain = match message {
        "value is not iterable" => {
            return format!(
                "the value is not a list: {need}; an object has `Object.entries(value)`"
            );
        }
        "Cannot convert undefined or null to object" => {
            "the value is undefined or null, so it has no properties; check first that it is there"
        }
        "string too long" => "a string became longer than strings can be; keep less at one time",
        "not a function" => "what is called here is not a function",
        "empty array" => {
            "the array is empty, and `reduce` has no first value; give it one as the second argument"
        }
        other => other,
    };
    plain.to_owned()
}

fn between<'a>(message: &'a str, before: &str, after: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.strip_suffix(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_messages_are_rewritten_in_plain_words() {
        let cases = [
            (
                "cannot read property 'Symbol.iterator' of undefined",
                "undefined is not a list: `for … of`, `...` and `[a, b] = …` need an array",
            ),
            (
                "'total' is read-only",
                "`total` cannot be assigned to: it is a `const` or read only",
            ),
            (
                "b is not initialized",
                "`b` is used before the line that declares it",
            ),
            ("not a function", "what is called here is not a function"),
            ("my own words", "my own words"),
        ];
        for (said, expected) in cases {
            assert_eq!(plain(said), expected);
        }
        assert!(plain("").contains("new Error"));
    }
}
