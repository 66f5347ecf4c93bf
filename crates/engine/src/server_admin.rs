//! What the owner does with MCP servers: look, review, accept, block, restart, forget.
//! Nothing that arrives over MCP gets here.

use std::collections::BTreeSet;
use std::sync::Arc;

use bridge::oauth::{SignedIn, TokenFile, login};
use bridge::{KeptLog, ServerFault, ServerStatus, kept_logs};
use futures_util::future::BoxFuture;
use model::config::{ServerConfig, ServerSharing, ServerTransport};
use model::govern::person::Actor;
use model::nearest::nearest;
use model::policy::Baseline;
use model::policy::risk::Risk;
use model::record::audit::{Act, Notice};
use model::record::mask::Masker;
use store::{ServerRecord, StoreError};
use upstream::definition::{Definition, ItemKey};
use upstream::finding::UpstreamFinding;
use upstream::pin::{AcceptScope, PinDecision, SeenServer, ServedServer};

use crate::engine::Engine;
use crate::error::{EngineError, causes};
use crate::notice::with_notice;
use crate::publish::OWNER;
use crate::servers::address::Outbound;
use crate::servers::connections::{fill, logs_folder};
use crate::servers::{self, review};

/// Why something cannot be done with a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerAdminError {
    /// The settings have no such server.
    #[error("there is no server `{name}` in the settings{}", hint(.nearest.as_deref()))]
    NoSuchServer {
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// It was never listed.
    #[error("the server `{0}` was never listed; run `ringfence servers review {0}`")]
    NeverSeen(String),
    /// It has no such tool.
    #[error("the server `{server}` has no tool `{tool}`{}", hint(.nearest.as_deref()))]
    NoSuchTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// It changed between the review and the decision.
    #[error("the server `{0}` offers something else than what was reviewed; review it again")]
    Changed(String),
    /// What is remembered of it cannot be read.
    #[error("the server `{name}` is stopped: {why}; `ringfence servers remove {name}` forgets it")]
    Record {
        /// The server.
        name: String,
        /// Why.
        why: String,
    },
    /// It could not be started or listed.
    #[error("the server `{name}` cannot be used: {fault}")]
    Fault {
        /// The server.
        name: String,
        /// Why.
        fault: ServerFault,
        /// The last lines of its standard error.
        log: Vec<String>,
    },
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// What a server offers against what was accepted of it.
#[derive(Debug)]
pub struct ServerReview {
    /// The server, as the settings have it.
    pub config: Arc<ServerConfig>,
    /// What the owner said about it as a whole.
    pub decision: PinDecision,
    /// What is served of it, and what differs.
    pub served: ServedServer,
    /// What it offers now.
    pub seen: SeenServer,
    /// What was found in it.
    pub findings: Vec<UpstreamFinding>,
    /// The digest of all it offers: what is accepted is what was reviewed.
    pub digest: String,
    /// What its tools would be rated by.
    pub(crate) baseline: Baseline,
}

impl ServerReview {
    /// The risk that a tool of the server has, or would have once it is accepted.
    #[must_use]
    pub fn risk(&self, definition: &Definition) -> Risk {
        servers::risk_of(&self.config, definition, &self.findings, &self.baseline)
    }
}

/// What a live look at a server found.
#[derive(Debug)]
pub struct ServerLook {
    /// Where it stands.
    pub status: ServerStatus,
    /// The last lines of its standard error.
    pub log: Vec<String>,
}

/// The MCP servers of the settings, for the owner.
#[derive(Debug)]
pub struct ServerAdmin<'a> {
    engine: &'a Engine,
    actor: Actor<'a>,
}

impl Engine {
    /// The MCP servers of the settings, for the owner.
    #[must_use]
    pub fn servers(&self) -> ServerAdmin<'_> {
        ServerAdmin {
            engine: self,
            actor: Actor::OWNER_AT_TERMINAL,
        }
    }
}

impl<'a> ServerAdmin<'a> {
    /// The same for a person at a door of people, whom the audit names.
    #[must_use]
    pub fn by(self, actor: Actor<'a>) -> ServerAdmin<'a> {
        ServerAdmin { actor, ..self }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engine
    }

    pub(crate) fn actor(&self) -> Actor<'_> {
        self.actor
    }

    pub(crate) fn notice_of(&self, act: Act, message: &str) -> Notice {
        Notice::new(act, self.actor.by, self.actor.through, message)
    }

    fn find(&self, name: &str) -> Result<(Arc<ServerConfig>, ServerRecord), ServerAdminError> {
        let now = self.engine.registry().current();
        let servers = now.servers().servers();
        match servers.get(name) {
            Some(view) => Ok((Arc::clone(&view.config), view.record.clone())),
            None => {
                let known = servers.keys().map(String::as_str);
                Err(ServerAdminError::NoSuchServer {
                    name: name.to_owned(),
                    nearest: nearest(name, known).map(str::to_owned),
                })
            }
        }
    }

    /// Starts a server, fetches its list and keeps it. Nothing of it is accepted.
    pub fn look<'b>(
        &'b self,
        name: &'b str,
    ) -> BoxFuture<'b, Result<ServerLook, ServerAdminError>> {
        Box::pin(self.start_and_list(name))
    }

    async fn start_and_list(&self, name: &str) -> Result<ServerLook, ServerAdminError> {
        let (config, record) = self.find(name)?;
        let environment = self.engine.environment().map_err(EngineError::from)?;
        let values = config.secrets().into_iter();
        let values = values.filter_map(|secret| environment.get(secret));
        let failed = |fault: ServerFault, log: Vec<String>| ServerAdminError::Fault {
            name: name.to_owned(),
            fault,
            log,
        };
        let masker = Masker::new(values)
            .map_err(|fault| failed(ServerFault::Start(fault.to_string()), Vec::new()))?;
        let masker = Arc::new(masker);
        let connections = self.engine.server_connections();
        let now = self.engine.registry().current();
        let outbound = Outbound::new(self.engine.powers(), &now.config);
        let server = connections.get(
            &config,
            record.restarts,
            OWNER,
            &environment,
            &masker,
            &outbound,
        );
        let server = server.map_err(|fault| failed(fault, Vec::new()))?;
        match server.start().await {
            Ok(()) => Ok(ServerLook {
                status: server.status(),
                log: server.log(),
            }),
            Err(fault) => Err(failed(fault, server.log())),
        }
    }

    /// What the processes of a server wrote on standard error: of those that run, in
    /// whichever process of ours, and of the last ones that ended. Starts nothing.
    pub fn logs(&self, name: &str) -> Result<Vec<KeptLog>, ServerAdminError> {
        self.find(name)?;
        let folder = logs_folder(self.engine.home(), name);
        kept_logs(&folder).map_err(|error| ServerAdminError::Fault {
            name: name.to_owned(),
            fault: ServerFault::Start(format!("its log cannot be read: {error}")),
            log: Vec::new(),
        })
    }

    /// Signs in to a server at an address. `show` gets the address of the page that the
    /// person opens. Where callers do not share, the tokens are this caller's.
    pub async fn login(
        &self,
        name: &str,
        caller: &str,
        show: impl FnOnce(&str) + Send,
    ) -> Result<SignedIn, ServerAdminError> {
        let (config, _) = self.find(name)?;
        let failed = |fault: ServerFault| ServerAdminError::Fault {
            name: name.to_owned(),
            fault,
            log: Vec::new(),
        };
        let ServerTransport::Url(url) = &config.transport else {
            let why = "it is a process of this machine, and needs no sign-in";
            return Err(failed(ServerFault::Start(why.to_owned())));
        };
        let caller = match config.sharing {
            ServerSharing::Shared => "",
            ServerSharing::PerCaller => caller,
        };
        let now = self.engine.registry().current();
        let outbound = Outbound::new(self.engine.powers(), &now.config);
        let environment = self.engine.environment().map_err(EngineError::from)?;
        let filled = fill(&config, &environment).map_err(failed)?;
        let settings = outbound.login(self.engine.home(), (&config, url), caller, &filled);
        let signed = login(settings.map_err(failed)?, show).await;
        let signed = signed.map_err(|fault| failed(ServerFault::Start(causes(&fault))))?;
        // Every process connects again, with the new token.
        let message = format!("the owner signed in to the server `{name}`, which is restarted");
        let notice = self.notice_of(Act::ServerRestarted, &message).about(name);
        let notice = notice.detail("issuer", &signed.issuer);
        let store = self.engine.store();
        let act = || store.publications().restart_server(name);
        let alarm = self.engine.alarm_of();
        with_notice(store, alarm, false, notice, act, |()| true)?;
        Ok(signed)
    }

    /// What a server offered last, against what was accepted of it.
    pub fn review(&self, name: &str) -> Result<ServerReview, ServerAdminError> {
        self.find(name)?;
        let broken = |why: String| ServerAdminError::Record {
            name: name.to_owned(),
            why,
        };
        let now = self.engine.registry().current();
        let view = now.servers().servers().get(name);
        let Some(view) = view.filter(|view| !view.record.seen.is_empty()) else {
            return Err(ServerAdminError::NeverSeen(name.to_owned()));
        };
        let served = view.served.clone().map_err(broken)?;
        let pinned = servers::pinned(&view.record).map_err(broken)?;
        let Some(seen) = view.seen.clone() else {
            return Err(ServerAdminError::NeverSeen(name.to_owned()));
        };
        Ok(ServerReview {
            config: Arc::clone(&view.config),
            decision: pinned.decision,
            served,
            digest: seen.digest(),
            findings: view.findings.clone(),
            seen,
            baseline: now.baseline.clone(),
        })
    }

    /// Accepts what a server offers: all of it, or some of its tools. `digest` is that of
    /// the review the owner saw; with another list nothing is accepted.
    pub fn accept(
        &self,
        name: &str,
        digest: &str,
        tools: Option<&BTreeSet<String>>,
    ) -> Result<usize, ServerAdminError> {
        let (_, record) = self.find(name)?;
        let broken = |why: String| ServerAdminError::Record {
            name: name.to_owned(),
            why,
        };
        let mut pinned = servers::pinned(&record).map_err(broken)?;
        // As it was judged beside all other servers: a tool that a finding holds is
        // accepted by name only.
        let ServerReview { seen, .. } = self.review(name)?;
        if seen.digest() != digest {
            return Err(ServerAdminError::Changed(name.to_owned()));
        }
        let keys = match tools {
            None => None,
            Some(tools) => {
                let mut keys = BTreeSet::new();
                for tool in tools {
                    let named = seen.items.keys().filter(|key| key.name == *tool);
                    let before = keys.len();
                    keys.extend(named.cloned());
                    if keys.len() == before {
                        return Err(no_such_tool(name, tool, &seen));
                    }
                }
                Some(keys)
            }
        };
        let scope = match &keys {
            None => AcceptScope::All,
            Some(keys) => AcceptScope::Items(keys),
        };
        let at_ms = u64::try_from(self.engine.now_ms()).unwrap_or_default();
        let accepted = pinned.accept(&seen, scope, at_ms);
        let count = accepted.len().saturating_sub(1);
        let message = format!(
            "{} of the server `{name}` accepted",
            model::text::count(count, "tool")
        );
        let notice = self
            .notice_of(Act::ServerAccepted, &message)
            .about(name)
            .detail("digest", digest);
        // Saved only if the record is still the one above: a list that came meanwhile was
        // not reviewed.
        let saved = self.save(name, &record, &pinned.to_json(), true, notice)?;
        match saved {
            true => Ok(count),
            false => Err(ServerAdminError::Changed(name.to_owned())),
        }
    }

    /// Blocks a server, or one of its tools, until it is accepted again.
    pub fn block(&self, name: &str, tool: Option<&str>) -> Result<(), ServerAdminError> {
        let (config, record) = self.find(name)?;
        let broken = |why: String| ServerAdminError::Record {
            name: name.to_owned(),
            why,
        };
        let mut pinned = servers::pinned(&record).map_err(broken)?;
        let what = match tool {
            None => {
                pinned.decision = PinDecision::Blocked;
                format!("the server `{name}` is blocked")
            }
            Some(tool) => {
                let seen = review::read_seen(&config, &record.seen);
                let offered = seen.iter().flat_map(|seen| seen.items.keys());
                let known = offered.chain(pinned.items.keys());
                let mut keys: BTreeSet<_> = known.filter(|key| key.name == tool).cloned().collect();
                match &seen {
                    Ok(seen) if keys.is_empty() => return Err(no_such_tool(name, tool, seen)),
                    // What cannot be read may well have it.
                    Err(_) => drop(keys.insert(ItemKey::tool(tool))),
                    Ok(_) => {}
                }
                keys.iter().for_each(|key| pinned.block(key));
                format!("the tool `{tool}` of the server `{name}` is blocked")
            }
        };
        let notice = self.notice_of(Act::ServerBlocked, &what).about(name);
        match self.save(name, &record, &pinned.to_json(), false, notice)? {
            true => Ok(()),
            false => Err(ServerAdminError::Changed(name.to_owned())),
        }
    }

    fn save(
        &self,
        name: &str,
        record: &ServerRecord,
        pins: &Result<String, upstream::pin::PinError>,
        grants: bool,
        notice: Notice,
    ) -> Result<bool, ServerAdminError> {
        let pins = match pins {
            Ok(pins) => pins,
            Err(fault) => {
                return Err(ServerAdminError::Record {
                    name: name.to_owned(),
                    why: causes(fault),
                });
            }
        };
        let store = self.engine.store();
        let publications = store.publications();
        let act = || publications.save_pins(name, record, pins);
        let alarm = self.engine.alarm_of();
        Ok(with_notice(store, alarm, grants, notice, act, |saved| {
            *saved
        })?)
    }

    /// Has every process restart a server and forget its failures.
    pub fn restart(&self, name: &str) -> Result<(), ServerAdminError> {
        self.find(name)?;
        let store = self.engine.store();
        let message = format!("the server `{name}` is restarted");
        let notice = self.notice_of(Act::ServerRestarted, &message).about(name);
        let act = || store.publications().restart_server(name);
        let alarm = self.engine.alarm_of();
        Ok(with_notice(store, alarm, false, notice, act, |()| true)?)
    }

    /// Writes down that the owner added a server to the settings.
    pub fn note_added(&self, name: &str, origin: &str) -> Result<(), ServerAdminError> {
        let message = format!("the server `{name}` was added; nothing of it is accepted yet");
        let notice = self.notice_of(Act::ServerAdded, &message);
        let notice = notice.about(name).detail("origin", origin);
        Ok(self.engine.store().audit().notice(notice).map(drop)?)
    }

    /// Forgets what was accepted of a server and what it offered. Returns whether
    /// anything was remembered.
    pub fn forget(&self, name: &str) -> Result<bool, ServerAdminError> {
        let store = self.engine.store();
        let removed = TokenFile::new(self.engine.home(), name).remove();
        removed.map_err(|fault| ServerAdminError::Fault {
            name: name.to_owned(),
            fault: ServerFault::Start(fault.to_string()),
            log: Vec::new(),
        })?;
        let message = format!("the server `{name}` was removed");
        let notice = self.notice_of(Act::ServerRemoved, &message).about(name);
        let act = || store.publications().forget_server(name);
        let alarm = self.engine.alarm_of();
        Ok(with_notice(store, alarm, false, notice, act, |_| true)?)
    }
}

fn no_such_tool(server: &str, tool: &str, seen: &SeenServer) -> ServerAdminError {
    let known = seen.items.keys().map(|key| key.name.as_str());
    ServerAdminError::NoSuchTool {
        server: server.to_owned(),
        tool: tool.to_owned(),
        nearest: nearest(tool, known).map(str::to_owned),
    }
}
