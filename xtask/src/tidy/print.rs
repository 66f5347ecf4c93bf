//! Only the printer and the console of `cli` write to a terminal, because only they
//! make visible what they write. Everywhere else the ways to standard output and
//! error are refused, whatever they are called.

use crate::tidy::finding::TidyFinding;
use crate::tidy::mention::{Mention, mentions};
use crate::tidy::tree::Tree;

/// The two modules that write, and one whose standard output is a pipe to its parent.
const WRITERS: &[&str] = &[
    "crates/cli/src/output/printer.rs",
    "crates/cli/src/output/console.rs",
    "crates/host/src/sql/role.rs",
];

/// Names that print, in the crate that has a terminal. Methods count: `error.print()`
/// of the command line's parser shows what was typed as it was typed.
const NAMES: &[&str] = &[
    "stdout", "stderr", "print", "println", "eprint", "eprintln", "dbg",
];

/// Paths that print, in every other crate. There `stdout` may be that of a child.
const PATHS: &[&str] = &["io::stdout", "io::stderr", "stdio::stdout", "stdio::stderr"];

/// Ways to a terminal outside the modules that may write to one.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    let modules = tree.texts().filter(|(path, _)| is_shipped(path));
    for (path, text) in modules.filter(|(path, _)| !WRITERS.contains(path)) {
        let is_cli = path.starts_with("crates/cli/");
        for mention in mentions(text) {
            if prints(&mention, is_cli) {
                let what = mention.segments.join("::");
                let sentence = format!(
                    "`{what}` writes past the printer, which makes text visible; use `printer`"
                );
                found.push(TidyFinding::new(path, mention.line, sentence));
            }
        }
    }
    found
}

/// Code of the product: not its tests, nor programs that only tests start.
fn is_shipped(path: &str) -> bool {
    let is_source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    is_source && !path.contains("/src/bin/") && !path.ends_with("/tests.rs")
}

fn prints(mention: &Mention, is_cli: bool) -> bool {
    let is_named = |name: &&str| mention.ends_with(name);
    PATHS.iter().any(is_named) || (is_cli && NAMES.iter().any(is_named))
}

#[cfg(test)]
mod tests;
