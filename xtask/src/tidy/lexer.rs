//! Just enough of Rust's lexical grammar to look at code without being misled
//! by comments and literals.

/// The text with comments, strings and character literals turned into spaces. Lines
/// keep their numbers. Invalid Rust gives some answer; the compiler refuses it
/// elsewhere.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let blank = skipped(rest, previous);
        let (taken, after) = rest.split_at(blank.unwrap_or(first.len_utf8()));
        match blank {
            Some(_) => code.extend(
                taken
                    .chars()
                    .map(|mark| if mark == '\n' { '\n' } else { ' ' }),
            ),
            None => code.push_str(taken),
        }
        previous = if blank.is_some() { ' ' } else { first };
        rest = after;
    }
    code
}

/// Whether a character can be part of a name.
pub(crate) fn is_name(mark: char) -> bool {
    mark == '_' || mark.is_alphanumeric()
}

/// How many bytes of comment or literal `rest` starts with; nothing if it
/// starts with code.
fn skipped(rest: &str, previous: char) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    // `br` in `abr"…"` is the end of a name, not a prefix.
    let prefixes: &[&str] = if is_name(previous) {
        &[""]
    } else {
        &["", "b", "c"]
    };
    for prefix in prefixes {
        let Some(after) = rest.strip_prefix(prefix) else {
            continue;
        };
        if let Some(length) = quoted(after) {
            return Some(prefix.len() + length);
        }
        let raw = after
            .strip_prefix('r')
            .filter(|_| !is_name(previous))
            .and_then(raw_string);
        if let Some(length) = raw {
            return Some(prefix.len() + 1 + length);
        }
    }
    None
}

/// The length of a block comment; they nest. An unclosed one ends the file.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut rest = text;
    loop {
        let step = if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            match rest.chars().next() {
                Some(mark) => mark.len_utf8(),
                None => return text.len(),
            }
        };
        (_, rest) = rest.split_at(step);
        if depth == 0 {
            return text.len() - rest.len();
        }
    }
}

/// The length of `"…"` or `'…'` with its quotes; nothing for a lifetime.
fn quoted(text: &str) -> Option<usize> {
    let quote = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '"' | '\''))?;
    if quote == '\'' {
        // Either a backslash, or one character and the closing quote.
        let mut ahead = text.chars().skip(1);
        let is_character = match (ahead.next(), ahead.next()) {
            (Some('\\'), _) => true,
            (Some(_), Some(closing)) => closing == '\'',
            (_, None) | (None, _) => false,
        };
        if !is_character {
            return None;
        }
    }
    let mut escaped = false;
    for (position, mark) in text.char_indices().skip(1) {
        match mark {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if mark == quote => return Some(position + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of `"…"`, `#"…"#` and so on; nothing for a raw name.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.chars().take_while(|mark| *mark == '#').count();
    let (fence, rest) = text.split_at_checked(hashes)?;
    let body = rest.strip_prefix('"')?;
    let closing = format!("\"{fence}");
    match body.find(&closing) {
        Some(position) => Some(hashes + 1 + position + closing.len()),
        None => Some(text.len()),
    }
}

#[cfg(test)]
mod tests;
