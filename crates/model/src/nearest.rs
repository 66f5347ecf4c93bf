//! "Did you mean": the known name closest to an unknown one.

/// The closest of `known` to `unknown`, if any is close enough to be a typing error.
#[must_use]
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A very long name cannot be a mistyped short one, and the comparison is quadratic
    // in its length.
    if unknown.chars().count() > 64 {
        return None;
    }
    let folded = fold(unknown);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&folded, &fold(name)), name))
        // One slip for each three letters, and one in a shorter name.
        .filter(|(distance, name)| *distance <= name.chars().count().max(3) / 3)
        // Otherwise every short word would be near every other.
        .filter(|(distance, _)| *distance < folded.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The pattern that may have been meant by one that fits no name: for `delte*` the
/// beginning of a known name, for `*flie` the end of one.
#[must_use]
pub fn nearest_pattern<'a>(
    pattern: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<String> {
    let head = pattern.strip_suffix('*').filter(|head| !head.contains('*'));
    let tail = pattern.strip_prefix('*').filter(|tail| !tail.contains('*'));
    let pieces = |stem: &str, piece: fn(&str, usize) -> String| -> Vec<String> {
        let chars = stem.chars().count();
        // Longest first: of two that are as near, the whole word is meant.
        let lengths = [chars + 1, chars, chars.saturating_sub(1)];
        let names = known.clone().into_iter();
        let all = names.flat_map(|name| lengths.map(|length| piece(name, length)));
        all.filter(|piece| !piece.is_empty()).collect()
    };
    match (head, tail) {
        (Some(head), _) => {
            let heads = pieces(head, |name, length| name.chars().take(length).collect());
            nearest(head, heads.iter().map(String::as_str)).map(|near| format!("{near}*"))
        }
        (None, Some(tail)) => {
            let tails = pieces(tail, |name, length| {
                let skipped = name.chars().count().saturating_sub(length);
                name.chars().skip(skipped).collect()
            });
            nearest(tail, tails.iter().map(String::as_str)).map(|near| format!("*{near}"))
        }
        (None, None) => nearest(&pattern.replace('*', ""), known).map(str::to_owned),
    }
}

/// Case and separators are the commonest errors: `network_mode`, `NetworkMode`.
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
    fn typing_errors_are_recognised() {
        check("networkmode", Some("networkMode"));
        check("network_mode", Some("networkMode"));
        check("netwrokMode", Some("networkMode"));
        check("hostAllow", Some("hostsAllow"));
        check("fileRaed", Some("fileRead"));
    }

    #[test]
    fn typing_errors_in_patterns_are_recognised() {
        let known = ["deleteFile", "readTextFile", "web.fetch"];
        let near = |pattern: &str| nearest_pattern(pattern, known);
        assert_eq!(near("delte*").as_deref(), Some("delete*"));
        assert_eq!(near("wbe.*").as_deref(), Some("web.*"));
        assert_eq!(near("*Flie").as_deref(), Some("*File"));
        assert_eq!(near("read*Flie").as_deref(), None);
        assert_eq!(near("payment.*"), None);
        assert_eq!(near("*"), None);
    }

    #[test]
    fn unrelated_names_are_not_suggested() {
        check("colour", None);
        check("", None);
        assert_eq!(nearest("d", ["a", "b"]), None);
        check(&"networkMode".repeat(100), None);
    }
}
