//! The engine: the parts a call walks through, opened on one home folder.
//!
//! Each part holds what it uses: the store, the clock, the alarm. What is done with
//! several parts together is above: `call` for calls, `explain`, `publish`, `life` and
//! `consent` for what the owner does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use find::progressive::LoadedByCaller;
use host::egress::EgressTally;
use host::fetch::TlsTrust as TrustedRoots;
use host::secrets::{Credentials, Secrets, SecretsFault};
use jail::JailStarter;
use model::caller::Caller;
use model::config::{Config, WorkerSharing};
use model::document::environment::Environment;
use model::govern::access::quota::{RateLimit, UsedLimit};
use model::govern::approval::Channel;
use model::govern::tool_policy::ToolPolicy;
use model::limits;
use model::record::audit::Notice;
use model::record::outcome::{CallError, Outcome};
use sandbox::pool::{Pool, PoolError, PoolSettings, PoolStatus, Sharing, WorkerProgram};
use store::{Store, StoreError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

use crate::approve::{AnswerFault, ApprovalAnswer, Approver, Inbox, Questions};
use crate::callers::{CallerBook, Callers};
use crate::catalog::Catalog;
use crate::changes::KeptChanges;
use crate::entropy::Entropy;
use crate::error::{EngineError, causes};
use crate::jailed::Jailer;
use crate::jobs::RunningJobs;
use crate::notice::loudly;
use crate::powers::PowerSettings;
use crate::quota::Quotas;
use crate::refusal::CallRefusal;
use crate::registry::Registry;
use crate::report::{CallReport, Reporter};
use crate::request::{CallPurpose, CallRequest};
use crate::scratch::Scratch;
use crate::search_index::SearchIndex;
use crate::servers::connections::Connections;
use crate::servers::review::KeptReview;
use crate::services::{Alarm, Clock, Observer, RunStart, Stopwatch, VariableSource};
use crate::settings::{heads_file, protected, read_config, store_settings};
use crate::toolbox::JailStanding;
use crate::trust::{Schedule, TrustAdmin};
use crate::upkeep::Upkeep;
use store::clock::now_ms;

/// The file of secrets in the home folder.
pub const SECRETS_FILE: &str = "secrets.env";

/// What an engine is opened with, in addition to what the home folder says.
#[derive(Debug)]
pub struct EngineSettings {
    /// The home folder; absolute.
    pub home: PathBuf,
    /// The variables the process was started with.
    pub environment: Environment,
    /// What the service manager handed over, above the file of secrets.
    pub credentials: Option<Credentials>,
    /// What a sandbox worker is.
    pub program: WorkerProgram,
    /// One worker for one call, instead of what the operator set. For commands
    /// that make one call and end.
    pub single: bool,
    /// Files that were changed by hand are not sent to other nodes. For commands: what one
    /// of them changes itself is sent, and one that only lists changes nothing elsewhere.
    pub follows: bool,
    /// The person at this process's own terminal, if there is one.
    pub approver: Option<Arc<dyn Approver>>,
    /// Where sentences for the operator go.
    pub alarm: Alarm,
    /// Whom the powers believe and where they reach; for tests.
    pub powers: Option<PowerSettings>,
    /// What the clock and the randomness of every script start from, instead of
    /// the system's; for tests.
    pub run_start: Option<RunStart>,
    /// What the audit, approvals, limits, pauses and trust tell the time by, instead of the
    /// system's clock; for tests.
    pub clock: Option<Clock>,
    /// What the budgets of scripts are counted by, instead of the system's time; for tests.
    pub stopwatch: Option<Stopwatch>,
    /// Milliseconds the tools of a script have together, where that is less than its
    /// preset says; for tests.
    pub tools_ms_max: Option<u32>,
    /// Receives each step of each call as it happens.
    pub observer: Option<Observer>,
    /// What this program denies or has asked about, beside the rules of the home.
    pub policy: ToolPolicy,
    /// Receive a report of each call after it is in the audit log.
    pub reporters: Vec<Arc<dyn Reporter>>,
}

impl EngineSettings {
    /// The settings of a process that serves.
    #[must_use]
    pub fn new(home: PathBuf, environment: Environment, alarm: Alarm) -> EngineSettings {
        EngineSettings {
            home,
            environment,
            credentials: None,
            program: WorkerProgram::ThisProgram,
            single: false,
            follows: false,
            approver: None,
            alarm,
            powers: None,
            run_start: None,
            clock: None,
            stopwatch: None,
            tools_ms_max: None,
            observer: None,
            policy: ToolPolicy::ALLOW_ALL,
            reporters: Vec::new(),
        }
    }
}

/// Everything a call walks through.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    clock: Clock,
    store: Store,
    catalog: Arc<Catalog>,
    registry: Arc<Registry>,
    variables: VariableSource,
    powers: PowerSettings,
    pool: OnceCell<Pool>,
    jail_starter: JailStarter,
    questions: Questions,
    entropy: Entropy,
    callers: Arc<CallerBook>,
    quotas: Quotas,
    schedule: Schedule,
    search_index: SearchIndex,
    server_connections: Connections,
    /// Background jobs of callers.
    jobs: RunningJobs,
    /// Changes that wait to be copied into an operator's folder.
    changes: KeptChanges,
    /// What callers have loaded of progressive lists.
    loaded_cards: Mutex<LoadedByCaller>,
    /// Decisions about connections of programs.
    egress_tally: Arc<EgressTally>,
    /// One permit for each script that may run now.
    scripts: Semaphore,
    upkeep: Upkeep,
}

impl Engine {
    /// Opens the home folder, making it if it is not there.
    pub fn open(settings: EngineSettings) -> Result<Engine, EngineError> {
        let catalog = Arc::new(Catalog::bundled()?);
        let home = settings.home.as_path();
        // Before any tool is rated: the fence of the machine is part of the risk.
        JailStanding::learn(&settings.program, home);
        // Before the store is opened: the settings say which store it is.
        let config = read_config(home)?.0;
        let store = Store::open(home, store_settings(&config))?;
        store.audit().copy_heads_to(heads_file(home, &config));
        let clock = settings.clock.clone().unwrap_or_else(Clock::system);
        let alarm = &settings.alarm;
        let callers = Arc::new(CallerBook::new(&store, &clock, alarm));
        let registry = Arc::new(Registry::open(
            home,
            &store,
            Arc::clone(&catalog),
            Arc::clone(&callers),
            settings.policy.clone(),
            (alarm.clone(), settings.follows),
        )?);
        // Left by processes that died. What live ones use is younger than the bound.
        Scratch::sweep(home);
        let questions = Questions::new(
            (&store, &clock, alarm),
            Arc::clone(&registry),
            settings.approver.clone(),
            settings.observer.clone(),
        );
        let secrets =
            Secrets::open(home.join(SECRETS_FILE)).with_credentials(settings.credentials.clone());
        let changes = KeptChanges::open(home);
        let engine = Engine {
            variables: VariableSource::new(settings.environment.clone(), secrets),
            powers: power_settings(&settings, &config),
            scripts: Semaphore::new(scripts_max(&settings, &config)),
            quotas: Quotas::new(&store, &clock, alarm),
            schedule: Schedule::new(&store, &clock),
            upkeep: Upkeep::new(&store, &clock, alarm),
            jobs: RunningJobs::new(home, (&store, &clock, alarm), &changes),
            changes,
            server_connections: Connections::new(
                home,
                settings.program.clone(),
                &settings.environment,
                KeptReview {
                    store: store.clone(),
                    clock: clock.clone(),
                    alarm: alarm.clone(),
                },
            ),
            jail_starter: JailStarter::new(settings.program.clone()),
            settings,
            clock,
            store,
            catalog,
            registry,
            pool: OnceCell::new(),
            questions,
            entropy: Entropy::default(),
            callers,
            search_index: SearchIndex::default(),
            loaded_cards: Mutex::default(),
            egress_tally: Arc::default(),
        };
        // A command that ends at once tends nothing later.
        engine.tend_audit();
        Ok(engine)
    }

    /// The audit, approvals, caller records and publications of this home.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The MCP servers that run.
    pub(crate) fn server_connections(&self) -> &Connections {
        &self.server_connections
    }

    /// Which tools there are.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The tools that come with the binary, and their presets.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether a document takes a name that a tool of ours has: a bundled one, one of code
    /// mode, or one of an enabled category of the toolbox.
    #[must_use]
    pub fn is_name_taken(&self, name: &str, digest: &str) -> bool {
        let now = self.registry().current();
        self.catalog.is_taken(name, digest) || now.toolbox.category(name).is_some()
    }

    /// The home folder this engine was opened on.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.settings.home
    }

    /// The home folder as no tool may see it.
    #[must_use]
    pub fn protected(&self) -> host::files::ProtectedHome {
        protected(self.home(), &self.powers.workspace)
    }

    /// The variables as they are now: the process's own, then the file of secrets.
    pub fn environment(&self) -> Result<Environment, SecretsFault> {
        self.variables.read()
    }

    /// What is remembered about callers, for the owner and for operators.
    #[must_use]
    pub fn callers(&self) -> Callers<'_> {
        Callers {
            book: &self.callers,
            schedule: &self.schedule,
            now: self.registry.current(),
            through: "cli",
        }
    }

    /// Trust, for the owner and for operators.
    #[must_use]
    pub fn trust(&self) -> TrustAdmin<'_> {
        TrustAdmin {
            schedule: &self.schedule,
            now: self.registry.current(),
        }
    }

    /// The inbox, for the owner and for operators.
    #[must_use]
    pub fn approvals(&self) -> Inbox<'_> {
        Inbox {
            questions: &self.questions,
            schedule: &self.schedule,
            channel: Channel::Inbox,
        }
    }

    /// An answer that a caller's own client brought after the call had ended. The
    /// same call, made again, runs by it or reports it. One that was not shown
    /// to a person leaves the question to the inbox: that call is then to be made
    /// without a way to ask, or the client would be asked the same again.
    pub fn answer(
        &self,
        id: &str,
        by: &Caller,
        channel: Channel,
        answer: ApprovalAnswer,
    ) -> Result<(), AnswerFault> {
        let answered = self.questions.answer_own(id, by, channel, answer);
        self.questions.alarmed(answered)
    }

    /// Whether a call could run now. Otherwise the first thing in its way, in words
    /// that are safe to publish: the alarm has the details.
    pub async fn ready(&self, pool_wait: Duration) -> Result<(), &'static str> {
        if self.store.reach().is_err() {
            return Err("the shared store does not answer");
        }
        if self.store.ready().is_err() || self.store.audit().head().is_err() {
            return Err("the audit cannot be written");
        }
        let now = self.registry.current();
        if now.owed.is_some() {
            return Err("no settings are in force");
        }
        // Bundled tools are always there. None at all means that the registry failed
        // closed.
        if now.tools().next().is_none() {
            return Err("the tools cannot be read");
        }
        match timeout(pool_wait, self.pool()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err("the sandbox does not start"),
            Err(_) => Err("the sandbox is starting"),
        }
    }

    /// Keeps the audit within its bounds, and tells the owner in time that it fills up.
    /// Blocks while it removes entries.
    pub fn tend_audit(&self) {
        self.upkeep.tend(&self.registry.current().config.audit);
    }

    /// The worker processes, started when first needed.
    pub async fn pool(&self) -> Result<&Pool, PoolError> {
        // A start that failed is not kept, so the next call tries again.
        let start = || async {
            let config = &self.registry.current().config;
            Pool::start(self.pool_settings(config)).await
        };
        self.pool.get_or_try_init(start).await
    }

    /// The worker processes as they stand; nothing before the first is needed.
    pub(crate) fn pool_status(&self) -> Option<PoolStatus> {
        self.pool.get().map(Pool::status)
    }

    /// The worker processes, or the refusal of a call that cannot have them.
    pub(crate) async fn pool_for_call(&self) -> Result<&Pool, CallRefusal> {
        self.pool().await.map_err(|fault| {
            let error = CallError::passing(fault.reason(), "the sandbox did not start");
            CallRefusal::new(error).noted(causes(&fault))
        })
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

    /// What a caller used of the limits that hold for it.
    pub fn limits_used(
        &self,
        caller: &str,
        groups: &[String],
    ) -> Result<Vec<(RateLimit, UsedLimit)>, StoreError> {
        let now = self.registry.current();
        self.quotas.used(&now.config, caller, groups)
    }

    /// The variables the process was started with.
    pub(crate) fn own_environment(&self) -> &Environment {
        &self.settings.environment
    }

    /// Says something the operator must hear.
    pub fn alarm(&self, sentence: &str) {
        self.settings.alarm.raise(sentence);
    }

    /// Writes down what is about to be granted. After an error it must not be.
    pub fn notice(&self, notice: Notice) -> Result<(), StoreError> {
        self.store().audit().notice(notice).map(|_| ())
    }

    /// Writes down what was taken away, or says aloud that it could not.
    pub fn noticed(&self, notice: Notice) {
        loudly(self.store(), self.alarm_of(), notice);
    }

    pub(crate) fn alarm_of(&self) -> &Alarm {
        &self.settings.alarm
    }

    /// What time it is.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// What a run starts from.
    pub(crate) fn run_start(&self) -> RunStart {
        self.settings.run_start.unwrap_or_else(|| RunStart {
            now_ms: now_ms(),
            seed: self.entropy.seed(),
        })
    }

    /// A stopwatch for one script.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        let given = self.settings.stopwatch.clone();
        given.unwrap_or_else(Stopwatch::system)
    }

    /// What tools of a script have, if less than its preset says.
    pub(crate) fn tools_ms_max(&self) -> Option<u32> {
        self.settings.tools_ms_max
    }

    pub(crate) fn variable_source(&self) -> &VariableSource {
        &self.variables
    }

    /// Changes that wait to be copied into an operator's folder.
    pub(crate) fn changes(&self) -> &KeptChanges {
        &self.changes
    }

    /// Background jobs of callers.
    pub(crate) fn jobs(&self) -> &RunningJobs {
        &self.jobs
    }

    /// How to start this program again.
    pub(crate) fn worker_program(&self) -> &WorkerProgram {
        &self.settings.program
    }

    /// Where the decisions about connections of programs are counted.
    pub(crate) fn egress_tally(&self) -> &Arc<EgressTally> {
        &self.egress_tally
    }

    /// What starts programs in the jail.
    pub(crate) fn jailer(&self) -> Jailer {
        let user_home = self.settings.environment.get("HOME");
        Jailer {
            starter: self.jail_starter.clone(),
            home: self.home().to_owned(),
            user_home: user_home.map(PathBuf::from),
        }
    }

    pub(crate) fn powers(&self) -> &PowerSettings {
        &self.powers
    }

    pub(crate) fn callers_book(&self) -> &CallerBook {
        &self.callers
    }

    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    pub(crate) fn trust_schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Counts a call towards the next look at its caller's trust.
    pub(crate) fn count_for_trust(&self, request: &CallRequest, outcome: &Outcome) {
        if request.purpose == CallPurpose::Call {
            self.schedule.count_call(&request.caller, outcome);
        }
    }

    pub(crate) fn search_index(&self) -> &SearchIndex {
        &self.search_index
    }

    pub(crate) fn loaded_cards(&self) -> &Mutex<LoadedByCaller> {
        &self.loaded_cards
    }

    pub(crate) fn entropy(&self) -> &Entropy {
        &self.entropy
    }

    pub(crate) fn scripts(&self) -> &Semaphore {
        &self.scripts
    }

    pub(crate) fn observe(&self, step: &str) {
        if let Some(observer) = &self.settings.observer {
            observer.see(step);
        }
    }

    pub(crate) fn observer(&self) -> Option<Observer> {
        self.settings.observer.clone()
    }

    pub(crate) fn has_reporters(&self) -> bool {
        !self.settings.reporters.is_empty()
    }

    /// Tells the reporters of a call that was written down.
    pub(crate) fn report(&self, report: Option<CallReport>) {
        if let Some(report) = report {
            for reporter in &self.settings.reporters {
                reporter.report(&report);
            }
        }
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
fn power_settings(settings: &EngineSettings, config: &Config) -> PowerSettings {
    let home = settings.home.as_path();
    let mut powers = match &settings.powers {
        Some(powers) => powers.clone(),
        None => {
            let ca_file = config.network.ca_file.as_ref();
            PowerSettings {
                trust: TrustedRoots::system(ca_file.map(|path| home.join(path))),
                ..PowerSettings::new(home.join(&config.files.workspace))
            }
        }
    };
    powers.home = Some(protected(home, &powers.workspace));
    powers
}
