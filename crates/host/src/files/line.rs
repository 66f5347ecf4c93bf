//! Lines as the reference counts them: `\n`, `\r\n` and a lone `\r` each end
//! one, and an end at the very end starts no further line.

/// The lines of a text, without their ends.
#[derive(Clone, Debug)]
pub(crate) struct TextLines<'a> {
    rest: &'a str,
}

/// The lines of a text.
pub(crate) fn lines(text: &str) -> TextLines<'_> {
    TextLines { rest: text }
}

impl<'a> Iterator for TextLines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        // Searched as bytes: that is several times faster than as characters.
        let end = self
            .rest
            .bytes()
            .position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some((line, ended)) = end.and_then(|end| self.rest.split_at_checked(end)) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let ends = ["\r\n", "\n", "\r"];
        let rest = ends.iter().find_map(|end| ended.strip_prefix(end));
        self.rest = rest.unwrap_or_default();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn each_end_ends_one_line() {
        check("", &[]);
        check("\n", &[""]);
        check("a", &["a"]);
        check("a\n", &["a"]);
        check("a\n\n", &["a", ""]);
        check("a\r\nb\rc\nd", &["a", "b", "c", "d"]);
        check("\r\r\n\né", &["", "", "", "é"]);
    }
}
