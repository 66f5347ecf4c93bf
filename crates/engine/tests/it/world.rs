//! A home folder of its own for every test, and an engine on it.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::approve::{ApprovalAnswer, Approver, Question};
use engine::call::{CallRequest, CallTarget};
use engine::registry::ToolBody;
use engine::{Alarm, Clock, Engine, EngineSettings};
use model::Environment;
use model::caller::{Caller, Origin};
use model::record::outcome::Outcome;
pub(crate) use model::time::DAY_MS;
use sandbox::pool::WorkerProgram;
use serde_json::{Value, json};
use store::{AuditEntry, Filter};

/// The clients that may answer for a person.
pub(crate) const NAMED: &str =
    "\n[callers.ann]\nanswers = \"L5\"\n\n[callers.bob]\nanswers = \"L5\"\n";

/// A folder that goes with the test.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Home {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-engine-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tools")).unwrap();
        Home { path }
    }

    /// The file of secrets, which only its owner reads.
    pub(crate) fn secrets(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path.join("secrets.env");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Writes a tool's file.
    pub(crate) fn tool(&self, file: &str, document: &Value) {
        self.file(&format!("tools/{file}.json"), &format!("{document:#}"));
    }

    /// Writes a file. Settings that say nothing of callers name the clients of these
    /// tests: one that is not named answers nothing.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let is_silent = name == "ringfence.toml" && !text.contains("[callers");
        let clients = if is_silent { NAMED } else { "" };
        std::fs::write(self.path.join(name), format!("{text}{clients}")).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A document with nothing but a name and code, changed by `more`.
pub(crate) fn document(name: &str, code: &str, more: Value) -> Value {
    let mut document = json!({
        "name": name, "description": "For a test.", "code": code, "codeType": "Javascript",
    });
    let (Value::Object(members), Value::Object(more)) = (&mut document, more) else {
        panic!("objects");
    };
    members.extend(more);
    document
}

/// An engine, and what it said to the operator.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) alarms: Arc<Mutex<Vec<String>>>,
    pub(crate) home: Home,
}

pub(crate) fn worker() -> WorkerProgram {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_engine-test-worker"));
    WorkerProgram::Other(path, Vec::new())
}

/// The settings of a test's engine; bundled tools are not on offer unless the
/// test says so.
pub(crate) fn settings(home: &Path, alarms: &Arc<Mutex<Vec<String>>>) -> EngineSettings {
    let alarms = Arc::clone(alarms);
    let alarm = Alarm::new(move |sentence| alarms.lock().unwrap().push(sentence.to_owned()));
    let mut settings = EngineSettings::new(home.to_path_buf(), Environment::empty(), alarm);
    settings.program = worker();
    settings.single = true;
    settings
}

impl World {
    pub(crate) fn new() -> World {
        let home = Home::new();
        home.file("ringfence.toml", "");
        World::with(home, |_| ())
    }

    pub(crate) fn with(home: Home, change: impl FnOnce(&mut EngineSettings)) -> World {
        let alarms = Arc::default();
        let mut settings = settings(&home.path, &alarms);
        change(&mut settings);
        let engine = Engine::open(settings).unwrap();
        World {
            engine,
            alarms,
            home,
        }
    }

    /// The same home in another process.
    pub(crate) fn beside(&self, change: impl FnOnce(&mut EngineSettings)) -> Engine {
        let mut settings = settings(&self.home.path, &self.alarms);
        change(&mut settings);
        Engine::open(settings).unwrap()
    }

    /// The same home after a restart.
    pub(crate) fn again(self, change: impl FnOnce(&mut EngineSettings)) -> World {
        let World { engine, home, .. } = self;
        drop(engine);
        World::with(home, change)
    }

    /// Writes a tool and publishes it.
    pub(crate) async fn published(&self, document: &Value) {
        let name = document["name"].as_str().unwrap();
        self.home.tool(name, document);
        self.agree(name);
        let passed = self.engine.publish(name, Origin::Cli).await.unwrap();
        assert!(passed.ok, "{passed:?}");
    }

    /// The owner agrees to whatever a tool reaches for.
    pub(crate) fn agree(&self, name: &str) {
        let usable = self.engine.tool(name).unwrap().usable;
        let needs = self.engine.wants(&usable, None).needs;
        let consent = engine::consent::Consent::Flag;
        self.engine.consent(&usable, None, &needs, consent).unwrap();
    }

    /// A call by someone who is not the owner.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let caller = Caller::named("ann");
        self.made(CallRequest::new(caller, Origin::Mcp, tool, arguments))
            .await
    }

    /// A call by the owner.
    pub(crate) async fn own_call(&self, tool: &str, arguments: Value) -> Outcome {
        let caller = Caller::owner();
        self.made(CallRequest::new(caller, Origin::Cli, tool, arguments))
            .await
    }

    pub(crate) async fn made(&self, request: CallRequest) -> Outcome {
        make(&self.engine, request).await
    }

    /// The entry of a call.
    pub(crate) fn entry(&self, outcome: &Outcome) -> AuditEntry {
        let all = self
            .engine
            .store()
            .audit()
            .list(&Filter::default())
            .unwrap();
        let found = all
            .into_iter()
            .find(|entry| entry.opening.call_id == outcome.call_id);
        found.expect("every attempt has an entry")
    }

    /// The gates an entry names, with their verdicts.
    pub(crate) fn gates(&self, outcome: &Outcome) -> Vec<String> {
        let closing = self.entry(outcome).closing.unwrap();
        let word =
            |gate: &model::record::audit::GateRecord| format!("{} {}", gate.gate, gate.verdict);
        closing.gates.iter().map(word).collect()
    }

    pub(crate) fn assert_whole(&self) {
        let verified = self.engine.store().audit().verify(None).unwrap();
        assert_eq!(verified.broken, None);
    }
}

/// Starts a program under a filter that refuses namespaces, as a default container does.
pub(crate) const WITHOUT_NAMESPACES: &str = include_str!("toolbox_egress/without_namespaces.py");

/// How a test runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// As a user who may not enter what its owner may not.
    OrdinaryUser,
    /// The same, on a machine that has no namespaces.
    WithoutNamespaces,
}

/// Runs a test of this program in a process of its own, in another place. `true` if this is
/// that process, so that the test goes on.
pub(crate) fn again(test: &str, how: Again) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const MARK: &str = "RINGFENCE_TEST_AGAIN";
    let is_root = rustix::process::geteuid().is_root();
    let is_there = how == Again::OrdinaryUser && !is_root;
    if is_there || std::env::var_os(MARK).is_some() {
        return true;
    }
    let this = std::env::current_exe().unwrap();
    let place = Home::new();
    let program = match how {
        Again::OrdinaryUser => this,
        Again::WithoutNamespaces => {
            let path = place.path.join("without-namespaces");
            let text = WITHOUT_NAMESPACES.replace("@PROGRAM@", this.to_str().unwrap());
            std::fs::write(&path, text).unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            path
        }
    };
    let mut command = std::process::Command::new(program);
    command.args([test, "--exact"]).env(MARK, "1");
    if is_root {
        // The user `nobody` on every Linux.
        command.uid(65534).gid(65534).env("HOME", &place.path);
    }
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let is_done = ran.status.success() && said.contains("1 passed");
    let faults = String::from_utf8_lossy(&ran.stderr);
    assert!(is_done, "{test}, {how:?}: {said}{faults}");
    false
}

/// Makes a call. What a native tool gives back fits the schema it declares: clients hold every
/// result against it, failures too, and refuse what does not fit.
pub(crate) async fn make(engine: &Engine, request: CallRequest) -> Outcome {
    let name = match &request.target {
        CallTarget::Name(name) => Some(name.clone()),
        CallTarget::Document(_) => None,
    };
    let outcome = engine.call(request).await.into_inner();
    let found = name.as_deref().and_then(|name| engine.tool(name).ok());
    let schema = match found.as_ref().map(|tool| &tool.body) {
        Some(ToolBody::Native(native)) => native.output_schema(),
        Some(ToolBody::Toolbox(tool)) => tool.output_schema(),
        Some(ToolBody::Code | ToolBody::Server(_)) | None => None,
    };
    let Some(schema) = schema else {
        return outcome;
    };
    // As a door would send it.
    let given = match (&outcome.value, &outcome.error) {
        (Some(value), _) => value.clone(),
        (None, Some(error)) => error.to_json(),
        (None, None) => panic!("{name:?} declares a result and gives none: {outcome:?}"),
    };
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let faults: Vec<_> = validator.iter_errors(&given).collect();
    assert!(faults.is_empty(), "{name:?}: {given}: {faults:?}");
    outcome
}

/// A clock that only a test moves. It starts at a day's first moment.
#[derive(Clone, Debug)]
pub(crate) struct Clockwork(Arc<AtomicI64>);

impl Clockwork {
    pub(crate) fn new() -> Clockwork {
        Clockwork(Arc::new(AtomicI64::new(20_000 * DAY_MS)))
    }

    pub(crate) fn clock(&self) -> Clock {
        let now = Arc::clone(&self.0);
        Clock::new(move || now.load(Ordering::SeqCst))
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn pass_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn pass_days(&self, days: i64) {
        self.pass_ms(days * DAY_MS);
    }
}

/// The code and message of what came of a call.
pub(crate) fn error(outcome: &Outcome) -> (&'static str, &str) {
    match &outcome.error {
        Some(error) => (error.reason.code(), &error.message),
        None => panic!("no error: {outcome:?}"),
    }
}

/// Someone who always says the same, and remembers what was asked.
#[derive(Debug)]
pub(crate) struct Says {
    pub(crate) answer: ApprovalAnswer,
    pub(crate) asked: Mutex<Vec<Question>>,
}

impl Says {
    pub(crate) fn new(answer: ApprovalAnswer) -> Arc<Says> {
        Arc::new(Says {
            answer,
            asked: Mutex::default(),
        })
    }
}

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        self.asked.lock().unwrap().push(question.clone());
        Box::pin(async { self.answer })
    }
}
