//! Builds the sandbox guest: QuickJS, our shim and our prelude, as one module that
//! is already initialised and already compiled.
//!
//! Every input is pinned: the C sources by the lock file, the compiler by version,
//! the rest by being here. The same inputs give the same bytes. The results and their
//! keys go to `target/guest/ARCH/`; nothing is done when the keys there are the right ones.

mod compile;
mod inputs;
mod patch;
mod snapshot;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use inputs::Folders;
use wasmtime::Result;
use wasmtime::error::Context as _;

#[path = "../../../crates/sandbox/src/engine_config.rs"]
mod engine_config;
#[path = "../../key.rs"]
mod key;

/// What the guest is compiled for, whatever the machine that does it.
const ARCHES: [&str; 2] = ["x86_64", "aarch64"];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("cause: {cause}");
            }
            ExitCode::from(2)
        }
    }
}

fn build() -> Result<()> {
    let force = std::env::args().any(|argument| argument == "--force");
    let folders = Folders::find()?;
    let mut stale = Vec::new();
    for arch in ARCHES {
        let key = key::of_inputs(&folders.root, arch);
        let key = key.context("could not read the guest's sources")?;
        let folder = folders.guest.join(arch);
        let found = fs::read_to_string(folder.join(key::KEY));
        let is_fresh =
            found.is_ok_and(|found| found == key) && folder.join(key::ARTIFACT).exists();
        if force || !is_fresh {
            stale.push((arch, folder, key));
        }
    }
    if stale.is_empty() {
        println!("guest is up to date: {}", folders.guest.display());
        return Ok(());
    }
    let wasm = compile::to_wasm(&folders)?;
    let prelude = inputs::prelude(&folders.root)?;
    let snapshot = snapshot::take(&wasm, &prelude)?;
    println!(
        "built the guest: wasm {} KiB, with prelude {} KiB",
        wasm.len() / 1024,
        snapshot.len() / 1024
    );
    for (arch, folder, key) in stale {
        let code = compile::ahead_of_time(&snapshot, arch)?;
        write(&folder, &code, &key)?;
        println!("   for {arch}: {} KiB", code.len() / 1024);
    }
    Ok(())
}

fn write(folder: &Path, code: &[u8], key: &str) -> Result<()> {
    fs::create_dir_all(folder).context("could not make the guest's folder")?;
    // The key goes last and the code in one move, so that no reader ever sees new
    // code under an old key or half a file.
    let unfinished = folder.join("guest.cwasm.new");
    fs::write(&unfinished, code).context("could not write the guest")?;
    let key_file = folder.join(key::KEY);
    let _ = fs::remove_file(&key_file);
    let artifact = folder.join(key::ARTIFACT);
    fs::rename(&unfinished, &artifact).context("could not put the guest in place")?;
    fs::write(&key_file, key).context("could not write the guest's key")
}
