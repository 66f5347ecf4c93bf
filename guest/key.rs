// The key of a guest: a digest over everything it is made from.
//
// Part of two programs, by path: the builder writes the key beside its result, the
// build script of the `sandbox` crate refuses a result with another key.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The compiled guest, under `target/guest/ARCH/`.
pub(crate) const ARTIFACT: &str = "guest.cwasm";
/// Its key, beside it.
pub(crate) const KEY: &str = "guest.key";

/// The files and folders a guest is made from, seen from the root. The lock file
/// stands for the C sources, the snapshot tool and the compiler.
const INPUTS: [&str; 14] = [
    "guest/shim.c",
    "guest/calls.h",
    "guest/ending.h",
    "guest/heap.h",
    "guest/member.h",
    "guest/notes.h",
    "guest/seal.h",
    "guest/text.h",
    "guest/writer.h",
    "guest/prelude",
    "guest/faces",
    "guest/builder/src",
    "guest/builder/Cargo.lock",
    "crates/sandbox/src/engine_config.rs",
];

/// The files a guest is made from, in a fixed order.
pub(crate) fn input_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for input in INPUTS {
        let path = root.join(input);
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        let mut inside = fs::read_dir(&path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

/// The key of what a build would now make for an architecture: 64 hexadecimal digits.
pub(crate) fn of_inputs(root: &Path, arch: &str) -> io::Result<String> {
    let mut digest = Sha256::new();
    // Compiled code is for one architecture.
    digest.update(arch);
    for path in input_files(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let content = fs::read(&path)?;
        // Lengths, so that no text can move from one file to the next unseen.
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(content);
    }
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
