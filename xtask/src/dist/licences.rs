//! The licences of everything that is linked, as their authors wrote them. A package
//! without a text gets the one its expression names, from a package that has it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::dependencies::Package;

/// How the names of such files begin.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// Bytes of one text.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// All of them as one text.
pub(crate) fn text(shipped: &[&Package]) -> Result<String> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut parts = Vec::new();
    for package in shipped.iter().filter(|package| package.source.is_some()) {
        let texts = texts(&package.folder);
        if let (Some(licence), [_, ..]) = (&package.licence, texts.as_slice()) {
            let joined = texts.join("\n");
            known.entry(licence.clone()).or_insert(joined);
        }
        parts.push((*package, texts));
    }
    // Most texts are the same few, so each is written once, under all its packages.
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (package, texts) in parts {
        let licence = package.licence.as_deref().unwrap_or("see the text");
        let text = match (texts.is_empty(), known.get(licence)) {
            (false, _) => texts.join("\n"),
            // A package without a text of its own has that of its licence.
            (true, Some(text)) => text.clone(),
            (true, None) => bail!(
                "{} {} has no licence text, and no other package is under {licence}",
                package.name,
                package.version
            ),
        };
        let line = format!("{} {} ({licence})", package.name, package.version);
        by_text.entry(text).or_default().push(line);
    }
    let mut parts: Vec<_> = by_text.into_iter().collect();
    parts.sort_by(|(_, a), (_, b)| a.cmp(b));
    let mut all = String::from("The program contains code of these packages.\n");
    for (text, packages) in parts {
        let line = "=".repeat(72);
        let _ = write!(all, "\n{line}\n{}\n\n{text}", packages.join("\n"));
    }
    Ok(all)
}

/// The texts in a package's folder, by name.
fn texts(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let is_small = entry
                .metadata()
                .is_ok_and(|about| about.is_file() && about.len() <= TEXT_BYTES_MAX);
            is_small && NAMES.iter().any(|begin| name.starts_with(begin))
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect()
}
