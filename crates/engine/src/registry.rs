//! Which tools there are, right now.
//!
//! Documents are files, settings are a file, passes and publications are in the
//! store. A snapshot holds all of them as they were when it was taken; before
//! every call the registry asks the system whether anything changed since, and
//! takes a new one if so. A file that cannot be used is set aside with its
//! findings and takes nothing else down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::access::Earned;
use model::assessment::{self, Sound};
use model::audit::Act;
use model::config::Config;
use model::consent::Granted;
use model::document::{self, Document, FileShape};
use model::environment::Environment;
use model::exposure::{Exposed, Offered};
use model::finding::{Code, Finding, any_error};
use model::json::Lines;
use model::lifecycle::{self, State};
use model::nearest::nearest;
use model::policy::Baseline;
use model::safety::Source;
use model::trust::{Strategy, TrustState};
use store::{PublicationSnapshot, Store, ToolFile, ToolFolder, ToolGrants, parallel};

use crate::callers::{CallerBook, lock};
use crate::catalog::{Bundled, Catalog};
use crate::native::{Native, Natives};
use crate::notice::loudly;
use crate::settings::{self, Candidate, Settings};
use crate::{Alarm, EngineError, causes, store_settings};

mod names;

pub use crate::settings::read_config;
pub use names::Stranger;
pub use store::settings::CONFIG_FILE;

/// Which tools there are.
#[derive(Debug)]
pub struct Registry {
    home: PathBuf,
    folder: ToolFolder,
    store: Store,
    catalog: Arc<Catalog>,
    callers: Arc<CallerBook>,
    alarm: Alarm,
    latest: Mutex<Latest>,
}

#[derive(Debug)]
struct Latest {
    snapshot: Arc<Snapshot>,
    standing_version: u64,
    /// What callers earned when the snapshot was taken.
    earned: Arc<BTreeMap<String, TrustState>>,
    known: Known,
    /// Why the newest settings are not in force, if they are not.
    refused: Option<String>,
    /// What the settings in force name and is gone since, in a sentence.
    gone: Option<String>,
    /// The keys there were when settings were refused for a name nothing has: with
    /// another key they may be good.
    keys: Option<Vec<String>>,
    /// Settings could not be written down and are to be tried again.
    is_owing: bool,
}

/// Files that were read before, so that each is parsed and judged once.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What they were judged on.
    ground: Option<Baseline>,
    files: BTreeMap<String, Arc<FileRead>>,
}

/// What a file was found to hold.
#[derive(Debug)]
struct FileRead {
    text: Arc<str>,
    name: Option<String>,
    /// The one document, unless something stands in its way.
    sound: Option<Arc<Sound>>,
    findings: Vec<Finding>,
}

/// Everything a call depends on, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Tells it from every other one of this process.
    pub(crate) serial: u64,
    /// The operator's settings, with the rules of all files.
    pub config: Config,
    /// The texts they come from.
    pub settings: Arc<Settings>,
    /// What would hold if the candidate beside the live rules were in force.
    pub shadow: Option<Arc<Shadow>>,
    /// What every tool stands on.
    pub ground: Baseline,
    own: BTreeMap<String, Tool>,
    bundled: Bundled,
    natives: Natives,
    grants: Arc<ToolGrants>,
    /// Files that cannot be used, and why.
    pub set_aside: Vec<SetAside>,
    preset: Vec<String>,
    /// Why nothing runs, while the audit does not say which settings are in force.
    pub(crate) owed: Option<String>,
}

/// A candidate that is tried beside the live rules.
#[derive(Debug)]
pub struct Shadow {
    /// Its file.
    pub file: String,
    /// Everything as it would be.
    pub snapshot: Snapshot,
}

/// One tool that can be used, published or not.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The document and what holds for it.
    pub sound: Arc<Sound>,
    /// Where it comes from.
    pub source: Source,
    /// The body of ours that runs instead of the document's code.
    pub native: Option<Native>,
    /// Its file in the tools folder, without the ending; bundled tools have none.
    pub file: Option<String>,
    /// What was seen in it that is no error.
    pub findings: Vec<Finding>,
    /// Where it stands but for its variables.
    pub standing: Standing,
    /// What its owner granted to it.
    pub granted: Granted,
}

/// Where a tool stands, before anybody looks at variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not earned its Local Pass, or was edited since, or its author
    /// marks it as a draft.
    Draft,
    /// Its last Local Pass failed, with this.
    TestFailed(String),
    /// It passed and was published.
    Published,
}

/// A file that cannot be used.
#[derive(Clone, Debug)]
pub struct SetAside {
    /// Its name in the tools folder.
    pub file: String,
    /// The tool it wants to be, if it says so.
    pub name: Option<String>,
    /// Why.
    pub findings: Vec<Finding>,
}

impl Tool {
    /// Why it cannot be called yet; nothing if it is published.
    #[must_use]
    pub fn not_published(&self) -> Option<String> {
        match &self.standing {
            Standing::Published => None,
            Standing::Draft => Some("is a draft".to_owned()),
            Standing::TestFailed(why) => Some(format!("failed its own test ({why})")),
        }
    }

    /// Where it stands, and the variables it needs that are not set.
    #[must_use]
    pub fn state(&self, environment: &Environment) -> (State, Vec<String>) {
        let missing = lifecycle::missing(&self.sound.document, environment);
        let state = match &self.standing {
            Standing::Draft => State::Draft,
            Standing::TestFailed(_) => State::TestFailed,
            Standing::Published if missing.is_empty() && self.ungranted().is_empty() => {
                State::Active
            }
            Standing::Published => State::MissingRequirements,
        };
        (state, missing)
    }

    /// The variables it names that its owner has not granted to it.
    #[must_use]
    pub fn ungranted(&self) -> Vec<String> {
        self.granted.ungranted(&self.sound.document)
    }
}

impl Snapshot {
    /// A tool by its name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let own = self.own.get(name);
        own.or_else(|| self.bundled.get(name))
            .or_else(|| self.natives.get(name))
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        let shipped = self.bundled.all().chain(self.natives.all());
        let mut tools: Vec<_> = self.own.values().chain(shipped).collect();
        tools.sort_by(|a, b| a.sound.document.name.cmp(&b.sound.document.name));
        tools.into_iter()
    }

    /// The name of every tool, by name where it is one's own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own.keys().map(String::as_str);
        own.chain(self.bundled.names())
    }

    /// Why there is no tool of a name, for the operator.
    #[must_use]
    pub fn why_not(&self, name: &str) -> String {
        let mut aside = self.set_aside.iter();
        match aside.find(|aside| aside.name.as_deref() == Some(name)) {
            Some(aside) => {
                let first = aside.findings.iter().find(|finding| is_error(finding));
                let why = first.map_or("it cannot be used", |finding| finding.message.as_str());
                format!("`{}` is set aside: {why}", aside.file)
            }
            None => match Native::named(name).map(Native::part) {
                Some(part) => format!("{} is off (`{}`)", part.words(), part.setting()),
                None => "no document has that name".to_owned(),
            },
        }
    }

    /// The tool that may have been meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(
            name,
            self.own
                .keys()
                .map(String::as_str)
                .chain(self.bundled.names())
                .chain(self.natives.all().iter().map(name_of)),
        )
    }

    /// Whether a tool is on offer, and why.
    #[must_use]
    pub fn exposed(&self, document: &Document, source: Source) -> Exposed {
        let offered = Offered {
            name: &document.name,
            tags: &document.tags,
            category: document.category.as_deref(),
            bundled: source == Source::Builtin,
            in_preset: source == Source::Builtin && self.preset.contains(&document.name),
            part: (source == Source::Builtin)
                .then(|| Native::named(&document.name))
                .flatten()
                .map(|native| native.part().words()),
        };
        self.config.exposure.of(&offered)
    }

    /// What the owner granted to the tool of a name, or to a document of that name in
    /// a file.
    pub(crate) fn granted(&self, name: &str, place: Option<&Path>) -> Granted {
        Granted::Only(self.grants.of(name, &place_word(place)))
    }

    /// The tool of ours that a document is, word for word, its test values included:
    /// they decide what a Local Pass does.
    pub(crate) fn ours(&self, document: &Document) -> Option<&Tool> {
        let tool = self.tool(&document.name)?;
        let is_ours = tool.source == Source::Builtin && tool.sound.document == *document;
        is_ours.then_some(tool)
    }
}

/// A file as the store keeps it; empty for the tools folder.
pub(crate) fn place_word(place: Option<&Path>) -> String {
    place
        .map(|path| path.display().to_string())
        .unwrap_or_default()
}

fn name_of(tool: &Tool) -> &str {
    &tool.sound.document.name
}

fn is_error(finding: &Finding) -> bool {
    any_error(std::slice::from_ref(finding))
}

impl Registry {
    /// Reads everything for the first time. Settings that cannot be understood
    /// are an error here; later they leave the last good ones in force.
    pub(crate) fn open(
        home: &Path,
        store: &Store,
        catalog: Arc<Catalog>,
        callers: Arc<CallerBook>,
        alarm: Alarm,
    ) -> Result<Registry, EngineError> {
        let folder = ToolFolder::open(home)?;
        // Asked before reading: what changes while we read is read again.
        let _ = folder.changed();
        let standing_version = store.publications().version()?;
        let settings = Arc::new(settings::read(home)?);
        names::check_preset(home, &settings, &catalog)?;
        let earned = callers.earned()?;
        let mut known = Known::default();
        let ground = (&settings, &*earned);
        let mut snapshot = take(&folder, store, &catalog, ground, &mut known)?;
        let gone = names::check(home, store, &settings, &snapshot, &catalog)?;
        let settings = names::tried(home, settings, &snapshot, &catalog);
        snapshot.try_settings(&settings);
        let registry = Registry {
            home: home.to_owned(),
            folder,
            store: store.clone(),
            catalog,
            callers,
            alarm,
            latest: Mutex::new(Latest {
                snapshot: Arc::new(snapshot),
                standing_version,
                earned,
                known,
                refused: None,
                gone: None,
                keys: None,
                is_owing: false,
            }),
        };
        registry.say_gone(&mut lock(&registry.latest), gone);
        if let Err(fault) = settings::note(store, &settings, false) {
            // No good settings came before these, so nothing is in force until the
            // audit says what is. Every call tries again.
            let why = format!("the settings are not in the audit: {}", causes(&fault));
            registry.alarm.raise(&why);
            let mut latest = lock(&registry.latest);
            latest.snapshot = Arc::new(latest.snapshot.unsettled(why));
            latest.is_owing = true;
        }
        registry.settle(&settings);
        Ok(registry)
    }

    /// Watches what the settings name, and says what is wrong with a candidate.
    fn settle(&self, settings: &Settings) {
        let shadow = settings.config.shadow.iter();
        let named = shadow.map(|file| self.home.join(file)).collect();
        self.folder.watch_also(named);
        let broken = match &settings.shadow {
            None => None,
            Some(Candidate::Broken { file, why }) => Some((file, why.clone())),
            Some(Candidate::Good { .. }) => None,
        };
        if let Some((file, why)) = broken {
            self.alarm.raise(&format!(
                "the candidate `{file}` is not tried beside the live rules: {why}"
            ));
            if let Some(notice) = settings::broken_candidate(&self.store, file, &why) {
                loudly(&self.store, &self.alarm, notice);
            }
        }
    }

    /// Everything as it would be if other settings were in force.
    pub fn under(&self, settings: &Arc<Settings>) -> Result<Snapshot, EngineError> {
        let latest = lock(&self.latest);
        let mut known = latest.known.clone();
        let earned = Arc::clone(&latest.earned);
        drop(latest);
        let ground = (settings, &*earned);
        take(&self.folder, &self.store, &self.catalog, ground, &mut known)
    }

    /// What holds now. Whatever a person changed before this was asked is in it.
    pub fn current(&self) -> Arc<Snapshot> {
        let mut latest = lock(&self.latest);
        let news = self.folder.news();
        let is_other = news.files || self.has_earned_news(&latest) || self.has_other_keys(&latest);
        let is_settled = latest.standing_version != u64::MAX && !latest.is_owing;
        if !is_other && !news.publications && news.covers_publications && is_settled {
            return Arc::clone(&latest.snapshot);
        }
        let version = self.store.publications().version();
        let same = matches!(&version, Ok(version) if *version == latest.standing_version);
        if !is_other && same && !latest.is_owing {
            return Arc::clone(&latest.snapshot);
        }
        let only_standing = !is_other && is_settled && latest.snapshot.shadow.is_none();
        let taken = match only_standing {
            true => self.stood_again(&latest.snapshot),
            false => self.again(&mut latest),
        };
        match taken {
            Ok(snapshot) => {
                latest.snapshot = Arc::new(snapshot);
                // An unreadable version never equals; the next call tries again.
                latest.standing_version = version.unwrap_or(u64::MAX);
            }
            Err(fault) => {
                let why = causes(&fault);
                self.alarm
                    .raise(&format!("tools could not be read again: {why}"));
                latest.snapshot = Arc::new(latest.snapshot.without_tools());
                latest.standing_version = u64::MAX;
            }
        }
        Arc::clone(&latest.snapshot)
    }

    /// Whether anybody's level changed. What cannot be told is a reason to look,
    /// and then to have no tools.
    fn has_earned_news(&self, latest: &Latest) -> bool {
        if latest.snapshot.config.trust.strategy == Strategy::Disabled {
            return false;
        }
        let earned = self.callers.earned();
        !matches!(&earned, Ok(earned) if Arc::ptr_eq(earned, &latest.earned))
    }

    /// The same tools where something was tested, published or taken back. No file
    /// is looked at: of ten thousand, that would take longer than a test.
    fn stood_again(&self, before: &Snapshot) -> Result<Snapshot, EngineError> {
        let standing = self.store.publications().all()?;
        let mut snapshot = before.clone();
        snapshot.serial = next_serial();
        for (name, tool) in &mut snapshot.own {
            tool.standing = stands(&tool.sound, &standing);
            tool.granted = Granted::Only(standing.grants.of(name, ""));
        }
        snapshot.grants = Arc::new(standing.grants);
        Ok(snapshot)
    }

    fn again(&self, latest: &mut Latest) -> Result<Snapshot, EngineError> {
        let settings = match self.newest(latest) {
            Ok(settings) => settings,
            Err(why) => {
                self.alarm.raise(&match latest.snapshot.owed {
                    None => format!("settings not changed, the last good ones stay: {why}"),
                    Some(_) => format!("no settings are in force and nothing runs: {why}"),
                });
                if latest.refused.as_ref() != Some(&why) {
                    let notice = settings::notice(Act::SettingsRefused, &why);
                    loudly(&self.store, &self.alarm, notice.about(CONFIG_FILE));
                }
                latest.refused = Some(why);
                Arc::clone(&latest.snapshot.settings)
            }
        };
        if let Some(why) = &latest.snapshot.owed
            && latest.is_owing
        {
            return Ok(latest.snapshot.unsettled(why.clone()));
        }
        latest.earned = self.callers.earned_anew()?;
        let now = self.taken(&settings, latest)?;
        self.look_for_gone(latest, &settings, &now);
        Ok(now)
    }

    fn taken(
        &self,
        settings: &Arc<Settings>,
        latest: &mut Latest,
    ) -> Result<Snapshot, EngineError> {
        let earned = Arc::clone(&latest.earned);
        let ground = (settings, &*earned);
        let known = &mut latest.known;
        take(&self.folder, &self.store, &self.catalog, ground, known)
    }

    /// The settings as they are now, if they can be used and were written down.
    fn newest(&self, latest: &mut Latest) -> Result<Arc<Settings>, String> {
        let read = settings::read(&self.home).and_then(|settings| {
            names::check_preset(&self.home, &settings, &self.catalog)?;
            ground(&settings.config)?;
            Ok(settings)
        });
        let settings = Arc::new(read.map_err(|fault| causes(&fault))?);
        let is_same = settings == latest.snapshot.settings;
        if is_same && !latest.is_owing {
            latest.refused = None;
            return Ok(Arc::clone(&latest.snapshot.settings));
        }
        let now = self.taken(&settings, latest);
        let now = now.map_err(|fault| causes(&fault))?;
        let gone = names::check(&self.home, &self.store, &settings, &now, &self.catalog);
        latest.keys = gone
            .is_err()
            .then(|| names::keys(&self.home).ok())
            .flatten();
        let gone = gone.map_err(|fault| causes(&fault))?;
        // Owing, the audit may end with settings that were never in force, so those of
        // before are said again. The store's come first: they may make room for that.
        let before = store_settings(&latest.snapshot.config);
        let noted = self
            .store
            .set(store_settings(&settings.config))
            .and_then(|()| settings::note(&self.store, &settings, latest.is_owing));
        if let Err(fault) = noted {
            let _ = self.store.set(before);
            latest.is_owing = true;
            let why = causes(&fault);
            return Err(format!("the change could not be written down: {why}"));
        }
        latest.is_owing = false;
        latest.refused = None;
        self.say_gone(latest, gone);
        let settings = names::tried(&self.home, settings, &now, &self.catalog);
        self.settle(&settings);
        Ok(settings)
    }

    /// The folder the documents are in.
    #[must_use]
    pub fn folder(&self) -> &ToolFolder {
        &self.folder
    }
}

impl Snapshot {
    /// What is left when the tools cannot be read: none, for an old list may
    /// offer what was taken away. The settings stay: without them, what they deny
    /// would not be denied to what comes without the registry.
    fn without_tools(&self) -> Snapshot {
        Snapshot {
            serial: next_serial(),
            config: self.config.clone(),
            settings: Arc::clone(&self.settings),
            shadow: None,
            ground: self.ground.clone(),
            own: BTreeMap::new(),
            bundled: Bundled::new(&Arc::new(Catalog::empty()), &self.ground),
            natives: Natives::none(&self.ground),
            grants: Arc::default(),
            set_aside: Vec::new(),
            preset: Vec::new(),
            owed: self.owed.clone(),
        }
    }

    /// What is left while the settings are not in the audit: nothing, not even for
    /// what the owner brings.
    fn unsettled(&self, why: String) -> Snapshot {
        Snapshot {
            owed: Some(why),
            ..self.without_tools()
        }
    }

    /// The same where a caller has earned something else.
    pub(crate) fn with_earned(&self, name: String, earned: Earned) -> Snapshot {
        let mut other = self.clone();
        other.serial = next_serial();
        other.config.access.earned.insert(name, earned);
        other
    }
}

fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What trust leaves of the levels the settings give.
fn put_earned(config: &mut Config, states: &BTreeMap<String, TrustState>) {
    let trust = &config.trust;
    let earned = states.iter();
    let earned = earned.filter_map(|(name, state)| Some((name.clone(), state.earned(trust)?)));
    config.access.earned = earned.collect();
    config.access.unproven = TrustState::initial(trust, 0).earned(trust);
}

/// The bundled tools the settings offer.
fn preset(config: &Config, catalog: &Catalog) -> Result<Vec<String>, EngineError> {
    match &config.exposure.preset {
        None => Ok(Vec::new()),
        Some(name) => catalog.preset(name),
    }
}

fn ground(config: &Config) -> Result<Baseline, EngineError> {
    let ground = config.ground();
    ground.map_err(|conflict| EngineError::Ground(conflict.to_string()))
}

fn take(
    folder: &ToolFolder,
    store: &Store,
    catalog: &Arc<Catalog>,
    (settings, earned): (&Arc<Settings>, &BTreeMap<String, TrustState>),
    known: &mut Known,
) -> Result<Snapshot, EngineError> {
    let mut config = settings.config.clone();
    put_earned(&mut config, earned);
    let ground = ground(&config)?;
    let preset = preset(&config, catalog)?;
    let shadow = match &settings.shadow {
        Some(Candidate::Good { file, settings }) => {
            // What is wrong with it is said when it is settled.
            let beside = (settings, earned);
            let taken = take(folder, store, catalog, beside, &mut known.clone());
            let file = file.clone();
            taken
                .ok()
                .map(|snapshot| Arc::new(Shadow { file, snapshot }))
        }
        Some(Candidate::Broken { .. }) | None => None,
    };
    let natives = Natives::on(&ground, &config);
    let mut snapshot = Snapshot {
        serial: next_serial(),
        natives,
        config,
        settings: Arc::clone(settings),
        shadow,
        bundled: Bundled::new(catalog, &ground),
        ground,
        own: BTreeMap::new(),
        grants: Arc::default(),
        set_aside: Vec::new(),
        preset,
        owed: None,
    };
    let standing = store.publications().all()?;
    snapshot.grants = Arc::new(standing.grants.clone());
    if known.ground.as_ref() != Some(&snapshot.ground) {
        *known = Known {
            ground: Some(snapshot.ground.clone()),
            files: BTreeMap::new(),
        };
    }
    let mut claims: BTreeMap<String, Vec<Tool>> = BTreeMap::new();
    let files = folder.scan()?;
    // A folder of a thousand is read when a command starts, and somebody waits.
    let read = |file: &ToolFile| read_file(file, &known.files, &snapshot.ground);
    let reads = parallel::map(&files, read).ok_or(EngineError::Reader)?;
    known.files.clear();
    for (file, read) in files.into_iter().zip(reads) {
        let read = match read {
            Ok(read) => read,
            Err(aside) => {
                snapshot.set_aside.push(aside);
                continue;
            }
        };
        match tool(&file.file_name, &read, &standing) {
            Ok(tool) => {
                let name = tool.sound.document.name.clone();
                claims.entry(name).or_default().push(tool);
            }
            Err(aside) => snapshot.set_aside.push(aside),
        }
        known.files.insert(file.file_name, read);
    }
    for (name, tools) in claims {
        settle(&mut snapshot, catalog, &name, tools);
    }
    snapshot.set_aside.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(snapshot)
}

/// One name, one tool: who claims it together with others, or takes a bundled
/// name for something else, is set aside.
fn settle(snapshot: &mut Snapshot, catalog: &Catalog, name: &str, mut tools: Vec<Tool>) {
    let file = |tool: &Tool| format!("{}.json", tool.file.as_deref().unwrap_or(""));
    if tools.len() > 1 {
        let files: Vec<_> = tools.iter().map(file).collect();
        let message = format!("the name `{name}` is claimed by {}", files.join(" and "));
        let aside = |file: String| set_aside(&file, Some(name), &message);
        snapshot.set_aside.extend(files.into_iter().map(aside));
        // Neither is exposed; a bundled tool of that name stays what it is.
        return;
    }
    let Some(tool) = tools.pop() else { return };
    match catalog.digest(name) {
        None if Native::named(name).is_some() => {
            let part = Native::named(name).map_or("", |native| native.part().words());
            let message = format!("`{name}` is the name of a tool of {part}; choose another");
            let aside = set_aside(&file(&tool), Some(name), &message);
            snapshot.set_aside.push(aside);
        }
        None => {
            snapshot.own.insert(name.to_owned(), tool);
        }
        // A copy of the bundled tool is the bundled tool.
        Some(shipped) if tool.sound.judged.digest.to_string() == shipped => {}
        Some(_) => {
            let message = format!("`{name}` is the name of a bundled tool; choose another");
            let aside = set_aside(&file(&tool), Some(name), &message);
            snapshot.set_aside.push(aside);
        }
    }
}

fn set_aside(file: &str, name: Option<&str>, message: &str) -> SetAside {
    SetAside {
        file: file.to_owned(),
        name: name.map(str::to_owned),
        findings: vec![Finding::error(Code::SpecInvariant, "", message.to_owned())],
    }
}

fn read_file(
    file: &ToolFile,
    known: &BTreeMap<String, Arc<FileRead>>,
    ground: &Baseline,
) -> Result<Arc<FileRead>, SetAside> {
    let text = match &file.text {
        Ok(text) => text,
        Err(fault) => return Err(set_aside(&file.file_name, None, &fault.to_string())),
    };
    match known.get(&file.file_name) {
        // Mostly the very same text, which need not be compared.
        Some(known) if Arc::ptr_eq(&known.text, text) || known.text == *text => {
            Ok(Arc::clone(known))
        }
        Some(_) | None => Ok(Arc::new(judged(text, ground))),
    }
}

fn judged(text: &Arc<str>, ground: &Baseline) -> FileRead {
    let mut parsed = document::parse(text);
    let count = parsed.items.len();
    let (Some(item), true) = (
        parsed.items.pop(),
        count == 1 && parsed.shape != FileShape::Many,
    ) else {
        let message = format!(
            "the file holds a list of {count} documents; one file holds one, `ringfence import` takes lists apart"
        );
        return FileRead {
            text: Arc::clone(text),
            name: None,
            sound: None,
            findings: vec![Finding::error(Code::SpecInvariant, "", message)],
        };
    };
    let lines = Lines::new(text);
    // Variables are looked at when somebody asks, not when a file is read.
    let assessed = assessment::assess(item, &lines, ground, &Environment::empty(), Source::User);
    FileRead {
        text: Arc::clone(text),
        name: assessed.name,
        sound: assessed.sound.map(Arc::new),
        findings: assessed.findings,
    }
}

/// The tool of a file, or what stands in its way.
fn tool(
    file_name: &str,
    read: &FileRead,
    standing: &PublicationSnapshot,
) -> Result<Tool, SetAside> {
    match &read.sound {
        Some(sound) => Ok(Tool {
            standing: stands(sound, standing),
            granted: Granted::Only(standing.grants.of(&sound.document.name, "")),
            sound: Arc::clone(sound),
            source: Source::User,
            native: None,
            file: Some(file_name.trim_end_matches(".json").to_owned()),
            findings: read.findings.clone(),
        }),
        None => Err(SetAside {
            file: file_name.to_owned(),
            name: read.name.clone(),
            findings: read.findings.clone(),
        }),
    }
}

/// Only the store says what was published. A document's own `draft: true` takes
/// it back; its `draft: false` says nothing. A published tool stays published
/// when a later test of it fails: what was proved of this digest was proved.
fn stands(sound: &Sound, standing: &PublicationSnapshot) -> Standing {
    let digest = sound.judged.digest.to_string();
    let published = standing.published.get(&sound.document.name) == Some(&digest);
    if published && sound.document.draft != Some(true) {
        return Standing::Published;
    }
    match standing.passes.get(&digest).filter(|pass| !pass.ok) {
        Some(pass) => {
            let why = pass.error.as_ref().map(|error| error.message.clone());
            Standing::TestFailed(why.unwrap_or_default())
        }
        None => Standing::Draft,
    }
}
