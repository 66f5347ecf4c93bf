//! Every module says first what it is for.

use crate::tidy::finding::TidyFinding;
use crate::tidy::tree::Tree;

/// Modules that do not start with `//!` and a word.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let modules = tree.texts().filter(|(path, _)| is_module(path));
    let bare = modules.filter(|(_, text)| {
        let header = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("//!"));
        header.is_none_or(|header| header.trim().is_empty())
    });
    bare.map(|(path, _)| TidyFinding::new(path, 1, "a module starts with `//!` and what it is for"))
        .collect()
}

fn is_module(path: &str) -> bool {
    let is_source = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", _, "src", ..] | ["xtask", "src", ..] => true,
        [..] => false,
    };
    is_source && path.ends_with(".rs")
}

#[cfg(test)]
mod tests;
