//! Builds the sandbox guest: QuickJS, our shim and our prelude, as one module that
//! is already initialised and already compiled.
//!
//! Every input is pinned: the C sources by the lock file, the compiler by version,
//! the rest by being here. The same inputs give the same bytes. The result and its
//! key go to `target/guest/`; nothing is done when the key there is the right one.

mod compile;
mod inputs;
mod patch;
mod snapshot;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use inputs::Folders;
use wasmtime::Result;
use wasmtime::error::Context as _;

#[path = "../../../crates/sandbox/src/engine_config.rs"]
mod engine_config;
#[path = "../../key.rs"]
mod key;

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
    let key = key::of_inputs(&folders.root).context("could not read the guest's sources")?;
    let artifact = folders.guest.join(key::ARTIFACT);
    let key_file = folders.guest.join(key::KEY);
    let fresh = fs::read_to_string(&key_file).is_ok_and(|found| found == key) && artifact.exists();
    if fresh && !force {
        println!("guest is up to date: {}", artifact.display());
        return Ok(());
    }
    let wasm = compile::to_wasm(&folders)?;
    let prelude = inputs::prelude(&folders.root)?;
    let snapshot = snapshot::take(&wasm, &prelude)?;
    let code = compile::ahead_of_time(&snapshot)?;
    // The key goes last and the code in one move, so that no reader ever sees new
    // code under an old key or half a file.
    let unfinished: PathBuf = folders.guest.join("guest.cwasm.new");
    fs::write(&unfinished, &code).context("could not write the guest")?;
    let _ = fs::remove_file(&key_file);
    fs::rename(&unfinished, &artifact).context("could not put the guest in place")?;
    fs::write(&key_file, &key).context("could not write the guest's key")?;
    println!(
        "built {}: wasm {} KiB, with prelude {} KiB, compiled {} KiB",
        artifact.display(),
        wasm.len() / 1024,
        snapshot.len() / 1024,
        code.len() / 1024
    );
    Ok(())
}
