//! One call of one document, from arguments to outcome, in both walls.
//!
//! The tests of the catalog know only [`Bench::call`]: where the engine's own call
//! path takes over, this is the one place to change.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::powers::{PowerSettings, Powers};
use host::fetch::Fetch;
use host::{Answer, Ask, Fault};
use model::assessment::Sound;
use model::grant::Grant;
use model::mask::Masker;
use model::reason::Reason;
use model::{Environment, params, placeholder};
use sandbox::job::{Ended, HostAnswer, HostRequest, Job, Limits, Payload};
use sandbox::pool::{HostCalls, Pool, PoolSettings, Sharing, WorkerProgram};
use serde_json::{Map, Value};

use crate::catalog_lab::Lab;

/// What every script's clock says: Wednesday, 2026-03-04T05:06:07.089Z.
pub(crate) const NOW_MS: i64 = 1_772_600_767_089;

/// Seeds `Math.random` the same way for every call.
const SEED: u64 = 0x5eed;

/// How a call ended, masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// What the code returned; `undefined` is null.
    Done(Value),
    /// Why it did not.
    Failed { code: &'static str, message: String },
}

/// What a call finds around it.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) environment: &'a Environment,
    /// Where every connection goes; without one, none comes about.
    pub(crate) lab: Option<&'a Lab>,
}

/// Workers, ready for calls.
#[derive(Debug)]
pub(crate) struct Bench {
    pool: Pool,
}

impl Bench {
    pub(crate) async fn start() -> Bench {
        let path = PathBuf::from(env!("CARGO_BIN_EXE_engine-test-worker"));
        let program = WorkerProgram::Other(path, Vec::new());
        let mut settings = PoolSettings::new(program, Sharing::Shared);
        settings.workers = 1;
        let pool = Pool::start(settings).await.expect("a worker");
        Bench { pool }
    }

    /// One call. A person who is asked agrees.
    pub(crate) async fn call(
        &self,
        sound: &Sound,
        raw_arguments: &Value,
        around: &Surroundings<'_>,
    ) -> Outcome {
        let arguments = match params::check(&sound.document.params, raw_arguments) {
            Ok(arguments) => arguments,
            Err(faults) => {
                let messages: Vec<_> = faults.iter().map(|fault| fault.message.clone()).collect();
                return failed(faults[0].reason, messages.join("; "));
            }
        };
        let mut globals = arguments.into_values();
        let mut secrets = Vec::new();
        for variable in &sound.document.static_variables {
            match placeholder::resolve(&variable.template, around.environment) {
                Ok(resolved) => {
                    globals.insert(variable.name.clone(), Value::String(resolved.text));
                    secrets.extend(resolved.secrets);
                }
                Err(missing) => {
                    return failed(Reason::RequirementMissing, missing.join(", "));
                }
            }
        }
        let masker = Arc::new(Masker::new(secrets.iter().map(String::as_str)).unwrap());
        let outcome = self.run(sound, globals, around, Arc::clone(&masker)).await;
        match outcome {
            Outcome::Done(value) => Outcome::Done(masker.value(value).into_inner()),
            Outcome::Failed { code, message } => Outcome::Failed {
                code,
                message: masker.text(&message).into_inner(),
            },
        }
    }

    async fn run(
        &self,
        sound: &Sound,
        globals: Map<String, Value>,
        around: &Surroundings<'_>,
        masker: Arc<Masker>,
    ) -> Outcome {
        let limits = Limits::for_policy(&sound.judged.policy);
        let deadline = Instant::now() + Duration::from_millis(u64::from(limits.wall_ms_max));
        let grant = Grant::from_policy(&sound.judged.policy);
        let settings = PowerSettings {
            workspace: around.workspace.to_path_buf(),
            tls: Some(crate::catalog_lab::trust()),
        };
        let powers = Powers::from_grant(&grant, &settings, Arc::clone(&masker), deadline).unwrap();
        let fetch = Fetch::from_grant(&grant.network, Lab::fetch_settings(around.lab, masker));
        let document = &sound.document;
        let params = document.params.iter().map(|param| param.name.clone());
        let variables = document.static_variables.iter();
        let variables = variables.map(|variable| variable.name.clone());
        let job = Job {
            body: document.code.clone(),
            globals: Value::Object(globals).to_string(),
            declared: params.chain(variables).collect(),
            powers: powers.faces(),
            limits,
            seed: SEED,
            now_ms: NOW_MS,
        };
        let powers = LabPowers { powers, fetch };
        let run = self.pool.run("catalog", job, &powers).await.expect("a run");
        match run.report.ended {
            Ended::Value(json) => Outcome::Done(serde_json::from_str(&json).unwrap()),
            Ended::Undefined => Outcome::Done(Value::Null),
            Ended::Threw(thrown) => failed(
                Reason::ToolThrew,
                format!("{}: {}", thrown.name, thrown.message),
            ),
            Ended::Breached(breach) => failed(breach.reason(), breach.to_string()),
            ended @ (Ended::Cancelled | Ended::Broken(_)) => panic!("{ended:?}"),
        }
    }
}

fn failed(reason: Reason, message: String) -> Outcome {
    Outcome::Failed {
        code: reason.code(),
        message,
    }
}

/// The powers of the grant, with a `fetch` whose names and wires are the lab's.
struct LabPowers {
    powers: Powers,
    fetch: Option<Fetch>,
}

impl HostCalls for LabPowers {
    fn call<'a>(
        &'a self,
        request: HostRequest,
    ) -> Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
        let Some(fetch) = self.fetch.as_ref().filter(|_| request.operation == "fetch") else {
            return self.powers.call(request);
        };
        Box::pin(async move {
            let ask = Ask {
                arguments: serde_json::from_str(&request.payload.json).unwrap(),
                bytes: request.payload.bytes,
            };
            to_host_answer(fetch.run(ask).await.outcome)
        })
    }
}

fn to_host_answer(outcome: Result<Answer, Fault>) -> HostAnswer {
    match outcome {
        Ok(answer) => HostAnswer::Value(Payload {
            json: answer.value.to_string(),
            bytes: answer.bytes,
        }),
        Err(fault) => HostAnswer::Error(fault.to_json().to_string()),
    }
}
