//! The operator's file, `ringfence.toml`: reading it, and the settings it means.
//!
//! Unknown keys are errors that name the nearest key. A file that does not load
//! changes nothing: the caller keeps what it had, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::govern::access::Access;
use crate::govern::access::quota::{Costs, RateLimit};
use crate::govern::exposure::{Exposure, Selection};
use crate::govern::pattern::NamePattern;
use crate::govern::rules::Rules;
use crate::govern::trust::TrustConfig;
use crate::limits;
use crate::nearest::nearest;
use crate::network::host_pattern::{HostPattern, Shape};
use crate::policy::{self, Baseline, Classes, PolicyConflict, Profile, Profiles};
use crate::text::elided;
use crate::word::{Word, words};

mod audit;
mod codecall;
mod connections;
mod doors;
mod govern;
mod names;
mod progressive;
mod sandbox;
mod servers;
mod shown;
mod store;
mod studio;
mod toolbox;
mod trust;

pub use crate::govern::approval::ApprovalsConfig;
pub use audit::{ArgumentRetention, AuditConfig, AuditDurability, AuditPeer, ShipConfig, WhenFull};
pub use codecall::{CodecallConfig, CodecallMode, ScriptPreset};
pub use connections::{ConnectionConfig, ConnectionKind, ConnectionTls};
pub use doors::{
    LISTEN_DEFAULT, LogFormat, OAUTH_ALGORITHMS, OauthConfig, ServeConfig, TelemetryConfig,
};
pub use names::{ExpectedNames, KnownNames, NameKind, NameUse, kinds_in, names_in};
pub use progressive::ProgressiveConfig;
pub use sandbox::{JailConfig, JailStrength, SandboxConfig, WorkerSharing};
pub use servers::{
    ServerCommand, ServerConfig, ServerEra, ServerGrant, ServerNetwork, ServerOAuth, ServerSandbox,
    ServerSharing, ServerTransport, ServerUrl, is_server_name,
};
pub use shown::{Setting, SettingSource};
pub use store::{STORE_PASSWORD, StoreConfig};
pub use studio::{CodePrinting, StudioConfig, StudioOauth};
pub use toolbox::{ToolboxCategory, ToolboxConfig};

/// The operator's settings.
///
/// Defaults ([`Config::closed`]): the closed baseline, no profiles, and the
/// standard of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What holds for every tool.
    pub baseline: Baseline,
    /// Profiles by name.
    pub profiles: Profiles,
    /// The profile in force for every tool, if any.
    pub profile: Option<String>,
    /// Which tools are exposed.
    pub exposure: Exposure,
    /// Names that settings may use before they exist.
    pub expected: ExpectedNames,
    /// Who may use what.
    pub access: Access,
    /// Rules about calls.
    pub rules: Rules,
    /// A file of rules or settings that is evaluated in shadow and decides nothing; a
    /// relative one is under the home folder.
    pub shadow: Option<String>,
    /// Rate limits.
    pub limits: Vec<RateLimit>,
    /// The price of a call, in units of a day.
    pub costs: Costs,
    /// Trust levels that callers earn and lose.
    pub trust: TrustConfig,
    /// How calls of one batch run.
    pub calls: CallsConfig,
    /// Audit records, and when they are on the disk.
    pub audit: AuditConfig,
    /// Where decisions are kept.
    pub store: StoreConfig,
    /// The worker processes, and the jail.
    pub sandbox: SandboxConfig,
    /// Scripts that call tools.
    pub codecall: CodecallConfig,
    /// Progressive tool listing.
    pub progressive: ProgressiveConfig,
    /// Where tools find files.
    pub files: FilesConfig,
    /// Certificates that `fetch` trusts.
    pub network: NetworkConfig,
    /// Where the server listens, and its bounds.
    pub serve: ServeConfig,
    /// How people are asked.
    pub approvals: ApprovalsConfig,
    /// The issuer whose tokens the server accepts.
    pub oauth: Option<OauthConfig>,
    /// The page for people.
    pub studio: StudioConfig,
    /// Where traces go.
    pub telemetry: TelemetryConfig,
    /// Other people's MCP servers.
    pub servers: Vec<ServerConfig>,
    /// Services that tools reach by a name.
    pub connections: Vec<ConnectionConfig>,
    /// Native tools that run programs.
    pub toolbox: ToolboxConfig,
    /// Settings that were read under an old name: one sentence for the operator each.
    pub outdated: Vec<String>,
}

/// How calls of one batch run.
///
/// Defaults: reads run at the same time, everything else one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsConfig {
    /// Whether all calls run at the same time, in no fixed order.
    pub concurrent: bool,
}

/// Where tools find files.
///
/// Defaults: `workspace` in the home folder, one for all callers, 1 GiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesConfig {
    /// The folder; a relative one is under the home folder.
    pub workspace: String,
    /// Whether each caller has a folder of its own in it.
    pub per_caller: bool,
    /// Bytes it may hold; with a folder for each caller, each of them.
    pub bytes_max: u64,
}

/// Certificates that `fetch` trusts, and which names may lead inside.
///
/// Defaults: the certificate authorities of the system; no name leads inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// More authorities, as a PEM file; a relative one is under the home folder.
    pub ca_file: Option<String>,
    /// Names that may lead to private addresses. No document can say so.
    pub private_hosts: Vec<HostPattern>,
}

impl Config {
    /// Nothing set: closed.
    #[must_use]
    pub fn closed() -> Config {
        Config {
            baseline: Baseline::closed(),
            profiles: Profiles::new(),
            profile: None,
            exposure: Exposure::standard(),
            expected: ExpectedNames::default(),
            access: Access::default(),
            rules: Rules::standard(),
            shadow: None,
            limits: Vec::new(),
            costs: Costs::default(),
            trust: TrustConfig::standard(),
            calls: CallsConfig::default(),
            audit: AuditConfig::standard(),
            store: StoreConfig::standard(),
            sandbox: SandboxConfig::standard(),
            codecall: CodecallConfig::standard(),
            progressive: ProgressiveConfig::default(),
            outdated: Vec::new(),
            files: FilesConfig {
                workspace: "workspace".to_owned(),
                per_caller: false,
                bytes_max: limits::WORKSPACE_BYTES_DEFAULT,
            },
            network: NetworkConfig::default(),
            serve: ServeConfig::standard(),
            approvals: ApprovalsConfig::standard(),
            oauth: None,
            studio: StudioConfig::standard(),
            telemetry: TelemetryConfig::default(),
            servers: Vec::new(),
            connections: Vec::new(),
            toolbox: ToolboxConfig::standard(),
        }
    }

    /// The baseline of every tool: the operator's, with the profile in force.
    pub fn effective_baseline(&self) -> Result<Baseline, PolicyConflict> {
        policy::effective_baseline(&self.baseline, &self.profiles, self.profile.as_deref())
    }

    /// Reads the operator's file. All problems of meaning come back together.
    pub fn parse(text: &str) -> Result<Config, Vec<ConfigFault>> {
        if text.len() > limits::CONFIG_BYTES_MAX {
            return Err(vec![too_long()]);
        }
        let file: ConfigFile =
            toml::from_str(text).map_err(|error| vec![from_toml(text, &error)])?;
        file.resolve(text)
    }
}

/// One thing wrong with the operator's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigFault {
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    profile: Option<toml::Spanned<String>>,
    baseline: LayerFile,
    profiles: BTreeMap<String, LayerFile>,
    exposure: ExposureFile,
    expected: names::ExpectedFile,
    access: govern::CallerFile,
    callers: BTreeMap<toml::Spanned<String>, govern::CallerFile>,
    groups: BTreeMap<toml::Spanned<String>, govern::CallerFile>,
    rule: Vec<toml::Spanned<govern::RuleFile>>,
    rules: govern::RulesSection,
    limit: Vec<toml::Spanned<govern::LimitFile>>,
    costs: BTreeMap<toml::Spanned<String>, toml::Spanned<i64>>,
    actions: BTreeMap<toml::Spanned<String>, toml::Spanned<String>>,
    trust: Option<toml::Spanned<trust::TrustFile>>,
    calls: doors::CallsFile,
    approvals: doors::ApprovalsFile,
    audit: audit::AuditFile,
    store: store::StoreFile,
    sandbox: sandbox::SandboxFile,
    codecall: codecall::CodecallFile,
    progressive: Option<progressive::ProgressiveFile>,
    /// The name of `progressive` before.
    disclosure: Option<toml::Spanned<progressive::ProgressiveFile>>,
    files: FilesFile,
    network: NetworkFile,
    serve: doors::ServeFile,
    oauth: Option<doors::OauthFile>,
    studio: studio::StudioFile,
    telemetry: doors::TelemetryFile,
    server: Vec<toml::Spanned<servers::ServerFile>>,
    connections: BTreeMap<toml::Spanned<String>, connections::ConnectionFile>,
    toolbox: toolbox::ToolboxFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExposureFile {
    preset: Option<String>,
    auto: Option<bool>,
    include: SelectionFile,
    exclude: SelectionFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SelectionFile {
    names: BTreeSet<String>,
    tags: BTreeSet<String>,
    categories: BTreeSet<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FilesFile {
    workspace: Option<String>,
    per_caller: Option<bool>,
    bytes_max: Option<toml::Spanned<u64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetworkFile {
    ca_file: Option<String>,
    private_hosts: Vec<toml::Spanned<String>>,
}

/// The baseline or a profile, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LayerFile {
    extends: Option<toml::Spanned<String>>,
    allow_classes: Option<BTreeSet<String>>,
    deny_classes: Option<BTreeSet<String>>,
    network: Option<toml::Spanned<String>>,
    hosts: Vec<toml::Spanned<String>>,
    file_read: Option<bool>,
    file_write: Option<bool>,
    fs_base_path: Option<String>,
    statements_max: Option<toml::Spanned<u64>>,
    timeout_ms: Option<toml::Spanned<u64>>,
}

impl ConfigFile {
    fn resolve(self, text: &str) -> Result<Config, Vec<ConfigFault>> {
        let mut faults = Faults {
            text,
            faults: Vec::new(),
        };
        let mut config = Config::closed();
        for (name, layer) in self.profiles {
            let profile = faults.profile(layer);
            config.profiles.insert(name, profile);
        }
        if let Some(extends) = &self.baseline.extends {
            faults.say(
                extends,
                "the baseline extends nothing".to_owned(),
                Some("remove the line".to_owned()),
            );
        }
        let layer = faults.profile(self.baseline);
        config.baseline = over_closed(layer);
        config.exposure = exposure(self.exposure);
        config.expected = faults.read_expected(&self.expected);
        let governance = govern::GovernFile {
            rules: self.rule,
            limits: self.limit,
            costs: self.costs,
            actions: self.actions,
            access: self.access,
            callers: self.callers,
            groups: self.groups,
            trust: self.trust,
        };
        let ask_from = self.approvals.ask_from.clone();
        config.approvals = faults.approvals(self.approvals);
        config.govern(governance, &mut faults);
        faults.set_word("ask_from", ask_from, &mut config.rules.ask_from);
        config.shadow = faults.shadow(self.rules);
        config.calls.concurrent = self.calls.concurrent.unwrap_or_default();
        config.serve = faults.serve(self.serve);
        config.oauth = self.oauth.map(|file| faults.oauth(file));
        let issuer = config.oauth.as_ref().map(|oauth| oauth.issuer.as_str());
        config.studio = faults.studio(self.studio, issuer);
        config.telemetry = faults.telemetry(self.telemetry);
        config.store = faults.store(self.store);
        config.audit = faults.audit(self.audit, &config.store);
        config.sandbox = faults.sandbox(self.sandbox);
        config.codecall = faults.codecall(self.codecall);
        config.progressive =
            faults.progressive(self.progressive, self.disclosure, &mut config.outdated);
        faults.files(self.files, &mut config.files);
        config.network.ca_file = self.network.ca_file;
        config.network.private_hosts = faults.private_hosts(&self.network.private_hosts);
        config.servers = faults.servers(self.server, &config.rules.actions);
        let groups: Vec<_> = config.access.groups.keys().map(String::as_str).collect();
        config.connections = faults.connections(self.connections, &groups);
        config.toolbox = faults.toolbox(self.toolbox);
        config.toolbox.jail = config.sandbox.jail;
        let connected = config.connections.iter();
        let connected = connected.filter_map(|known| Some((known.kind, known.pattern()?)));
        config.toolbox.connected = connected.collect();
        let spanned = self.profile;
        config.profile = spanned.as_ref().map(|name| name.get_ref().clone());
        faults.profiles(&config, spanned.as_ref());
        if faults.faults.is_empty() {
            Ok(config)
        } else {
            Err(faults.faults)
        }
    }
}

/// Lists in the baseline replace the defaults; they do not add to them.
fn over_closed(layer: Profile) -> Baseline {
    let closed = Baseline::closed();
    // An empty list counts as not given.
    let or = |given: BTreeSet<String>, default| match given.is_empty() {
        true => default,
        false => Classes::new(given),
    };
    Baseline {
        allow_classes: or(layer.allow_classes, closed.allow_classes),
        deny_classes: or(layer.deny_classes, closed.deny_classes),
        network: layer.network.unwrap_or(closed.network),
        hosts: layer.hosts,
        file_read: layer.file_read.unwrap_or(closed.file_read),
        file_write: layer.file_write.unwrap_or(closed.file_write),
        fs_base_path: layer.fs_base_path,
        statements_max: layer.statements_max.unwrap_or(closed.statements_max),
        timeout_ms: layer.timeout_ms.unwrap_or(closed.timeout_ms),
    }
}

/// What the operator says about exposure, over the standard.
fn exposure(file: ExposureFile) -> Exposure {
    let standard = Exposure::standard();
    let selection = |file: SelectionFile| Selection {
        names: file.names,
        tags: file.tags,
        categories: file.categories,
    };
    let preset = match file.preset {
        None => standard.preset,
        Some(none) if none == "none" => None,
        Some(preset) => Some(preset),
    };
    Exposure {
        preset,
        auto: file.auto.unwrap_or(standard.auto),
        include: selection(file.include),
        exclude: selection(file.exclude),
    }
}

struct Faults<'a> {
    text: &'a str,
    faults: Vec<ConfigFault>,
}

impl Faults<'_> {
    /// An address of HTTP without a path to end with.
    fn web_address(&mut self, text: &toml::Spanned<String>) -> Option<String> {
        let address = text.get_ref().trim_end_matches('/');
        let is_web = url::Url::parse(address)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        if !is_web {
            let message = "an address begins with `https://` or `http://` and names a host";
            self.say(text, message.to_owned(), None);
        }
        is_web.then(|| address.to_owned())
    }

    fn files(&mut self, file: FilesFile, files: &mut FilesConfig) {
        if let Some(workspace) = file.workspace {
            files.workspace = workspace;
        }
        files.per_caller = file.per_caller.unwrap_or(files.per_caller);
        let bytes = limits::WORKSPACE_BYTES_MIN..=limits::WORKSPACE_BYTES_MAX;
        let bytes_max = self.read_number("bytes_max", file.bytes_max, bytes);
        files.bytes_max = bytes_max.unwrap_or(files.bytes_max);
    }

    fn say<T>(&mut self, place: &toml::Spanned<T>, message: String, fix: Option<String>) {
        self.say_at(place.span().start, message, fix);
    }

    fn say_at(&mut self, place: usize, message: String, fix: Option<String>) {
        let (line, column) = position(self.text, place);
        self.faults.push(ConfigFault {
            line,
            column,
            message,
            fix,
        });
    }

    /// Every profile must resolve, used or not: a broken one is found when the
    /// file is loaded, not when it is first needed.
    fn profiles(&mut self, config: &Config, named: Option<&toml::Spanned<String>>) {
        for name in config.profiles.keys() {
            if let Err(conflict) =
                policy::effective_baseline(&config.baseline, &config.profiles, Some(name))
            {
                self.conflict(&conflict);
            }
        }
        if let (Some(named), Err(conflict)) = (named, config.effective_baseline())
            && self
                .faults
                .iter()
                .all(|fault| fault.message != conflict.to_string())
        {
            self.say(named, conflict.to_string(), conflict.to_finding().fix);
        }
    }

    fn conflict(&mut self, conflict: &PolicyConflict) {
        let fault = ConfigFault {
            line: 0,
            column: 0,
            message: conflict.to_string(),
            fix: conflict.to_finding().fix,
        };
        // Several profiles may extend the same broken one.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn profile(&mut self, layer: LayerFile) -> Profile {
        let network = self.read_word("network", layer.network.as_ref());
        let hosts = self.hosts(&layer.hosts);
        Profile {
            extends: layer.extends.map(toml::Spanned::into_inner),
            allow_classes: layer.allow_classes.unwrap_or_default(),
            deny_classes: layer.deny_classes.unwrap_or_default(),
            network,
            hosts,
            file_read: layer.file_read,
            file_write: layer.file_write,
            fs_base_path: layer.fs_base_path,
            statements_max: self.read_number(
                "statements_max",
                layer.statements_max,
                1..=limits::STATEMENTS_MAX,
            ),
            timeout_ms: self.read_number(
                "timeout_ms",
                layer.timeout_ms,
                1..=limits::TIMEOUT_MS_MAX,
            ),
        }
    }

    fn hosts(&mut self, raw_hosts: &[toml::Spanned<String>]) -> Vec<HostPattern> {
        let mut hosts = Vec::new();
        if let Some(over) = raw_hosts.get(limits::RULE_LIST_MAX) {
            let most = limits::RULE_LIST_MAX;
            self.say(over, format!("`hosts` has more than {most} names"), None);
        }
        for raw_host in raw_hosts {
            match HostPattern::parse(raw_host.get_ref()) {
                Ok(host) => hosts.push(host),
                Err(fault) => {
                    let fix = fault.suggestion.as_ref();
                    let fix = fix.map(|host| format!("write `{host}`"));
                    self.say(raw_host, fault.to_string(), fix);
                }
            }
        }
        hosts
    }

    /// Names only. An address needs no exception, and a `*` would cover names that
    /// others control.
    fn private_hosts(&mut self, raw_hosts: &[toml::Spanned<String>]) -> Vec<HostPattern> {
        let mut hosts = Vec::new();
        for raw_host in raw_hosts {
            // One by one: a host that does not parse leaves no gap to count by.
            let Some(host) = self.hosts(std::slice::from_ref(raw_host)).pop() else {
                continue;
            };
            hosts.push(host.clone());
            let why = match host.shape() {
                Shape::Any => "every name",
                Shape::Exact(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => "an address",
                Shape::Below(_) | Shape::Exact(url::Host::Domain(_)) => continue,
            };
            let message = format!("`private_hosts` lists `{host}`, which is {why}, not a name");
            let fix = "list the names that may lead to private addresses".to_owned();
            self.say(raw_host, message, Some(fix));
        }
        hosts
    }

    /// A word of a closed set.
    fn read_word<T: Word>(
        &mut self,
        name: &str,
        word: Option<&toml::Spanned<String>>,
    ) -> Option<T> {
        let word = word?;
        let mut all = T::ALL.iter().copied();
        let found = all.find(|known| known.word() == word.get_ref());
        if found.is_none() {
            let known = T::ALL.iter().map(|known| known.word());
            let fix = nearest(word.get_ref(), known).map(|word| format!("write `{word}`"));
            let shown = elided(word.get_ref(), 40);
            let message = format!("`{name}` is `{shown}`; it must be {}", words::<T>());
            self.say(word, message, fix);
        }
        found
    }

    /// Sets a word if the file has it.
    fn set_word<T: Word>(&mut self, name: &str, word: Option<toml::Spanned<String>>, into: &mut T) {
        if let Some(known) = self.read_word(name, word.as_ref()) {
            *into = known;
        }
    }

    fn patterns(&mut self, words: &[toml::Spanned<String>]) -> Vec<NamePattern> {
        let mut patterns = Vec::new();
        for word in words {
            match NamePattern::parse(word.get_ref()) {
                Ok(pattern) => patterns.push(pattern),
                Err(fault) => self.say(word, fault.to_string(), None),
            }
        }
        patterns
    }

    fn read_number(
        &mut self,
        name: &str,
        value: Option<toml::Spanned<u64>>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = value?;
        let number = *value.get_ref();
        if !range.contains(&number) {
            let (min, max) = range.into_inner();
            let message = format!("`{name}` is {number}; it must be between {min} and {max}");
            self.say(&value, message, None);
        }
        // Returned all the same: the fault keeps the file from loading.
        Some(number)
    }
}

fn too_long() -> ConfigFault {
    ConfigFault {
        line: 0,
        column: 0,
        message: format!(
            "the file is longer than {} KiB",
            limits::CONFIG_BYTES_MAX >> 10
        ),
        fix: None,
    }
}

/// The settings listed when an unknown one has no close match.
const NAMED_MAX: usize = 12;

fn from_toml(text: &str, error: &toml::de::Error) -> ConfigFault {
    let start = error.span().map_or(0, |span| span.start);
    let (line, column) = position(text, start);
    let message = error.message().lines().next().unwrap_or("not TOML");
    // The names of Rust's types mean nothing to an operator.
    let message = ["u64", "i64"]
        .iter()
        .fold(message.to_owned(), |message, word| {
            message.replace(&format!("expected {word}"), "expected a whole number")
        });
    let message = message.as_str();
    // serde says: unknown field `x`, expected one of `a`, `b`
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message
        .starts_with("unknown field")
        .then(|| quoted.next())
        .flatten();
    match unknown {
        Some(unknown) => {
            let known: Vec<_> = quoted.collect();
            let near = nearest(unknown, known.iter().copied());
            let near = near.map(|name| format!("did you mean `{name}`?"));
            // More would not be read.
            let is_short = (1..=NAMED_MAX).contains(&known.len());
            let all = || format!("known here: {}", known.join(", "));
            ConfigFault {
                line,
                column,
                message: format!("there is no setting `{}` here", elided(unknown, 60)),
                fix: near.or_else(|| is_short.then(all)),
            }
        }
        None => ConfigFault {
            line,
            column,
            message: elided(message, 200),
            fix: None,
        },
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let position = crate::document::json::Lines::new(text).position(offset);
    (position.line, position.column)
}

#[cfg(test)]
mod every;
#[cfg(test)]
mod tests;
