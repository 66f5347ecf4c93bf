//! The code map: every module of every crate, with the first sentence of its head.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Where the page belongs.
pub(super) const PATH: &str = "docs/reference/modules.md";

/// Crates in the order of their layers.
const CRATES: &[&str] = &[
    "model", "find", "guard", "upstream", "sandbox", "host", "store", "jail", "bridge", "engine",
    "mcp", "studio", "cli",
];

/// The page of the tree below `root`. A crate that is not there has no section.
pub(super) fn page(root: &Path) -> Result<String> {
    let mut page = String::from(
        "# Modules\n\nEvery module and what it is for, from the sources. \
         [ARCHITECTURE.md](../../ARCHITECTURE.md) says how they work together.\n",
    );
    for name in CRATES {
        let folder = root.join("crates").join(name).join("src");
        if !folder.is_dir() {
            continue;
        }
        page.push_str(&format!(
            "\n## {name}\n\n| Module | Is for |\n| --- | --- |\n"
        ));
        for path in sources(&folder)? {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("could not read `{}`", path.display()))?;
            let inside = path.strip_prefix(&folder).unwrap_or(&path);
            let module = inside.with_extension("").display().to_string();
            let module = module.replace('/', "::");
            page.push_str(&format!("| `{module}` | {} |\n", sentence(&text)));
        }
    }
    Ok(page)
}

/// The files of modules, two levels deep, a module before those inside it. Tests and
/// the roots of crates and programs are none.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        let name = path.file_stem().unwrap_or_default();
        if path.is_dir() && name != "bin" {
            found.extend(entries(&path)?.into_iter().filter(|path| is_module(path)));
        } else if is_module(&path) {
            found.push(path);
        }
    }
    found.sort_by_key(|path| path.with_extension(""));
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let could_not = || format!("could not read `{}`", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(could_not)? {
        paths.push(entry.with_context(could_not)?.path());
    }
    Ok(paths)
}

fn is_module(path: &Path) -> bool {
    let is_source = path.extension().is_some_and(|end| end == "rs");
    let stem = path.file_stem().unwrap_or_default();
    is_source && !["lib", "main", "tests"].iter().any(|other| stem == *other)
}

/// The first sentence of the head, ready for a table.
fn sentence(text: &str) -> String {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head = head.map(str::trim).take_while(|line| !line.is_empty());
    let head = head.collect::<Vec<_>>().join(" ");
    let first = match head.find(". ") {
        Some(end) => head.get(..=end).unwrap_or(&head),
        None => &head,
    };
    unlinked(first).replace('|', "\\|")
}

/// Without links: those to items lead nowhere from a page.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((label, after)) = after.split_once(']') else {
            plain.push('[');
            rest = after;
            continue;
        };
        plain.push_str(label);
        let target = after
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_taken_whole() {
        let text = "//! Reads a | b,\n//! with [`Page`]. More.\n//!\n//! Not this.\n\nuse x;\n";
        assert_eq!(sentence(text), "Reads a \\| b, with `Page`.");
        assert_eq!(sentence("//! Only one\n"), "Only one");
        assert_eq!(
            sentence("//! The [log](log) of [`A`] a[0\n"),
            "The log of `A` a[0"
        );
        assert_eq!(sentence("use x;\n//! late\n"), "");
    }

    #[test]
    fn roots_and_tests_are_no_modules() {
        for name in ["lib.rs", "main.rs", "tests.rs", "page.json"] {
            assert!(!is_module(Path::new(name)), "{name}");
        }
        assert!(is_module(Path::new("page.rs")));
    }
}
