//! What would change, line by line. An entry changes one place, so what is the same
//! before and after it need not be looked for elsewhere.

/// Lines shown around what changes.
const CONTEXT: usize = 2;

/// The changed lines with `-` and `+` before them, and a few around.
pub(super) fn lines(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev());
    let after = ends.take(rest).take_while(same).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let context = before.saturating_sub(CONTEXT);
    let mut shown = Vec::new();
    let mut push = |sign: char, lines: &mut dyn Iterator<Item = &&str>| {
        shown.extend(lines.map(|line| format!("{sign} {}", model::text::one_line(line))));
    };
    push(' ', &mut new.iter().take(before).skip(context));
    push('-', &mut old.iter().take(old_end).skip(before));
    push('+', &mut new.iter().take(new_end).skip(before));
    push(' ', &mut new.iter().skip(new_end).take(CONTEXT));
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_place_is_shown() {
        let old = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(
            lines(old, "a\nb\nc\nX\ne\nf\n"),
            "  b\n  c\n- d\n+ X\n  e\n  f"
        );
        assert_eq!(lines("", "a\n"), "+ a");
        assert_eq!(lines("a\n", ""), "- a");
        assert_eq!(lines("a\na\n", "a\na\na\n"), "  a\n  a\n+ a");
        assert_eq!(lines("a\u{1b}[2J\n", "b\n"), "- a\\u{1b}[2J\n+ b");
    }
}
