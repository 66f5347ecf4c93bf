//! Rust code as a row of tokens, for rules that look at more than words.

use crate::tidy::lexer::{code_only, is_name};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lexeme {
    /// A name or a keyword.
    Name(String),
    /// `::`
    Separator,
    /// Any other character.
    Mark(char),
}

/// The smallest piece of code, and its place.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) word: Lexeme,
    /// From one.
    pub(crate) line: usize,
}

/// The tokens of code from which comments and literals are gone.
pub(crate) fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let line = index + 1;
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            // `r#fs` is the name `fs`.
            let start = rest.strip_prefix("r#").unwrap_or(rest);
            let length = start.find(|mark| !is_name(mark)).unwrap_or(start.len());
            let (name, after) = start.split_at(length);
            if length > 0 {
                found.push(Token {
                    word: Lexeme::Name(name.to_owned()),
                    line,
                });
                rest = after;
            } else if let Some(after) = rest.strip_prefix("::") {
                found.push(Token {
                    word: Lexeme::Separator,
                    line,
                });
                rest = after;
            } else {
                found.push(Token {
                    word: Lexeme::Mark(first),
                    line,
                });
                (_, rest) = rest.split_at(first.len_utf8());
            }
            rest = rest.trim_start();
        }
    }
    found
}

impl Lexeme {
    /// The name, if it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Separator | Self::Mark(_) => None,
        }
    }

    /// Whether it is this name.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        self.name() == Some(wanted)
    }
}

/// The tokens of a file without what only tests compile: the items behind
/// `#[cfg(test)]` and `#[cfg(all(test, …))]`.
pub(crate) fn product_tokens(text: &str) -> Vec<Token> {
    let all = tokens(&code_only(text));
    let mut kept = Vec::with_capacity(all.len());
    let mut rest = all.as_slice();
    while let [token, after @ ..] = rest {
        rest = match test_attribute(rest) {
            Some(length) => rest.get(length..).map(after_item).unwrap_or_default(),
            None => {
                kept.push(token.clone());
                after
            }
        };
    }
    kept
}

/// How many tokens of `#[cfg(test)]` or `#[cfg(all(test` and the rest of the
/// attribute the code starts with.
fn test_attribute(tokens: &[Token]) -> Option<usize> {
    let inner = attribute(tokens)?;
    let names: Vec<&str> = inner.iter().filter_map(|token| token.word.name()).collect();
    let is_test = matches!(
        names.as_slice(),
        ["cfg", "test"] | ["cfg", "all", "test", ..]
    );
    is_test.then_some(inner.len() + 3)
}

/// The text between `#[` and `]`, if the code starts so.
fn attribute(tokens: &[Token]) -> Option<&[Token]> {
    let [hash, open, inner @ ..] = tokens else {
        return None;
    };
    if hash.word != Lexeme::Mark('#') || open.word != Lexeme::Mark('[') {
        return None;
    }
    let mut depth = 0_usize;
    let length = inner.iter().position(|token| match token.word {
        Lexeme::Mark('[') => {
            depth += 1;
            false
        }
        Lexeme::Mark(']') if depth == 0 => true,
        Lexeme::Mark(']') => {
            depth -= 1;
            false
        }
        Lexeme::Mark(_) | Lexeme::Name(_) | Lexeme::Separator => false,
    })?;
    inner.get(..length)
}

/// What follows the first item: a field ends with its comma, a module or a
/// function with its brace, everything else with its semicolon.
fn after_item(mut tokens: &[Token]) -> &[Token] {
    while let Some(inner) = attribute(tokens) {
        tokens = tokens.get(inner.len() + 3..).unwrap_or_default();
    }
    let mut words = tokens.iter().filter_map(|token| token.word.name());
    let needs_semicolon = words
        .find(|word| !matches!(*word, "pub" | "crate" | "super" | "in"))
        .is_some_and(|word| matches!(word, "use" | "static" | "let"));
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        let is_end = match token.word {
            Lexeme::Mark('{' | '(' | '[') => {
                depth += 1;
                false
            }
            // The brace of whatever holds the item is not the item's.
            Lexeme::Mark('}' | ')' | ']') if depth == 0 => {
                return tokens.get(index..).unwrap_or_default();
            }
            Lexeme::Mark(closing @ ('}' | ')' | ']')) => {
                depth -= 1;
                depth == 0 && closing == '}' && !needs_semicolon
            }
            Lexeme::Mark(';' | ',') => depth == 0,
            Lexeme::Mark(_) | Lexeme::Name(_) | Lexeme::Separator => false,
        };
        if is_end {
            return tokens.get(index + 1..).unwrap_or_default();
        }
    }
    &[]
}

#[cfg(test)]
mod tests;
