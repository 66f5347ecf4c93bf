//! Paths as code mentions them: `std::fs::read`, and each path hidden in a
//! group, as in `use std::{fs, io::{self, Read}}`.

use std::iter::Peekable;
use std::vec::IntoIter;

use crate::tidy::lexer::code_only;
use crate::tidy::token::{Lexeme, Token, tokens};

/// Words that never start a path, though `::` may follow, as in `use ::std`.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "extern", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "static", "struct", "trait", "type", "unsafe", "use", "where", "while",
];

/// One path in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// `*` is a glob.
    pub(crate) segments: Vec<String>,
    /// From one.
    pub(crate) line: usize,
    /// The name after `as`: another name for it, or the type of a cast.
    pub(crate) alias: Option<String>,
}

impl Mention {
    /// Whether the path is `prefix` or something inside it.
    pub(crate) fn is_within(&self, prefix: &str) -> bool {
        let mut segments = self.segments.iter();
        prefix
            .split("::")
            .all(|wanted| segments.next().is_some_and(|segment| segment == wanted))
    }

    /// Whether the path ends with `suffix`.
    pub(crate) fn ends_with(&self, suffix: &str) -> bool {
        let mut segments = self.segments.iter().rev();
        suffix
            .rsplit("::")
            .all(|wanted| segments.next().is_some_and(|segment| segment == wanted))
    }
}

/// Every path in Rust source, names of one segment included.
pub(crate) fn mentions(text: &str) -> Vec<Mention> {
    mentions_in(tokens(&code_only(text)))
}

/// The same, from tokens.
pub(crate) fn mentions_in(tokens: Vec<Token>) -> Vec<Mention> {
    let mut tokens = tokens.into_iter().peekable();
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        match token.word {
            Lexeme::Name(name) if KEYWORDS.contains(&name.as_str()) => {
                found.push(Mention {
                    segments: vec![name],
                    line: token.line,
                    alias: None,
                });
            }
            Lexeme::Name(name) => path(vec![name], token.line, &mut tokens, &mut found),
            Lexeme::Separator | Lexeme::Mark(_) => {}
        }
    }
    found
}

/// The attributes in Rust source: the names in each, and its line.
pub(crate) fn attributes(text: &str) -> Vec<(Vec<String>, usize)> {
    let mut tokens = tokens(&code_only(text)).into_iter().peekable();
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        if token.word != Lexeme::Mark('#') {
            continue;
        }
        tokens.next_if(|next| next.word == Lexeme::Mark('!'));
        if tokens
            .next_if(|next| next.word == Lexeme::Mark('['))
            .is_none()
        {
            continue;
        }
        let mut names = Vec::new();
        while let Some(inner) = tokens.next_if(|next| next.word != Lexeme::Mark(']')) {
            if let Lexeme::Name(name) = inner.word {
                names.push(name);
            }
        }
        found.push((names, token.line));
    }
    found
}

type Tokens = Peekable<IntoIter<Token>>;

/// Follows a path from its first segments to its end, or to its many ends.
fn path(mut segments: Vec<String>, line: usize, tokens: &mut Tokens, found: &mut Vec<Mention>) {
    while tokens
        .next_if(|token| token.word == Lexeme::Separator)
        .is_some()
    {
        match tokens.peek().map(|token| token.word.clone()) {
            Some(Lexeme::Name(name)) => segments.push(name),
            Some(Lexeme::Mark('*')) => segments.push("*".to_owned()),
            Some(Lexeme::Mark('{')) => {
                tokens.next();
                return group(&segments, tokens, found);
            }
            // A turbofish ends what we need to know.
            Some(Lexeme::Mark(_) | Lexeme::Separator) | None => break,
        }
        tokens.next();
    }
    let is_renamed = tokens.next_if(|token| token.word.is("as")).is_some();
    // Only looked at: after `a as`, `std::fs::File` is a path of its own.
    let alias = tokens
        .peek()
        .filter(|_| is_renamed)
        .and_then(|token| token.word.name())
        .map(str::to_owned);
    found.push(Mention {
        segments,
        line,
        alias,
    });
}

/// The rest of `{a, b::c, self, *}`, each after the same prefix.
fn group(prefix: &[String], tokens: &mut Tokens, found: &mut Vec<Mention>) {
    while let Some(token) = tokens.next() {
        let name = match token.word {
            Lexeme::Name(name) => name,
            Lexeme::Mark('*') => "*".to_owned(),
            Lexeme::Mark('}') => return,
            Lexeme::Separator | Lexeme::Mark(_) => continue,
        };
        let segments = match name.as_str() {
            "self" => prefix.to_vec(),
            _ => prefix.iter().cloned().chain([name]).collect(),
        };
        path(segments, token.line, tokens, found);
        if found.last().is_some_and(|mention| mention.alias.is_some()) {
            // The new name is not a path.
            tokens.next_if(|token| matches!(token.word, Lexeme::Name(_)));
        }
    }
}

#[cfg(test)]
mod tests;
