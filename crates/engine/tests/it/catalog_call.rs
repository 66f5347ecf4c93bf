//! One call of a bundled tool by its name, through the engine's whole path.
//!
//! Each call finds a workspace of its own and, where there is one, a lab that
//! every connection leads to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::approve::ApprovalAnswer;
use engine::call::CallRequest;
use engine::powers::PowerSettings;
use engine::{Engine, RunStart};
use host::fetch::TlsTrust;
use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use model::Environment;
use model::caller::{Caller, Origin};
use model::policy::assessment::UsableDocument;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::catalog_lab::{self, Lab};
use crate::world::{self, Home, Says};

/// What every script's clock says: Wednesday, 2026-03-04T05:06:07.089Z.
pub(crate) const NOW_MS: i64 = 1_772_600_767_089;

/// Seeds `Math.random` the same way for every call.
const SEED: u64 = 0x5eed;

/// What every known name resolves to, so that `strict` has a public address to
/// judge. The connector never goes there.
const PUBLIC: &str = "93.184.216.34";

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
    /// Where every connection goes; without one, none comes about.
    pub(crate) lab: Option<&'a Lab>,
}

/// An engine with everything on offer.
pub(crate) struct CatalogRunner {
    engine: Engine,
    wire: Arc<Wire>,
    _home: Home,
}

impl CatalogRunner {
    pub(crate) fn start(environment: Environment) -> CatalogRunner {
        let home = Home::new();
        home.file(
            "ringfence.toml",
            "[exposure]\npreset = \"everything\"\n[files]\nper_caller = true\n",
        );
        let wire = Arc::new(Wire::default());
        let mut settings = world::settings(&home.path, &Arc::default());
        settings.single = false;
        settings.environment = environment;
        settings.approver = Some(Says::new(ApprovalAnswer::Approved(
            engine::approve::ApprovalScope::Once,
        )));
        settings.run_start = Some(RunStart {
            now_ms: NOW_MS,
            seed: SEED,
        });
        settings.powers = Some(PowerSettings {
            trust: TlsTrust::fixed(catalog_lab::trust()),
            resolver: Arc::<Wire>::clone(&wire),
            connector: Arc::<Wire>::clone(&wire),
            ..PowerSettings::new(Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf())
        });
        CatalogRunner {
            engine: Engine::open(settings).unwrap(),
            wire,
            _home: home,
        }
    }

    /// One call. A person who is asked agrees.
    pub(crate) async fn call(
        &self,
        usable: &UsableDocument,
        arguments: &Value,
        around: &Surroundings<'_>,
    ) -> Outcome {
        let lab = around.lab.map(|lab| (lab.hosts().to_vec(), lab.address()));
        *self.wire.lab.lock().unwrap() = lab;
        // The folder of the caller is the workspace of the call.
        let folder = around.workspace.file_name().unwrap().to_str().unwrap();
        let caller = Caller::named(folder);
        let name = &usable.document.name;
        let request = CallRequest::new(caller, Origin::Mcp, name, arguments.clone());
        let outcome = self.engine.call(request).await.into_inner();
        match outcome.error {
            None => Outcome::Done(outcome.value.unwrap_or_default()),
            Some(error) => Outcome::Failed {
                code: error.reason.code(),
                message: error.message,
            },
        }
    }
}

/// Leads every name of the lab to the lab, and nothing beyond loopback.
#[derive(Debug, Default)]
struct Wire {
    lab: Mutex<Option<(Vec<String>, SocketAddr)>>,
}

impl Resolve for Wire {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let lab = self.lab.lock().unwrap();
        let known = lab
            .as_ref()
            .is_some_and(|(hosts, _)| hosts.iter().any(|host| host == name));
        Box::pin(async move {
            let address: IpAddr = PUBLIC.parse().unwrap();
            if known {
                Ok(vec![address])
            } else {
                Err(io::Error::other("no such name"))
            }
        })
    }
}

impl Connector for Wire {
    fn connect(&self, _: SocketAddr) -> Connecting<'_> {
        let lab = self
            .lab
            .lock()
            .unwrap()
            .as_ref()
            .map(|(_, address)| *address);
        Box::pin(async move {
            let Some(lab) = lab.filter(|lab| lab.ip().is_loopback()) else {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            };
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(lab).await?);
            Ok(stream)
        })
    }
}
