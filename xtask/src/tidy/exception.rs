//! Exceptions from the rules about structure and names, in `xtask/tidy.toml`. The lists
//! only shrink: an exception without a use is a finding too.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::tidy::finding::TidyFinding;
use crate::tidy::tree::Tree;

/// Where the lists are.
pub(crate) const LISTS: &str = "xtask/tidy.toml";

/// A set of modules that may import each other.
pub(crate) type Knot = BTreeSet<String>;

/// Where something is defined: path and line.
pub(crate) type Definitions = Vec<(String, usize)>;

/// The section `[cycles]`: for each crate its sets of modules. Nothing without
/// a file.
pub(crate) fn knots(tree: &Tree) -> Result<BTreeMap<String, Vec<Knot>>, TidyFinding> {
    let mut found = BTreeMap::new();
    for (crate_name, value) in section(tree, "cycles")? {
        let knots: Option<Vec<Knot>> = value
            .as_array()
            .and_then(|sets| sets.iter().map(names).collect());
        let Some(knots) = knots else {
            let sentence = format!("`{crate_name}` must be a list of lists of module names");
            return Err(finding(tree, &crate_name, sentence));
        };
        found.insert(crate_name, knots);
    }
    Ok(found)
}

fn names(value: &Value) -> Option<Knot> {
    let names = value.as_array()?.iter();
    names.map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Holds the names that were found more than `free` times against one section
/// of the lists. `what` names them in the plural.
pub(crate) fn hold(
    tree: &Tree,
    name_of_section: &str,
    found: &BTreeMap<String, Definitions>,
    free: usize,
    what: &str,
) -> Vec<TidyFinding> {
    let listed = match section(tree, name_of_section) {
        Ok(listed) => listed,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    for (name, definitions) in found.iter().filter(|(_, all)| all.len() > free) {
        let allowed = listed.get(name).and_then(count).unwrap_or(free);
        if definitions.len() > allowed {
            findings.extend(beyond(name, definitions, allowed, what));
        }
    }
    for (name, value) in &listed {
        let counted = found.get(name).map_or(0, Vec::len);
        let sentence = match count(value) {
            None => format!("`{name}` must be a number greater than {free}"),
            Some(allowed) if allowed <= free => {
                format!("`{name}` must be a number greater than {free}")
            }
            Some(_) if counted <= free => {
                format!("`{name}` needs no exception any more; remove it from the list")
            }
            Some(allowed) if counted < allowed => {
                format!("`{name}` needs {counted}, not {allowed}; lower the number")
            }
            Some(_) => continue,
        };
        findings.push(finding(tree, name, sentence));
    }
    findings
}

/// One finding, at the last definition, which names the others.
fn beyond(
    name: &str,
    definitions: &Definitions,
    allowed: usize,
    what: &str,
) -> Option<TidyFinding> {
    let ((path, line), others) = definitions.split_last()?;
    let others: Vec<String> = others
        .iter()
        .map(|(path, line)| format!("{path}:{line}"))
        .collect();
    let also = match others.is_empty() {
        true => String::new(),
        false => format!("; also at {}", others.join(", ")),
    };
    let listed = match allowed {
        0 | 1 => String::new(),
        _ => format!("; {LISTS} allows {allowed}"),
    };
    let sentence = format!("`{name}` {what}{also}{listed}");
    Some(TidyFinding::new(path, *line, sentence))
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_integer()?).ok()
}

fn section(tree: &Tree, name: &str) -> Result<Table, TidyFinding> {
    let text = tree.text(LISTS).unwrap_or_default();
    let Ok(mut lists) = text.parse::<Table>() else {
        return Err(TidyFinding::new(LISTS, 1, "the file is not valid TOML"));
    };
    match lists.remove(name) {
        None => Ok(Table::new()),
        Some(Value::Table(section)) => Ok(section),
        Some(_) => Err(finding(tree, name, format!("`{name}` must be a table"))),
    }
}

/// A finding at the line that starts with a key, quoted or not.
pub(crate) fn finding(tree: &Tree, key: &str, sentence: impl Into<String>) -> TidyFinding {
    let mut lines = tree.text(LISTS).unwrap_or_default().lines();
    let index = lines.position(|line| {
        let before = line.split('=').next().unwrap_or_default();
        before.trim().trim_matches('"') == key
    });
    TidyFinding::new(LISTS, index.map_or(1, |index| index + 1), sentence)
}
