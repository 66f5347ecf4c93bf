//! Which crate may depend on which. The table is the picture of layers in
//! ARCHITECTURE.md. Tests obey it too, because a test that depends on a higher layer
//! makes a cycle.

use std::collections::BTreeMap;

use crate::tidy::finding::TidyFinding;
use crate::tidy::manifest::{Manifest, ours};
use crate::tidy::tree::Tree;

/// Each crate, the task runner too, and those it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("find", &["model"]),
    ("guard", &["model"]),
    ("upstream", &["model"]),
    ("sandbox", &["model"]),
    ("host", &["model"]),
    ("store", &["model"]),
    // It uses the worker's own walls: the limits that a process sets on itself are
    // written once.
    ("jail", &["model", "sandbox"]),
    ("bridge", &["model", "host", "jail"]),
    (
        "engine",
        &[
            "model", "find", "guard", "upstream", "sandbox", "host", "store", "jail", "bridge",
        ],
    ),
    ("mcp", &["model", "engine"]),
    ("studio", &["model", "engine"]),
    ("cli", ALL_BUT_CLI),
    ("xtask", ALL_BUT_CLI),
];

const ALL_BUT_CLI: &[&str] = &[
    "model", "find", "guard", "upstream", "sandbox", "host", "store", "jail", "bridge", "engine",
    "mcp", "studio",
];

/// Crates in the wrong place, under the wrong name, or looking the wrong way.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let root = match Manifest::root(tree) {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    let ours = ours(&root);
    let mut found = Vec::new();
    for shared in root.shared().iter().filter(|shared| shared.is_path) {
        if shared.package() != format!("ringfence-{}", shared.key) {
            let key = &shared.key;
            found.push(root.finding(shared, format!("`{key}` must be package `ringfence-{key}`")));
        }
    }
    for path in Manifest::members(tree) {
        match Manifest::read(tree, &path) {
            Ok(manifest) => found.extend(member(tree, &manifest, &ours)),
            Err(finding) => found.push(finding),
        }
    }
    found
}

fn member(
    tree: &Tree,
    manifest: &Manifest<'_>,
    ours: &BTreeMap<String, String>,
) -> Vec<TidyFinding> {
    let path = manifest.path.trim_end_matches("/Cargo.toml");
    let folder = path.trim_start_matches("crates/");
    let mut found = match path {
        "xtask" => Vec::new(),
        _ => names(tree, folder, manifest),
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == folder) else {
        let sentence =
            format!("`{folder}` has no layer; add it to the table in xtask/src/tidy/layer.rs");
        found.push(TidyFinding::new(&manifest.path, 1, sentence));
        return found;
    };
    for dependency in manifest.dependencies() {
        let package = ours
            .get(&dependency.key)
            .map_or(dependency.package(), String::as_str);
        let Some(target) = package.strip_prefix("ringfence-") else {
            continue;
        };
        // A crate's tests may ask for the crate itself with a feature switched on.
        let is_itself = dependency.is_dev && target == folder;
        if !allowed.contains(&target) && !is_itself {
            let sentence = format!("`{folder}` may not depend on `{target}`; see the layers");
            found.push(manifest.finding(&dependency, sentence));
        }
    }
    found
}

/// Folder, package and library carry the same noun.
fn names(tree: &Tree, folder: &str, manifest: &Manifest<'_>) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    let package = format!("ringfence-{folder}");
    if manifest.str(&["package", "name"]) != Some(&package) {
        let line = manifest.line_of(&["package", "name"]);
        found.push(TidyFinding::new(
            &manifest.path,
            line,
            format!("the package must be `{package}`"),
        ));
    }
    let has_library = tree.contains(&format!("crates/{folder}/src/lib.rs"));
    if has_library && manifest.str(&["lib", "name"]) != Some(folder) {
        let line = manifest.line_of(&["lib", "name"]);
        found.push(TidyFinding::new(
            &manifest.path,
            line,
            format!("the library must be `{folder}`"),
        ));
    }
    found
}

#[cfg(test)]
mod tests;
