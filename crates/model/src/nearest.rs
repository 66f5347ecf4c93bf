//! "Did you mean": the known name closest to an unknown one.

/// The closest of `known` to `unknown`, if any is close enough to be a slip.
#[must_use]
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A very long name cannot be a slip of a short one, and the comparison is
    // quadratic in its length.
    if unknown.chars().count() > 64 {
        return None;
    }
    let folded = fold(unknown);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        .filter(|(distance, name)| *distance <= name.chars().count().max(3) / 3)
        .filter(|(distance, _)| *distance < folded.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Case and separators are the commonest slips: `network_mode`, `NetworkMode`.
fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unknown: &str, expected: Option<&str>) {
        let known = ["networkMode", "hostsAllow", "fileRead", "fileWrite"];
        assert_eq!(nearest(unknown, known), expected, "{unknown:?}");
    }

    #[test]
    fn slips_are_recognised() {
        check("networkmode", Some("networkMode"));
        check("network_mode", Some("networkMode"));
        check("netwrokMode", Some("networkMode"));
        check("hostAllow", Some("hostsAllow"));
        check("fileRaed", Some("fileRead"));
    }

    #[test]
    fn strangers_are_not() {
        check("colour", None);
        check("", None);
        assert_eq!(nearest("d", ["a", "b"]), None);
        check(&"networkMode".repeat(100), None);
    }
}
