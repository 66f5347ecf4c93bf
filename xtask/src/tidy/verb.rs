//! A function that does something is called by a verb. A reader of
//! `row.changed()` expects an answer, not a transaction. The rule sees `async`
//! functions and those that take `&mut self`; those older than the rule are
//! listed in `xtask/tidy.toml`.

use std::collections::BTreeMap;

use crate::tidy::exception::{self, Definitions};
use crate::tidy::finding::TidyFinding;
use crate::tidy::source::SourceFile;
use crate::tidy::token::{Lexeme, Token};
use crate::tidy::tree::Tree;

/// Participles that do not end in `ed`. Those that are also the verb, as `run`,
/// `read`, `set` and `put`, are left out.
const IRREGULAR: &[&str] = &[
    "begun",
    "born",
    "bought",
    "bound",
    "broken",
    "brought",
    "built",
    "chosen",
    "done",
    "drawn",
    "driven",
    "fallen",
    "forgotten",
    "found",
    "frozen",
    "given",
    "gone",
    "got",
    "grown",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "laid",
    "learnt",
    "left",
    "lent",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "ran",
    "risen",
    "said",
    "seen",
    "sent",
    "shown",
    "sold",
    "spent",
    "spoken",
    "spoilt",
    "stolen",
    "sworn",
    "taken",
    "taught",
    "thought",
    "thrown",
    "told",
    "torn",
    "understood",
    "won",
    "worn",
    "woven",
    "written",
    "withdrawn",
];

/// Verbs that end in `ed` by themselves.
const VERBS: &[&str] = &[
    "bed", "embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "speed",
    "succeed", "weed",
];

/// Functions with effects whose whole name is a participle.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found: BTreeMap<String, Definitions> = BTreeMap::new();
    for source in SourceFile::all(tree) {
        for (name, line) in effectful(&source.tokens) {
            if is_participle(&name) {
                let key = format!("{}::{name}", source.crate_name);
                let definitions = found.entry(key).or_default();
                definitions.push((source.path.to_owned(), line));
            }
        }
    }
    let what = "does something and is named by a participle; use a verb";
    exception::hold(tree, "participles", &found, 0, what)
}

fn is_participle(name: &str) -> bool {
    let is_bare = !name.contains('_');
    (is_bare && name.ends_with("ed") && !VERBS.contains(&name)) || IRREGULAR.contains(&name)
}

/// Functions that are `async` or take `&mut self`, with their lines.
fn effectful(tokens: &[Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut is_async = false;
    for (index, token) in tokens.iter().enumerate() {
        match token.word.name() {
            Some("fn") => {
                let after = tokens.get(index + 1..).unwrap_or_default();
                let name = after.first().and_then(|token| token.word.name());
                if let Some(name) = name.filter(|_| is_async || changes_itself(after)) {
                    found.push((name.to_owned(), token.line));
                }
                is_async = false;
            }
            Some("async") => is_async = true,
            // `async unsafe extern fn` is one function.
            Some("unsafe" | "extern") => {}
            Some(_) | None => is_async = false,
        }
    }
    found
}

/// Whether the first parameter is `&mut self`, or `self` behind a type with
/// `&mut` in it, as in `self: Pin<&mut Self>`.
fn changes_itself(after_fn: &[Token]) -> bool {
    let open = after_fn
        .iter()
        .position(|token| token.word == Lexeme::Mark('('));
    let parameters = open.and_then(|open| after_fn.get(open + 1..));
    let first = parameters
        .unwrap_or_default()
        .iter()
        .take_while(|token| !matches!(token.word, Lexeme::Mark(',' | ')')));
    let first: Vec<&Token> = first.collect();
    let has = |wanted: &str| first.iter().any(|token| token.word.is(wanted));
    let borrows = first.iter().any(|token| token.word == Lexeme::Mark('&'));
    borrows && has("mut") && has("self")
}

#[cfg(test)]
mod tests;
