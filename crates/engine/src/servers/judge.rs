//! What stands against a server and its tools: findings, held against the names of all
//! others, and the risk that follows from what encloses it.

use std::collections::BTreeMap;

use model::config::{ServerConfig, ServerNetwork, ServerSandbox, ServerTransport};
use model::document::placeholder;
use model::govern::action::Action;
use model::network::host_pattern::HostPattern;
use model::policy::risk::{Risk, Signal};
use store::ServerRecords;
use upstream::definition::{ItemKey, ToolDefinition};
use upstream::finding::{KnownTool, LaunchSpec, Neighbours, UpstreamFinding, is_exact, of_launch};
use upstream::name::ServerName;
use upstream::pin::SeenServer;
use upstream::risk::{self, ChildFiles, ChildNetwork, Enclosure, ToolRiskInput};

use crate::servers::review;

/// What a server offers, with what was found in it.
#[derive(Debug)]
pub(crate) struct JudgedServer {
    pub(crate) seen: SeenServer,
    pub(crate) findings: Vec<UpstreamFinding>,
}

/// What each server offered last, judged side by side: a tool that speaks of another
/// server's is found only when both are known. Nothing for a server never seen, a sentence
/// for one whose record cannot be read.
pub(crate) fn judge(
    servers: &[ServerConfig],
    records: &ServerRecords,
    own: &[&str],
) -> BTreeMap<String, Option<Result<JudgedServer, String>>> {
    let mut judged: BTreeMap<String, Option<Result<JudgedServer, String>>> = BTreeMap::new();
    for config in servers {
        let record = records.get(&config.name);
        let record = record.filter(|record| !record.seen.is_empty());
        let seen = record.map(|record| review::read_seen(config, &record.seen));
        let judge = |seen: SeenServer| JudgedServer {
            seen,
            findings: Vec::new(),
        };
        judged.insert(config.name.clone(), seen.map(|seen| seen.map(judge)));
    }
    for config in servers {
        let neighbours = neighbours(&config.name, &judged, own);
        if let Some(Some(Ok(server))) = judged.get_mut(&config.name) {
            server.findings = find(config, &mut server.seen, &neighbours);
        }
    }
    judged
}

fn neighbours(
    name: &str,
    judged: &BTreeMap<String, Option<Result<JudgedServer, String>>>,
    own: &[&str],
) -> Neighbours {
    let read = judged.iter().filter_map(|(server, judged)| match judged {
        Some(Ok(judged)) => Some((server, judged)),
        Some(Err(_)) | None => None,
    });
    let names: BTreeMap<&str, ServerName> = read
        .clone()
        .filter_map(|(server, _)| Some((server.as_str(), ServerName::parse(server).ok()?)))
        .collect();
    let siblings = read.clone().filter(|(server, _)| *server == name);
    let siblings = siblings.flat_map(|(_, judged)| judged.seen.items.keys());
    let others = read.filter(|(server, _)| *server != name);
    let others = others.flat_map(|(server, judged)| {
        let server = names.get(server.as_str());
        let items = judged.seen.items.iter();
        items.filter_map(move |(key, item)| {
            Some(KnownTool {
                server: server?,
                name: &key.name,
                description: item.definition.description(),
            })
        })
    });
    let other_names = names.iter().filter(|(server, _)| **server != name);
    Neighbours::new(
        siblings.map(|key| key.name.as_str()),
        others,
        other_names.map(|(_, server)| server),
        own.iter().copied(),
    )
}

/// Finds what is suspicious, and marks what it holds.
fn find(
    config: &ServerConfig,
    seen: &mut SeenServer,
    neighbours: &Neighbours,
) -> Vec<UpstreamFinding> {
    let mut all = launch_findings(config);
    if let Ok(name) = ServerName::parse(&config.name) {
        all.extend(seen.inspect(&name, neighbours));
    }
    all
}

/// What is suspicious in how a server is started or reached. Values with a placeholder
/// are secrets by name, which is how it should be.
fn launch_findings(config: &ServerConfig) -> Vec<UpstreamFinding> {
    let plain = |templates: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let is_plain = |(_, value): &(&String, &String)| placeholder::names(value).next().is_none();
        let pairs = templates.iter().filter(is_plain);
        pairs
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    match &config.transport {
        ServerTransport::Command(command) => of_launch(&LaunchSpec {
            command: &command.command,
            env: &plain(&command.environment),
            ..LaunchSpec::default()
        }),
        ServerTransport::Url(url) => of_launch(&LaunchSpec {
            url: Some(&url.url),
            headers: &plain(&url.headers),
            ..LaunchSpec::default()
        }),
    }
}

/// Calls `rate` with what stands around a server.
fn with_enclosure<T>(config: &ServerConfig, rate: impl FnOnce(Enclosure<'_>) -> T) -> T {
    match &config.transport {
        ServerTransport::Command(command) if command.sandbox == ServerSandbox::None => {
            rate(Enclosure::Unjailed)
        }
        ServerTransport::Command(command) => {
            let hosts = command.network.hosts().iter();
            let hosts: Vec<_> = hosts.map(HostPattern::shown).collect();
            rate(Enclosure::Jailed {
                network: match command.network {
                    ServerNetwork::None => ChildNetwork::None,
                    ServerNetwork::Hosts(_) => ChildNetwork::Hosts(&hosts),
                    ServerNetwork::Open => ChildNetwork::Open,
                },
                files: match (command.read.is_empty(), command.write.is_empty()) {
                    (_, false) => ChildFiles::Write,
                    (false, true) => ChildFiles::Read,
                    (true, true) => ChildFiles::Own,
                },
            })
        }
        ServerTransport::Url(url) => {
            let parsed = url::Url::parse(&url.url).ok();
            let host = parsed.as_ref().and_then(url::Url::host_str);
            let host = host.unwrap_or_default();
            match url.headers.is_empty() && url.oauth.is_none() {
                true => rate(Enclosure::Anonymous { host }),
                false => rate(Enclosure::Authenticated { host }),
            }
        }
    }
}

/// The risk of a tool: what stands around its server, and of what its document asks for
/// whatever that does not say already.
pub(crate) fn rate(
    config: &ServerConfig,
    (key, definition): (&ItemKey, &ToolDefinition),
    findings: &[UpstreamFinding],
    asked: Risk,
) -> Risk {
    let is_about =
        // One without an item is about the server, and so about each of its tools.
        |finding: &&UpstreamFinding| finding.item.as_ref().is_none_or(|item| item == key);
    let about: Vec<_> = findings.iter().filter(is_about).cloned().collect();
    let has_exact_version = match &config.transport {
        ServerTransport::Command(command) => is_exact(&command.command),
        // Nothing of it is fetched to run here.
        ServerTransport::Url(_) => true,
    };
    let mut rated = with_enclosure(config, |enclosure| {
        risk::rate(&ToolRiskInput {
            enclosure,
            has_exact_version,
            tool: definition,
            findings: &about,
        })
    });
    let is_said = |signal: &Signal| {
        signal.words.starts_with("network:") || signal.words.starts_with("files:")
    };
    rated.level = rated.level.max(asked.level);
    let more = asked.signals.into_iter().filter(|signal| !is_said(signal));
    rated.signals.extend(more);
    rated
        .signals
        .sort_by_key(|signal| std::cmp::Reverse(signal.level));
    rated
}

/// What a call of a tool does: what is derived, and what the owner adds.
pub(crate) fn actions(config: &ServerConfig, definition: &ToolDefinition) -> Vec<Action> {
    let derived = with_enclosure(config, |enclosure| risk::actions(enclosure, definition));
    let set = config.actions.get(&definition.name).cloned();
    risk::with_owner(derived, set.unwrap_or_default())
}
