//! The powers of one call, as the sandbox asks for them.
//!
//! `sandbox` knows requests, `host` knows powers, and neither knows the other:
//! here a request's operation is matched to a power the grant made. An operation
//! without a power is refused, whatever the guest was made to believe.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use host::compute::{Account, Compute, Turn};
use host::fetch::connect::{Connector, TcpConnector};
use host::fetch::resolve::{Resolve, SystemResolver};
use host::fetch::{Fetch, FetchEvent, FetchLimits, FetchSettings, TlsError, TlsTrust};
use host::files::{FileSettings, Files, FilesError, ProtectedHome};
use host::message::{FaultKind, PowerFault, PowerReply, PowerRequest};
use host::sql::postgres::CheckedRoles;
use model::caller::Caller;
use model::config::Config;
use model::limits;
use model::limits::CALL_EVENTS_MAX;
use model::network::host_pattern::HostPattern;
use model::policy::grant::{Grant, NetworkGrant};
use model::record::mask::Masker;
use model::sync::lock;
use sandbox::job::{HostAnswer, HostRequest, Payload};
use sandbox::pool::HostCalls;
use serde_json::{Value, json};

use crate::limit;

/// How long a run without powers may compute outside its sandbox.
const COMPUTE_MAX: Duration = Duration::from_secs(limit::COMPUTE_SECONDS_MAX);

/// What the operator decides. Made once in a process and cloned for each call:
/// clones share what was read of the certificate authorities.
#[derive(Clone, Debug)]
pub struct PowerSettings {
    /// Where files are when a document names no folder.
    pub workspace: PathBuf,
    /// The caller or conversation that has a folder of its own below the workspace
    /// and sees nothing else of it; set for each call.
    pub sub_workspace: Option<String>,
    /// Bytes a workspace may hold.
    pub workspace_bytes_max: u64,
    /// Who pays for what helpers compute; set for each call. Work of one caller does not
    /// wait for another's.
    pub caller: String,
    /// The threads on which helpers compute.
    pub compute: Compute,
    /// The home folder, which no tool sees but for its workspaces.
    pub home: Option<ProtectedHome>,
    /// A copy that stands in for the folder a document names; set for a Local Pass.
    pub stand_in: Option<PathBuf>,
    /// The certificate authorities `fetch` trusts.
    pub trust: TlsTrust,
    /// How long and how much one `fetch` may take.
    pub fetch_limits: FetchLimits,
    /// Who answers questions about names.
    pub resolver: Arc<dyn Resolve>,
    /// Opens the connections of `fetch`.
    pub connector: Arc<dyn Connector>,
    /// Names that may lead to private addresses; set for each call.
    pub private_hosts: Arc<[HostPattern]>,
    /// The roles of databases that were checked lately.
    pub checked_roles: CheckedRoles,
}

impl PowerSettings {
    /// The same for one caller, as the settings have it now.
    pub(crate) fn for_call(&self, config: &Config, caller: &Caller) -> PowerSettings {
        PowerSettings {
            sub_workspace: config.files.per_caller.then(|| caller.name.clone()),
            workspace_bytes_max: config.files.bytes_max,
            caller: caller.name.clone(),
            private_hosts: config.network.private_hosts.as_slice().into(),
            ..self.clone()
        }
    }

    /// One workspace for all, the system's authorities, names and sockets.
    #[must_use]
    pub fn new(workspace: PathBuf) -> PowerSettings {
        PowerSettings {
            workspace,
            sub_workspace: None,
            workspace_bytes_max: limits::WORKSPACE_BYTES_DEFAULT,
            caller: String::new(),
            compute: Compute::default(),
            home: None,
            stand_in: None,
            trust: TlsTrust::default(),
            fetch_limits: FetchLimits::default(),
            resolver: Arc::new(SystemResolver),
            connector: Arc::new(TcpConnector),
            private_hosts: Arc::new([]),
            checked_roles: CheckedRoles::default(),
        }
    }
}

/// A grant could not be made into powers. The call does not run.
#[derive(Debug, thiserror::Error)]
pub enum PowersError {
    /// A folder could not be opened.
    #[error("the files of the call cannot be opened")]
    Files(#[from] FilesError),
    /// No certificate authority is known.
    #[error("the network of the call cannot be set up")]
    Tls(#[from] TlsError),
    /// Nothing could be masked.
    #[error("secrets cannot be masked")]
    Masking,
}

/// The powers of one call. Made from its grant; dropped with it.
#[derive(Debug)]
pub struct Powers {
    fetch: Option<Fetch>,
    files: Option<Arc<Files>>,
    compute: Compute,
    /// What the call may spend on computing outside its sandbox: as much as inside.
    account: Account,
    secrets: Arc<Masker>,
    events: Mutex<Events>,
    steps: Mutex<Vec<HostStep>>,
    /// What times in events are counted from.
    began: Instant,
}

/// A request to the host that took time.
#[derive(Debug)]
pub(crate) struct HostStep {
    /// The operation, one of ours.
    pub(crate) name: String,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

/// What the powers did, for the record of the call.
#[derive(Debug, Default)]
struct Events {
    kept: Vec<Value>,
    dropped: u64,
    /// The first host that was allowed and could not be reached.
    unreached: Option<String>,
}

/// An event with when it began, counted from the beginning of the run, and how long it took.
fn timed(mut event: Value, took: Option<(Duration, Duration)>) -> Value {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if let (Some((began, took)), Some(members)) = (took, event.as_object_mut()) {
        members.insert("atUs".to_owned(), micros(began).into());
        members.insert("us".to_owned(), micros(took).into());
    }
    event
}

impl Powers {
    /// The powers a grant gives. Fails if a folder it names cannot be opened, or
    /// the network is granted and no certificate authority is known.
    pub fn from_grant(
        grant: &Grant,
        settings: &PowerSettings,
        secrets: Arc<Masker>,
        deadline: Instant,
    ) -> Result<Powers, PowersError> {
        let file_settings = FileSettings {
            workspace: settings.workspace.clone(),
            sub_workspace: settings.sub_workspace.clone(),
            read_roots: Vec::new(),
            deadline,
            workspace_bytes_max: settings.workspace_bytes_max,
            home: settings.home.clone(),
            stand_in: settings.stand_in.clone(),
        };
        let files = Files::open(&grant.files, &file_settings)?.map(Arc::new);
        let fetch = match &grant.network {
            NetworkGrant::Blocked => None,
            NetworkGrant::Allowlist(_) | NetworkGrant::Strict | NetworkGrant::Open => {
                let tls = settings.trust.tls()?;
                let mut fetch_settings = FetchSettings::new(tls, Arc::clone(&secrets));
                fetch_settings.limits = settings.fetch_limits.clone();
                fetch_settings.resolver = Arc::clone(&settings.resolver);
                fetch_settings.connector = Arc::clone(&settings.connector);
                fetch_settings.private_hosts = Arc::clone(&settings.private_hosts);
                Fetch::from_grant(&grant.network, &grant.bounds, fetch_settings)
            }
        };
        // Helpers compute outside the sandbox, where its limits do not reach. Without an
        // account a tool could have unlimited processor time by calling helpers.
        let time = deadline.saturating_duration_since(Instant::now());
        Ok(Powers {
            fetch,
            files,
            compute: settings.compute.clone(),
            account: Account::new(&settings.caller, time, deadline),
            secrets,
            events: Mutex::default(),
            began: Instant::now(),
            steps: Mutex::default(),
        })
    }

    /// The faces a grant would give, with nothing made for it: a folder that is
    /// there is opened and let go, one that would be made is not.
    pub fn check(grant: &Grant, settings: &PowerSettings) -> Result<Vec<String>, PowersError> {
        let mut grant = grant.clone();
        let mut workspace = settings.workspace.clone();
        workspace.extend(&settings.sub_workspace);
        let is_there = grant.files.base_path.is_some() || workspace.is_dir();
        let (read, write) = (grant.files.read, grant.files.write);
        if !is_there {
            // Opening would make the folder, and a check makes nothing.
            (grant.files.read, grant.files.write) = (false, false);
        }
        let masker = Masker::new(std::iter::empty()).map_err(|_| PowersError::Masking)?;
        // Nothing runs with these powers, so they get no time.
        let powers = Powers::from_grant(&grant, settings, Arc::new(masker), Instant::now())?;
        let mut faces = powers.faces();
        if !is_there && (read || write) {
            faces.push("fs, in a workspace that does not exist yet".to_owned());
        }
        Ok(faces)
    }

    /// The powers of a call that has none: it may only compute.
    #[must_use]
    pub fn none() -> Powers {
        let deadline = Instant::now() + COMPUTE_MAX;
        Powers {
            fetch: None,
            files: None,
            compute: Compute::default(),
            account: Account::new("", COMPUTE_MAX, deadline),
            secrets: Arc::new(Masker::none()),
            events: Mutex::default(),
            began: Instant::now(),
            steps: Mutex::default(),
        }
    }

    /// The folder of the call, absolute and without links, if it has one.
    #[must_use]
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.folder())
    }

    /// The faces the script gets beside those that only compute, by name.
    #[must_use]
    pub fn faces(&self) -> Vec<String> {
        let mut faces = Vec::new();
        if self.fetch.is_some() {
            faces.push("fetch".to_owned());
        }
        for function in self.files.iter().flat_map(|files| files.functions()) {
            faces.push(format!("fs.{function}"));
        }
        faces
    }

    /// What was done, in order, as far as it was kept, and how much was not. Each
    /// is an object with a `kind`: `fetch` for each hop, `file` for each call of a
    /// file function, `refused` for what was asked for without being granted. To be
    /// taken once the run is over; what was under way then says `interrupted`.
    #[must_use]
    pub fn take_events(&self) -> (Vec<Value>, u64) {
        // The end of the run cut these requests off. They may have reached their host, so
        // they are part of the record.
        if let Some(fetch) = &self.fetch {
            let abandoned = fetch.take_abandoned();
            abandoned
                .iter()
                .for_each(|event| self.note(event.to_json()));
        }
        self.note_files(None);
        let mut events = self.events();
        let events = std::mem::take(&mut *events);
        (events.kept, events.dropped)
    }

    /// Moves what the files recorded into the record of the call, so that it
    /// stands between the right fetches.
    fn note_files(&self, began: Option<Duration>) {
        let Some(files) = &self.files else {
            return;
        };
        let taken = files.take_events();
        let took = began.map(|began| (began, self.began.elapsed().saturating_sub(began)));
        for event in &taken.kept {
            self.note(timed(event.to_json(), took));
        }
        self.events().dropped += taken.dropped_count;
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        lock(&self.events)
    }

    /// Masked before anything of it is cut, like all that leaves.
    pub(crate) fn note(&self, event: Value) {
        let event = self
            .secrets
            .value(event)
            .elided(limit::EVENT_CHARS_MAX)
            .into_inner();
        let mut events = self.events();
        // Counted beyond the bound, so that the record says what it lacks.
        if events.kept.len() < CALL_EVENTS_MAX {
            events.kept.push(event);
        } else {
            events.dropped += 1;
        }
    }

    /// Does work of the host, and notes how long it took. Beyond a bound, steps are left out.
    pub(crate) async fn time<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let done = work.await;
        let mut steps = lock(&self.steps);
        if steps.len() < limit::HOST_STEPS_MAX {
            steps.push(HostStep {
                name: name.to_owned(),
                begin,
                end: Instant::now(),
            });
        }
        done
    }

    /// What the host was asked for, in the order it was done.
    pub(crate) fn take_steps(&self) -> Vec<HostStep> {
        std::mem::take(&mut *lock(&self.steps))
    }

    async fn answer(&self, request: HostRequest) -> Result<PowerReply, PowerFault> {
        let arguments = serde_json::from_str(&request.payload.json).map_err(|_| {
            PowerFault::new(
                FaultKind::InvalidInput,
                "invalid-arguments",
                "host",
                "the arguments are not JSON",
            )
        })?;
        let ask = PowerRequest {
            arguments,
            bytes: request.payload.bytes,
        };
        let operation = request.operation;
        // Whether a power exists is decided by the grant alone. What the guest was told
        // it has plays no part: a guest that was taken over asks for anything.
        if operation == "fetch" {
            let Some(fetch) = &self.fetch else {
                return Err(self.absent(&operation));
            };
            let mut began = self.began.elapsed();
            let fetched = self.time("fetch", fetch.run(ask)).await;
            let mut hops = fetched.events.iter();
            if let Some(hop) = hops.find(|hop| is_unreached(hop)) {
                // The first one: later failures may follow from it.
                self.events().unreached.get_or_insert(hop.host.clone());
            }
            // One hop after the other.
            for event in &fetched.events {
                let took = Duration::from_millis(event.duration_ms);
                self.note(timed(event.to_json(), Some((began, took))));
                began = began.saturating_add(took);
            }
            return fetched.outcome;
        }
        if let Some(function) = operation.strip_prefix("fs.") {
            let Some(files) = self.files.clone() else {
                return Err(self.absent(&operation));
            };
            let began = self.began.elapsed();
            // Shared with the guard below, which names the file if the call is dropped
            // while the thread is at work.
            let ask = Arc::new(ask);
            let mut under_way = UnderWay {
                powers: self,
                files: &files,
                function,
                ask: Arc::clone(&ask),
                is_over: false,
            };
            let (called, working) = (function.to_owned(), Arc::clone(&files));
            let answered = off_thread(move || working.call(&called, &ask));
            // Only names of ours become names of spans.
            let is_known = files.functions().contains(&function);
            let name = if is_known { operation.as_str() } else { "fs" };
            let answered = self.time(name, answered).await;
            under_way.is_over = true;
            self.note_files(Some(began));
            return answered;
        }
        if !host::builtin::OPERATIONS.contains(&operation.as_str()) {
            return Err(self.absent(&operation));
        }
        // A thread switch costs more than most helpers do.
        if host::builtin::is_brief(&operation, request.payload.json.len() + ask.bytes.len()) {
            return compute(&operation, &ask, &Turn::endless());
        }
        let helper = operation.clone();
        let working = move |turn: &Turn| compute(&operation, &ask, turn);
        let computed = self.compute.run(&self.account, &helper, working);
        self.time(&helper, computed).await
    }

    /// Refuses an operation that the run has no face for, and puts that on record.
    pub(crate) fn refuse(&self, operation: &str) -> HostAnswer {
        let fault = self.absent(operation);
        HostAnswer::Error(fault.to_json(&self.secrets).to_string())
    }

    /// The first host that was allowed and could not be reached, if any: the result of
    /// the call then says little about the tool.
    pub(crate) fn unreached(&self) -> Option<String> {
        self.events().unreached.clone()
    }

    /// Invariant 12: the guest has no function for a power that was not granted, so a
    /// request for one comes from a guest that was taken over. That is recorded.
    fn absent(&self, operation: &str) -> PowerFault {
        let fault = absent(operation);
        self.note(json!({"kind": "refused", "operation": operation, "refusal": fault.reason}));
        fault
    }
}

/// Whether a request was allowed and got no reply at all.
fn is_unreached(hop: &FetchEvent) -> bool {
    // Faults of the way to a host. A host that the policy refuses is the tool's own
    // mistake.
    let reasons = [
        "dns-unknown-host",
        "dns-resolution-failed",
        "dns-no-addresses",
        "io",
        "timeout",
        "tls",
    ];
    hop.status.is_none() && hop.refusal.is_some_and(|reason| reasons.contains(&reason))
}

/// A file function that was called. Dropped before its end, it may have happened
/// all the same, so that is put on record.
struct UnderWay<'a> {
    powers: &'a Powers,
    files: &'a Files,
    function: &'a str,
    ask: Arc<PowerRequest>,
    is_over: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let event = self.files.interrupted(self.function, &self.ask);
            self.powers.note(event.to_json());
        }
    }
}

/// The powers that only compute; every call has them.
fn compute(operation: &str, ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    // Helpers take no error from their source of randomness. Without this a key could be
    // made of bytes that were never filled.
    let mut random_failed = false;
    let mut random = |bytes: &mut [u8]| random_failed |= getrandom::fill(bytes).is_err();
    let answered = host::builtin::call(operation, ask, &mut random, turn);
    if random_failed {
        let message = "the system provided no randomness";
        return Err(PowerFault::new(
            FaultKind::HelperRuntime,
            "io",
            operation,
            message,
        ));
    }
    answered.unwrap_or_else(|| Err(absent(operation)))
}

fn absent(operation: &str) -> PowerFault {
    let message = format!("not granted: {operation}");
    PowerFault::new(FaultKind::Security, "not-granted", "host", message)
}

/// Runs work that waits for the disk on a thread that may block. Computing has threads
/// of its own ([`Compute`]), so that file access and name lookups do not wait behind it.
async fn off_thread(
    work: impl FnOnce() -> Result<PowerReply, PowerFault> + Send + 'static,
) -> Result<PowerReply, PowerFault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let message = "the file operation failed";
        Err(PowerFault::new(
            FaultKind::HelperRuntime,
            "io",
            "host",
            message,
        ))
    })
}

impl HostCalls for Powers {
    fn call<'a>(
        &'a self,
        request: HostRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
        Box::pin(async move {
            match self.answer(request).await {
                Ok(answer) => HostAnswer::Value(Payload {
                    json: answer.value.to_string(),
                    bytes: answer.bytes,
                }),
                Err(fault) => HostAnswer::Error(fault.to_json(&self.secrets).to_string()),
            }
        })
    }
}

#[cfg(test)]
mod tests;
