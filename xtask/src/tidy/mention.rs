//! Paths as code mentions them: `std::fs::read`, and each path hidden in a
//! group, as in `use std::{fs, io::{self, Read}}`.

use std::iter::Peekable;
use std::vec::IntoIter;

use crate::tidy::lexer::{code_only, is_name};

/// Words that never start a path, though `::` may follow, as in `use ::std`.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "extern", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "static", "struct", "trait", "type", "unsafe", "use", "where", "while",
];

/// One path in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// `*` stands for a glob.
    pub(crate) segments: Vec<String>,
    /// From one.
    pub(crate) line: usize,
    /// Whether `as` follows, giving it another name.
    pub(crate) renamed: bool,
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
    let mut tokens = tokens(&code_only(text)).into_iter().peekable();
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        match token.word {
            Word::Name(name) if KEYWORDS.contains(&name.as_str()) => {
                found.push(Mention {
                    segments: vec![name],
                    line: token.line,
                    renamed: false,
                });
            }
            Word::Name(name) => path(vec![name], token.line, &mut tokens, &mut found),
            Word::Separator | Word::Mark(_) => {}
        }
    }
    found
}

/// The attributes in Rust source: the names in each, and its line.
pub(crate) fn attributes(text: &str) -> Vec<(Vec<String>, usize)> {
    let mut tokens = tokens(&code_only(text)).into_iter().peekable();
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        if token.word != Word::Mark('#') {
            continue;
        }
        tokens.next_if(|next| next.word == Word::Mark('!'));
        if tokens
            .next_if(|next| next.word == Word::Mark('['))
            .is_none()
        {
            continue;
        }
        let mut names = Vec::new();
        while let Some(inner) = tokens.next_if(|next| next.word != Word::Mark(']')) {
            if let Word::Name(name) = inner.word {
                names.push(name);
            }
        }
        found.push((names, token.line));
    }
    found
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Name(String),
    /// `::`
    Separator,
    Mark(char),
}

#[derive(Clone, Debug)]
struct Token {
    word: Word,
    line: usize,
}

type Tokens = Peekable<IntoIter<Token>>;

fn tokens(code: &str) -> Vec<Token> {
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
                    word: Word::Name(name.to_owned()),
                    line,
                });
                rest = after;
            } else if let Some(after) = rest.strip_prefix("::") {
                found.push(Token {
                    word: Word::Separator,
                    line,
                });
                rest = after;
            } else {
                found.push(Token {
                    word: Word::Mark(first),
                    line,
                });
                (_, rest) = rest.split_at(first.len_utf8());
            }
            rest = rest.trim_start();
        }
    }
    found
}

/// Follows a path from its first segments to its end, or to its many ends.
fn path(mut segments: Vec<String>, line: usize, tokens: &mut Tokens, found: &mut Vec<Mention>) {
    while tokens
        .next_if(|token| token.word == Word::Separator)
        .is_some()
    {
        match tokens.peek().map(|token| token.word.clone()) {
            Some(Word::Name(name)) => segments.push(name),
            Some(Word::Mark('*')) => segments.push("*".to_owned()),
            Some(Word::Mark('{')) => {
                tokens.next();
                return group(&segments, tokens, found);
            }
            // A turbofish ends what we need to know.
            Some(Word::Mark(_) | Word::Separator) | None => break,
        }
        tokens.next();
    }
    let renamed = tokens
        .next_if(|token| token.word == Word::Name("as".to_owned()))
        .is_some();
    found.push(Mention {
        segments,
        line,
        renamed,
    });
}

/// The rest of `{a, b::c, self, *}`, each after the same prefix.
fn group(prefix: &[String], tokens: &mut Tokens, found: &mut Vec<Mention>) {
    while let Some(token) = tokens.next() {
        let name = match token.word {
            Word::Name(name) => name,
            Word::Mark('*') => "*".to_owned(),
            Word::Mark('}') => return,
            Word::Separator | Word::Mark(_) => continue,
        };
        let segments = match name.as_str() {
            "self" => prefix.to_vec(),
            _ => prefix.iter().cloned().chain([name]).collect(),
        };
        path(segments, token.line, tokens, found);
        if found.last().is_some_and(|mention| mention.renamed) {
            // The new name is not a path.
            tokens.next_if(|token| matches!(token.word, Word::Name(_)));
        }
    }
}

#[cfg(test)]
mod tests;
