//! The operator's settings as they are written: `ringfence.toml`, the files of rules
//! beside it, and a candidate that is only tried.
//!
//! Settings are taken whole or not at all. A candidate that cannot be used is said
//! and left out, for it decides nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::config::{AuditDurability, Config, ConfigFault};
use model::document::digest;
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice};
use store::settings::{CONFIG_FILE, RuleFile};
use store::{Durability, Filter, Rows, Store, StoreError, StoreSettings};

use crate::error::{EngineError, causes};

/// Where the folders are that settings and documents name without a leading `/`.
const WORKSPACES_FOLDER: &str = "workspaces";

/// Folders of the home that are never the files of a tool.
const KEPT_FOLDERS: &[&str] = &["audit", "locks", "rules", "scratch", "tools", "trash"];

/// Through what settings change.
const THROUGH: &str = "file";
/// The name of the digest in a notice.
const DIGEST: &str = "digest";
/// Whether what the settings name was looked up, and found.
const NAMES: &str = "names";
const KNOWN: &str = "known";

/// The operator's settings and the texts they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What they mean, the rules of all files included.
    pub config: Config,
    /// The operator's file, as people know it.
    pub file: String,
    /// Its text; empty if there is none.
    pub text: String,
    /// The files of rules.
    pub rules: Vec<RuleFile>,
    /// What is tried beside them.
    pub shadow: Option<Candidate>,
}

/// A file that is tried beside the live settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// It can be used.
    Good {
        /// Its name in the settings.
        file: String,
        /// The settings it stands for.
        settings: Arc<Settings>,
    },
    /// It cannot be used.
    Broken {
        /// Its name in the settings.
        file: String,
        /// Why it cannot be used.
        why: String,
    },
}

impl Settings {
    /// The files of rules as [`Config::settings`] takes them.
    #[must_use]
    pub fn rule_texts(&self) -> Vec<(&str, &str)> {
        let files = self.rules.iter();
        files
            .map(|file| (file.name.as_str(), file.text.as_str()))
            .collect()
    }

    /// Every text with the name of its file, the operator's own first.
    pub(crate) fn texts(&self) -> Vec<(&str, &str)> {
        let own = std::iter::once((self.file.as_str(), self.text.as_str()));
        own.chain(self.rule_texts()).collect()
    }

    /// What would hold if a text were in force: rules alone stand in the place of
    /// all rules, anything else in that of the operator's file, beside the files of
    /// rules.
    pub fn candidate(&self, path: &Path, text: &str) -> Result<Settings, EngineError> {
        let refuse =
            |faults: Vec<ConfigFault>| EngineError::Settings(shown(&path.display(), &faults));
        let mut config = self.config.candidate(text).map_err(refuse)?;
        // A candidate tries no candidate of its own.
        config.shadow = None;
        let mut rules = Vec::new();
        if !Config::is_only_rules(text) {
            add_rules(&mut config, Path::new(""), &self.rules)?;
            rules.clone_from(&self.rules);
        }
        Ok(Settings {
            config,
            file: path.display().to_string(),
            text: text.to_owned(),
            rules,
            shadow: None,
        })
    }
}

/// The operator's settings and the text of their file. No file means nothing set; a
/// file that cannot be read or understood is an error, never the defaults.
pub fn read_config(home: &Path) -> Result<(Config, String), EngineError> {
    let settings = read(home)?;
    Ok((settings.config, settings.text))
}

/// Everything the operator wrote.
pub fn read(home: &Path) -> Result<Settings, EngineError> {
    let text = store::settings::read(home)?;
    let mut config = match &text {
        None => Config::closed(),
        Some(text) => Config::parse(text).map_err(|faults| {
            let path = home.join(CONFIG_FILE);
            EngineError::Settings(shown(&path.display(), &faults))
        })?,
    };
    let rules = store::settings::read_rules(home)?;
    add_rules(&mut config, home, &rules)?;
    let mut settings = Settings {
        config,
        file: CONFIG_FILE.to_owned(),
        text: text.unwrap_or_default(),
        rules,
        shadow: None,
    };
    settings.shadow = shadow(home, &settings);
    Ok(settings)
}

/// Adds the rules of every file, or says what is wrong with all of them.
fn add_rules(config: &mut Config, home: &Path, files: &[RuleFile]) -> Result<(), EngineError> {
    let mut wrong = Vec::new();
    for file in files {
        let added = config.parse_rules(&file.text).and_then(|rules| {
            let added = config.add_rules(rules);
            added.map_err(|fault| vec![fault])
        });
        if let Err(faults) = added {
            wrong.push(shown(&home.join(&file.name).display(), &faults));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(EngineError::Settings(wrong.join("\n"))),
    }
}

fn shadow(home: &Path, settings: &Settings) -> Option<Candidate> {
    let file = settings.config.shadow.clone()?;
    let path = home.join(&file);
    let read = match store::settings::read_file(&path) {
        Ok(Some(text)) => settings.candidate(&path, &text),
        Ok(None) => Err(EngineError::Settings("there is no such file".to_owned())),
        Err(fault) => Err(fault.into()),
    };
    Some(match read {
        Ok(settings) => match settings.config.effective_baseline() {
            Ok(_) => Candidate::Good {
                file,
                settings: Arc::new(settings),
            },
            Err(conflict) => Candidate::Broken {
                file,
                why: conflict.to_string(),
            },
        },
        Err(fault) => Candidate::Broken {
            file,
            why: causes(&fault),
        },
    })
}

/// All faults of a settings file, a line each.
pub(crate) fn shown(path: &dyn std::fmt::Display, faults: &[ConfigFault]) -> String {
    let line = |fault: &ConfigFault| {
        let place = match fault.line {
            0 => String::new(),
            line => format!(":{line}:{}", fault.column),
        };
        let fix = fault.fix.as_ref().map(|fix| format!("; {fix}"));
        let fix = fix.unwrap_or_default();
        format!("{path}{place}: {}{fix}", fault.message)
    };
    faults.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A setting that names a folder tools cannot have.
#[derive(Clone, Debug)]
pub struct FolderFault {
    /// Such as `baseline.fs_base_path`.
    pub setting: String,
    /// Why not, and what to do.
    pub why: String,
}

/// The settings that name folders tools cannot have. Looks at the disk, makes nothing.
#[must_use]
pub fn folder_faults(home: &Path, config: &Config) -> Vec<FolderFault> {
    let workspace = home.join(&config.files.workspace);
    let protected = protected(home, &workspace);
    let baseline = config.baseline.fs_base_path.iter();
    let baseline = baseline.map(|path| ("baseline.fs_base_path".to_owned(), path));
    let profiles = config.profiles.iter().filter_map(|(name, profile)| {
        let path = profile.fs_base_path.as_ref()?;
        Some((format!("profiles.{name}.fs_base_path"), path))
    });
    let named = baseline.chain(profiles);
    let mut faults: Vec<_> = named
        .filter_map(|(setting, path)| {
            let fault = protected.allows(Path::new(path)).err()?;
            let why = causes(&fault);
            Some(FolderFault { setting, why })
        })
        .collect();
    if workspace.exists()
        && let Err(fault) = protected.allows(&workspace)
    {
        faults.push(FolderFault {
            setting: "files.workspace".to_owned(),
            why: causes(&fault),
        });
    }
    faults
}

/// A notice about settings. It names the server: who wrote the file is not known.
pub(crate) fn notice(act: Act, message: &str) -> Notice {
    Notice::new(act, SERVER, THROUGH, message)
}

/// Records which settings and rules are in force, unless the audit says so already. They
/// may have changed while no process ran. `again` records them in any case, after an
/// attempt that failed: a record that the disk did not confirm may be there all the same.
pub(crate) fn note(store: &Store, settings: &Settings, again: bool) -> Result<(), StoreError> {
    let now = Digests::of(settings);
    // A home where nothing was ever set has nothing to tell.
    let is_new = |digest: &str, act: Act, is_empty: bool| match last(store, act)? {
        Some(last) => Ok::<_, StoreError>(again || !last.is_good(digest)),
        None => Ok(!is_empty),
    };
    if is_new(&now.text, Act::SettingsChanged, settings.text.is_empty())? {
        let message = "new settings are in force";
        let notice = notice(Act::SettingsChanged, message).about(CONFIG_FILE);
        let notice = notice.detail(NAMES, KNOWN).detail(DIGEST, &now.text);
        store.audit().notice(notice)?;
    }
    if is_new(&now.rules, Act::RulesChanged, settings.rules.is_empty())? {
        let notice = notice(Act::RulesChanged, "new rule files are in force");
        let notice = notice
            .about(store::settings::RULES_FOLDER)
            .detail(NAMES, KNOWN)
            .detail(DIGEST, &now.rules);
        let notice = now
            .files
            .iter()
            .fold(notice, |notice, (name, digest)| notice.detail(name, digest));
        store.audit().notice(notice)?;
    }
    Ok(())
}

/// Whether these very settings were the last to come into force, with everything
/// they name there.
pub(crate) fn was_in_force(store: &Store, settings: &Settings) -> Result<bool, StoreError> {
    let now = Digests::of(settings);
    let is_good = |digest: &str, act: Act, is_empty: bool| {
        let last = last(store, act)?;
        let is_good = last.map_or(is_empty, |last| last.is_good(digest));
        Ok::<_, StoreError>(is_good)
    };
    Ok(
        is_good(&now.text, Act::SettingsChanged, settings.text.is_empty())?
            && is_good(&now.rules, Act::RulesChanged, settings.rules.is_empty())?,
    )
}

/// What settings are known by in the audit.
struct Digests<'a> {
    text: String,
    /// Of all files of rules together.
    rules: String,
    files: Vec<(&'a str, String)>,
}

impl Digests<'_> {
    fn of(settings: &Settings) -> Digests<'_> {
        let mut all = String::new();
        let mut files = Vec::new();
        for file in &settings.rules {
            let digest = digest::of_text(&file.text);
            all.push_str(&format!("{digest}  {}\n", file.name));
            files.push((file.name.as_str(), digest));
        }
        Digests {
            text: digest::of_text(&settings.text),
            rules: digest::of_text(&all),
            files,
        }
    }
}

/// What the newest notice of an act says about a digest.
struct Noted {
    digest: String,
    /// Whether everything was there that was named. Versions before did not look.
    names_known: bool,
}

impl Noted {
    fn is_good(&self, digest: &str) -> bool {
        self.names_known && self.digest == digest
    }
}

/// What is to be written down about a candidate that cannot be used, unless that
/// was the last thing said.
pub(crate) fn broken_candidate(store: &Store, file: &str, why: &str) -> Option<Notice> {
    let digest = digest::of_text(&format!("{file}\n{why}"));
    let is_known =
        matches!(last(store, Act::ShadowRefused), Ok(Some(last)) if last.digest == digest);
    (!is_known).then(|| {
        let notice = notice(Act::ShadowRefused, why).about(file);
        notice.detail(DIGEST, &digest)
    })
}

fn last(store: &Store, act: Act) -> Result<Option<Noted>, StoreError> {
    let newest = store.audit().notices(&Filter {
        rows: Rows::Notices,
        act: Some(act),
        limit: Some(1),
        ..Filter::default()
    })?;
    let newest = newest.into_iter().next();
    Ok(newest.and_then(|entry| {
        let details = &entry.notice.details;
        Some(Noted {
            digest: details.get(DIGEST).cloned()?,
            names_known: details.get(NAMES).is_some_and(|word| word == KNOWN),
        })
    }))
}

/// A home folder as no tool may see it, and what of it tools may have.
#[must_use]
pub fn protected(home: &Path, workspace: &Path) -> host::files::ProtectedHome {
    let named = home.join(WORKSPACES_FOLDER);
    host::files::ProtectedHome {
        path: home.to_owned(),
        workspaces: vec![workspace.to_owned(), named.clone()],
        kept: KEPT_FOLDERS.iter().map(|name| home.join(name)).collect(),
        relative_to: named,
    }
}

/// Where signed heads of the audit are also kept.
pub(crate) fn heads_file(home: &Path, config: &Config) -> Option<PathBuf> {
    let file = config.audit.heads_file.as_deref()?;
    Some(home.join(file))
}

pub(crate) fn store_settings(config: &Config) -> StoreSettings {
    StoreSettings {
        durability: match config.audit.durability {
            AuditDurability::Standard => Durability::Standard,
            AuditDurability::Full => Durability::Full,
        },
        audit_bytes_max: config.audit.bytes_max,
        ..StoreSettings::standard()
    }
}
