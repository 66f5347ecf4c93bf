//! `WWW-Authenticate`, as far as a client of MCP needs it.

/// What a challenge says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the document about the resource is.
    pub resource_metadata: Option<String>,
    /// What is asked for.
    pub scope: Option<String>,
    /// Why the token was refused.
    pub error: Option<String>,
}

/// Reads the parameters of the `Bearer` challenge; what cannot be read is left out.
#[must_use]
pub fn parse(header: &str) -> Challenge {
    let mut challenge = Challenge::default();
    let mut rest = bearer(header);
    while let Some((name, value, after)) = next_parameter(rest) {
        rest = after;
        let place = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut challenge.resource_metadata,
            "scope" => &mut challenge.scope,
            "error" => &mut challenge.error,
            _ => continue,
        };
        // The first counts: a second may have been put there by another.
        if place.is_none() && !value.is_empty() {
            *place = Some(value);
        }
    }
    challenge
}

/// What follows the scheme.
fn bearer(header: &str) -> &str {
    let lower = header.to_ascii_lowercase();
    let starts = lower.match_indices("bearer").map(|(start, _)| start);
    // Every place: the word may also be part of a parameter of another scheme.
    for start in starts {
        let before = header.get(..start).unwrap_or_default();
        let after = header.get(start + "bearer".len()..).unwrap_or_default();
        let is_first = before.trim_end().is_empty() || before.trim_end().ends_with(',');
        if is_first && after.starts_with([' ', '\t']) {
            return after;
        }
    }
    ""
}

/// `name=value` or `name="value"`, and what follows it.
fn next_parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_end();
    // A space in it: another scheme begins here.
    if name.is_empty() || name.contains([' ', '\t', '"']) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ', '\t']).unwrap_or(rest.len());
        let (value, after) = rest.split_at_checked(end)?;
        return Some((name, value.to_owned(), after));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((name, value, quoted.get(index + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[track_caller]
    fn check(header: &str, metadata: Option<&str>, scope: Option<&str>) {
        let challenge = parse(header);
        assert_eq!(challenge.resource_metadata.as_deref(), metadata, "{header}");
        assert_eq!(challenge.scope.as_deref(), scope, "{header}");
    }

    #[test]
    fn parameters_are_read_quoted_or_not() {
        check(
            r#"Bearer resource_metadata="https://a.com/m", scope="files:read files:write""#,
            Some("https://a.com/m"),
            Some("files:read files:write"),
        );
        check("bearer scope=read, error=invalid_token", None, Some("read"));
        check(
            r#"Bearer realm="a \"b\", scope=x", scope="y""#,
            None,
            Some("y"),
        );
        check(r#"Basic realm="x", Bearer scope="y""#, None, Some("y"));
        check(r#"Bearer scope="y", scope="z""#, None, Some("y"));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        check("", None, None);
        check("Bearer", None, None);
        check("Basic scope=x", None, None);
        check(r#"Bearer scope="never ends"#, None, None);
        check("Bearer =,=,=", None, None);
        check(r#"Bearer a="x", Digest scope="y""#, None, None);
    }
}
