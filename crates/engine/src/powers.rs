//! The powers of one call, as the sandbox asks for them.
//!
//! `sandbox` knows requests, `host` knows powers, and neither knows the other:
//! here a request's operation is matched to a power the grant made. An operation
//! without a power is refused, whatever the guest was made to believe.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use host::ask::{Answer, Ask, Fault, FaultKind};
use host::fetch::{Fetch, FetchSettings, Tls, TlsError};
use host::files::{FileSettings, Files, FilesError};
use model::grant::{Grant, NetworkGrant};
use model::mask::Masker;
use sandbox::job::{HostAnswer, HostRequest, Payload};
use sandbox::pool::HostCalls;
use serde_json::Value;

/// Host events kept for one call's record; the rest are counted.
const EVENTS_MAX: usize = 1_000;

/// What is the same for every call of a process.
#[derive(Clone, Debug)]
pub struct PowerSettings {
    /// Where files are when a document names no folder.
    pub workspace: PathBuf,
    /// Whom `fetch` believes; the system's roots, read when first needed, if absent.
    pub tls: Option<Tls>,
}

/// A grant could not be made into powers. The call does not run.
#[derive(Debug, thiserror::Error)]
pub enum PowersError {
    /// A folder could not be opened.
    #[error("the files of the call cannot be reached")]
    Files(#[from] FilesError),
    /// There is nobody to believe.
    #[error("the network of the call cannot be reached")]
    Tls(#[from] TlsError),
}

/// The powers of one call. Made from its grant; dropped with it.
#[derive(Debug)]
pub struct Powers {
    fetch: Option<Fetch>,
    files: Option<Arc<Files>>,
    events: Mutex<Events>,
}

/// What the powers did, for the record of the call.
#[derive(Debug, Default)]
struct Events {
    kept: Vec<Value>,
    dropped: u64,
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
            sub_workspace: None,
            read_roots: Vec::new(),
            deadline,
        };
        let files = Files::open(&grant.files, &file_settings)?.map(Arc::new);
        let fetch = match &grant.network {
            NetworkGrant::Blocked => None,
            NetworkGrant::Allowlist(_) | NetworkGrant::Strict | NetworkGrant::Open => {
                let tls = match &settings.tls {
                    Some(tls) => tls.clone(),
                    None => Tls::system(None)?,
                };
                Fetch::from_grant(&grant.network, FetchSettings::new(tls, secrets))
            }
        };
        Ok(Powers {
            fetch,
            files,
            events: Mutex::default(),
        })
    }

    /// No power but to compute.
    #[must_use]
    pub fn none() -> Powers {
        Powers {
            fetch: None,
            files: None,
            events: Mutex::default(),
        }
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

    /// What was done, in order, as far as it was kept.
    #[must_use]
    pub fn take_events(&self) -> (Vec<Value>, u64) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let events = std::mem::take(&mut *events);
        (events.kept, events.dropped)
    }

    fn note(&self, event: Value) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.kept.len() < EVENTS_MAX {
            events.kept.push(event);
        } else {
            events.dropped += 1;
        }
    }

    async fn answer(&self, request: HostRequest) -> Result<Answer, Fault> {
        let arguments = serde_json::from_str(&request.payload.json).map_err(|_| {
            Fault::new(
                FaultKind::InvalidInput,
                "invalid-arguments",
                "host",
                "the arguments are not JSON",
            )
        })?;
        let ask = Ask {
            arguments,
            bytes: request.payload.bytes,
        };
        let operation = request.operation;
        if operation == "fetch" {
            let Some(fetch) = &self.fetch else {
                return Err(absent(&operation));
            };
            let fetched = fetch.run(ask).await;
            fetched
                .events
                .iter()
                .for_each(|event| self.note(event.to_json()));
            return fetched.outcome;
        }
        if let Some(function) = operation.strip_prefix("fs.") {
            let Some(files) = self.files.clone() else {
                return Err(absent(&operation));
            };
            let function = function.to_owned();
            return off_thread(move || files.call(&function, &ask)).await;
        }
        off_thread(move || compute(&operation, &ask)).await
    }
}

/// The powers that only compute; every call has them.
fn compute(operation: &str, ask: &Ask) -> Result<Answer, Fault> {
    let mut random_failed = false;
    let mut random = |bytes: &mut [u8]| random_failed |= getrandom::fill(bytes).is_err();
    let answered = host::data::call(operation, ask, &mut random);
    if random_failed {
        let message = "the system gave no randomness";
        return Err(Fault::new(
            FaultKind::HelperRuntime,
            "io",
            operation,
            message,
        ));
    }
    answered.unwrap_or_else(|| Err(absent(operation)))
}

fn absent(operation: &str) -> Fault {
    let message = format!("not granted: {}", model::text::elided(operation, 60));
    Fault::new(FaultKind::Security, "not-granted", "host", message)
}

/// Runs what may take long where it holds nobody up.
async fn off_thread(
    work: impl FnOnce() -> Result<Answer, Fault> + Send + 'static,
) -> Result<Answer, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let message = "the power failed";
        Err(Fault::new(FaultKind::HelperRuntime, "io", "host", message))
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
                Err(fault) => HostAnswer::Error(fault.to_json().to_string()),
            }
        })
    }
}

#[cfg(test)]
mod tests;
