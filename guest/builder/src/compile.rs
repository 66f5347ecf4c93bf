//! Compiling: C to wasm, and wasm ahead of time to machine code.

use std::fs;
use std::path::Path;
use std::process::Command;

use wasmtime::error::Context as _;
use wasmtime::{Engine, Result, ensure};

use crate::engine_config::engine_config;
use crate::inputs::{self, Folders};
use crate::patch;

/// The engine's C files beside `quickjs.c`, which the shim includes.
const C_FILES: [&str; 3] = ["libregexp.c", "libunicode.c", "dtoa.c"];

const FLAGS: [&str; 12] = [
    "-target",
    "wasm32-wasi",
    "-mexec-model=reactor",
    "-O2",
    "-DNDEBUG",
    "-D_GNU_SOURCE",
    "-w",
    // JavaScript may use so much of the C stack, native code half a megabyte more.
    "-DSTACK_BYTES_MAX=(2944*1024)",
    "-DGC_THRESHOLD_BYTES=(8<<20)",
    "-Wl,-z,stack-size=3538944",
    "-s",
    // Paths of this machine must not end up in the result.
    "-ffile-prefix-map=.=guest",
];

/// Compiles shim and engine.
pub(crate) fn to_wasm(folders: &Folders) -> Result<Vec<u8>> {
    let zig = inputs::zig(folders)?;
    let sources = inputs::engine_sources(&folders.root)?;
    let work = folders.guest.join("c");
    if work.exists() {
        fs::remove_dir_all(&work).context("could not empty target/guest/c")?;
    }
    copy_sources(&sources, &work)?;
    for file in [
        "shim.c", "calls.h", "ending.h", "heap.h", "member.h", "notes.h", "seal.h", "text.h", "writer.h",
    ] {
        fs::copy(folders.root.join("guest").join(file), work.join(file))
            .with_context(|| format!("could not copy guest/{file}"))?;
    }
    patch::apply(&work.join("quickjs.c"))?;
    // Relative names, from inside the folder: the text of a path reaches the code
    // through `__FILE__`.
    let status = Command::new(zig.join("ziglang/zig"))
        .arg("cc")
        .args(FLAGS)
        .arg("shim.c")
        .args(C_FILES)
        .args(["-I.", "-o", "guest.wasm"])
        .env("ZIG_GLOBAL_CACHE_DIR", folders.guest.join("zig-cache"))
        .env("ZIG_LOCAL_CACHE_DIR", folders.guest.join("zig-cache"))
        .current_dir(&work)
        .status()
        .context("could not run the C compiler")?;
    ensure!(status.success(), "the C compiler refused the guest");
    fs::read(work.join("guest.wasm")).context("the C compiler wrote nothing")
}

fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let is_source = path
            .extension()
            .is_some_and(|kind| kind == "c" || kind == "h");
        if let (true, Some(name)) = (is_source, path.file_name()) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Compiles the snapshot for any processor of an architecture: with the target
/// named, nothing is taken from the machine that builds.
pub(crate) fn ahead_of_time(snapshot: &[u8], arch: &str) -> Result<Vec<u8>> {
    let mut config = engine_config();
    config.target(&format!("{arch}-unknown-linux-gnu"))?;
    let engine = Engine::new(&config)?;
    Ok(engine.precompile_module(snapshot)?)
}
