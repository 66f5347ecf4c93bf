//! Tests over every setting, found by asking the reader itself: `ringfence config`
//! shows each, and lists of names are looked up.

use std::collections::BTreeSet;

use super::*;

/// A file that sets everything.
const EVERYTHING: &str = r#"
profile = "web"

[baseline]
network = "allowlist"
hosts = ["status.example.com"]
file_read = true
file_write = true
fs_base_path = "/srv/shared"
statements_max = 1000
timeout_ms = 1000
allow_classes = ["a.B"]
deny_classes = ["a.C"]

[profiles.web]
extends = "base"
network = "allowlist"
hosts = ["docs.example.com"]
file_read = true
file_write = true
fs_base_path = "/srv/shared"
statements_max = 1000
timeout_ms = 1000
allow_classes = ["a.B"]
deny_classes = ["a.C"]

[profiles.base]

[exposure]
preset = "starter"
auto = false
[exposure.include]
names = ["a"]
tags = ["b"]
categories = ["C"]
[exposure.exclude]
names = ["a"]
tags = ["b"]
categories = ["C"]

[expected]
tools = ["a"]
callers = ["b"]
categories = ["C"]
tags = ["d"]

[access]
hosts = ["*.example.com"]
allow = ["a"]
deny = ["b"]
level = "standard"
categories = ["FILE"]
autonomy = "semi"
[access.constraints]
files = "full"
code = "any"
network = "none"
git = "full"
terminal = "none"
commands = ["ls"]
requires_approval = ["deployment"]

[callers.ann]
answers = "L4"
hosts = ["a.example.com"]
allow = ["a"]
deny = ["b"]
level = "standard"
categories = ["FILE"]
autonomy = "semi"
[callers.ann.constraints]
files = "full"
code = "any"
network = "none"
git = "full"
terminal = "none"
commands = ["ls"]
requires_approval = ["deployment"]

[groups.devs]
hosts = ["b.example.com"]
members = ["ann"]
allow = ["a"]
deny = ["b"]
level = "standard"
categories = ["FILE"]
autonomy = "semi"
[groups.devs.constraints]
files = "full"
code = "any"
network = "none"
git = "full"
terminal = "none"
commands = ["ls"]
requires_approval = ["deployment"]

[[rule]]
id = "one"
tools = ["a"]
actions = ["code:read"]
categories = ["file"]
callers = ["ann", "@devs"]
risk = "L1-L3"
when = "args.n > 1"
hosts = ["example.com"]
effect = "allow"
reason = "no"

[rules]
shadow = "next.toml"

[[limit]]
id = "few"
callers = ["ann"]
tools = ["a"]
calls_per_minute = 1
concurrent = 1
units_per_day = 1

[costs]
"a" = 2

[actions]
"pay:refund" = "high"

[trust]
strategy = "milestone"
callers = ["ann", "@devs"]
initial_level = "restricted"
[trust.initial_levels]
WEB = "sandboxed"
[trust.weights]
task_difficulty = 0.25
completion_rate = 0.25
error_rate = 0.25
human_feedback = 0.25
[trust.thresholds]
sandboxed_to_restricted = 0.5
[trust.milestones.sandboxed_to_restricted]
tasks_completed = 5
quality_score_min = 7.5
time_active_days = 1
clean_history_days = 1
requires_human_approval = true
[trust.categories.WEB.sandboxed_to_restricted]
tasks_completed = 5
quality_score_min = 7.5
time_active_days = 1
clean_history_days = 1
requires_human_approval = true
[trust.re_verification]
enabled = true
interval_days = 9
decay_on_idle_days = 9
decay_on_error_rate = 0.5
quality_score_min = 5.5

[calls]
concurrent = true

[approvals]
ask_from = "L3"
wait_seconds = 9
expire_seconds = 9
separate = true
automation = "L1"

[audit]
durability = "full"
arguments = "digest"
keep_days = 9
bytes_max = 1048576
when_full = "refuse"
heads_file = "a"
witness = "https://a.example"
witness_key = "PeterNeumann+18b9780b+BBpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
witness_of = ["PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
peers_folder = "p"
anchor_seconds = 9
anchor_records = 9

[audit.peers.berlin]
key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
url = "https://b.example/witness"

[audit.ship]
url = "postgres://a@b.example/c"
password = "SHIP_PASSWORD"
ca_file = "c"
sync = true

[store]
url = "postgres://a@b.example/c"
password = "A"
ca_file = "a"
connections = 9
strict = true

[sandbox]
workers = 1
sharing = "per-call"
[sandbox.jail]
require = "namespaces"
accept = "namespaces"

[codecall]
mode = "off"
preset = "balanced"
top_k = 9
invoke = ["a"]
blocked = ["b"]

[progressive]
enabled = true

[files]
workspace = "w"
per_caller = true
bytes_max = 1048576

[network]
ca_file = "c.pem"
private_hosts = ["nas.example.com"]

[serve]
listen = "127.0.0.1:1"
public_url = "https://a.example.com"
hosts = ["a.example.com"]
origins = ["https://b.example.com"]
connections_max = 9
sessions_max = 9
sessions_per_caller_max = 9
listeners_max = 9
calls_per_caller_max = 9
calls_per_minute = 9
body_bytes_max = 1048576
call_seconds_max = 9

[oauth]
issuer = "https://login.example.com"
jwks_url = "https://login.example.com/keys"
audience = "me"
algorithms = ["RS256"]
caller_claim = "sub"
scopes = ["x"]

[studio]
idle_minutes = 30
session_hours = 8
print_code = "never"
[studio.oauth]
issuer = "https://login.example.com"
client_id = "studio"
client_secret = "${STUDIO_SECRET}"
scopes = ["openid"]
name_claim = "email"
role_claim = "groups"
viewer = ["staff"]
approver = ["leads"]
owner = ["admins"]

[telemetry]
otlp_endpoint = "http://127.0.0.1:1"
logs = "json"

[[server]]
name = "files"
command = ["/usr/bin/files", "--stdio"]
env = { TOKEN = "${TOKEN}" }
read = ["/srv/docs"]
write = ["/srv/out"]
network = "open"
sandbox = "none"
era = "legacy"
allow = ["read_*"]
deny = ["write_*"]
start_timeout_ms = 5000
call_timeout_ms = 5000
idle_seconds = 60
sharing = "per-caller"
elicitation = false
prompts = true
resources = true
descriptions = { read_file = "Reads a file." }
actions = { read_file = ["code:read"] }

[[server]]
name = "web"
url = "https://mcp.example.com/mcp"
headers = { Authorization = "Bearer ${WEB_TOKEN}" }
private = true
oauth = { grant = "client-credentials", client_id = "ours", client_secret = "${WEB_SECRET}", scopes = ["read"], redirect_port = 8123 }

[[server]]
name = "near"
command = ["/usr/bin/near"]
hosts = ["api.example.com", "*.example.org:8443"]

[connections.reports]
kind = "postgres"
host = "db.example.com"
port = 5433
database = "reports"
user = "reader"
credential = "REPORTS_PASSWORD"
callers = ["ann", "@devs"]
private = true
tls = "off"
write = true
trusted = true
schema = "sales"

[toolbox]
enabled = ["terminal", "git"]
folder = "/srv/project"
hosts = ["git.example.com"]
seconds_max = 60
memory_bytes_max = 1073741824
processes_max = 9
file_bytes_max = 1048576
output_bytes_max = 65536
network_bytes_max = 1048576
jobs_per_caller_max = 2
job_seconds_max = 60
"#;

/// Settings whose lists hold no names of tools, callers, categories or tags.
const NO_NAMES: &[&str] = &[
    "actions",
    "algorithms",
    "allow_classes",
    "approver",
    "command",
    "commands",
    "deny_classes",
    "enabled",
    "hosts",
    "origins",
    "owner",
    "private_hosts",
    "read",
    "requires_approval",
    "scopes",
    "viewer",
    "write",
    "witness_of",
];

/// The keys of every table of a text, as `table.key`.
fn keys(text: &str) -> BTreeSet<String> {
    fn walk(prefix: &str, value: &toml::Value, keys: &mut BTreeSet<String>) {
        match value {
            toml::Value::Table(table) => {
                for (name, inner) in table {
                    let key = format!("{prefix}{name}");
                    keys.insert(key.clone());
                    walk(&format!("{key}."), inner, keys);
                }
            }
            toml::Value::Array(items) => {
                for item in items.iter().filter_map(toml::Value::as_table) {
                    let id = item.get("id").or_else(|| item.get("name"));
                    let id = id.and_then(toml::Value::as_str);
                    let inner = toml::Value::Table(item.clone());
                    walk(&format!("{prefix}{}.", id.unwrap_or("")), &inner, keys);
                }
            }
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    let table: toml::Value = toml::from_str(text).expect("TOML");
    walk("", &table, &mut all);
    all
}

/// The headers of the tables of a text.
fn headers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with('['))
}

/// The settings of a table, from the reader's error about an unknown one. Maps accept
/// any name and report nothing.
fn taken(header: &str) -> Vec<String> {
    let text = format!("{header}\nnot_a_setting = 1\n");
    let error = match toml::from_str::<ConfigFile>(&text) {
        Ok(_) => return Vec::new(),
        Err(error) => error.message().to_owned(),
    };
    if !error.starts_with("unknown field") {
        return Vec::new();
    }
    let names = error.split('`').skip(3).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_complete_file_has_every_setting() {
    let present = keys(EVERYTHING);
    let mut seen = 0;
    for header in std::iter::once("").chain(headers(EVERYTHING)) {
        let table = header.trim_matches(['[', ']']);
        let prefix = match table {
            "" => String::new(),
            "rule" => "rule.one.".to_owned(),
            "limit" => "limit.few.".to_owned(),
            "server" => "server.files.".to_owned(),
            table => format!("{table}."),
        };
        for field in taken(header) {
            // One caller's client answers, never several callers'.
            if field == "answers" && !table.starts_with("callers.") {
                continue;
            }
            // The old name of `progressive`, which excludes the new one.
            if field == "disclosure" {
                continue;
            }
            // A server has `network` or `hosts`; the third one has hosts.
            if table == "server" && field == "hosts" {
                assert!(present.contains("server.near.hosts"), "{field}");
                continue;
            }
            // A server has a command or an address; the second one has an address.
            if table == "server" && ["url", "headers", "private", "oauth"].contains(&field.as_str())
            {
                let key = format!("server.web.{field}");
                assert!(
                    present.iter().any(|known| known.starts_with(&key)),
                    "{field}"
                );
                continue;
            }
            // Only groups have members.
            if field == "members" && !table.starts_with("groups.") {
                continue;
            }
            // Only a profile extends another; the empty one is an example for all.
            if (table == "baseline" && field == "extends") || table == "profiles.base" {
                continue;
            }
            let key = format!("{prefix}{field}");
            let is_there = present.contains(&key)
                || present
                    .iter()
                    .any(|known| known.starts_with(&format!("{key}.")));
            assert!(is_there, "`{key}` is not in the file with everything");
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn every_setting_is_shown_with_its_line() {
    let config = Config::parse(EVERYTHING).unwrap_or_else(|faults| panic!("{faults:?}"));
    let shown = config.settings(EVERYTHING, &[]);
    let lines: BTreeSet<_> = shown
        .iter()
        .filter(|setting| matches!(setting.source, SettingSource::Line(_)))
        .map(|setting| setting.key.clone())
        .collect();
    for key in keys(EVERYTHING) {
        // The name of a rule or limit is in the key; tables are shown by what they hold.
        let is_table = lines
            .iter()
            .any(|known| known.starts_with(&format!("{key}.")));
        let is_shown = lines.contains(&key)
            || is_table
            || key.ends_with(".id")
            || (key.starts_with("server.")
                && (key.ends_with(".name") || key.contains(".env.") || key.contains(".headers.")));
        assert!(is_shown || key == "profiles.base", "`{key}` is not shown");
    }
    for setting in &shown {
        assert!(!setting.value.contains('…'), "{setting:?}");
    }
    let value = |key: &str| {
        let found = shown.iter().find(|setting| setting.key == key);
        found.map(|setting| setting.value.as_str())
    };
    assert_eq!(value("profiles.web.extends"), Some("\"base\""));
    assert_eq!(value("trust.callers"), Some("[\"ann\", \"@devs\"]"));
    assert_eq!(value("trust.weights.error_rate"), Some("0.25"));
    assert_eq!(
        value("trust.re_verification.quality_score_min"),
        Some("5.5")
    );
    assert_eq!(value("rule.one.risk"), Some("\"L1-L3\""));
    assert_eq!(value("rule.one.callers"), Some("[\"ann\", \"@devs\"]"));
    assert_eq!(value("limit.few.tools"), Some("[\"a\"]"));
}

/// A list of names that is never looked up would accept typing errors silently.
#[test]
fn every_list_of_names_is_looked_up() {
    let found: BTreeSet<_> = names_in(EVERYTHING)
        .into_iter()
        .map(|used| used.line)
        .collect();
    let mut section = "";
    for (index, line) in EVERYTHING.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        let holds = value.starts_with("[\"") && !NO_NAMES.contains(&key) && section != "[expected]";
        // A server's own names of its tools.
        let holds = holds && section != "[[server]]";
        let names = holds || section == "[costs]" || section == "[trust.initial_levels]";
        assert_eq!(
            found.contains(&(index + 1)),
            names || (section == "[exposure]" && key == "preset"),
            "{section} {line}"
        );
    }
}
