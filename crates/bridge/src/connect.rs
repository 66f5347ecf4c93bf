//! Opening a connection: a process in its jail, or an address, and the handshake of
//! either era.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jail::{JailSettings, WorkerProgram};
use model::config::ServerEra;
use model::record::mask::Masker;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::timeout;

use crate::client::Client;
use crate::error_log::ErrorLog;
use crate::fault::{ServerFault, shown};
use crate::http::plain::PlainCalls;
use crate::http::{self, HttpEnd, HttpSettings, HttpSettingsFault};
use crate::limit;
use crate::noise::MessageLines;
use crate::process::{ConnectionSink, ServerHosts, ServerProcess};
use crate::secret_mask::SecretMask;

/// Everything needed to reach a server, secrets filled in.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its name in the settings.
    pub name: String,
    /// Where it is.
    pub target: ServerTarget,
    /// Which protocol it speaks.
    pub era: ServerEra,
    /// How long until it must be ready.
    pub start_timeout: Duration,
    /// After how long without a call it is stopped.
    pub idle: Duration,
    /// Whether its questions to a person are passed on.
    pub may_ask: bool,
    /// Whether its prompts are listed.
    pub prompts: bool,
    /// Whether its resources are listed.
    pub resources: bool,
    /// Where the last lines of its process are kept for other processes to show.
    pub logs: Option<PathBuf>,
    /// What hides its secrets in what is shown of it.
    pub masker: Arc<Masker>,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub enum ServerTarget {
    /// A process of this machine.
    Command {
        /// What it runs, and what it may use.
        jail: JailSettings,
        /// The hosts it may reach through our proxy; without any, what the jail's settings
        /// say.
        hosts: Option<Box<ServerHosts>>,
        /// How to start this program again, which fences the process in.
        program: WorkerProgram,
    },
    /// An address.
    Address(HttpSettings),
}

/// A connection that passed its handshake.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) service: RunningService<RoleClient, Client>,
    pub(crate) client: Client,
    pub(crate) process: Option<ServerProcess>,
    /// At an address, in the newest revision.
    pub(crate) plain: Option<PlainCalls>,
}

/// Opens a connection, within the time the settings give.
pub(crate) async fn open(
    settings: &ServerSettings,
    mask: &SecretMask,
    log: &ErrorLog,
    sink: &ConnectionSink,
) -> Result<Opened, ServerFault> {
    let opening = open_target(settings, mask, log, sink);
    match timeout(settings.start_timeout, opening).await {
        Ok(opened) => opened,
        // Dropping what was opened kills the process with everything it started.
        Err(_) => Err(ServerFault::StartTimeout(settings.start_timeout)),
    }
}

async fn open_target(
    settings: &ServerSettings,
    mask: &SecretMask,
    log: &ErrorLog,
    sink: &ConnectionSink,
) -> Result<Opened, ServerFault> {
    let client = Client::new(settings.may_ask, mask.clone());
    match &settings.target {
        ServerTarget::Command {
            jail,
            hosts,
            program,
        } => {
            let started = ServerProcess::start(jail.clone(), hosts.clone(), program, sink);
            let mut process = started.await?;
            process.follow(log, &settings.masker);
            let child = &mut process.child;
            let pipes = (child.stdin.take(), child.stdout.take());
            let (Some(input), Some(output)) = pipes else {
                return Err(ServerFault::Start("it has no standard input".to_owned()));
            };
            let faults = client.calls().faults().clone();
            let transport =
                AsyncRwTransport::new_client(MessageLines::new(output, faults.clone()), input);
            // Attack: a line without end would be kept in memory whole.
            let transport = transport.with_max_line_length(limit::SERVER_LINE_BYTES_MAX);
            let serving = client
                .clone()
                .serve_with_lifecycle(transport, lifecycle(settings.era));
            match serving.await {
                Ok(service) => Ok(Opened {
                    service,
                    client,
                    process: Some(process),
                    plain: None,
                }),
                Err(error) => {
                    let fault = faults.explain(handshake_fault(&error));
                    // Ended before the fault is told, so that the last words of the
                    // process are in it.
                    let exit = process.end().await;
                    Err(explain(fault, &exit, log))
                }
            }
        }
        ServerTarget::Address(address) => {
            let unusable = |fault: HttpSettingsFault| ServerFault::Start(fault.to_string());
            let transport = http::transport(address.clone()).map_err(unusable)?;
            let serving = client
                .clone()
                .serve_with_lifecycle(transport, lifecycle(settings.era));
            match serving.await {
                Ok(service) => Ok(Opened {
                    plain: PlainCalls::new(address.clone(), service.peer(), &client)
                        .map_err(unusable)?,
                    service,
                    client,
                    process: None,
                }),
                Err(error) => Err(match handshake_fault(&error) {
                    // There was no call yet that could have ended.
                    ServerFault::Closed(why) => ServerFault::Unreachable(why),
                    fault => fault,
                }),
            }
        }
    }
}

fn lifecycle(era: ServerEra) -> ClientLifecycleMode {
    let newest = vec![ProtocolVersion::V_2026_07_28];
    match era {
        ServerEra::Legacy => ClientLifecycleMode::Initialize,
        ServerEra::Modern => ClientLifecycleMode::Discover {
            preferred_versions: newest,
        },
        ServerEra::Auto => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: None,
        },
    }
}

fn handshake_fault(error: &ClientInitializeError) -> ServerFault {
    match http::end_of(error) {
        HttpEnd::SignInRequired => return ServerFault::SignInRequired,
        HttpEnd::Unreachable => return ServerFault::Unreachable(shown(&http::explain(error))),
        HttpEnd::SessionExpired | HttpEnd::Other => {}
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            ServerFault::Closed("it ended before the handshake".to_owned())
        }
        ClientInitializeError::TransportError { .. } => {
            ServerFault::Closed(shown(&http::explain(error)))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_fault(fallback),
        other => ServerFault::Protocol(shown(&other.to_string())),
    }
}

/// The fault with what the process said last and how it ended: that is what the owner
/// looks for.
fn explain(fault: ServerFault, exit: &str, log: &ErrorLog) -> ServerFault {
    // It was no call that it ended, so nothing is said of one.
    let ServerFault::Closed(why) = fault else {
        return fault;
    };
    let said = log.last().map(|line| format!("; its last line: {line}"));
    let said = said.unwrap_or_default();
    ServerFault::Start(format!("{why} ({exit}){said}"))
}
