//! Lists the documents of `catalog/`, so that the binary carries them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let catalog = manifest.join("../../catalog");
    println!("cargo::rerun-if-changed={}", catalog.display());
    let mut files = Vec::new();
    collect(&catalog, &mut files)?;
    files.sort();
    let mut list = String::from("pub(super) const DOCUMENTS: &[(&str, &str)] = &[\n");
    for file in &files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let path = file.display().to_string();
        let _ = writeln!(list, "    ({stem:?}, include_str!({path:?})),");
    }
    list.push_str("];\n");
    for (name, file) in [("PRESETS", "presets.toml"), ("DIGESTS", "DIGESTS")] {
        let path = catalog.join(file);
        let _ = writeln!(
            list,
            "pub(super) const {name}: &str = include_str!({:?});",
            path.display().to_string()
        );
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("catalog.rs"), list)
}

/// Every document below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    Ok(())
}
