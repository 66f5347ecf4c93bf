//! What importing would do: which servers are imported under which names, which secrets
//! move, and what stays with the client. Pure: nothing is written here.

use std::collections::BTreeSet;
use std::path::Path;

use model::Environment;
use model::config::{Config, ServerConfig};
use model::limits;
use model::text::one_line;
use upstream::finding::FindingCode;
use upstream::name::ServerName;

use super::entry::ClientEntry;
use super::placeholder_name;
use crate::secret_line;
use crate::server_launch::ServerLaunch;
use crate::server_settings::{self as edit, WrittenServer};

/// Programs that download what they run.
const RUNNERS: [&str; 12] = [
    "npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "uvx", "uv", "pipx", "deno", "go",
];
/// Schemes before a secret in a header.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "token "];
/// Names that are tried when one is taken.
const NAMES_TRIED_MAX: usize = 1_000;
/// Parts of a path, the root among them, up to which a folder holds too much to be given:
/// a person's home is one.
const FOLDER_PARTS_MIN: usize = 3;

/// What would be done.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// Servers that are imported.
    pub imported: Vec<ImportedServer>,
    /// Servers that stay with the client, and why.
    pub left: Vec<(String, String)>,
    /// New lines of `secrets.env`.
    pub secrets: Vec<(String, String)>,
}

/// A server that moves.
#[derive(Debug)]
pub struct ImportedServer {
    /// What the client calls it.
    pub from: String,
    /// As the client has it.
    pub launch: ServerLaunch,
    /// As it is written into the settings.
    pub written: WrittenServer,
    /// Whether the settings have exactly this server already.
    pub is_known: bool,
    /// Variables or headers, and the secret each became.
    pub moved: Vec<(String, String)>,
    /// Fields that mean nothing here.
    pub dropped: Vec<String>,
}

/// What is there already.
#[derive(Debug)]
pub struct ImportContext<'a> {
    /// The settings.
    pub config: &'a Config,
    /// What `secrets.env` holds.
    pub secrets: &'a Environment,
    /// What the environment sets; it goes before the file.
    pub environment: &'a Environment,
}

impl ImportedServer {
    /// The fields whose secrets do not move, because only variables and headers can name
    /// one: they stand in the settings as they stood in the client's file.
    #[must_use]
    pub fn left_plain(&self) -> Vec<String> {
        let written = ServerLaunch {
            command: self.written.command.clone(),
            url: self.written.url.clone(),
            values: self.written.values.clone(),
        };
        let findings = written.findings().into_iter();
        let plain = findings.filter(|finding| finding.code == FindingCode::PlainSecret);
        plain.map(|finding| one_line(&finding.field)).collect()
    }
}

impl ImportPlan {
    /// What importing these would do.
    #[must_use]
    pub fn new(entries: &[ClientEntry], context: &ImportContext<'_>) -> ImportPlan {
        let mut plan = ImportPlan::default();
        let known = context.config.servers.iter();
        let mut taken: BTreeSet<String> = known.map(|server| server.name.clone()).collect();
        for entry in entries.iter().filter(|entry| !entry.is_ours()) {
            match plan.import(entry, context, &mut taken) {
                Ok(imported) => plan.imported.push(imported),
                Err(why) => plan.left.push((entry.name.clone(), why)),
            }
        }
        plan
    }

    fn import(
        &mut self,
        entry: &ClientEntry,
        context: &ImportContext<'_>,
        taken: &mut BTreeSet<String>,
    ) -> Result<ImportedServer, String> {
        if let Some(obstacle) = &entry.obstacle {
            return Err(obstacle.clone());
        }
        if taken.len() >= limits::SERVERS_MAX {
            return Err(format!("there are {} servers already", taken.len()));
        }
        let base = base_name(&entry.name);
        // Secrets of a server that is refused below must not be written.
        let secrets_before = self.secrets.len();
        let done = self.import_as(entry, &base, context, taken);
        if done.is_err() {
            self.secrets.truncate(secrets_before);
        }
        done
    }

    fn import_as(
        &mut self,
        entry: &ClientEntry,
        base: &str,
        context: &ImportContext<'_>,
        taken: &mut BTreeSet<String>,
    ) -> Result<ImportedServer, String> {
        let launch = &entry.launch;
        let mut moved = Vec::new();
        let mut values = launch.values.clone();
        for field in launch.plain_secrets() {
            let Some(value) = values.get_mut(&field) else {
                continue;
            };
            let scheme = SCHEMES.iter().find(|scheme| value.starts_with(**scheme));
            // `Bearer ` stays in the header, so that the secret alone moves; a variable
            // of a command has no scheme.
            let scheme = scheme.filter(|_| launch.url.is_some()).copied();
            let scheme = scheme.unwrap_or_default();
            let secret = value.get(scheme.len()..).unwrap_or_default().to_owned();
            if !secret_line::fits(&secret) {
                return Err(format!("the value of `{field}` has more than one line"));
            }
            let name = self.secret_name(base, &field, &secret, context);
            *value = format!("{scheme}${{{name}}}");
            moved.push((field, name));
        }
        let mut written = WrittenServer {
            name: base.to_owned(),
            command: launch.command.clone(),
            url: launch.url.clone(),
            values,
            // `npx` and its like download what they run, so without the network the
            // server would not start.
            network: is_runner(&launch.command).then_some("open"),
            read: named_folders(&launch.command),
            private: launch.url.as_deref().is_some_and(is_loopback),
            ..WrittenServer::default()
        };
        let (name, is_known) = server_name(&mut written, base, context.config, taken)?;
        written.name.clone_from(&name);
        taken.insert(name);
        Ok(ImportedServer {
            from: entry.name.clone(),
            launch: launch.clone(),
            written,
            is_known,
            moved,
            dropped: entry.dropped.clone(),
        })
    }

    /// The name under which a secret is kept: its own, or with the server's before it if
    /// that means something else already.
    fn secret_name(
        &mut self,
        server: &str,
        field: &str,
        value: &str,
        context: &ImportContext<'_>,
    ) -> String {
        let own = placeholder_name(field);
        let long = placeholder_name(&format!("{server}_{field}"));
        let numbered = (2..).map(|number| format!("{long}_{number}"));
        let mut tried = [own, long.clone()].into_iter().chain(numbered);
        let added = self.secrets.clone();
        let held = |name: &str| {
            let new = added.iter().find(|(known, _)| known == name);
            let new = new.map(|(_, value)| value.as_str());
            // The environment wins over the file, so the server would get its value.
            let there = context.environment.get(name);
            new.or(there).or_else(|| context.secrets.get(name))
        };
        let free = tried.find(|name| held(name).is_none_or(|known| known == value));
        let name = free.unwrap_or(long);
        if held(&name).is_none() {
            self.secrets.push((name.clone(), value.to_owned()));
        }
        name
    }
}

/// A name for a server, and whether it is there already exactly so.
fn server_name(
    written: &mut WrittenServer,
    base: &str,
    config: &Config,
    taken: &BTreeSet<String>,
) -> Result<(String, bool), String> {
    for number in 1..=NAMES_TRIED_MAX {
        let end = match number {
            1 => String::new(),
            number => format!("-{number}"),
        };
        let room = limits::SERVER_NAME_CHARS_MAX.saturating_sub(end.len());
        let head: String = base.chars().take(room).collect();
        written.name = format!("{}{end}", head.trim_end_matches('-'));
        let one = parsed(written)?;
        let known = config.servers.iter().find(|known| known.name == one.name);
        if known.is_some_and(|known| *known == one) {
            return Ok((one.name, true));
        }
        if !taken.contains(&one.name) {
            return Ok((one.name, false));
        }
    }
    Err("no name is free for it".to_owned())
}

/// The server as the settings read it, or why they would not.
pub(crate) fn parsed(written: &WrittenServer) -> Result<ServerConfig, String> {
    let text = edit::with("", std::slice::from_ref(written));
    let text = text.map_err(|fault| format!("{fault:#}"))?;
    let config = Config::parse(&text).map_err(|_| "the settings would not load".to_owned())?;
    let first = config.servers.into_iter().next();
    first.ok_or_else(|| "the settings would not load".to_owned())
}

fn base_name(raw_name: &str) -> String {
    match ServerName::parse(raw_name) {
        Ok(name) => name.as_str().to_owned(),
        Err(fault) => fault.suggestion.unwrap_or_else(|| "imported".to_owned()),
    }
}

/// The folders a command names: it was made to read them. A script of a package reads the
/// packages beside it. A folder near the root is not given: it would be everything.
fn named_folders(command: &[String]) -> Vec<String> {
    let mut folders = BTreeSet::new();
    for argument in command.iter().skip(1) {
        let path = Path::new(argument);
        let kind = path.is_absolute().then(|| path.metadata().ok()).flatten();
        let Some(kind) = kind else { continue };
        let packages = path
            .ancestors()
            .find(|ancestor| ancestor.ends_with("node_modules"));
        let folder = match (packages, kind.is_dir()) {
            (Some(packages), _) => Some(packages),
            (None, true) => Some(path),
            (None, false) => path.parent(),
        };
        let is_narrow = |folder: &&Path| folder.components().count() > FOLDER_PARTS_MIN;
        if let Some(folder) = folder.filter(is_narrow) {
            folders.insert(folder.display().to_string());
        }
    }
    folders.into_iter().collect()
}

/// Whether an address is one of this machine: the client named it, so it is meant.
fn is_loopback(url: &str) -> bool {
    let parsed = url::Url::parse(url).ok();
    match parsed.as_ref().and_then(url::Url::host) {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn is_runner(command: &[String]) -> bool {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    RUNNERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    fn plan(servers: &Value, settings: &str, file: &str, environment: &str) -> ImportPlan {
        let entries: Vec<_> = servers
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, entry)| ClientEntry::read(name, entry))
            .collect();
        let read = |text: &str| {
            let mut environment = Environment::empty();
            environment.read_lines(text).expect("lines");
            environment
        };
        ImportPlan::new(
            &entries,
            &ImportContext {
                config: &Config::parse(settings).expect("settings"),
                secrets: &read(file),
                environment: &read(environment),
            },
        )
    }

    fn names(plan: &ImportPlan) -> Vec<&str> {
        let imported = plan.imported.iter();
        imported.map(|one| one.written.name.as_str()).collect()
    }

    #[test]
    fn names_fit_are_free_and_stay() {
        let one = json!({"command": "a"});
        let servers = json!({"GitHub MCP!": one, "github-mcp": {"command": "b"}, "fetch": one,
            "ringfence": one, "日本": one, "a_very_long_name_of_a_server_indeed": one});
        let plan = plan(&servers, "", "", "");
        assert_eq!(
            names(&plan),
            [
                "github-mcp",
                "github-mcp-2",
                "my-fetch",
                "imported",
                "a-very-long-name-of-a-se"
            ]
        );
        assert!(plan.left.is_empty());
    }

    /// A second run after one that was interrupted finds its own work.
    #[test]
    fn what_is_there_already_is_used_again() {
        let servers =
            json!({"gh": {"command": "npx", "args": ["gh@1.0.0"], "env": {"GH_TOKEN": SECRET}}});
        let first = plan(&servers, "", "", "");
        assert_eq!(first.secrets, [("GH_TOKEN".to_owned(), SECRET.to_owned())]);
        let written: Vec<_> = first
            .imported
            .iter()
            .map(|one| one.written.clone())
            .collect();
        let settings = edit::with("", &written).expect("settings");
        let file = secret_line::with("", &first.secrets);
        let second = plan(&servers, &settings, &file, "");
        assert_eq!(names(&second), ["gh"]);
        assert!(second.imported.iter().all(|one| one.is_known));
        assert!(second.secrets.is_empty());
    }

    #[test]
    fn secrets_move_and_never_mean_something_else() {
        let servers = json!({
            "gh": {"command": "npx", "args": ["-y", "gh"], "env": {"GH_TOKEN": SECRET, "LEVEL": "debug"}},
            "far": {"url": "https://far.example/mcp", "headers": {"Authorization": format!("Bearer {SECRET}")}},
        });
        let plan = plan(&servers, "", "AUTHORIZATION=other", "GH_TOKEN=ambient");
        let [gh, far] = plan.imported.as_slice() else {
            panic!("{plan:?}");
        };
        assert_eq!(gh.written.network, Some("open"));
        let value = |one: &ImportedServer, name: &str| one.written.values.get(name).cloned();
        assert_eq!(value(gh, "GH_TOKEN").as_deref(), Some("${GH_GH_TOKEN}"));
        assert_eq!(value(gh, "LEVEL").as_deref(), Some("debug"));
        assert_eq!(
            value(far, "Authorization").as_deref(),
            Some("Bearer ${FAR_AUTHORIZATION}")
        );
        assert_eq!(far.written.network, None);
        let kept: Vec<_> = plan.secrets.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(kept, ["GH_GH_TOKEN", "FAR_AUTHORIZATION"]);
        assert!(plan.secrets.iter().all(|(_, value)| value == SECRET));
    }

    #[test]
    fn secrets_in_arguments_and_addresses_are_told_to_stay() {
        let servers = json!({
            "arg": {"command": "a", "args": ["--token", SECRET], "env": {"A_TOKEN": SECRET}},
            "far": {"url": format!("https://far.example/?api_key={SECRET}")},
            "none": {"command": "a", "env": {"B_PASSWORD": "pa55"}},
        });
        let plan = plan(&servers, "", "", "");
        let left: Vec<_> = plan
            .imported
            .iter()
            .map(ImportedServer::left_plain)
            .collect();
        assert_eq!(
            left,
            [
                vec!["arguments[1]".to_owned()],
                vec!["url".to_owned()],
                Vec::new()
            ]
        );
        // A short one moves as well, if the name says what it is.
        let kept = plan.secrets.iter().map(|(name, _)| name.as_str());
        assert_eq!(kept.collect::<Vec<_>>(), ["A_TOKEN", "B_PASSWORD"]);
    }

    #[test]
    fn what_cannot_be_imported_stays_and_leaves_no_secret() {
        let servers = json!({
            "place": {"command": "a", "cwd": "/x", "env": {"A_TOKEN": SECRET}},
            "user": {"url": "https://me@far.example/", "headers": {"X-Api-Key": SECRET}},
        });
        let plan = plan(&servers, "", "", "");
        assert!(
            plan.imported.is_empty() && plan.secrets.is_empty(),
            "{plan:?}"
        );
        assert_eq!(plan.left.len(), 2);
    }

    #[test]
    fn a_command_reads_what_it_names_and_an_address_here_is_meant() {
        let here = env!("CARGO_MANIFEST_DIR");
        let command = |argument: &str| vec!["node".to_owned(), argument.to_owned()];
        assert_eq!(
            named_folders(&command(&format!("{here}/Cargo.toml"))),
            [here]
        );
        assert_eq!(named_folders(&command(here)), [here]);
        for argument in [
            "/",
            "/etc",
            "/etc/hostname",
            "relative",
            "/absent/x/y/z",
            "--flag",
        ] {
            assert_eq!(named_folders(&command(argument)), [""; 0], "{argument}");
        }
        assert!(is_loopback("http://127.0.0.1:1/mcp") && is_loopback("http://[::1]/"));
        assert!(!is_loopback("http://10.0.0.1/") && !is_loopback("https://example.com/"));
    }
}
