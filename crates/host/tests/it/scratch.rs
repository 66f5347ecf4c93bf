//! A folder for one test, and what is in it afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use host::files::{FileSettings, Files};
use host::message::{PowerFault, PowerReply, PowerRequest};
use model::policy::grant::FileGrant;
use serde_json::Value;

/// Nothing may ever give this text back.
pub(crate) const CANARY: &str = "CANARY-that-must-stay-outside";

/// A folder with a workspace `ws` and, beside it, `outside`.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("files-{name}-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        for part in ["ws", "outside/sub"] {
            fs::create_dir_all(path.join(part)).unwrap();
        }
        let path = path.canonicalize().unwrap();
        for part in [
            "outside/canary.txt",
            "outside/file.txt",
            "outside/sub/file.txt",
        ] {
            fs::write(path.join(part), format!("{CANARY}\n")).unwrap();
        }
        Scratch { path }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path.join("ws")
    }

    pub(crate) fn outside(&self) -> BTreeMap<String, String> {
        tree(&self.path.join("outside"))
    }

    pub(crate) fn settings(&self) -> FileSettings {
        FileSettings {
            workspace: self.workspace(),
            sub_workspace: None,
            read_roots: Vec::new(),
            deadline: Instant::now() + Duration::from_secs(600),
            workspace_bytes_max: 1 << 30,
            home: None,
            stand_in: None,
        }
    }

    /// Reading and writing in the workspace.
    pub(crate) fn files(&self) -> Files {
        Files::open(&grant(true, true), &self.settings())
            .unwrap()
            .unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn grant(read: bool, write: bool) -> FileGrant {
    FileGrant {
        read,
        write,
        base_path: None,
    }
}

pub(crate) fn call(
    files: &Files,
    function: &str,
    arguments: Value,
) -> Result<PowerReply, PowerFault> {
    let ask = PowerRequest {
        arguments,
        bytes: Vec::new(),
    };
    files.call(function, &ask)
}

/// Every entry below a folder, and what it holds or is.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let what = if kind.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else if kind.is_file() {
                format!(
                    "file {:?}",
                    String::from_utf8_lossy(&fs::read(&path).unwrap())
                )
            } else if kind.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_fifo() {
                "pipe".to_owned()
            } else {
                "other".to_owned()
            };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, what);
        }
    }
    found
}
