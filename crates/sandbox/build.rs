//! Finds the guest that `cargo xtask guest` built, and refuses one built from other
//! sources. It never builds the guest: that takes a C compiler and minutes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[path = "../../guest/key.rs"]
mod key;
#[path = "../../guest/sum.rs"]
mod sum;

const ADVICE: &str = "run `cargo xtask guest` (it needs python3 with pip)";

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), String> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let crate_folder = variable("CARGO_MANIFEST_DIR").ok_or("cargo gave no CARGO_MANIFEST_DIR")?;
    let out = variable("OUT_DIR").ok_or("cargo gave no OUT_DIR")?;
    let root = crate_folder
        .ancestors()
        .nth(2)
        .ok_or("the crate is not in crates/sandbox")?;
    let inputs =
        key::input_files(root).map_err(|error| format!("could not read guest/: {error}"))?;
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    println!(
        "cargo::rerun-if-changed={}",
        root.join("guest/prelude").display()
    );
    println!(
        "cargo::rerun-if-changed={}",
        root.join("guest/faces").display()
    );
    println!(
        "cargo::rerun-if-changed={}",
        root.join("guest/key.rs").display()
    );
    // A build script runs on the machine that builds; cargo says where the program will run.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").map_err(|_| "cargo gave no architecture")?;
    let wanted =
        key::of_inputs(root, &arch).map_err(|error| format!("could not read guest/: {error}"))?;
    // The one in the repository, for most people; while the guest is being worked on,
    // the one that was just built.
    let kept = root.join("guest/image").join(&arch);
    let folders = [guest_folder(&out, root).join(&arch), kept];
    let [_, kept] = &folders;
    for folder in &folders {
        let key = folder.join(key::KEY);
        println!("cargo::rerun-if-changed={}", key.display());
    }
    let is_wanted = |folder: &&PathBuf| {
        fs::read_to_string(folder.join(key::KEY)).is_ok_and(|built| built == wanted)
    };
    let folder = folders.iter().find(is_wanted).ok_or_else(|| {
        format!("there is no sandbox guest of these sources for {arch}; {ADVICE}")
    })?;
    let artifact = fs::read(folder.join(key::ARTIFACT))
        .map_err(|error| format!("could not read the sandbox guest ({error}); {ADVICE}"))?;
    if folder == kept {
        println!(
            "cargo::rerun-if-changed={}",
            kept.join(key::ARTIFACT).display()
        );
        check_sum(kept, &artifact)?;
    }
    fs::write(out.join(key::ARTIFACT), artifact)
        .map_err(|error| format!("could not copy the sandbox guest ({error})"))?;
    println!("cargo::rustc-env=RINGFENCE_GUEST_KEY={wanted}");
    Ok(())
}

/// Its sources' key says nothing about the bytes in the repository; their digest does.
fn check_sum(folder: &Path, artifact: &[u8]) -> Result<(), String> {
    let path = folder.join(sum::SUM);
    println!("cargo::rerun-if-changed={}", path.display());
    match fs::read_to_string(&path) {
        Ok(sum) if sum == sum::sum_of(artifact, key::ARTIFACT) => Ok(()),
        Ok(_) => Err(format!(
            "the sandbox guest in `{}` is not the one `{}` names; take both from one commit, \
             or run `cargo xtask guest --write`",
            folder.display(),
            sum::SUM
        )),
        Err(error) => Err(format!("could not read `{}` ({error})", path.display())),
    }
}

/// `guest` in the target folder, which is a few steps above `OUT_DIR`, however it
/// was chosen.
fn guest_folder(out: &Path, root: &Path) -> PathBuf {
    let above = out
        .ancestors()
        .skip(3)
        .take(4)
        .map(|folder| folder.join("guest"));
    above
        .into_iter()
        .find(|folder| folder.exists())
        .unwrap_or_else(|| root.join("target/guest"))
}
