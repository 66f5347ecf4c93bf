//! `cargo xtask tidy`: project rules that no compiler checks.
//!
//! Every rule is a pure function from the tree of files to findings, so a rule
//! is tested without a disk. All findings are reported together.

mod ban;
mod cycle;
mod dependency;
mod exception;
mod finding;
mod header;
mod layer;
mod lexer;
mod link;
mod lint;
mod manifest;
mod mention;
mod print;
mod size;
mod source;
mod token;
mod tree;
mod type_name;
mod verb;
mod word;

use anyhow::Result;

use crate::printer;
use crate::root::Root;
use crate::run::TaskAnswer;
use crate::tidy::finding::TidyFinding;
use crate::tidy::tree::Tree;

const RULES: &[fn(&Tree) -> Vec<TidyFinding>] = &[
    ban::findings,
    cycle::findings,
    dependency::findings,
    header::findings,
    layer::findings,
    link::findings,
    lint::findings,
    print::findings,
    size::findings,
    type_name::findings,
    verb::findings,
    word::findings,
];

/// Reads the tree once and prints the findings of every rule.
pub(crate) fn tidy(root: &Root) -> Result<TaskAnswer> {
    let tree = Tree::read(root.path())?;
    let findings = findings(&tree);
    for finding in &findings {
        printer::line(&finding.to_string());
    }
    if let Some(count) = dependency::package_count(&tree) {
        let count_max = dependency::PACKAGE_COUNT_MAX;
        printer::note(&format!(
            "{count} of at most {count_max} packages in Cargo.lock"
        ));
    }
    Ok(if findings.is_empty() {
        TaskAnswer::Yes
    } else {
        TaskAnswer::No
    })
}

fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings: Vec<TidyFinding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests;
