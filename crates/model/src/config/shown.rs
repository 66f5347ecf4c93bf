//! Every setting with its value and where it comes from, for people.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::{
    Config, ConnectionConfig, NameKind, ServerConfig, ServerNetwork, ServerOAuth, ServerTransport,
    ServerUrl, position,
};
use crate::caller::folded;
use crate::govern::access::{Lists, Terms};
use crate::govern::action::Action;
use crate::govern::exposure::Selection;
use crate::govern::pattern::NamePattern;
use crate::govern::rules::Rule;
use crate::govern::trust::{Criteria, Step};
use crate::network::host_pattern::HostPattern;
use crate::policy::risk::Level;
use crate::word::Word as _;

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, such as `audit.durability`.
    pub key: String,
    /// Its value, as the file would say it; empty when nothing is set.
    pub value: String,
    /// Where it comes from.
    pub source: SettingSource,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// Not set: the default applies.
    Default,
    /// A line of the operator's file.
    Line(usize),
    /// A line of a file of rules.
    File(String, usize),
}

impl Config {
    /// Every setting. `text` is the operator's file that was read, if there is one;
    /// `files` are the files of rules with their texts.
    #[must_use]
    pub fn settings(&self, text: &str, files: &[(&str, &str)]) -> Vec<Setting> {
        let lines = lines_of(text);
        let mut elsewhere = BTreeMap::new();
        for (file, text) in files {
            let found = lines_of(text).into_iter();
            let rules = found.filter(|(key, _)| key.starts_with("rule."));
            elsewhere.extend(rules.map(|(key, line)| (key, ((*file).to_owned(), line))));
        }
        let mut rows = self.rows();
        rows.sort();
        let setting = |(key, value): (String, String)| {
            let source = match (lines.get(&key), elsewhere.get(&key)) {
                (Some(line), _) => SettingSource::Line(*line),
                (None, Some((file, line))) => SettingSource::File(file.clone(), *line),
                (None, None) => SettingSource::Default,
            };
            Setting { key, value, source }
        };
        rows.into_iter().map(setting).collect()
    }

    fn rows(&self) -> Vec<(String, String)> {
        let quoted = |text: &str| toml_text(text);
        let or_nothing = |text: Option<&str>| text.map(quoted).unwrap_or_default();
        let mut rows = vec![
            ("profile", or_nothing(self.profile.as_deref())),
            ("approvals.ask_from", quoted(self.rules.ask_from.badge())),
            ("rules.shadow", or_nothing(self.shadow.as_deref())),
            ("store.url", or_nothing(self.store.url.as_deref())),
            ("store.password", quoted(&self.store.password)),
            ("store.ca_file", or_nothing(self.store.ca_file.as_deref())),
            ("store.connections", self.store.connections.to_string()),
            ("store.strict", self.store.strict.to_string()),
            ("codecall.mode", quoted(self.codecall.mode.word())),
            ("codecall.preset", quoted(self.codecall.preset.word())),
            ("codecall.top_k", self.codecall.top_k.to_string()),
            ("codecall.invoke", patterns(&self.codecall.invoke)),
            ("codecall.blocked", patterns(&self.codecall.blocked)),
            ("progressive.enabled", self.progressive.enabled.to_string()),
            ("files.workspace", quoted(&self.files.workspace)),
            ("files.per_caller", self.files.per_caller.to_string()),
            ("files.bytes_max", self.files.bytes_max.to_string()),
            (
                "network.ca_file",
                or_nothing(self.network.ca_file.as_deref()),
            ),
            ("network.private_hosts", hosts(&self.network.private_hosts)),
        ];
        rows.extend(self.sandbox.rows());
        let exposure = &self.exposure;
        let preset = exposure.preset.as_deref().unwrap_or("none");
        rows.push(("exposure.preset", quoted(preset)));
        rows.push(("exposure.auto", exposure.auto.to_string()));
        let mut rows: Vec<(String, String)> = rows
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        rows.extend(selection("exposure.include", &exposure.include));
        rows.extend(selection("exposure.exclude", &exposure.exclude));
        rows.extend(self.audit.rows());
        rows.extend(self.door_rows());
        rows.extend(self.baseline_rows());
        rows.extend(self.governance_rows());
        rows.extend(self.profile_rows());
        rows.extend(self.trust_rows());
        rows.extend(self.expected_rows());
        rows.extend(self.servers.iter().flat_map(server_rows));
        rows.extend(self.connections.iter().flat_map(connection_rows));
        rows.extend(self.toolbox.rows());
        rows
    }

    /// The settings of each profile, without inherited ones.
    fn profile_rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for (name, profile) in &self.profiles {
            let hosts: Vec<_> = profile.hosts.iter().map(ToString::to_string).collect();
            let words = |set: &std::collections::BTreeSet<String>| {
                (!set.is_empty()).then(|| toml_list(set.iter().map(String::as_str)))
            };
            let set = [
                ("extends", profile.extends.as_deref().map(toml_text)),
                ("allow_classes", words(&profile.allow_classes)),
                ("deny_classes", words(&profile.deny_classes)),
                (
                    "network",
                    profile.network.map(|mode| toml_text(mode.word())),
                ),
                (
                    "hosts",
                    (!hosts.is_empty()).then(|| toml_list(hosts.iter().map(String::as_str))),
                ),
                ("file_read", profile.file_read.map(|it| it.to_string())),
                ("file_write", profile.file_write.map(|it| it.to_string())),
                (
                    "fs_base_path",
                    profile.fs_base_path.as_deref().map(toml_text),
                ),
                (
                    "statements_max",
                    profile.statements_max.map(|it| it.to_string()),
                ),
                ("timeout_ms", profile.timeout_ms.map(|it| it.to_string())),
            ];
            let own = |(key, value): (&str, Option<String>)| {
                Some((format!("profiles.{name}.{key}"), value?))
            };
            rows.extend(set.into_iter().filter_map(own));
        }
        rows
    }

    fn trust_rows(&self) -> Vec<(String, String)> {
        let trust = &self.trust;
        let weights = trust.weights;
        let decay = &trust.decay;
        let mut rows = vec![
            ("strategy", toml_text(trust.strategy.word())),
            ("callers", whom(&trust.callers, &trust.groups)),
            ("initial_level", toml_text(trust.initial_level.word())),
            ("weights.task_difficulty", share(weights.difficulty, 10_000)),
            ("weights.completion_rate", share(weights.completion, 10_000)),
            ("weights.error_rate", share(weights.errors, 10_000)),
            ("weights.human_feedback", share(weights.feedback, 10_000)),
            ("re_verification.enabled", decay.enabled.to_string()),
            (
                "re_verification.interval_days",
                decay.verify_days.to_string(),
            ),
            (
                "re_verification.decay_on_idle_days",
                decay.idle_days.to_string(),
            ),
            (
                "re_verification.decay_on_error_rate",
                share(decay.error_rate_max, 10_000),
            ),
            (
                "re_verification.quality_score_min",
                share(decay.verify_quality_min, 100),
            ),
        ]
        .into_iter()
        .map(|(key, value)| (format!("trust.{key}"), value))
        .collect::<Vec<_>>();
        for (category, level) in &trust.initial_levels {
            let key = format!("trust.initial_levels.{category}");
            rows.push((key, toml_text(level.word())));
        }
        for (step, score) in &trust.thresholds {
            let key = format!("trust.thresholds.{}", step.word());
            rows.push((key, share(*score, 10_000)));
        }
        rows.extend(milestones("trust.milestones", &trust.milestones));
        for (category, steps) in &trust.category_milestones {
            rows.extend(milestones(&format!("trust.categories.{category}"), steps));
        }
        rows
    }

    fn expected_rows(&self) -> Vec<(String, String)> {
        let kinds = NameKind::ALL.into_iter();
        kinds
            .filter_map(|kind| {
                let names = self
                    .expected
                    .names
                    .get(&kind)
                    .map_or(&[][..], Vec::as_slice);
                Some((kind.expected()?.to_owned(), patterns(names)))
            })
            .collect()
    }

    fn governance_rows(&self) -> Vec<(String, String)> {
        let access = &self.access;
        let mut rows = lists("access", &access.everyone);
        rows.extend(terms("access", &access.everyone_terms));
        for (name, own) in &access.callers {
            let key = format!("callers.{name}");
            rows.extend(lists(&key, own));
            if let Some(level) = self.approvals.answers.get(name) {
                rows.push((format!("{key}.answers"), toml_text(level.badge())));
            }
            rows.extend(
                access
                    .terms
                    .get(name)
                    .iter()
                    .flat_map(|own| terms(&key, own)),
            );
        }
        for (name, group) in &access.groups {
            let key = format!("groups.{name}");
            rows.push((format!("{key}.members"), patterns(&group.members)));
            rows.extend(lists(&key, &group.lists));
            rows.extend(terms(&key, &group.terms));
        }
        for (action, risk) in self.rules.actions.custom() {
            rows.push((format!("actions.{}", action.word()), toml_text(risk.word())));
        }
        for rule in &self.rules.list {
            rows.extend(rule_rows(rule));
        }
        for limit in &self.limits {
            let key = |name: &str| format!("limit.{}.{name}", limit.id);
            let kinds = [
                ("calls_per_minute", limit.calls_per_minute),
                ("concurrent", limit.concurrent),
                ("units_per_day", limit.units_per_day),
            ];
            let set = kinds
                .into_iter()
                .filter_map(|(name, most)| Some((name, most?)));
            rows.extend(set.map(|(name, most)| (key(name), most.to_string())));
            if !limit.callers.is_empty() || !limit.groups.is_empty() {
                rows.push((key("callers"), whom(&limit.callers, &limit.groups)));
            }
            if !limit.tools.is_empty() {
                rows.push((key("tools"), patterns(&limit.tools)));
            }
        }
        let costs = self.costs.list.iter();
        rows.extend(costs.map(|(tools, units)| (format!("costs.{tools}"), units.to_string())));
        let concurrent = self.calls.concurrent.to_string();
        rows.push(("calls.concurrent".to_owned(), concurrent));
        rows
    }

    fn door_rows(&self) -> Vec<(String, String)> {
        let serve = &self.serve;
        let approvals = &self.approvals;
        let list = |words: &[String]| toml_list(words.iter().map(String::as_str));
        let or_nothing = |text: Option<&str>| text.map(toml_text).unwrap_or_default();
        let count = |number: u64| number.to_string();
        let mut rows = vec![
            ("serve.listen", toml_text(&serve.listen)),
            ("serve.public_url", or_nothing(serve.public_url.as_deref())),
            ("serve.hosts", list(&serve.hosts)),
            ("serve.origins", list(&serve.origins)),
            ("serve.connections_max", count(serve.connections_max)),
            ("serve.sessions_max", count(serve.sessions_max)),
            (
                "serve.sessions_per_caller_max",
                count(serve.sessions_per_caller_max),
            ),
            ("serve.listeners_max", count(serve.listeners_max)),
            (
                "serve.calls_per_caller_max",
                count(serve.calls_per_caller_max),
            ),
            ("serve.calls_per_minute", count(serve.calls_per_minute)),
            ("serve.body_bytes_max", count(serve.body_bytes_max)),
            ("serve.call_seconds_max", count(serve.call_seconds_max)),
            ("approvals.wait_seconds", count(approvals.wait_seconds)),
            ("approvals.expire_seconds", count(approvals.expire_seconds)),
            ("approvals.separate", approvals.separate.to_string()),
            (
                "approvals.automation",
                or_nothing(approvals.automation.map(Level::badge)),
            ),
            (
                "telemetry.otlp_endpoint",
                or_nothing(self.telemetry.otlp_endpoint.as_deref()),
            ),
            ("telemetry.logs", toml_text(self.telemetry.logs.word())),
        ];
        if let Some(oauth) = &self.oauth {
            rows.extend([
                ("oauth.issuer", toml_text(&oauth.issuer)),
                ("oauth.jwks_url", or_nothing(oauth.jwks_url.as_deref())),
                ("oauth.audience", or_nothing(oauth.audience.as_deref())),
                ("oauth.algorithms", list(&oauth.algorithms)),
                ("oauth.caller_claim", toml_text(&oauth.caller_claim)),
                ("oauth.scopes", list(&oauth.scopes)),
            ]);
        }
        rows.extend(self.studio_rows());
        let owned = |(key, value): (&str, String)| (key.to_owned(), value);
        rows.into_iter().map(owned).collect()
    }

    fn studio_rows(&self) -> Vec<(&'static str, String)> {
        let studio = &self.studio;
        let list = |words: &[String]| toml_list(words.iter().map(String::as_str));
        let mut rows = vec![
            ("studio.idle_minutes", studio.idle_minutes.to_string()),
            ("studio.session_hours", studio.session_hours.to_string()),
            ("studio.print_code", toml_text(studio.print_code.word())),
        ];
        if let Some(oauth) = &studio.oauth {
            let secret = oauth.client_secret.as_deref();
            rows.extend([
                ("studio.oauth.issuer", toml_text(&oauth.issuer)),
                ("studio.oauth.client_id", toml_text(&oauth.client_id)),
                (
                    "studio.oauth.client_secret",
                    secret.map(toml_text).unwrap_or_default(),
                ),
                ("studio.oauth.scopes", list(&oauth.scopes)),
                ("studio.oauth.name_claim", toml_text(&oauth.name_claim)),
                ("studio.oauth.role_claim", toml_text(&oauth.role_claim)),
                ("studio.oauth.viewer", list(&oauth.viewer)),
                ("studio.oauth.approver", list(&oauth.approver)),
                ("studio.oauth.owner", list(&oauth.owner)),
            ]);
        }
        rows
    }

    fn baseline_rows(&self) -> Vec<(String, String)> {
        let baseline = &self.baseline;
        let path = baseline.fs_base_path.as_deref();
        let rows = [
            ("network", toml_text(baseline.network.word())),
            ("hosts", hosts(&baseline.hosts)),
            ("file_read", baseline.file_read.to_string()),
            ("file_write", baseline.file_write.to_string()),
            ("fs_base_path", path.map(toml_text).unwrap_or_default()),
            ("statements_max", baseline.statements_max.to_string()),
            ("timeout_ms", baseline.timeout_ms.to_string()),
            (
                "allow_classes",
                toml_list(baseline.allow_classes.iter().map(String::as_str)),
            ),
            (
                "deny_classes",
                toml_list(baseline.deny_classes.iter().map(String::as_str)),
            ),
        ];
        let named = |(key, value): (&str, String)| (format!("baseline.{key}"), value);
        rows.into_iter().map(named).collect()
    }
}

/// A rule's effect and fields.
fn rule_rows(rule: &Rule) -> Vec<(String, String)> {
    let words = |words: Vec<&str>| toml_list(words.into_iter());
    let actions = rule.actions.as_ref();
    let actions = actions.map(|all| words(all.iter().map(|action| action.word()).collect()));
    let is_named = |is_empty: bool, shown: String| (!is_empty).then_some(shown);
    let is_for_all = rule.callers.is_empty() && rule.groups.is_empty();
    let categories = rule.categories.iter().map(String::as_str).collect();
    let set = [
        (
            "tools",
            is_named(rule.tools.is_empty(), patterns(&rule.tools)),
        ),
        ("actions", actions),
        (
            "categories",
            is_named(rule.categories.is_empty(), words(categories)),
        ),
        (
            "callers",
            is_named(is_for_all, whom(&rule.callers, &rule.groups)),
        ),
        ("hosts", is_named(rule.hosts.is_empty(), hosts(&rule.hosts))),
        ("risk", rule.risk.map(|range| toml_text(&range.to_string()))),
        ("hosts", is_named(rule.hosts.is_empty(), hosts(&rule.hosts))),
        (
            "when",
            rule.when.as_ref().map(|when| toml_text(when.text())),
        ),
        ("effect", Some(toml_text(rule.effect.word()))),
        ("reason", rule.reason.as_deref().map(toml_text)),
    ];
    let id = &rule.id;
    let row = |(name, value): (&str, Option<String>)| Some((format!("rule.{id}.{name}"), value?));
    let rows = set.into_iter().filter_map(row);
    std::iter::once((format!("rule.{id}"), toml_text(rule.effect.word())))
        .chain(rows)
        .collect()
}

/// Callers by name and, with an `@`, by group.
fn whom(callers: &[NamePattern], groups: &[String]) -> String {
    let names = callers.iter().map(ToString::to_string);
    let groups = groups.iter().map(|group| format!("@{group}"));
    let all: Vec<_> = names.chain(groups).collect();
    toml_list(all.iter().map(String::as_str))
}

/// A fraction that is stored as an integer.
fn share(parts: u32, of: u32) -> String {
    let number = f64::from(parts) / f64::from(of);
    number.to_string()
}

fn milestones(key: &str, steps: &BTreeMap<Step, Criteria>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (step, criteria) in steps {
        let step = step.word();
        let set = [
            ("tasks_completed", criteria.tasks.to_string()),
            ("quality_score_min", share(criteria.quality_min, 100)),
            ("time_active_days", criteria.active_days.to_string()),
            ("clean_history_days", criteria.clean_days.to_string()),
            ("requires_human_approval", criteria.person.to_string()),
        ];
        rows.extend(set.map(|(name, value)| (format!("{key}.{step}.{name}"), value)));
    }
    rows
}

fn selection(key: &str, selection: &Selection) -> Vec<(String, String)> {
    let row = |name: &str, set: &std::collections::BTreeSet<String>| {
        (
            format!("{key}.{name}"),
            toml_list(set.iter().map(String::as_str)),
        )
    };
    vec![
        row("names", &selection.names),
        row("tags", &selection.tags),
        row("categories", &selection.categories),
    ]
}

fn lists(key: &str, lists: &Lists) -> Vec<(String, String)> {
    let allow = lists.allow.as_deref().map(patterns).unwrap_or_default();
    let held = lists.hosts.as_deref().map(hosts).unwrap_or_default();
    vec![
        (format!("{key}.allow"), allow),
        (format!("{key}.deny"), patterns(&lists.deny)),
        (format!("{key}.hosts"), held),
    ]
}

fn hosts(hosts: &[HostPattern]) -> String {
    let words: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    toml_list(words.iter().map(String::as_str))
}

fn patterns(patterns: &[NamePattern]) -> String {
    let words: Vec<_> = patterns.iter().map(ToString::to_string).collect();
    toml_list(words.iter().map(String::as_str))
}

/// The terms that were set; there are many, and most callers have none.
fn terms(key: &str, terms: &Terms) -> Vec<(String, String)> {
    let changes = &terms.constraints;
    let list = |words: Vec<&str>| toml_list(words.into_iter());
    let asked = changes.requires_approval.as_ref();
    let rows = [
        ("level", terms.level.map(|level| toml_text(level.word()))),
        (
            "autonomy",
            terms.autonomy.map(|preset| toml_text(preset.word())),
        ),
        (
            "categories",
            terms
                .categories
                .as_ref()
                .map(|all| list(all.iter().map(String::as_str).collect())),
        ),
        (
            "constraints.files",
            changes.files.map(|scope| toml_text(scope.word())),
        ),
        (
            "constraints.code",
            changes.code.map(|scope| toml_text(scope.word())),
        ),
        (
            "constraints.network",
            changes.network.map(|scope| toml_text(scope.word())),
        ),
        (
            "constraints.git",
            changes.git.map(|scope| toml_text(scope.word())),
        ),
        (
            "constraints.terminal",
            changes.terminal.map(|scope| toml_text(scope.word())),
        ),
        (
            "constraints.commands",
            changes
                .commands
                .as_ref()
                .map(|all| list(all.iter().map(String::as_str).collect())),
        ),
        (
            "constraints.requires_approval",
            asked.map(|all| list(all.iter().map(|action| action.word()).collect())),
        ),
    ];
    let set = |(name, value): (&str, Option<String>)| Some((format!("{key}.{name}"), value?));
    rows.into_iter().filter_map(set).collect()
}

/// The settings of one server; those of the other transport are left out.
fn server_rows(server: &ServerConfig) -> Vec<(String, String)> {
    let list = |words: &[String]| toml_list(words.iter().map(String::as_str));
    let map = |texts: &BTreeMap<String, String>| {
        let pairs = texts.iter();
        let pairs = pairs.map(|(name, text)| format!("{name} = {}", toml_text(text)));
        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
    };
    let actions = server.actions.iter().map(|(tool, actions)| {
        let words = actions.iter().map(Action::word);
        (format!("actions.{tool}"), toml_list(words))
    });
    let texts = server.descriptions.iter();
    let texts = texts.map(|(tool, text)| (format!("descriptions.{tool}"), toml_text(text)));
    let mut rows: Vec<(String, String)> = match &server.transport {
        ServerTransport::Command(command) => vec![
            ("command".to_owned(), list(&command.command)),
            ("env".to_owned(), map(&command.environment)),
            ("read".to_owned(), list(&command.read)),
            ("write".to_owned(), list(&command.write)),
            match &command.network {
                ServerNetwork::None | ServerNetwork::Open => {
                    ("network".to_owned(), toml_text(command.network.word()))
                }
                ServerNetwork::Hosts(named) => {
                    let named: Vec<_> = named.iter().map(ToString::to_string).collect();
                    ("hosts".to_owned(), list(&named))
                }
            },
            ("sandbox".to_owned(), toml_text(command.sandbox.word())),
        ],
        ServerTransport::Url(url) => vec![
            ("url".to_owned(), toml_text(&url.url)),
            ("headers".to_owned(), map(&url.headers)),
            ("private".to_owned(), url.private.to_string()),
        ],
    };
    if let ServerTransport::Url(ServerUrl {
        oauth: Some(oauth), ..
    }) = &server.transport
    {
        rows.extend(oauth_rows(oauth));
    }
    let allow = server.allow.as_deref().map(patterns).unwrap_or_default();
    rows.extend([
        ("era".to_owned(), toml_text(server.era.word())),
        ("allow".to_owned(), allow),
        ("deny".to_owned(), patterns(&server.deny)),
        (
            "start_timeout_ms".to_owned(),
            server.start_timeout_ms.to_string(),
        ),
        (
            "call_timeout_ms".to_owned(),
            server.call_timeout_ms.to_string(),
        ),
        ("idle_seconds".to_owned(), server.idle_seconds.to_string()),
        ("sharing".to_owned(), toml_text(server.sharing.word())),
        ("elicitation".to_owned(), server.elicitation.to_string()),
        ("prompts".to_owned(), server.prompts.to_string()),
        ("resources".to_owned(), server.resources.to_string()),
    ]);
    rows.extend(actions);
    rows.extend(texts);
    let key = |(name, value): (String, String)| (format!("server.{}.{name}", server.name), value);
    rows.into_iter().map(key).collect()
}

/// How a token is obtained. The secret is the name of a variable, so it can be shown.
fn oauth_rows(oauth: &ServerOAuth) -> [(String, String); 5] {
    let or_nothing = |text: Option<&str>| text.map(toml_text).unwrap_or_default();
    [
        ("grant", toml_text(oauth.grant.word())),
        ("client_id", or_nothing(oauth.client_id.as_deref())),
        ("client_secret", or_nothing(oauth.client_secret.as_deref())),
        ("scopes", toml_list(oauth.scopes.iter().map(String::as_str))),
        ("redirect_port", oauth.redirect_port.to_string()),
    ]
    .map(|(name, value)| (format!("oauth.{name}"), value))
}

/// The settings of one connection. The credential is the name of a variable, so it can be
/// shown.
fn connection_rows(connection: &ConnectionConfig) -> Vec<(String, String)> {
    let or_nothing = |text: Option<&str>| text.map(toml_text).unwrap_or_default();
    let rows = [
        ("kind", toml_text(connection.kind.word())),
        ("host", toml_text(&connection.host.to_string())),
        ("port", connection.port.to_string()),
        ("database", toml_text(&connection.database)),
        ("user", or_nothing(connection.user.as_deref())),
        ("credential", or_nothing(connection.credential.as_deref())),
        ("callers", whom(&connection.callers, &connection.groups)),
        ("private", connection.private.to_string()),
        ("tls", toml_text(connection.tls.word())),
        ("write", connection.write.to_string()),
        ("trusted", connection.trusted.to_string()),
        ("schema", toml_text(&connection.schema)),
    ];
    let name = &connection.name;
    rows.into_iter()
        .map(|(key, value)| (format!("connections.{name}.{key}"), value))
        .collect()
}

/// A string as TOML writes it. JSON's escapes are also TOML's.
pub(super) fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn toml_list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", words.map(toml_text).collect::<Vec<_>>().join(", "))
}

fn lines_of(text: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    if let Ok(table) = DeTable::parse(text) {
        collect(text, "", table.get_ref(), &mut lines);
    }
    lines
}

/// The line of every key of a file. A caller's name is known in lower case, a
/// category of trust in capitals.
fn collect(text: &str, prefix: &str, table: &DeTable<'_>, lines: &mut BTreeMap<String, usize>) {
    for (name, value) in table {
        let name = match prefix {
            "callers." => folded(name.get_ref()),
            "groups." => name.get_ref().to_lowercase(),
            "trust.categories." | "trust.initial_levels." => name.get_ref().to_uppercase(),
            _ => name.get_ref().to_string(),
        };
        let key = format!("{prefix}{name}");
        lines.insert(key.clone(), position(text, value.span().start).0);
        match value.get_ref() {
            DeValue::Table(inner) => collect(text, &format!("{key}."), inner, lines),
            DeValue::Array(items) => collect_ids(text, &key, items, lines),
            _ => {}
        }
    }
}

/// The line of each table of a list such as `[[rule]]`, by its id or name.
fn collect_ids(
    text: &str,
    key: &str,
    items: &[toml::Spanned<DeValue<'_>>],
    lines: &mut BTreeMap<String, usize>,
) {
    for item in items {
        if let DeValue::Table(table) = item.get_ref()
            && let Some(id) = table.get("id").or_else(|| table.get("name"))
            && let DeValue::String(id) = id.get_ref()
        {
            let key = format!("{key}.{id}");
            lines.insert(key.clone(), position(text, item.span().start).0);
            collect(text, &format!("{key}."), table, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_says_where_it_comes_from() {
        let text = "[audit]\ndurability = \"full\"\n\n[callers.Ann]\ndeny = [\"*\"]\nlevel = \"standard\"\n\n[[rule]]\nid = \"x\"\neffect = \"ask\"\n\n[[limit]]\nid = \"few\"\nunits_per_day = 5\n\n[costs]\n\"pay.*\" = 2\n";
        let more = "[[rule]]\nid = \"y\"\neffect = \"deny\"\n";
        let mut config = Config::parse(text).expect("a config");
        let rules = config.parse_rules(more).expect("rules");
        config.add_rules(rules).expect("another id");
        let settings = config.settings(text, &[("rules/a.toml", more)]);
        let find = |key: &str| {
            let found = settings.iter().find(|setting| setting.key == key);
            found
                .map(|setting| (setting.value.as_str(), setting.source.clone()))
                .expect("a setting")
        };
        assert_eq!(
            find("audit.durability"),
            ("\"full\"", SettingSource::Line(2))
        );
        assert_eq!(
            find("audit.arguments"),
            ("\"masked\"", SettingSource::Default)
        );
        assert_eq!(
            find("callers.ann.deny"),
            ("[\"*\"]", SettingSource::Line(5))
        );
        assert_eq!(
            find("callers.ann.level"),
            ("\"standard\"", SettingSource::Line(6))
        );
        assert_eq!(find("rule.x"), ("\"ask\"", SettingSource::Line(8)));
        let few = find("limit.few.units_per_day");
        assert_eq!(few, ("5", SettingSource::Line(14)));
        assert_eq!(find("costs.pay.*"), ("2", SettingSource::Line(17)));
        let place = SettingSource::File("rules/a.toml".to_owned(), 1);
        assert_eq!(find("rule.y"), ("\"deny\"", place));
        assert_eq!(
            find("exposure.preset"),
            ("\"starter\"", SettingSource::Default)
        );
        assert_eq!(
            find("baseline.file_read"),
            ("false", SettingSource::Default)
        );
    }
}
