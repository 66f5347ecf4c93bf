//! The program's dependencies, from cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::root::Root;
use crate::run;

/// The package whose program is released.
const PROGRAM: &str = "ringfence-cli";

/// Everything the program is built from.
#[derive(Debug)]
pub(crate) struct Dependencies {
    packages: BTreeMap<String, Package>,
    /// By id: what each is built from.
    edges: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Its source, unless it is ours.
    pub(crate) source: Option<String>,
    pub(crate) checksum: Option<String>,
    pub(crate) folder: PathBuf,
}

impl Dependencies {
    /// Asks cargo.
    pub(crate) fn read(root: &Root) -> Result<Dependencies> {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = run::cargo(root, &["metadata", "--locked", "--format-version", "1"]);
        command.args(["--filter-platform", &target]);
        let text = run::output(&mut command).context("`cargo metadata` failed")?;
        let value: Value = serde_json::from_str(&text).context("cargo's metadata is not JSON")?;
        let lock = fs::read_to_string(root.join("Cargo.lock")).context("there is no Cargo.lock")?;
        Dependencies::parse(&value, &checksums(&lock)?)
    }

    fn parse(
        value: &Value,
        checksums: &BTreeMap<(String, String), String>,
    ) -> Result<Dependencies> {
        let packages = value.get("packages").and_then(Value::as_array);
        let mut found = BTreeMap::new();
        for package in packages.context("cargo names no packages")? {
            let text = |key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
            let (Some(id), Some(name), Some(version)) = (text("id"), text("name"), text("version"))
            else {
                continue;
            };
            let manifest = PathBuf::from(text("manifest_path").unwrap_or_default());
            let checksum = checksums.get(&(name.clone(), version.clone())).cloned();
            found.insert(
                id,
                Package {
                    checksum,
                    licence: text("license"),
                    source: text("source"),
                    folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
                    name,
                    version,
                },
            );
        }
        Ok(Dependencies {
            packages: found,
            edges: edges(value),
        })
    }

    /// The version of the release.
    pub(crate) fn version(&self) -> Result<String> {
        let mut all = self.packages.values();
        let program = all.find(|package| package.name == PROGRAM);
        let program = program.context("the workspace has no ringfence-cli")?;
        Ok(program.version.clone())
    }

    /// Everything that ends up in the program, by name and version.
    pub(crate) fn shipped(&self) -> Vec<&Package> {
        let is_program = |(_, package): &(&String, &Package)| package.name == PROGRAM;
        let mut open: Vec<&String> = self
            .packages
            .iter()
            .filter(is_program)
            .map(|(id, _)| id)
            .collect();
        let mut seen: BTreeSet<&String> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            for next in self.edges.get(id).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        let mut shipped: Vec<_> = seen
            .into_iter()
            .filter_map(|id| self.packages.get(id))
            .collect();
        shipped.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        shipped
    }
}

/// The packages that each package links: dependencies of tests and of build scripts are
/// left out.
fn edges(value: &Value) -> BTreeMap<String, Vec<String>> {
    let nodes = value.pointer("/resolve/nodes").and_then(Value::as_array);
    let mut edges = BTreeMap::new();
    for node in nodes.into_iter().flatten() {
        let Some(id) = node.get("id").and_then(Value::as_str) else {
            continue;
        };
        let dependencies = node.get("deps").and_then(Value::as_array);
        let linked = dependencies.into_iter().flatten().filter(|dependency| {
            let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
            let mut kinds = kinds.into_iter().flatten();
            kinds.any(|kind| kind.get("kind").is_none_or(Value::is_null))
        });
        let ids = linked.filter_map(|dependency| dependency.get("pkg")?.as_str());
        edges.insert(id.to_owned(), ids.map(str::to_owned).collect());
    }
    edges
}

/// The checksums of the lock file, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock is not TOML")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let mut found = BTreeMap::new();
    for package in packages.into_iter().flatten() {
        let text = |key: &str| {
            package
                .get(key)
                .and_then(toml::Value::as_str)
                .map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (text("name"), text("version"), text("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_linked_packages_are_shipped() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "manifest_path": "/x/Cargo.toml"});
        let edge = |to: &str, kind: Value| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
        let value = json!({
            "packages": [package("ringfence-cli"), package("linked"), package("below"), package("tests"), package("builds")],
            "resolve": {"nodes": [
                {"id": "ringfence-cli", "deps": [edge("linked", Value::Null), edge("tests", json!("dev")), edge("builds", json!("build"))]},
                {"id": "linked", "deps": [edge("below", Value::Null), edge("ringfence-cli", json!("dev"))]},
            ]},
        });
        let dependencies = Dependencies::parse(&value, &BTreeMap::new()).unwrap();
        let names: Vec<_> = dependencies
            .shipped()
            .iter()
            .map(|package| package.name.as_str())
            .collect();
        assert_eq!(names, ["below", "linked", "ringfence-cli"]);
        assert_eq!(dependencies.version().unwrap(), "1.0.0");
    }

    #[test]
    fn the_lock_file_has_the_checksums() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let sums = checksums(lock).unwrap();
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("a".to_owned(), "1.0.0".to_owned())], "ab");
    }
}
