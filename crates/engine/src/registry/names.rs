//! Whether everything the settings name is there.
//!
//! Names are looked up when settings come into force. A tool that is deleted later, or a
//! key that is revoked, does not invalidate settings that were good: a setting about a
//! name that nothing has is harmless. They stay in force, and an alarm says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use model::config::{ConfigFault, KnownNames, NameKind, NameUse, kinds_in};
use model::govern::access::level::CATEGORIES;
use model::govern::key::NAMES_RESERVED;
use store::{Keys, Store, StoreError};

use super::{Latest, Registry, Snapshot};
use crate::catalog::Catalog;
use crate::error::{EngineError, causes};
use crate::native::Native;
use crate::servers;
use crate::settings::{self, Candidate, Settings, shown};
use crate::toolbox::ToolboxTool;

/// A name in a file of settings that nothing has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// The file, beneath the home folder.
    pub file: String,
    /// The name and the setting it stands in.
    pub used: NameUse,
    /// What is wrong, where, and what may have been meant.
    pub fault: ConfigFault,
}

impl Registry {
    /// The names in some settings that nothing has.
    pub fn unknown_names(&self, settings: &Settings) -> Result<Vec<Stranger>, EngineError> {
        let now = self.current();
        Ok(unknown_names(&self.home, settings, &now, &self.catalog)?)
    }

    /// Refuses settings that name what is not there.
    pub fn check_names(&self, settings: &Settings) -> Result<(), EngineError> {
        let strange = self.unknown_names(settings)?;
        match strange.is_empty() {
            true => Ok(()),
            false => Err(EngineError::Settings(sentences(&self.home, &strange))),
        }
    }

    /// Whether settings that were refused may be good now: a caller got a key.
    pub(super) fn has_other_keys(&self, latest: &Latest) -> bool {
        let before = latest.keys.as_ref();
        before.is_some_and(|before| keys(&self.home).is_ok_and(|now| now != *before))
    }

    /// Looks again whether the settings in force name what went since.
    pub(super) fn look_for_gone(&self, latest: &mut Latest, settings: &Settings, now: &Snapshot) {
        let before = &latest.snapshot.own;
        // A new tool cannot make a name unknown, so only a missing one is a reason to look.
        let is_less = before.keys().any(|name| !now.own.contains_key(name));
        if !is_less && latest.gone.is_none() {
            return;
        }
        let gone = check(&self.home, &self.store, settings, now, &self.catalog);
        self.say_gone(latest, gone.unwrap_or_else(|fault| Some(causes(&fault))));
    }

    /// Says once what the settings in force name and is gone.
    pub(super) fn say_gone(&self, latest: &mut Latest, gone: Option<String>) {
        if let Some(gone) = &gone
            && latest.gone.as_ref() != Some(gone)
        {
            self.alarm.raise(&format!(
                "the settings stay in force but use names that no longer exist: {gone}"
            ));
        }
        latest.gone = gone;
    }

    /// Says which settings stand under a name that will not count much longer.
    pub(super) fn say_outdated(&self, settings: &Settings) {
        for sentence in &settings.config.outdated {
            self.alarm.raise(sentence);
        }
    }
}

impl Snapshot {
    /// The same with a candidate that cannot be tried left out.
    pub(super) fn try_settings(&mut self, settings: &Arc<Settings>) {
        if matches!(settings.shadow, Some(Candidate::Broken { .. })) {
            self.shadow = None;
        }
        self.settings = Arc::clone(settings);
    }
}

/// The settings, with a candidate that names what is not there called broken.
pub(super) fn tried(
    home: &Path,
    settings: Arc<Settings>,
    now: &Snapshot,
    catalog: &Catalog,
) -> Arc<Settings> {
    let Some(Candidate::Good {
        file,
        settings: candidate,
    }) = &settings.shadow
    else {
        return settings;
    };
    let why = match unknown_names(home, candidate, now, catalog) {
        Ok(strange) if strange.is_empty() => return settings,
        Ok(strange) => sentences(home, &strange),
        Err(fault) => causes(&fault),
    };
    let file = file.clone();
    Arc::new(Settings {
        shadow: Some(Candidate::Broken { file, why }),
        ..Settings::clone(&settings)
    })
}

impl Stranger {
    /// In one line, with its place.
    fn sentence(&self, home: &Path) -> String {
        let path = home.join(&self.file);
        shown(&path.display(), std::slice::from_ref(&self.fault))
    }
}

/// Refuses settings whose preset is none: it comes with the program and never later.
pub(super) fn check_preset(
    home: &Path,
    settings: &Settings,
    catalog: &Catalog,
) -> Result<(), EngineError> {
    let presets = catalog.presets().keys().cloned().collect();
    let names = BTreeMap::from([(NameKind::Preset, presets)]);
    let strange = among(settings, &KnownNames { names });
    match strange.is_empty() {
        true => Ok(()),
        false => Err(EngineError::Settings(sentences(home, &strange))),
    }
}

/// Refuses settings that name what is not there, unless they were in force before
/// and something went since. Then what went comes back, in a sentence.
pub(super) fn check(
    home: &Path,
    store: &Store,
    settings: &Settings,
    now: &Snapshot,
    catalog: &Catalog,
) -> Result<Option<String>, EngineError> {
    let strange = unknown_names(home, settings, now, catalog)?;
    if strange.is_empty() {
        return Ok(None);
    }
    let told = sentences(home, &strange);
    match settings::was_in_force(store, settings)? {
        true => Ok(Some(told)),
        false => Err(EngineError::Settings(told)),
    }
}

/// All of them, a line each.
fn sentences(home: &Path, unknown_names: &[Stranger]) -> String {
    let lines = unknown_names.iter().map(|stranger| stranger.sentence(home));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names in settings that nothing has. `now` has the tools there are.
pub(super) fn unknown_names(
    home: &Path,
    settings: &Settings,
    now: &Snapshot,
    catalog: &Catalog,
) -> Result<Vec<Stranger>, StoreError> {
    let texts = settings.texts();
    let kinds: BTreeSet<_> = texts.iter().flat_map(|(_, text)| kinds_in(text)).collect();
    let mut names = BTreeMap::new();
    for kind in kinds {
        names.insert(kind, known(home, kind, now, catalog)?);
    }
    Ok(among(settings, &KnownNames { names }))
}

fn among(settings: &Settings, known: &KnownNames) -> Vec<Stranger> {
    let mut all = Vec::new();
    for (file, text) in settings.texts() {
        let strange = settings.config.unknown_names(text, known).into_iter();
        all.extend(strange.map(|(used, fault)| Stranger {
            file: file.to_owned(),
            used,
            fault,
        }));
    }
    all
}

fn known(
    home: &Path,
    kind: NameKind,
    now: &Snapshot,
    catalog: &Catalog,
) -> Result<Vec<String>, StoreError> {
    let documents = || now.tools().map(|tool| &tool.usable.document);
    // Of a server whose tools are all held or blocked, the category and the tag stay.
    let held = || now.servers().servers().keys();
    let mut names: BTreeSet<String> = match kind {
        NameKind::Tool => {
            // A file that cannot be used still has its name, and what is switched
            // off may be switched on.
            let aside = now.set_aside.iter().filter_map(|aside| aside.name.clone());
            let native = Native::ALL.iter().map(|native| native.name().to_owned());
            let toolbox = ToolboxTool::ALL.iter().map(|tool| tool.name().to_owned());
            let named = now.names().map(str::to_owned);
            named.chain(aside).chain(native).chain(toolbox).collect()
        }
        NameKind::Caller => keys(home)?.into_iter().collect(),
        NameKind::Category => documents()
            .filter_map(|document| document.category.as_deref())
            .map(str::to_uppercase)
            .chain(held().map(|_| servers::CATEGORY.to_owned()))
            .collect(),
        NameKind::Tag => documents()
            .flat_map(|document| document.tags.iter().cloned())
            .chain(held().cloned())
            .collect(),
        NameKind::Preset => catalog.presets().keys().cloned().collect(),
    };
    let always: &[&str] = match kind {
        NameKind::Caller => &NAMES_RESERVED,
        NameKind::Category => &CATEGORIES,
        NameKind::Tool | NameKind::Tag | NameKind::Preset => &[],
    };
    names.extend(always.iter().map(|name| (*name).to_owned()));
    Ok(names.into_iter().collect())
}

/// The names callers have keys for.
pub(super) fn keys(home: &Path) -> Result<Vec<String>, StoreError> {
    let keys = Keys::open(home)?.all()?;
    Ok(keys.into_iter().map(|key| key.name).collect())
}
