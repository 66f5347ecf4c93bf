//! The servers that run: one connection for each server, or one for each caller of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge::{Server, ServerFault, ServerSettings, ServerStatus, ServerTarget};
use jail::{JailNetwork, JailRung, JailSettings, WorkerProgram};
use model::config::{ServerConfig, ServerNetwork, ServerSandbox, ServerSharing, ServerTransport};
use model::document::environment::Environment;
use model::document::placeholder;
use model::network::host_pattern::HostPattern;
use model::record::mask::Masker;
use model::sync::lock;

use crate::servers::address::Outbound;
use crate::servers::review::KeptReview;

/// The folder of all servers' own folders, in the home.
const FOLDER: &str = "servers";
/// In the folder of a server, what its processes wrote on standard error. No server may
/// write there.
const LOGS: &str = "log";

/// Tells Node to use the proxy that the environment names.
const NODE_PROXY: &str = "NODE_USE_ENV_PROXY";

/// The servers that run.
#[derive(Debug)]
pub(crate) struct Connections {
    home: PathBuf,
    program: WorkerProgram,
    /// Where programs are looked for, written as `PATH` is.
    search: String,
    /// The home folder of the person, which no server sees.
    user_home: Option<PathBuf>,
    review: Arc<KeptReview>,
    open: Mutex<BTreeMap<(String, String), OpenServer>>,
}

#[derive(Debug)]
struct OpenServer {
    config: Arc<ServerConfig>,
    restarts: i64,
    /// With other secrets it is another connection.
    filled: FilledSecrets,
    /// And so it is with other hosts that may be private.
    private_hosts: Arc<[HostPattern]>,
    /// And with another jail.
    require: JailRung,
    server: Arc<Server>,
}

impl Connections {
    pub(crate) fn new(
        home: &Path,
        program: WorkerProgram,
        environment: &Environment,
        review: KeptReview,
    ) -> Connections {
        Connections {
            home: home.to_owned(),
            program,
            search: environment.get("PATH").unwrap_or_default().to_owned(),
            user_home: environment.get("HOME").map(PathBuf::from),
            review: Arc::new(review),
            open: Mutex::default(),
        }
    }

    /// The server for a caller. One that was opened under other settings, with other
    /// secrets or before a restart is stopped.
    pub(crate) fn get(
        &self,
        config: &Arc<ServerConfig>,
        restarts: i64,
        caller: &str,
        environment: &Environment,
        masker: &Arc<Masker>,
        outbound: &Outbound,
    ) -> Result<Arc<Server>, ServerFault> {
        let filled = fill(config, environment)?;
        let caller = match config.sharing {
            ServerSharing::Shared => "",
            ServerSharing::PerCaller => caller,
        };
        let key = (config.name.clone(), caller.to_owned());
        // Held until the new one is in: two calls must not start two processes.
        let mut open = lock(&self.open);
        if let Some(known) = open.get(&key)
            && known.config == *config
            && known.restarts == restarts
            && known.filled == filled
            && known.private_hosts == outbound.private_hosts
            && known.require == outbound.require
        {
            return Ok(Arc::clone(&known.server));
        }
        let settings = self.settings(config, caller, &filled, masker, outbound)?;
        let server = Arc::new(Server::new(settings, Arc::clone(&self.review) as _));
        open.insert(
            key,
            OpenServer {
                config: Arc::clone(config),
                restarts,
                filled,
                private_hosts: Arc::clone(&outbound.private_hosts),
                require: outbound.require,
                server: Arc::clone(&server),
            },
        );
        Ok(server)
    }

    /// Where each server that was used stands.
    pub(crate) fn statuses(&self) -> Vec<ServerStatus> {
        let open = lock(&self.open);
        open.values().map(|it| it.server.status()).collect()
    }

    /// The settings for a trial, which keeps nothing: its folder is handed in, and it has
    /// no log and no tokens.
    pub(crate) fn trial_settings(
        &self,
        config: &ServerConfig,
        (folder, environment): (&Path, &Environment),
        masker: &Arc<Masker>,
        outbound: &Outbound,
    ) -> Result<ServerSettings, ServerFault> {
        let filled = fill(config, environment)?;
        let mut settings = self.settings(config, "", &filled, masker, outbound)?;
        settings.logs = None;
        match &mut settings.target {
            ServerTarget::Command { jail, .. } => jail.home = folder.to_owned(),
            ServerTarget::Address(address) => address.tokens = None,
        }
        Ok(settings)
    }

    fn settings(
        &self,
        config: &ServerConfig,
        caller: &str,
        filled: &FilledSecrets,
        masker: &Arc<Masker>,
        outbound: &Outbound,
    ) -> Result<ServerSettings, ServerFault> {
        let target = match &config.transport {
            ServerTransport::Command(command) => {
                let program = command.command.first().map(String::as_str);
                let resolved = jail::resolve_program(program.unwrap_or_default(), &self.search);
                let resolved = resolved.map_err(|fault| ServerFault::Start(fault.to_string()))?;
                let mut words = command.command.clone();
                if let Some(first) = words.first_mut() {
                    *first = resolved.display().to_string();
                }
                let mut jail = JailSettings::new(words, self.folder(&config.name, caller));
                jail.environment = filled.values.clone();
                jail.read = command.read.iter().map(PathBuf::from).collect();
                jail.write = command.write.iter().map(PathBuf::from).collect();
                jail.private = vec![self.home.clone()];
                jail.user_home = self.user_home.clone();
                let hosts = match &command.network {
                    ServerNetwork::None => None,
                    ServerNetwork::Hosts(hosts) => {
                        // Node looks at the variables that name a proxy only if told to.
                        let told = jail.environment.entry(NODE_PROXY.to_owned());
                        told.or_insert_with(|| "1".to_owned());
                        Some(Box::new(outbound.hosts(hosts)?))
                    }
                    ServerNetwork::Open => {
                        jail.network = JailNetwork::Open;
                        None
                    }
                };
                // What the operator says about one server counts before what holds for all.
                match command.sandbox {
                    ServerSandbox::Jail => jail.require = outbound.require,
                    ServerSandbox::None => jail.accept_missing = true,
                }
                ServerTarget::Command {
                    jail,
                    hosts,
                    program: self.program.clone(),
                }
            }
            ServerTransport::Url(url) => {
                let settings = outbound.settings(&self.home, (config, url), caller, filled);
                ServerTarget::Address(settings?)
            }
        };
        Ok(ServerSettings {
            name: config.name.clone(),
            target,
            era: config.era,
            start_timeout: Duration::from_millis(config.start_timeout_ms),
            idle: Duration::from_secs(config.idle_seconds),
            may_ask: config.elicitation,
            logs: Some(logs_folder(&self.home, &config.name)),
            prompts: config.prompts,
            resources: config.resources,
            masker: Arc::clone(masker),
        })
    }

    /// The folder a server may write to: its own, or its own for one caller.
    fn folder(&self, server: &str, caller: &str) -> PathBuf {
        let folder = self.home.join(FOLDER).join(server);
        match caller {
            "" => folder.join("shared"),
            // A caller's name may hold anything, so its folder is named by a digest.
            caller => folder.join(model::document::digest::of_text(caller)),
        }
    }
}

/// Where the last lines of a server's processes are.
pub(crate) fn logs_folder(home: &Path, server: &str) -> PathBuf {
    home.join(FOLDER).join(server).join(LOGS)
}

/// What the settings of a server say with secrets filled in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FilledSecrets {
    /// The environment or the headers.
    pub(crate) values: BTreeMap<String, String>,
    /// The secret of the client that signs in.
    pub(crate) client_secret: Option<String>,
}

impl fmt::Debug for FilledSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilledSecrets(***)")
    }
}

/// Fills the secrets in.
pub(crate) fn fill(
    config: &ServerConfig,
    environment: &Environment,
) -> Result<FilledSecrets, ServerFault> {
    let templates = match &config.transport {
        ServerTransport::Command(command) => &command.environment,
        ServerTransport::Url(url) => &url.headers,
    };
    let mut filled = BTreeMap::new();
    let mut missing = Vec::new();
    for (name, template) in templates {
        match placeholder::resolve(template, environment) {
            Ok(resolved) => {
                filled.insert(name.clone(), resolved.text);
            }
            Err(names) => missing.extend(names),
        }
    }
    let oauth = match &config.transport {
        ServerTransport::Command(_) => None,
        ServerTransport::Url(url) => url.oauth.as_ref(),
    };
    let mut client_secret = None;
    if let Some(template) = oauth.and_then(|oauth| oauth.client_secret.as_ref()) {
        match placeholder::resolve(template, environment) {
            Ok(resolved) => client_secret = Some(resolved.text),
            Err(names) => missing.extend(names),
        }
    }
    match missing.is_empty() {
        true => Ok(FilledSecrets {
            values: filled,
            client_secret,
        }),
        false => Err(ServerFault::SecretsMissing(missing)),
    }
}
