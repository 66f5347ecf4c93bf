//! `[[server]]`: other people's MCP servers, as the operator sets them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Faults;
use crate::document::placeholder;
use crate::govern::action::{Action, Actions, ListUse};
use crate::govern::pattern::{self, NamePattern};
use crate::limits;
use crate::network::host_pattern::HostPattern;
use crate::text::elided;

/// An MCP server whose tools are offered here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The prefix of its tools' names.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// Which protocol it speaks.
    pub era: ServerEra,
    /// The tools that are offered, by the server's own names; all if absent.
    pub allow: Option<Vec<NamePattern>>,
    /// Never these.
    pub deny: Vec<NamePattern>,
    /// Milliseconds until it must be ready.
    pub start_timeout_ms: u64,
    /// Milliseconds a call may take.
    pub call_timeout_ms: u64,
    /// Seconds without a call after which its process is stopped.
    pub idle_seconds: u64,
    /// Whether callers share a connection.
    pub sharing: ServerSharing,
    /// Descriptions that replace the server's own, by tool.
    pub descriptions: BTreeMap<String, String>,
    /// Actions of a tool beyond the derived ones, by tool.
    pub actions: BTreeMap<String, Vec<Action>>,
    /// Whether its questions to a person are passed on.
    pub elicitation: bool,
    /// Whether its prompts are offered, once they are accepted.
    pub prompts: bool,
    /// Whether its resources are offered, once they are accepted.
    pub resources: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    /// A process of this machine, over its standard input and output.
    Command(ServerCommand),
    /// An address.
    Url(ServerUrl),
}

/// A server that is a process of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Its environment; `${NAME}` is filled with a secret.
    pub environment: BTreeMap<String, String>,
    /// Files and folders it may read, beside the system's.
    pub read: Vec<String>,
    /// Files and folders it may write, beside its own.
    pub write: Vec<String>,
    /// Its network access.
    pub network: ServerNetwork,
    /// Whether it runs if a layer of the jail is missing.
    pub sandbox: ServerSandbox,
}

/// A server at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Where.
    pub url: String,
    /// Headers of every request; `${NAME}` is filled with a secret.
    pub headers: BTreeMap<String, String>,
    /// Whether the address may be on a private network.
    pub private: bool,
    /// How to sign in, where the owner says so.
    pub oauth: Option<ServerOAuth>,
}

/// Our client registration with the issuer of a server's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOAuth {
    /// How a token is obtained.
    pub grant: ServerGrant,
    /// The client that the owner registered; without one, a sign-in registers one.
    pub client_id: Option<String>,
    /// Its secret, as `${NAME}`.
    pub client_secret: Option<String>,
    /// Scopes to request; those that the server names if empty.
    pub scopes: Vec<String>,
    /// The port of this machine that a browser comes back to; 0 takes a free one.
    pub redirect_port: u16,
}

crate::words! {
    /// How a token is obtained.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerGrant {
        /// A person signs in.
        Code = "code",
        /// The client signs in by itself.
        ClientCredentials = "client-credentials",
    }
}

crate::words! {
    /// Which protocol a server speaks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerEra {
        /// Detected when it starts.
        Auto = "auto",
        /// With `initialize`.
        Legacy = "legacy",
        /// With `server/discover`.
        Modern = "modern",
    }
}

crate::words! {
    /// Whether callers share a server's connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerSharing {
        /// One for all.
        Shared = "shared",
        /// One for each caller.
        PerCaller = "per-caller",
    }
}

/// What the process of a server may connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNetwork {
    /// Nothing.
    None,
    /// These hosts and nothing else, through a proxy of ours. Never empty.
    Hosts(Vec<HostPattern>),
    /// Anything.
    Open,
}

impl ServerNetwork {
    /// In one word, as results and reports have it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            ServerNetwork::None => "none",
            ServerNetwork::Hosts(_) => "hosts",
            ServerNetwork::Open => "open",
        }
    }

    /// The hosts that are named; for the other two there are none to name.
    #[must_use]
    pub fn hosts(&self) -> &[HostPattern] {
        match self {
            ServerNetwork::Hosts(hosts) => hosts,
            ServerNetwork::None | ServerNetwork::Open => &[],
        }
    }
}

crate::words! {
    /// What stands in `network`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum ReachWord {
        None = "none",
        Open = "open",
    }
}

crate::words! {
    /// Whether the process of a server needs every layer of the jail.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerSandbox {
        /// It runs only with every layer of the jail.
        Jail = "jail",
        /// It runs also where a layer is missing.
        None = "none",
    }
}

impl ServerConfig {
    /// Every secret its environment, its headers or its sign-in name.
    #[must_use]
    pub fn secrets(&self) -> BTreeSet<&str> {
        let (templates, own) = match &self.transport {
            ServerTransport::Command(command) => (&command.environment, None),
            ServerTransport::Url(url) => {
                let oauth = url.oauth.as_ref();
                (
                    &url.headers,
                    oauth.and_then(|oauth| oauth.client_secret.as_ref()),
                )
            }
        };
        templates
            .values()
            .chain(own)
            .flat_map(|template| placeholder::names(template))
            .collect()
    }

    /// Whether a tool of the server is offered at all.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let lists = |patterns: &[NamePattern]| pattern::first(patterns, tool).is_some();
        !lists(&self.deny) && self.allow.as_deref().is_none_or(lists)
    }
}

/// Whether a word can be the name of a server: `[a-z][a-z0-9-]{0,23}`.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= limits::SERVER_NAME_CHARS_MAX
        && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(plain)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerFile {
    name: toml::Spanned<String>,
    command: Option<Vec<String>>,
    url: Option<toml::Spanned<String>>,
    #[serde(default)]
    env: BTreeMap<toml::Spanned<String>, String>,
    #[serde(default)]
    headers: BTreeMap<toml::Spanned<String>, String>,
    #[serde(default)]
    read: Vec<toml::Spanned<String>>,
    #[serde(default)]
    write: Vec<toml::Spanned<String>>,
    network: Option<toml::Spanned<String>>,
    hosts: Option<toml::Spanned<Vec<toml::Spanned<String>>>>,
    sandbox: Option<toml::Spanned<String>>,
    private: Option<bool>,
    era: Option<toml::Spanned<String>>,
    allow: Option<Vec<toml::Spanned<String>>>,
    #[serde(default)]
    deny: Vec<toml::Spanned<String>>,
    start_timeout_ms: Option<toml::Spanned<u64>>,
    call_timeout_ms: Option<toml::Spanned<u64>>,
    idle_seconds: Option<toml::Spanned<u64>>,
    sharing: Option<toml::Spanned<String>>,
    #[serde(default)]
    descriptions: BTreeMap<String, toml::Spanned<String>>,
    #[serde(default)]
    actions: BTreeMap<String, Vec<toml::Spanned<String>>>,
    elicitation: Option<bool>,
    prompts: Option<bool>,
    resources: Option<bool>,
    oauth: Option<toml::Spanned<OAuthFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OAuthFile {
    grant: Option<toml::Spanned<String>>,
    client_id: Option<toml::Spanned<String>>,
    client_secret: Option<toml::Spanned<String>>,
    #[serde(default)]
    scopes: Vec<toml::Spanned<String>>,
    redirect_port: Option<u16>,
}

impl Faults<'_> {
    pub(super) fn servers(
        &mut self,
        files: Vec<toml::Spanned<ServerFile>>,
        actions: &Actions,
    ) -> Vec<ServerConfig> {
        if let Some(over) = files.get(limits::SERVERS_MAX) {
            let message = format!("there are more than {} servers", limits::SERVERS_MAX);
            self.say(over, message, None);
        }
        let mut servers: Vec<ServerConfig> = Vec::new();
        for file in files {
            let name = file.get_ref().name.clone();
            let Some(server) = self.server(file, actions) else {
                continue;
            };
            if servers.iter().any(|other| other.name == server.name) {
                let message = format!("there are two servers `{}`", server.name);
                self.say(&name, message, Some("give one another name".to_owned()));
            }
            servers.push(server);
        }
        servers
    }

    fn server(
        &mut self,
        file: toml::Spanned<ServerFile>,
        actions: &Actions,
    ) -> Option<ServerConfig> {
        let place = file.span().start;
        let mut file = file.into_inner();
        self.server_name(&file.name);
        let transport = self.transport(&mut file, place);
        let mut era = ServerEra::Auto;
        self.set_word("era", file.era, &mut era);
        let mut sharing = ServerSharing::Shared;
        self.set_word("sharing", file.sharing, &mut sharing);
        let timeouts = 1_000..=limits::SERVER_TIMEOUT_MS_MAX;
        let start = self.read_number("start_timeout_ms", file.start_timeout_ms, timeouts.clone());
        let call = self.read_number("call_timeout_ms", file.call_timeout_ms, timeouts);
        let idle = 1..=limits::SERVER_IDLE_SECONDS_MAX;
        let idle = self.read_number("idle_seconds", file.idle_seconds, idle);
        let mut own_actions = BTreeMap::new();
        for (tool, words) in file.actions {
            let mut list = Vec::new();
            for word in &words {
                match actions.expand(word.get_ref(), ListUse::Restrict) {
                    Ok(expanded) => list.extend(expanded),
                    Err(fault) => {
                        let fix = fault.nearest.as_ref();
                        let fix = fix.map(|near| format!("did you mean `{near}`?"));
                        self.say(word, fault.message, fix);
                    }
                }
            }
            own_actions.insert(tool, list);
        }
        for text in file.descriptions.values() {
            if text.get_ref().chars().count() > limits::SERVER_DESCRIPTION_CHARS_MAX {
                let most = limits::SERVER_DESCRIPTION_CHARS_MAX;
                let message = format!("the description is longer than {most} characters");
                self.say(text, message, None);
            }
        }
        // The transport may be missing. All else was read before, so that every fault is
        // told.
        let descriptions = file.descriptions.into_iter();
        Some(ServerConfig {
            name: file.name.into_inner(),
            transport: transport?,
            era,
            allow: file.allow.map(|allow| self.patterns(&allow)),
            deny: self.patterns(&file.deny),
            start_timeout_ms: start.unwrap_or(limits::SERVER_START_TIMEOUT_MS_DEFAULT),
            call_timeout_ms: call.unwrap_or(limits::SERVER_CALL_TIMEOUT_MS_DEFAULT),
            idle_seconds: idle.unwrap_or(limits::SERVER_IDLE_SECONDS_DEFAULT),
            sharing,
            descriptions: descriptions
                .map(|(tool, text)| (tool, text.into_inner()))
                .collect(),
            actions: own_actions,
            elicitation: file.elicitation.unwrap_or(true),
            prompts: file.prompts.unwrap_or_default(),
            resources: file.resources.unwrap_or_default(),
        })
    }

    fn server_name(&mut self, name: &toml::Spanned<String>) {
        if is_server_name(name.get_ref()) {
            return;
        }
        let message = format!(
            "`{}` cannot be the name of a server",
            elided(name.get_ref(), 40)
        );
        let fix = format!(
            "use a small letter, then small letters, digits and `-`, at most {} in all",
            limits::SERVER_NAME_CHARS_MAX
        );
        self.say(name, message, Some(fix));
    }

    fn transport(&mut self, file: &mut ServerFile, place: usize) -> Option<ServerTransport> {
        match (file.command.take(), file.url.take()) {
            (Some(command), None) => self.command(file, command, place),
            (None, Some(url)) => self.url(file, url),
            (given, _) => {
                let message = match given {
                    Some(_) => "a server has a `command` or a `url`, not both",
                    None => "a server needs a `command` or a `url`",
                };
                self.say_at(place, message.to_owned(), None);
                None
            }
        }
    }

    fn command(
        &mut self,
        file: &mut ServerFile,
        command: Vec<String>,
        place: usize,
    ) -> Option<ServerTransport> {
        let mut is_good = true;
        if command.first().is_none_or(|program| program.is_empty()) {
            let message = "`command` names no program".to_owned();
            let fix = "write the program and its arguments as a list of texts".to_owned();
            self.say_at(place, message, Some(fix));
            is_good = false;
        }
        for header in file.headers.keys() {
            let message = "`headers` are for a `url`".to_owned();
            self.say(header, message, Some("use `env`".to_owned()));
        }
        for name in file.env.keys() {
            let is_name = |name: &str| {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            if !is_name(name.get_ref()) {
                let shown = elided(name.get_ref(), 40);
                self.say(
                    name,
                    format!("`{shown}` cannot be the name of a variable"),
                    None,
                );
            }
        }
        for path in file.read.iter().chain(&file.write) {
            if !path.get_ref().starts_with('/') {
                let shown = elided(path.get_ref(), 80);
                let fix = "write the whole path, from `/`".to_owned();
                self.say(
                    path,
                    format!("`{shown}` is not an absolute path"),
                    Some(fix),
                );
            }
        }
        if let Some(oauth) = &file.oauth {
            self.say(oauth, "`oauth` is for a `url`".to_owned(), None);
        }
        let network = self.server_network(file.network.take(), file.hosts.take());
        let mut sandbox = ServerSandbox::Jail;
        self.set_word("sandbox", file.sandbox.take(), &mut sandbox);
        let texts = |list: &[toml::Spanned<String>]| {
            list.iter().map(|text| text.get_ref().clone()).collect()
        };
        let environment = std::mem::take(&mut file.env).into_iter();
        is_good.then(|| {
            ServerTransport::Command(ServerCommand {
                command,
                environment: environment
                    .map(|(name, value)| (name.into_inner(), value))
                    .collect(),
                read: texts(&file.read),
                write: texts(&file.write),
                network,
                sandbox,
            })
        })
    }

    /// `hosts` say it all, so `network` beside them would say it twice or otherwise.
    fn server_network(
        &mut self,
        word: Option<toml::Spanned<String>>,
        hosts: Option<toml::Spanned<Vec<toml::Spanned<String>>>>,
    ) -> ServerNetwork {
        let mut network = ReachWord::None;
        if let (Some(word), Some(_)) = (&word, &hosts) {
            let message = "`network` and `hosts` both say what the server may reach".to_owned();
            let fix = "leave `network` out to keep it to the hosts".to_owned();
            self.say(word, message, Some(fix));
        }
        self.set_word("network", word, &mut network);
        match (hosts, network) {
            (Some(hosts), _) => {
                let named = self.hosts(hosts.get_ref());
                match named.is_empty() {
                    // An empty list opens nothing. It must not count as no list.
                    true => ServerNetwork::None,
                    false => ServerNetwork::Hosts(named),
                }
            }
            (None, ReachWord::None) => ServerNetwork::None,
            (None, ReachWord::Open) => ServerNetwork::Open,
        }
    }

    fn url(
        &mut self,
        file: &mut ServerFile,
        url: toml::Spanned<String>,
    ) -> Option<ServerTransport> {
        let parsed = url::Url::parse(url.get_ref());
        let is_good = parsed.as_ref().is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                // People see the URL in lists, and would see a password in it.
                && url.username().is_empty()
                && url.password().is_none()
        });
        if !is_good {
            let message = "`url` must be an http or https address without a user name".to_owned();
            self.say(&url, message, None);
        }
        for name in file.env.keys() {
            let message = "`env` is for a `command`".to_owned();
            self.say(name, message, Some("use `headers`".to_owned()));
        }
        for path in file.read.iter().chain(&file.write) {
            self.say(path, "files are for a `command`".to_owned(), None);
        }
        for word in [file.network.take(), file.sandbox.take()].iter().flatten() {
            let message = "`network` and `sandbox` are for a `command`".to_owned();
            self.say(word, message, None);
        }
        if let Some(hosts) = file.hosts.take() {
            let message = "`hosts` are for a `command`".to_owned();
            self.say(&hosts, message, None);
        }
        let oauth = file
            .oauth
            .take()
            .map(|oauth| self.server_oauth(oauth.into_inner()));
        let headers = std::mem::take(&mut file.headers).into_iter();
        is_good.then(|| {
            ServerTransport::Url(ServerUrl {
                url: url.into_inner(),
                headers: headers
                    .map(|(name, value)| (name.into_inner(), value))
                    .collect(),
                private: file.private.unwrap_or_default(),
                oauth,
            })
        })
    }

    fn server_oauth(&mut self, file: OAuthFile) -> ServerOAuth {
        let mut grant = ServerGrant::Code;
        let place = file.grant.clone();
        self.set_word("grant", file.grant, &mut grant);
        if let Some(secret) = &file.client_secret
            && placeholder::names(secret.get_ref()).next().is_none()
        {
            let message = "`client_secret` is in plain text".to_owned();
            let fix = "put it into secrets.env and write `${NAME}`".to_owned();
            self.say(secret, message, Some(fix));
        }
        let has_both = file.client_id.is_some() && file.client_secret.is_some();
        if let (ServerGrant::ClientCredentials, false, Some(place)) = (grant, has_both, &place) {
            let message = "client credentials need a `client_id` and a `client_secret`".to_owned();
            self.say(place, message, None);
        }
        for text in file.client_id.iter().chain(&file.scopes) {
            let word = text.get_ref();
            let is_word = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            let fits = word.len() <= limits::SERVER_OAUTH_WORD_BYTES_MAX;
            if word.is_empty() || !fits || !word.bytes().all(is_word) {
                let message = format!("`{}` cannot be a client id or a scope", elided(word, 40));
                self.say(text, message, None);
            }
        }
        ServerOAuth {
            grant,
            client_id: file.client_id.map(toml::Spanned::into_inner),
            client_secret: file.client_secret.map(toml::Spanned::into_inner),
            scopes: file
                .scopes
                .into_iter()
                .map(toml::Spanned::into_inner)
                .collect(),
            redirect_port: file.redirect_port.unwrap_or_default(),
        }
    }
}
