//! The spine: the one path of a call, and the life of a tool.
//!
//! An [`Engine`] is opened on a home folder. Doors hand it [`call::CallRequest`]s
//! and translate what comes back; the command line also creates, tests and
//! publishes tools with it. [`call`] holds every branch of a call.

pub mod approve;
pub mod call;
pub mod callers;
pub mod catalog;
pub mod consent;
mod entropy;
pub mod explain;
pub mod life;
mod limit;
pub mod many;
pub mod native;
mod notice;
pub mod offer;
pub mod powers;
pub mod publish;
mod record;
pub mod registry;
pub mod replay;
pub mod report;
mod run;
mod scratch;
mod script;
pub mod settings;
pub mod trust;
pub mod upkeep;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::fetch::Trust;
use host::secrets::{Secrets, SecretsFault};
use model::audit::Closing;
use model::caller::Caller;
use model::config::{AuditDurability, Config, WorkerSharing};
use model::environment::Environment;
use model::limits;
use sandbox::pool::{Pool, PoolError, PoolSettings, Sharing};
use store::{Durability, Store, StoreError, StoreSettings};
use tokio::sync::{Notify, OnceCell, Semaphore};

use crate::approve::Approver;
use crate::call::CallRequest;
use crate::callers::CallerBook;
use crate::catalog::Catalog;
use crate::entropy::Entropy;
use crate::native::disclose::Desk;
use crate::native::shelf::Shelf;
use crate::powers::PowerSettings;
use crate::registry::Registry;
use crate::report::{Report, Reporter};
use crate::run::now_ms;
use crate::scratch::Scratch;
use crate::trust::Rounds;
use crate::upkeep::Upkeep;

pub use record::Gate;
pub use sandbox::memory;
pub use sandbox::pool::WorkerProgram;
pub use store::{AuditEntry, Filter};

/// For the worker programs of other crates' tests.
#[cfg(feature = "testing")]
pub use sandbox::worker_main;

/// The file of secrets in the home folder.
pub const SECRETS_FILE: &str = "secrets.env";

/// Where the folders are that settings and documents name without a leading `/`.
pub const WORKSPACES_FOLDER: &str = "workspaces";

/// Folders of the home that are never the files of a tool.
const KEPT_FOLDERS: &[&str] = &["audit", "locks", "rules", "scratch", "tools", "trash"];

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Says something the operator must hear.
#[derive(Clone)]
pub struct Alarm(Arc<dyn Fn(&str) + Send + Sync>);

impl Alarm {
    /// Calls `say` with each sentence.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Alarm {
        Alarm(Arc::new(say))
    }

    /// Says it.
    pub fn raise(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

/// What an engine is opened with, besides what the home folder says.
#[derive(Debug)]
pub struct EngineSettings {
    /// The home folder; absolute.
    pub home: PathBuf,
    /// The variables the process was started with.
    pub environment: Environment,
    /// What a sandbox worker is.
    pub program: WorkerProgram,
    /// One worker for one call, instead of what the operator set. For commands
    /// that make one call and end.
    pub single: bool,
    /// Whom to ask, if anybody.
    pub approver: Option<Arc<dyn Approver>>,
    /// Whom to tell.
    pub alarm: Alarm,
    /// Whom the powers believe and where they reach; for tests.
    pub powers: Option<PowerSettings>,
    /// What the clock and the randomness of every script start from, instead of
    /// the system's; for tests.
    pub moment: Option<Moment>,
    /// What the audit, approvals, limits, pauses and trust tell the time by, instead of the
    /// system's clock; for tests.
    pub clock: Option<Clock>,
    /// Milliseconds the tools of a script have together, where that is less than its
    /// preset says; for tests.
    pub tools_ms_max: Option<u32>,
    /// Who is told of each step of each call as it happens.
    pub observer: Option<Observer>,
    /// Who is told of each call after it was written down.
    pub reporters: Vec<Arc<dyn Reporter>>,
}

/// A moment that can come again.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// What `Math.random` starts from.
    pub seed: u64,
}

/// Says what time it is, in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// Asks `now` each time.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Is told of each step of each call.
#[derive(Clone)]
pub struct Observer(pub(crate) Arc<dyn Fn(&str) + Send + Sync>);

impl Observer {
    /// Calls `see` with the name of each step: `opened`, the word of each gate,
    /// `ran`, `closed`.
    pub fn new(see: impl Fn(&str) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(see))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl EngineSettings {
    /// The settings of a process that serves.
    #[must_use]
    pub fn new(home: PathBuf, environment: Environment, alarm: Alarm) -> EngineSettings {
        EngineSettings {
            home,
            environment,
            program: WorkerProgram::ThisProgram,
            single: false,
            approver: None,
            alarm,
            powers: None,
            moment: None,
            clock: None,
            tools_ms_max: None,
            observer: None,
            reporters: Vec::new(),
        }
    }
}

/// Everything a call walks through.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    store: Store,
    catalog: Arc<Catalog>,
    registry: Registry,
    secrets: Secrets,
    powers: PowerSettings,
    pool: OnceCell<Pool>,
    /// Wakes calls that wait for a person, when one of this process's people
    /// answered.
    answers: Notify,
    entropy: Entropy,
    book: Arc<CallerBook>,
    rounds: Rounds,
    shelf: Shelf,
    desk: Desk,
    /// Turns of scripts.
    scripts: Semaphore,
    upkeep: Upkeep,
}

/// The engine could not do it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operator's file cannot be understood.
    #[error("{0}")]
    Settings(String),
    /// The baseline and the profile contradict each other.
    #[error("the settings contradict each other: {0}")]
    Ground(String),
    /// The operator names a preset that is not there.
    #[error("there is no preset `{name}`{}", hint(.nearest.as_deref()))]
    Preset {
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The bundled tools cannot be read.
    #[error("the bundled tools cannot be read: {0}")]
    Catalog(String),
    /// A thread that reads documents died.
    #[error("the documents could not be read")]
    Reader,
    /// No tool has that name.
    #[error("there is no tool `{name}`: {why}{}", hint(.nearest.as_deref()))]
    NoSuchTool {
        /// The name.
        name: String,
        /// What is known about it.
        why: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Bundled tools are as they were shipped.
    #[error("`{0}` is a bundled tool; export it and import it under another name to change it")]
    Bundled(String),
    /// A bundled tool has that name.
    #[error("`{0}` is the name of a bundled tool; choose another")]
    Reserved(String),
    /// A tool names no such variable.
    #[error("`{tool}` uses no variable `{name}`{}", hint(.nearest.as_deref()))]
    NoSuchVariable {
        /// The tool.
        tool: String,
        /// The variable.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A tool has that name.
    #[error("there is a tool `{0}` already")]
    Exists(String),
    /// Not a name.
    #[error("`{0}` cannot be the name of a tool; use 1 to 256 letters, digits, `_`, `-` or `.`")]
    Name(String),
    /// The sandbox did not start.
    #[error("the sandbox did not start")]
    Pool(#[from] PoolError),
    /// The secrets cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretsFault),
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// An error and everything behind it, in one line for the operator.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.ends_with(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        source = cause.source();
    }
    words
}

impl Engine {
    /// Opens the home folder, making it if it is not there.
    pub fn open(settings: EngineSettings) -> Result<Engine, EngineError> {
        let catalog = Arc::new(Catalog::bundled()?);
        Engine::open_with(settings, catalog)
    }

    fn open_with(settings: EngineSettings, catalog: Arc<Catalog>) -> Result<Engine, EngineError> {
        let home = settings.home.as_path();
        let config = registry::read_config(home)?.0;
        let store = Store::open(home, store_settings(&config))?;
        let book = Arc::new(CallerBook::new(&store));
        let registry = Registry::open(
            home,
            &store,
            Arc::clone(&catalog),
            Arc::clone(&book),
            settings.alarm.clone(),
        )?;
        let secrets = Secrets::open(home.join(SECRETS_FILE));
        Scratch::sweep(home);
        let powers = match &settings.powers {
            Some(powers) => powers.clone(),
            None => power_settings(home, &config),
        };
        let scripts = Semaphore::new(scripts_max(&settings, &config));
        let engine = Engine {
            settings,
            powers,
            store,
            catalog,
            registry,
            secrets,
            pool: OnceCell::new(),
            answers: Notify::new(),
            entropy: Entropy::default(),
            book,
            rounds: Rounds::default(),
            shelf: Shelf::default(),
            desk: Desk::default(),
            scripts,
            upkeep: Upkeep::default(),
        };
        engine.tend_audit();
        Ok(engine)
    }

    /// What is remembered.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Which tools there are.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The bundled tools.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.settings.home
    }

    /// The variables as they are now: the process's own, then the file of secrets.
    pub fn environment(&self) -> Result<Environment, SecretsFault> {
        self.secrets.below(&self.settings.environment)
    }

    /// The worker processes, started when first needed.
    pub async fn pool(&self) -> Result<&Pool, PoolError> {
        let start = || async {
            let config = &self.registry.current().config;
            Pool::start(self.pool_settings(config)).await
        };
        self.pool.get_or_try_init(start).await
    }

    fn pool_settings(&self, config: &Config) -> PoolSettings {
        let program = self.settings.program.clone();
        if self.settings.single {
            let mut settings = PoolSettings::new(program, Sharing::PerCall);
            settings.workers = 1;
            return settings;
        }
        let sharing = match config.sandbox.sharing {
            WorkerSharing::Shared => Sharing::Shared,
            WorkerSharing::PerCaller => Sharing::PerCaller,
            WorkerSharing::PerCall => Sharing::PerCall,
        };
        let mut settings = PoolSettings::new(program, sharing);
        settings.workers = u32::try_from(config.sandbox.workers).unwrap_or(1);
        settings
    }

    pub(crate) fn approver(&self) -> Option<&dyn Approver> {
        self.settings.approver.as_deref()
    }

    pub(crate) fn answers(&self) -> &Notify {
        &self.answers
    }

    /// The moment a script starts at.
    pub(crate) fn moment(&self) -> Moment {
        self.settings.moment.unwrap_or_else(|| Moment {
            now_ms: now_ms(),
            seed: self.entropy.seed(),
        })
    }

    /// What tools of a script have, if less than its preset says.
    pub(crate) fn tools_ms_max(&self) -> Option<u32> {
        self.settings.tools_ms_max
    }

    /// What time it is.
    pub(crate) fn now_ms(&self) -> i64 {
        match &self.settings.clock {
            Some(Clock(now)) => now(),
            None => now_ms(),
        }
    }

    pub(crate) fn upkeep(&self) -> &Upkeep {
        &self.upkeep
    }

    pub(crate) fn book(&self) -> &CallerBook {
        &self.book
    }

    pub(crate) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// Where tools are found by words.
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// What callers have loaded.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(crate) fn entropy(&self) -> &Entropy {
        &self.entropy
    }

    pub(crate) fn scripts(&self) -> &Semaphore {
        &self.scripts
    }

    pub(crate) fn observe(&self, step: &str) {
        if let Some(Observer(see)) = &self.settings.observer {
            see(step);
        }
    }

    /// What the reporters are to be told, if there are any.
    pub(crate) fn report_on(
        &self,
        call_id: &str,
        request: &CallRequest,
        closing: &Closing,
    ) -> Option<Report> {
        let has_reporters = !self.settings.reporters.is_empty();
        has_reporters.then(|| Report::new(call_id, request, closing))
    }

    pub(crate) fn tell(&self, report: Option<Report>) {
        if let Some(report) = report {
            for reporter in &self.settings.reporters {
                reporter.report(&report);
            }
        }
    }

    pub(crate) fn observer(&self) -> Option<Observer> {
        self.settings.observer.clone()
    }

    pub(crate) fn alarm_of(&self) -> &Alarm {
        &self.settings.alarm
    }

    /// Says something the operator must hear.
    pub fn alarm(&self, sentence: &str) {
        self.settings.alarm.raise(sentence);
    }

    /// Where the powers of a caller reach.
    pub(crate) fn power_settings(&self, config: &Config, caller: &Caller) -> PowerSettings {
        PowerSettings {
            sub_workspace: config.files.per_caller.then(|| caller.name.clone()),
            workspace_bytes_max: config.files.bytes_max,
            caller: caller.name.clone(),
            private_hosts: config.network.private_hosts.as_slice().into(),
            home: Some(self.protected()),
            ..self.powers.clone()
        }
    }

    /// The home folder as no tool may see it.
    #[must_use]
    pub fn protected(&self) -> host::files::Home {
        protected(self.home(), &self.powers.workspace)
    }
}

/// How many scripts run at one time: where a worker runs one call, half of them are
/// left for the tools.
fn scripts_max(settings: &EngineSettings, config: &Config) -> usize {
    if settings.single {
        return 1;
    }
    match config.sandbox.sharing {
        WorkerSharing::PerCall => usize::try_from(config.sandbox.workers).unwrap_or(1),
        WorkerSharing::Shared | WorkerSharing::PerCaller => limits::SCRIPTS_AT_ONCE_MAX,
    }
}

/// Where the powers reach, for all callers. Read once: certificates take
/// milliseconds to read.
fn power_settings(home: &Path, config: &Config) -> PowerSettings {
    let ca_file = config.network.ca_file.as_ref();
    PowerSettings {
        trust: Trust::system(ca_file.map(|path| home.join(path))),
        ..PowerSettings::new(home.join(&config.files.workspace))
    }
}

/// A home folder as no tool may see it, and what of it tools may have.
#[must_use]
pub fn protected(home: &Path, workspace: &Path) -> host::files::Home {
    let named = home.join(WORKSPACES_FOLDER);
    host::files::Home {
        path: home.to_owned(),
        workspaces: vec![workspace.to_owned(), named.clone()],
        kept: KEPT_FOLDERS.iter().map(|name| home.join(name)).collect(),
        relative_to: named,
    }
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
