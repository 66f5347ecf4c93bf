//! One word, one meaning: the name of a public type is defined once in the
//! workspace. Names that are older than the rule are listed in
//! `xtask/tidy.toml` with how often they may be defined.

use std::collections::BTreeMap;

use crate::tidy::exception::{self, Definitions};
use crate::tidy::finding::TidyFinding;
use crate::tidy::source::SourceFile;
use crate::tidy::token::{Lexeme, Token};
use crate::tidy::tree::Tree;

/// Names that more than one public type has.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found: BTreeMap<String, Definitions> = BTreeMap::new();
    for source in SourceFile::all(tree) {
        for (name, line) in public_types(&source.tokens) {
            let definitions = found.entry(name).or_default();
            definitions.push((source.path.to_owned(), line));
        }
    }
    let what = "names more than one public type; rename one";
    exception::hold(tree, "types", &found, 1, what)
}

/// The types that are `pub` or `pub(crate)`, with their lines.
fn public_types(tokens: &[Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, _) in tokens.iter().enumerate() {
        let rest = tokens.get(index..).unwrap_or_default();
        let after = match rest {
            [public, open, scope, close, after @ ..]
                if public.word.is("pub")
                    && open.word == Lexeme::Mark('(')
                    && scope.word.is("crate")
                    && close.word == Lexeme::Mark(')') =>
            {
                after
            }
            [public, after @ ..] if public.word.is("pub") => after,
            [..] => continue,
        };
        let [keyword, name, ..] = after else {
            continue;
        };
        let is_type = keyword
            .word
            .name()
            .is_some_and(|word| matches!(word, "struct" | "enum" | "trait" | "type"));
        if let (true, Some(name)) = (is_type, name.word.name()) {
            found.push((name.to_owned(), keyword.line));
        }
    }
    found
}

#[cfg(test)]
mod tests;
