//! The change line by line. An entry changes one place, so common lines before and
//! after it are enough.
//!
//! Other lines of the file are not shown, not even as context: they may hold the
//! keys of other servers, and a terminal is not where those belong.

use model::govern::key::PREFIX;

/// A line that is shown, in bytes.
const LINE_BYTES_MAX: usize = 400;

/// The changed lines with `-` and `+` before them. A line that only gets or loses
/// its comma is not one of them.
pub(super) fn lines(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let same = |pair: &(&&str, &&str)| bare(pair.0) == bare(pair.1);
    let before = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev());
    let after = ends.take(rest).take_while(same).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let gone = old.iter().take(old_end).skip(before);
    let come = new.iter().take(new_end).skip(before);
    let shown = |sign: char, line: &&str| match line.len() {
        // The whole file in one line.
        bytes if bytes > LINE_BYTES_MAX => format!("{sign} (a line of {bytes} bytes)"),
        _ => format!("{sign} {}", hidden(line)),
    };
    let gone = gone.map(|line| shown('-', line));
    let come = come.map(|line| shown('+', line));
    gone.chain(come).collect::<Vec<_>>().join("\n")
}

/// Hides tokens after `Bearer` and our own keys: a terminal and its log must not show
/// them.
pub(super) fn hidden(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        plain.push_str(before);
        let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = after.find(|letter| !is_of_key(letter));
        let end = end.unwrap_or(after.len());
        plain.push('…');
        rest = after.get(end..).unwrap_or_default();
    }
    plain.push_str(rest);
    let mut shown = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("Bearer ") {
        shown.push_str(before);
        shown.push_str("Bearer …");
        let end = after.find(['"', '\'']).unwrap_or(after.len());
        rest = after.get(end..).unwrap_or_default();
    }
    shown.push_str(rest);
    model::text::one_line(&shown)
}

fn bare(line: &str) -> &str {
    line.trim_end().trim_end_matches(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_place_is_shown() {
        assert_eq!(lines("a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n"), "- c\n+ X");
        assert_eq!(lines("a\nb\n", "a,\nX\nb\n"), "+ X");
        assert_eq!(lines("a,\nX\nb\n", "a\nb\n"), "- X");
        assert_eq!(lines("", "a\n"), "+ a");
        assert_eq!(lines("a\n", ""), "- a");
        assert_eq!(lines("a\na\n", "a\na\na\n"), "+ a");
        let long = "x".repeat(401);
        assert_eq!(lines("", &long), "+ (a line of 401 bytes)");
        assert_eq!(lines("a\u{1b}[2J\n", "b\n"), "- a\\u{1b}[2J\n+ b");
    }

    #[test]
    fn tokens_are_hidden_in_a_diff() {
        assert_eq!(hidden("\"Bearer abc\","), "\"Bearer …\",");
        assert_eq!(hidden("Bearer a\" 'Bearer b'"), "Bearer …\" 'Bearer …'");
        assert_eq!(hidden("Bearer rf_local_x"), "Bearer …");
        assert_eq!(
            hidden("\"RINGFENCE_KEY\": \"rf_a1_b2\","),
            "\"RINGFENCE_KEY\": \"…\","
        );
        assert_eq!(hidden("plain"), "plain");
    }
}
