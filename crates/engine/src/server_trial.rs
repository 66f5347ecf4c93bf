//! A trial of a server that is not in the settings: it is started or reached as it would be,
//! listed, judged beside the servers there are, and ended. Nothing of it is kept: no list, no
//! pin, no log, no token, and its folder goes with it. The audit says that it was tried.

use std::sync::{Arc, Mutex};

use bridge::{Reviewer, SeenTools, Server, ServerFault, ServerStatus};
use host::egress::EgressEvent;
use model::config::{Config, ServerConfig};
use model::document::digest;
use model::record::audit::Act;
use model::record::mask::Masker;
use model::sync::lock;
use store::{ServerRecord, ServerRecords};
use upstream::pin::PinDecision;

use crate::client_import::parsed;
use crate::error::EngineError;
use crate::registry::own_names;
use crate::scratch::Scratch;
use crate::server_admin::{ServerAdmin, ServerAdminError, ServerReview};
use crate::server_launch::ServerLaunch;
use crate::server_settings::WrittenServer;
use crate::servers::address::Outbound;
use crate::servers::review::seen_text;
use crate::servers::trial_view;

/// What a trial found.
#[derive(Debug)]
pub struct ServerTrial {
    /// What it offers, as a review at its first sight: what would be pinned.
    pub review: ServerReview,
    /// The revision of the protocol that was agreed on.
    pub protocol: String,
    /// The layers of its jail, each with why it is missing if it is.
    pub walls: Vec<(String, Option<String>)>,
    /// The last lines of its standard error.
    pub log: Vec<String>,
}

/// Takes the list of one server into the memory of this trial.
#[derive(Debug, Default)]
struct TrialReview(Mutex<Option<String>>);

impl Reviewer for TrialReview {
    fn review(&self, _: &str, seen: &SeenTools) -> Result<String, String> {
        let text = seen_text(seen);
        let stamp = digest::of_text(&text);
        *lock(&self.0) = Some(text);
        Ok(stamp)
    }

    // A trial leaves its one notice and nothing else.
    fn note_connections(&self, _: &str, _: &[EgressEvent]) {}
}

impl ServerAdmin<'_> {
    /// Starts or reaches a server, lists what it offers, and ends it.
    ///
    /// # Errors
    /// The settings would not take it, there is one of that name, or it does not answer.
    pub async fn try_out(&self, written: &WrittenServer) -> Result<ServerTrial, ServerAdminError> {
        let failed = |fault: ServerFault, log: Vec<String>| ServerAdminError::Fault {
            name: written.name.clone(),
            fault,
            log,
        };
        let refused = |why: String| failed(ServerFault::Start(why), Vec::new());
        let config = parsed(written).map_err(refused)?;
        let engine = self.engine();
        let now = engine.registry().current();
        if now.servers().servers().contains_key(&config.name) {
            return Err(refused("there is a server of that name already".to_owned()));
        }
        let environment = engine.environment().map_err(EngineError::from)?;
        let values = config.secrets().into_iter();
        let values = values.filter_map(|secret| environment.get(secret));
        let masker = Masker::new(values).map_err(|fault| refused(fault.to_string()))?;
        let outbound = Outbound::new(engine.powers(), &now.config);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let scratch = Scratch::new(engine.home(), &format!("trial-{id}"));
        let connections = engine.server_connections();
        let place = (scratch.path(), &environment);
        let settings = connections.trial_settings(&config, place, &Arc::new(masker), &outbound);
        let settings = settings.map_err(|fault| failed(fault, Vec::new()))?;
        // It starts a program, so the audit knows of it first.
        let message = format!(
            "the server `{}` was tried out; nothing is kept",
            config.name
        );
        let notice = self
            .notice_of(Act::ServerTried, &message)
            .about(&config.name);
        let origin = ServerLaunch::of(&config).shown();
        engine.notice(notice.detail("origin", &origin))?;
        let review = Arc::new(TrialReview::default());
        let server = Server::new(settings, Arc::clone(&review) as _);
        let started = server.start().await;
        let (status, log) = (server.status(), server.log());
        // Stopped here, because its folder goes with this call.
        server.restart().await;
        drop(server);
        started.map_err(|fault| failed(fault, log.clone()))?;
        let seen = lock(&review.0).take();
        let seen = seen.ok_or_else(|| refused("it offered no list".to_owned()))?;
        let (protocol, walls) = match status {
            ServerStatus::Ready { server, walls, .. } => (server.protocol, walls),
            ServerStatus::Stopped | ServerStatus::Failed(_) => (String::new(), Vec::new()),
        };
        Ok(ServerTrial {
            review: judged(&config, &now.config, &seen, &now).map_err(refused)?,
            protocol,
            walls,
            log,
        })
    }
}

/// The review of a first sight, beside the servers there are.
fn judged(
    config: &ServerConfig,
    settings: &Config,
    seen: &str,
    now: &crate::snapshot::Snapshot,
) -> Result<ServerReview, String> {
    let record = ServerRecord {
        seen: seen.into(),
        ..ServerRecord::default()
    };
    let known = now.servers().servers().iter();
    let mut records: ServerRecords = known
        .map(|(name, view)| (name.clone(), view.record.clone()))
        .collect();
    records.insert(config.name.clone(), record.clone());
    let mut servers = settings.servers.clone();
    servers.push(config.clone());
    let view = trial_view(config, record, &servers, &records, &own_names(now));
    let seen = view.seen.ok_or("what it offers cannot be read")?;
    Ok(ServerReview {
        config: view.config,
        decision: PinDecision::Held,
        served: view.served?,
        digest: seen.digest(),
        findings: view.findings,
        seen,
        baseline: now.baseline.clone(),
    })
}
