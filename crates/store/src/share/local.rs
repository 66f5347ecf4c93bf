//! The files of a home that nodes share: `ringfence.toml` without the tables of the node,
//! `rules/*.toml` and `tools/*.json`. They are read as a whole, replaced whole, and what a
//! change of another node replaces is kept in the trash.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::config::Config;
use model::limits;
use uuid::Uuid;

use super::own_tables::{join, shared_part};
use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::files::{make_folder, sync_folder, write_synced};
use crate::home::settings::{self, CONFIG_FILE, RULES_FOLDER};
use crate::limit;
use crate::tools::{self, check_stem};

pub(super) const TOOLS_FOLDER: &str = "tools";

/// The files of a home as they are now.
pub(super) struct LocalFiles {
    home: PathBuf,
    texts: BTreeMap<String, String>,
    /// Why the settings and rules cannot be shared as they are.
    pub(super) unfit: Option<String>,
}

impl LocalFiles {
    pub(super) fn read(home: &Path) -> Result<LocalFiles, StoreError> {
        let mut files = LocalFiles {
            home: home.to_owned(),
            texts: BTreeMap::new(),
            unfit: None,
        };
        match files.read_settings() {
            Ok(texts) => files.texts.extend(texts),
            Err(why) => files.unfit = Some(why),
        }
        for (stem, text) in tools::read_folder(&home.join(TOOLS_FOLDER))? {
            files.texts.insert(format!("{TOOLS_FOLDER}/{stem}"), text);
        }
        Ok(files)
    }

    /// Settings and rules, if they can be used by this node.
    fn read_settings(&self) -> Result<BTreeMap<String, String>, String> {
        let shown = |fault: &dyn std::fmt::Display| fault.to_string();
        let text = settings::read(&self.home).map_err(|fault| shown(&fault))?;
        let text = text.unwrap_or_default();
        let first = |faults: Vec<model::config::ConfigFault>| {
            faults.first().map(ToString::to_string).unwrap_or_default()
        };
        let mut config = Config::parse(&text).map_err(first)?;
        let mut texts = BTreeMap::from([(CONFIG_FILE.to_owned(), shared_part(&text)?)]);
        for file in settings::read_rules(&self.home).map_err(|fault| shown(&fault))? {
            let rules = config.parse_rules(&file.text).map_err(first)?;
            config.add_rules(rules).map_err(|fault| shown(&fault))?;
            texts.insert(file.name, file.text);
        }
        Ok(texts)
    }

    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        let digests = self.texts.iter();
        digests
            .map(|(path, text)| (path.clone(), digest(text)))
            .collect()
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.texts.keys().cloned().collect()
    }

    /// Whether a file is there, usable or not.
    pub(super) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.home.join(path)).is_ok()
    }

    /// Makes a file what other nodes have: this text, or none.
    pub(super) fn put(&mut self, path: &str, text: Option<&str>) -> Result<(), StoreError> {
        let place = self.home.join(path);
        let Some(text) = text else {
            self.texts.remove(path);
            return self.keep(path);
        };
        let mut whole = text.to_owned();
        if path == CONFIG_FILE {
            let own = settings::read(&self.home)?.unwrap_or_default();
            whole = join(text, &own).map_err(|why| unusable(path, &why))?;
            let part = shared_part(&whole).map_err(|why| unusable(path, &why))?;
            self.texts.insert(path.to_owned(), part);
        } else {
            self.texts.insert(path.to_owned(), whole.clone());
        }
        let folder = place.parent().unwrap_or(&self.home).to_owned();
        make_folder(&folder)?;
        let unfinished = folder.join(format!(".ringfence-{}.tmp", Uuid::new_v4()));
        let written = write_synced(&unfinished, &whole)
            .and_then(|()| fs::rename(&unfinished, &place))
            .map_err(|error| StoreError::file("write", &place, error));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        sync_folder(&folder)
    }

    /// Keeps a copy of a file in the trash, or moves it there if it is to go.
    fn keep(&self, path: &str) -> Result<(), StoreError> {
        self.to_trash(path, |from, to| fs::rename(from, to))
    }

    /// Keeps a copy of a file that is about to be replaced.
    pub(super) fn keep_copy(&self, path: &str) -> Result<(), StoreError> {
        self.to_trash(path, |from, to| fs::copy(from, to).map(drop))
    }

    fn to_trash(
        &self,
        path: &str,
        act: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let trash = self.home.join("trash");
        make_folder(&trash)?;
        let flat = path.strip_prefix("tools/").unwrap_or(path);
        let flat = flat.replace('/', "-");
        let (stem, ending) = flat.rsplit_once('.').unwrap_or((&flat, "txt"));
        let to = trash.join(format!("{stem}.{}-{}.{ending}", now_ms(), Uuid::new_v4()));
        match act(&self.home.join(path), &to) {
            Ok(()) => sync_folder(&trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::file("move", self.home.join(path), error)),
        }
    }
}

/// Whether a path is one that nodes share. Attack: whoever writes to the database must not
/// write anywhere else in the home.
pub(super) fn check_path(path: &str) -> Result<(), StoreError> {
    let named = |folder: &str, ending: &str| {
        let name = path.strip_prefix(folder)?.strip_prefix('/')?;
        let stem = name.strip_suffix(ending)?;
        check_stem(stem).ok()
    };
    let is_known = path == CONFIG_FILE
        || named(RULES_FOLDER, ".toml").is_some()
        || named(TOOLS_FOLDER, ".json").is_some();
    match is_known {
        true => Ok(()),
        false => Err(unusable(path, "no file of that name is shared")),
    }
}

/// Whether a path is of the settings or the rules, which hold together or not at all.
pub(super) fn is_setting(path: &str) -> bool {
    !path.starts_with("tools/")
}

/// Whether a text can be shared at all.
pub(super) fn check_size(path: &str, text: &str) -> Result<(), StoreError> {
    let bytes_max = match is_setting(path) {
        true => limits::RULE_FILES_BYTES_MAX,
        false => usize::try_from(limit::TOOL_FILE_BYTES_MAX).unwrap_or(usize::MAX),
    };
    match text.len() > bytes_max {
        true => Err(unusable(path, "it is too long")),
        false => Ok(()),
    }
}

pub(super) fn unusable(path: &str, why: &str) -> StoreError {
    StoreError::Unknown {
        doing: "use a shared file",
        what: format!("`{}`: {why}", model::text::one_line(path)),
    }
}

pub(super) fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}
