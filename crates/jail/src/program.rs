//! From a program's name to its file, and to what the file needs to run: the
//! interpreters its first line names, and the folders they were installed in.
//!
//! What is under the system folders needs nothing more. A program below the user's
//! home (pyenv, nvm, a virtual environment) gets its own installation and no more of it
//! than programs need: beside `bin` there may be settings and credentials.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use crate::fault::JailFault;
use crate::limit;

/// Bytes of a script's first line that name its interpreter; the kernel reads as many.
const FIRST_LINE_BYTES: u64 = 256;

/// Folders of an installation that hold programs.
const PROGRAM_FOLDERS: &[&str] = &["bin", "sbin", "shims", "libexec"];

/// What an installation needs beside its programs.
const INSTALLATION: &[&str] = &[
    "bin",
    "sbin",
    "shims",
    "libexec",
    "lib",
    "lib32",
    "lib64",
    "include",
    "ssl",
    "plugins",
    "pyenv.d",
    "pyvenv.cfg",
    "version",
    "versions",
];

/// The absolute path of a program: `name` itself if it is one, else found in the folders
/// of `search`, which is written as `PATH` is.
pub fn resolve_program(name: &str, search: &str) -> Result<PathBuf, JailFault> {
    let fault = |sentence: String| Err(JailFault::Program(sentence));
    if name.is_empty() {
        return fault("the command is empty; name a program".to_owned());
    }
    if !name.contains('/') {
        return match find(OsStr::new(name), search) {
            Some(path) => Ok(path),
            None => fault(format!(
                "there is no program `{name}` in PATH; install it, or give its absolute path"
            )),
        };
    }
    let path = PathBuf::from(name);
    if !path.is_absolute() {
        return fault(format!(
            "`{name}` is a relative path; give the absolute one"
        ));
    }
    match path.metadata() {
        Err(error) => fault(format!("could not find the program `{name}`: {error}")),
        Ok(_) if is_program(&path) => Ok(path),
        Ok(_) => fault(format!("`{name}` is not an executable file")),
    }
}

fn find(name: &OsStr, search: &str) -> Option<PathBuf> {
    std::env::split_paths(search)
        // A relative folder would depend on where Ringfence was started.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Files and folders that `program` needs to run, links resolved.
pub(crate) fn needs(program: &Path, search: &str, user_home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut needs = BTreeSet::new();
    let mut next = Some(program.to_path_buf());
    for _ in 0..limit::INTERPRETERS_MAX {
        let Some(program) = next else { break };
        for hop in hops(&program) {
            installation(&hop, user_home, &mut needs);
        }
        next = interpreter(&program, search);
    }
    needs
}

/// The program, and each file its links lead through. Folders on the way are resolved.
fn hops(program: &Path) -> Vec<PathBuf> {
    let mut hops = Vec::new();
    let mut path = program.to_path_buf();
    for _ in 0..limit::PROGRAM_LINKS_MAX {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            break;
        };
        let Ok(folder) = folder.canonicalize() else {
            break;
        };
        let here = folder.join(name);
        hops.push(here.clone());
        match fs::read_link(&here) {
            Ok(target) => path = folder.join(target),
            Err(_) => break,
        }
    }
    hops
}

/// What the installation of the program at `path` has to give.
fn installation(path: &Path, user_home: Option<&Path>, needs: &mut BTreeSet<PathBuf>) {
    let mut add = |path: PathBuf| {
        if let Ok(path) = path.canonicalize() {
            needs.insert(path);
        }
    };
    add(path.to_path_buf());
    if let Some(packages) = packages(path) {
        add(packages);
    }
    let Some(folder) = path.parent() else { return };
    let is_program_folder = folder
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| PROGRAM_FOLDERS.contains(&name));
    let Some(prefix) = folder.parent().filter(|_| is_program_folder) else {
        return;
    };
    if user_home.is_some_and(|home| home.starts_with(prefix)) {
        // `~/bin`: what lies beside it is the user's.
        return add(folder.to_path_buf());
    }
    for name in INSTALLATION {
        add(prefix.join(name));
    }
}

/// The outermost `node_modules` that `path` lies in.
fn packages(path: &Path) -> Option<PathBuf> {
    let mut folder = PathBuf::new();
    for component in path.components() {
        folder.push(component);
        if component == Component::Normal(OsStr::new("node_modules")) {
            return Some(folder);
        }
    }
    None
}

/// The interpreter that a script's first line names.
fn interpreter(program: &Path, search: &str) -> Option<PathBuf> {
    let mut head = Vec::new();
    let file = fs::File::open(program).ok()?;
    file.take(FIRST_LINE_BYTES).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_ascii_whitespace();
    let interpreter = PathBuf::from(words.next()?);
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return Some(interpreter);
    }
    // `env -S node --flag` and `env NAME=value node`: the first word that is neither.
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    find(OsStr::new(name), search)
}
