//! Splits text into tokens with places.

use super::parser::ConditionFault;

/// A token and where it starts, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name(String),
    Int(i64),
    Double(f64),
    Text(String),
    /// `&&`, `(`, and so on.
    Mark(&'static str),
    End,
}

/// Longer marks first.
const MARKS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", "(", ")",
    "[", "]", ",", ".",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ConditionFault> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            tokens.push(Token {
                kind: Kind::End,
                at,
            });
            return Ok(tokens);
        };
        let (kind, after) = match first {
            '"' | '\'' => quoted(rest, first, false, at)?,
            'r' if rest
                // `None` also where the next character is not ASCII.
                .get(1..2)
                .is_some_and(|next| next == "'" || next == "\"") =>
            {
                let raw = rest.get(1..).unwrap_or("");
                quoted(raw, raw.chars().next().unwrap_or('"'), true, at)?
            }
            '0'..='9' => number(rest, at)?,
            'a'..='z' | 'A'..='Z' | '_' => name(rest),
            _ => mark(rest, first, at)?,
        };
        tokens.push(Token { kind, at });
        rest = after;
    }
}

fn name(rest: &str) -> (Kind, &str) {
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    (Kind::Name(word.to_owned()), after)
}

fn mark(rest: &str, first: char, at: usize) -> Result<(Kind, &str), ConditionFault> {
    let found = MARKS
        .iter()
        .find_map(|mark| rest.strip_prefix(mark).map(|after| (*mark, after)));
    if let Some((mark, after)) = found {
        return Ok((Kind::Mark(mark), after));
    }
    let fix = match first {
        '=' => Some("write `==`".to_owned()),
        '&' => Some("write `&&`".to_owned()),
        '|' => Some("write `||`".to_owned()),
        _ => None,
    };
    let shown = crate::text::one_line(&first.to_string());
    Err(ConditionFault {
        at,
        message: format!("`{shown}` has no meaning in a condition"),
        fix,
    })
}

fn number(rest: &str, at: usize) -> Result<(Kind, &str), ConditionFault> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let mut end = digits(rest);
    let mut whole = true;
    let tail = |end: usize| rest.get(end..).unwrap_or("");
    if let Some(fraction) = tail(end).strip_prefix('.')
        && fraction.starts_with(|c: char| c.is_ascii_digit())
    {
        end += 1 + digits(fraction);
        whole = false;
    }
    if let Some(power) = tail(end).strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let count = digits(power.get(sign..).unwrap_or(""));
        if count > 0 {
            end += 1 + sign + count;
            whole = false;
        }
    }
    let (word, after) = rest.split_at(end);
    let bad = |message: &str| ConditionFault {
        at,
        message: format!("`{}` {message}", crate::text::elided(word, 40)),
        fix: None,
    };
    if after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        return Err(bad("is followed by a letter"));
    }
    let kind = if whole {
        Kind::Int(word.parse().map_err(|_| bad("is too large"))?)
    } else {
        let number: f64 = word.parse().map_err(|_| bad("is no number"))?;
        if !number.is_finite() {
            return Err(bad("is too large"));
        }
        Kind::Double(number)
    };
    Ok((kind, after))
}

fn quoted(rest: &str, quote: char, raw: bool, at: usize) -> Result<(Kind, &str), ConditionFault> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((place, c)) = chars.next() {
        if c == quote {
            let after = rest.get(place + c.len_utf8()..).unwrap_or("");
            return Ok((Kind::Text(text), after));
        }
        if c != '\\' || raw {
            text.push(c);
            continue;
        }
        let escaped = chars.next().map(|(_, c)| c);
        let plain = match escaped {
            Some(same @ ('\\' | '"' | '\'' | '`' | '?')) => Some(same),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                // A sign is a part of a number to the standard library, and none of a code.
                let is_plain = digits.len() == 4 && !digits.starts_with('+');
                code.filter(|_| is_plain).and_then(char::from_u32)
            }
            Some(_) | None => None,
        };
        match plain {
            Some(plain) => text.push(plain),
            None => {
                return Err(ConditionFault {
                    at: at + place,
                    message: "an escape that is not known".to_owned(),
                    fix: Some("write `\\\\` for a backslash, or `r'…'` for plain text".to_owned()),
                });
            }
        }
    }
    Err(ConditionFault {
        at,
        message: "a string without its closing quote".to_owned(),
        fix: None,
    })
}

/// A text as it is written in an expression, such that it is read the same.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
