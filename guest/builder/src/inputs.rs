//! Where things are: the project's root, the output folder, the C sources, the
//! prelude and the C compiler.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wasmtime::error::Context as _;
use wasmtime::{Result, bail, ensure};

/// The package of the Python index that carries the C compiler.
const ZIG: &str = "0.15.2";

/// The folders a build reads and writes.
pub(crate) struct Folders {
    /// The project's root.
    pub(crate) root: PathBuf,
    /// `target/guest`.
    pub(crate) guest: PathBuf,
}

impl Folders {
    /// Finds them from the manifest's place and `CARGO_TARGET_DIR`.
    pub(crate) fn find() -> Result<Folders> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest
            .ancestors()
            .nth(2)
            .context("the builder is not in guest/builder")?;
        let root = root.to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => root.join("target"),
        };
        let guest = target.join("guest");
        fs::create_dir_all(&guest).context("could not make target/guest")?;
        Ok(Folders { root, guest })
    }
}

/// The prelude's files, then the faces, each in the order of their names.
pub(crate) fn prelude(root: &Path) -> Result<Vec<(String, String)>> {
    let mut files = scripts(root, "guest/prelude")?;
    let faces = scripts(root, "guest/faces")?;
    files.extend(faces.into_iter().map(|(name, source)| (name, face(&source))));
    let captured = |(name, source): (String, String)| (name, capture(&source));
    Ok(files.into_iter().map(captured).collect())
}

/// The globals that files of the prelude use by name.
const CAPTURED: [&str; 39] = [
    "Array", "ArrayBuffer", "BigInt", "Boolean", "DOMException", "DataView", "Date", "Error",
    "EvalError", "Infinity", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy",
    "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "Symbol", "SyntaxError",
    "TypeError", "URIError", "Uint8Array", "WeakMap", "WeakRef", "WeakSet", "decodeURIComponent",
    "encodeURIComponent", "isFinite", "isNaN", "parseFloat", "parseInt", "Function",
];

/// A file of the prelude, with the globals it uses as variables of its own, taken before
/// a script can replace them. The guest refuses a file that reads any other.
fn capture(source: &str) -> String {
    let names = CAPTURED.join(", ");
    format!("((globalThis) => {{ const {{ {names} }} = globalThis; return (\n{source}\n); }})(globalThis)")
}

/// A face is a function of `call`, and gives globals that every script has. Its
/// `parser` goes into `safety`, which the file functions join later.
fn face(source: &str) -> String {
    format!(
        "(host) => {{
  const {{ direct, reserve }} = host;
  const none = new Uint8Array(0);
  const shape = (value, bytes) => ({{ value, bytes: bytes ?? none }});
  const made = (\n{source}\n)((operation, value, bytes) => direct(operation, value, bytes, shape));
  for (const name of Object.keys(made)) {{
    if (name === 'parser') reserve('safety', {{ parser: made.parser }});
    else reserve(name, made[name]);
  }}
}}"
    )
}

fn scripts(root: &Path, folder: &str) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ensure!(name.ends_with(".js"), "{folder} has a file that is no script: {name}");
        files.push((format!("{folder}/{name}"), fs::read_to_string(&path)?));
    }
    files.sort();
    Ok(files)
}

/// The folder of the engine's C sources. Cargo fetches the package and checks it
/// against the lock file; it is never compiled as a crate.
pub(crate) fn engine_sources(root: &Path) -> Result<PathBuf> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--all-features",
            "--manifest-path",
        ])
        .arg(root.join("guest/builder/Cargo.toml"))
        .output()
        .context("could not run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo could not fetch the engine: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo gave no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == "rquickjs-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .context("the lock file lacks the engine")?;
    let folder = Path::new(manifest).with_file_name("quickjs");
    ensure!(
        folder.join("quickjs.c").exists(),
        "the engine's package has no C sources"
    );
    Ok(folder)
}

/// The folder of the C compiler, installed there on first use.
pub(crate) fn zig(folders: &Folders) -> Result<PathBuf> {
    let folder = folders.guest.join(format!("zig-{ZIG}"));
    if zig_version(&folder).is_some_and(|found| found == ZIG) {
        return Ok(folder);
    }
    let status = Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args(["--upgrade", "--target"])
        .arg(&folder)
        .arg(format!("ziglang=={ZIG}"))
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .status()
        .context("could not run python3; the C compiler comes with `python3 -m pip`")?;
    ensure!(
        status.success(),
        "python3 -m pip could not install ziglang {ZIG}"
    );
    match zig_version(&folder) {
        Some(found) if found == ZIG => Ok(folder),
        Some(found) => bail!("the C compiler has version {found}, not {ZIG}"),
        None => bail!("the C compiler does not start"),
    }
}

fn zig_version(folder: &Path) -> Option<String> {
    let zig = folder.join("ziglang/zig");
    let output = Command::new(zig).arg("version").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
