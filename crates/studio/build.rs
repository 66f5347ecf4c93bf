//! Finds the files of the page, which `cargo xtask studio` builds. A program that is to be
//! given away is not built without them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const MISSING: &str =
    "the Studio is not built: run `cargo xtask studio` in the clone, then build again";

fn main() -> io::Result<()> {
    let table = folder().join("studio").join("table.rs");
    println!("cargo::rerun-if-changed={}", table.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let text = match table.is_file() {
        true => format!("include!({:?});\n", table.display().to_string()),
        false if env::var("PROFILE").is_ok_and(|profile| profile == "release") => {
            return Err(io::Error::other(MISSING));
        }
        false => "pub(crate) static ASSETS: &[Asset] = &[];\n".to_owned(),
    };
    fs::write(out.join("asset_table.rs"), text)
}

/// The `target` folder of the workspace.
fn folder() -> PathBuf {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.ancestors().nth(2).map(Path::to_path_buf);
    root.unwrap_or(manifest).join("target")
}
