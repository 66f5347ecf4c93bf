//! Tools, prompts and resources of other people's MCP servers. Each is a document made from the definition its
//! owner accepted, so that lists, levels, rules, approvals and the audit hold for it as
//! for any other; only what runs is the server's.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::ReviewedTools;
use model::config::{Config, ServerConfig, ServerNetwork, ServerSandbox, ServerTransport};
use model::document;
use model::document::digest;
use model::document::environment::Environment;
use model::document::json::Lines;
use model::document::safety::Source;
use model::govern::action::{Action, DECLARED_FIELD};
use model::govern::consent::Granted;
use model::govern::rules::lint::AwayTool;
use model::policy::Baseline;
use model::policy::assessment::{self, Assessment};
use model::policy::risk::{Level, Risk};
use serde_json::{Map, Value, json};
use store::{ServerRecord, ServerRecords};
use upstream::definition::{Definition, ItemKey, ItemKind, ToolDefinition};
use upstream::finding::{Neighbours, UpstreamFinding};
use upstream::name::{NameTable, ServerName};
use upstream::pin::{PinnedServer, SeenServer, ServedServer, ServedState, serve};

use crate::server_tool::{ServerSchemas, ServerTool};
use crate::servers::judge::JudgedServer;
use crate::tool::{Tool, ToolBody, ToolState};

pub(crate) mod address;
pub(crate) mod connections;
pub mod item;
pub(crate) mod judge;
pub(crate) mod review;

/// The category of all tools of servers.
pub(crate) const CATEGORY: &str = "MCP";

/// What the servers of the settings offer, at one moment.
#[derive(Debug, Default)]
pub struct ServerTools {
    tools: BTreeMap<String, Tool>,
    /// Prompts and resources, which no list of tools shows.
    items: BTreeMap<String, Tool>,
    servers: BTreeMap<String, ServerView>,
    /// What it was made from.
    made_from: MadeFrom,
}

#[derive(Debug, Default, PartialEq)]
struct MadeFrom {
    servers: Vec<ServerConfig>,
    records: ServerRecords,
    baseline: Option<Baseline>,
}

/// One server: what was accepted of it and what it offers.
#[derive(Debug)]
pub struct ServerView {
    /// The server, as the settings have it.
    pub config: Arc<ServerConfig>,
    /// What is remembered of it.
    pub record: ServerRecord,
    /// What it offered last, if it ever did.
    pub seen: Option<SeenServer>,
    /// The stamp of that.
    pub(crate) stamp: String,
    /// What was found in it.
    pub findings: Vec<UpstreamFinding>,
    /// What is served of it; a sentence where its record cannot be used.
    pub served: Result<ServedServer, String>,
    /// The names of its tools here.
    pub names: NameTable,
    /// The names of its prompts and resources here.
    pub item_names: BTreeMap<ItemKey, String>,
}

impl ServerView {
    /// Whether a connection that was shown this list may serve a tool as it was accepted.
    /// Attack: a server that shows the accepted list to one caller, or to one process of
    /// ours, and another list to the next.
    pub(crate) fn serves(&self, reviewed: &ReviewedTools, tool: &ServerTool) -> bool {
        if self.stamp == reviewed.stamp {
            // That list is what all the rest was made from.
            return true;
        }
        let text = review::seen_text(&reviewed.seen);
        let (Ok(mut seen), Ok(pinned), Ok(name)) = (
            review::read_seen(&self.config, &text),
            pinned(&self.record),
            ServerName::parse(&self.config.name),
        ) else {
            return false;
        };
        seen.inspect(&name, &Neighbours::default());
        let served = serve(&pinned, Some(&seen));
        let key = tool.item.key();
        let mut items = served.items.iter();
        items.any(|item| match &item.state {
            ServedState::Callable { digest, .. } => item.key == key && *digest == tool.pin,
            _ => false,
        })
    }

    /// The name of an item here, if it has one.
    #[must_use]
    pub fn name_of(&self, key: &ItemKey) -> Option<&str> {
        match key.kind {
            ItemKind::Tool => self.names.names.get(&key.name).map(|name| name.as_str()),
            ItemKind::Prompt | ItemKind::Resource | ItemKind::ResourceTemplate => {
                self.item_names.get(key).map(String::as_str)
            }
        }
    }
}

impl ServerTools {
    /// Makes the tools of all servers, or takes those from before where nothing changed.
    pub(crate) fn make(
        config: &Config,
        records: &ServerRecords,
        baseline: &Baseline,
        before: Option<&Arc<ServerTools>>,
        own: &[&str],
    ) -> Arc<ServerTools> {
        let made_from = MadeFrom {
            servers: config.servers.clone(),
            records: records.clone(),
            baseline: Some(baseline.clone()),
        };
        if let Some(before) = before.filter(|before| before.made_from == made_from) {
            return Arc::clone(before);
        }
        let mut made = ServerTools {
            made_from,
            ..ServerTools::default()
        };
        let mut judged = judge::judge(&config.servers, records, own);
        for server in &config.servers {
            let record = records.get(&server.name).cloned().unwrap_or_default();
            let offered = judged.remove(&server.name).flatten();
            let view = view(&Arc::new(server.clone()), record, offered);
            for tool in tools(&view, baseline) {
                let name = &tool.usable.document.name;
                // A document or a tool of ours keeps its name; servers' names begin with
                // the server's, so this is a document that was named like one.
                if own.contains(&name.as_str()) {
                    continue;
                }
                let is_tool = tool.body.server().is_some_and(ServerTool::is_tool);
                match is_tool {
                    true => made.tools.insert(name.clone(), tool),
                    false => made.items.insert(name.clone(), tool),
                };
            }
            made.servers.insert(server.name.clone(), view);
        }
        Arc::new(made)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name).or_else(|| self.items.get(name))
    }

    /// The prompts and resources.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Tool> {
        self.items.values()
    }

    /// What reads a resource of a server: the resource of that URI, or the first template
    /// that leads to it.
    #[must_use]
    pub fn reader_of(&self, server: &str, uri: &str) -> Option<&str> {
        let view = self.servers.get(server)?;
        let key = ItemKey {
            kind: ItemKind::Resource,
            name: uri.to_owned(),
        };
        let exact = view.item_names.get(&key);
        let mut templates = view.item_names.iter();
        let leads = |name: &str| {
            let tool = self.items.get(name).and_then(|tool| tool.body.server());
            let arguments = json!({"uri": uri});
            tool.is_some_and(|tool| tool.schemas.check_arguments(&arguments).is_ok())
        };
        let exact = exact.filter(|name| self.items.contains_key(*name));
        let found = exact.or_else(|| {
            let mut of_kind = templates
                .by_ref()
                .filter(|(key, _)| key.kind == ItemKind::ResourceTemplate);
            of_kind.find(|(_, name)| leads(name)).map(|(_, name)| name)
        });
        found.map(String::as_str)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values()
    }

    /// The server that has a tool of this name, callable or not.
    pub(crate) fn server_of(&self, name: &str) -> Option<&str> {
        let mut servers = self.servers.iter();
        let has = |view: &ServerView| {
            let mut tools = view.names.names.values();
            let mut items = view.item_names.values();
            tools.any(|known| known.as_str() == name) || items.any(|known| known == name)
        };
        let found = servers.find(|(_, view)| has(view));
        found.map(|(server, _)| server.as_str())
    }

    /// The names of every tool a server has or had, callable or not: rules may name it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let servers = self.servers.values();
        servers.flat_map(|view| {
            let tools = view.names.names.values().map(|name| name.as_str());
            tools.chain(view.item_names.values().map(String::as_str))
        })
    }

    /// The tools that no call finds for what their servers did, or until their owner decides.
    /// Those that the settings leave out are none of them.
    pub(crate) fn away(&self) -> impl Iterator<Item = AwayTool<'_>> {
        self.servers.values().flat_map(|view| {
            let items = view.served.iter().flat_map(|served| &served.items);
            let away = items.filter(|item| !matches!(item.state, ServedState::Callable { .. }));
            let names = away.filter_map(move |item| view.name_of(&item.key));
            names.map(|name| AwayTool {
                name,
                category: CATEGORY,
            })
        })
    }

    /// What scripts call tools by besides their names, `server.tool`, and the names.
    pub(crate) fn script_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let servers = self.servers.values();
        servers.flat_map(|view| {
            let names = view.names.code_names.iter();
            names.filter_map(|(tool, script_name)| {
                let name = view.names.names.get(tool)?;
                Some((script_name.as_str(), name.as_str()))
            })
        })
    }

    /// The servers of the settings, by name.
    #[must_use]
    pub fn servers(&self) -> &BTreeMap<String, ServerView> {
        &self.servers
    }
}

/// How a server that is not in the settings would stand beside those that are.
pub(crate) fn trial_view(
    config: &ServerConfig,
    record: ServerRecord,
    servers: &[ServerConfig],
    records: &ServerRecords,
    own: &[&str],
) -> ServerView {
    let mut judged = judge::judge(servers, records, own);
    let offered = judged.remove(&config.name).flatten();
    view(&Arc::new(config.clone()), record, offered)
}

/// Where a server stands, from its settings, its record and what it offered last.
fn view(
    config: &Arc<ServerConfig>,
    record: ServerRecord,
    offered: Option<Result<JudgedServer, String>>,
) -> ServerView {
    let (seen, findings, broken) = match offered {
        None => (None, Vec::new(), None),
        Some(Ok(JudgedServer { seen, findings })) => (Some(seen), findings, None),
        Some(Err(why)) => (None, Vec::new(), Some(why)),
    };
    let served = match broken {
        Some(why) => Err(why),
        None => pinned(&record).map(|pinned| serve(&pinned, seen.as_ref())),
    };
    let tools = served.iter().flat_map(|served| &served.items);
    let tools = tools.filter(|item| item.key.kind == ItemKind::Tool);
    let tools = tools.map(|item| item.key.name.as_str());
    let (names, item_names) = match (ServerName::parse(&config.name), &served) {
        (Ok(name), Ok(served)) => (NameTable::new(&name, tools), item::names(&name, served)),
        (Ok(_) | Err(_), _) => (NameTable::default(), BTreeMap::new()),
    };
    ServerView {
        config: Arc::clone(config),
        seen,
        stamp: digest::of_text(&record.seen),
        findings,
        served,
        names,
        item_names,
        record,
    }
}

/// What the owner accepted. A record that cannot be read is an error, never a first
/// sight.
pub(crate) fn pinned(record: &ServerRecord) -> Result<PinnedServer, String> {
    if record.pins.is_empty() {
        return Ok(PinnedServer::unknown());
    }
    PinnedServer::from_json(&record.pins)
        .map_err(|error| format!("what was accepted of it cannot be read: {error}"))
}

fn tools(view: &ServerView, baseline: &Baseline) -> Vec<Tool> {
    let Ok(served) = &view.served else {
        return Vec::new();
    };
    let made = served.items.iter().filter_map(|item| match &item.state {
        ServedState::Callable {
            definition, digest, ..
        } if is_offered(&view.config, &item.key) => {
            tool(view, &item.key, definition, digest, baseline)
        }
        _ => None,
    });
    made.collect()
}

/// Whether the owner offers an item: `allow` and `deny` name tools, and the other kinds
/// have a switch.
fn is_offered(config: &ServerConfig, key: &ItemKey) -> bool {
    match key.kind {
        ItemKind::Tool => config.offers(&key.name),
        ItemKind::Prompt => config.prompts,
        ItemKind::Resource | ItemKind::ResourceTemplate => config.resources,
    }
}

fn tool(
    view: &ServerView,
    key: &ItemKey,
    item: &Definition,
    digest: &str,
    baseline: &Baseline,
) -> Option<Tool> {
    let config = &view.config;
    let name = view.name_of(key)?;
    let mut definition = item::as_tool(item);
    item::show_texts(&mut definition.input_schema);
    definition
        .output_schema
        .iter_mut()
        .for_each(item::show_texts);
    let assessed = assess(config, (name, digest), &definition, baseline)?;
    let mut usable = assessed.usable?;
    let asked = usable.facts.risk;
    usable.facts.risk = judge::rate(config, (key, &definition), &view.findings, asked);
    Some(Tool {
        usable: Arc::new(usable),
        source: Source::Server,
        body: ToolBody::Server(Arc::new(ServerTool {
            server: Arc::clone(config),
            restarts: view.record.restarts,
            pin: digest.to_owned(),
            schemas: ServerSchemas::new(&definition),
            definition,
            item: item.clone(),
        })),
        file: None,
        findings: assessed.findings,
        state: ToolState::Published,
        // Its owner put it into the settings with the secrets it gets.
        granted: Granted::Ours,
    })
}

/// What is to be said of the document of a tool.
fn assess(
    config: &ServerConfig,
    (name, digest): (&str, &str),
    definition: &ToolDefinition,
    baseline: &Baseline,
) -> Option<Assessment> {
    let text = document_text(config, name, definition, digest);
    let document = document::parse(&text).items.pop()?;
    let none = Environment::empty();
    Some(assessment::assess(
        document,
        &Lines::new(&text),
        baseline,
        &none,
        Source::Server,
    ))
}

/// The risk that an item has, or would have if it were accepted. One that could not become a
/// tool has that of its server.
pub(crate) fn risk_of(
    config: &ServerConfig,
    item: &Definition,
    findings: &[UpstreamFinding],
    baseline: &Baseline,
) -> Risk {
    let definition = item::as_tool(item);
    // No risk depends on the name and the digest.
    let assessed = assess(config, ("tool", ""), &definition, baseline);
    let usable = assessed.and_then(|assessed| assessed.usable);
    let asked = usable.map_or_else(
        || Risk {
            level: Level::L0,
            signals: Vec::new(),
        },
        |usable| usable.facts.risk,
    );
    judge::rate(config, (&item.key(), &definition), findings, asked)
}

/// The document of a tool. What encloses the server is what the document asks for, so
/// that levels, rules and the risk see it.
fn document_text(
    config: &ServerConfig,
    name: &str,
    definition: &ToolDefinition,
    digest: &str,
) -> String {
    let description = config.descriptions.get(&definition.name);
    let description = description.or(definition.description.as_ref());
    let variables = config.secrets().into_iter();
    let variables = variables.map(|secret| json!({secret: format!("${{{secret}}}")}));
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("name", name.into());
    put(
        "description",
        description.cloned().unwrap_or_default().into(),
    );
    put("category", CATEGORY.into());
    put("tags", json!([config.name]));
    put("staticVariables", variables.collect::<Vec<_>>().into());
    // The digest of the document covers its code, so a change of the pin is a change of
    // the tool: approvals and rules that name its digest see it.
    let code = format!(
        "// pinned as {digest}\nthrow new Error(\"this tool runs on its MCP server, not in the sandbox\");"
    );
    put("code", code.into());
    put("codeType", "Javascript".into());
    put("draft", false.into());
    put("sandboxOverrides", overrides(config, definition));
    put("codecall", json!({"appId": config.name}));
    if let Some(title) = &definition.title {
        put("title", title.clone().into());
    }
    let actions = judge::actions(config, definition);
    let words: Vec<_> = actions.iter().map(Action::word).collect();
    put(DECLARED_FIELD, json!(words));
    Value::Object(fields).to_string()
}

/// What a call can reach: what its server can.
fn overrides(config: &ServerConfig, definition: &ToolDefinition) -> Value {
    let mut overrides = Map::new();
    let mut put = |key: &str, value: Value| overrides.insert(key.to_owned(), value);
    match &config.transport {
        ServerTransport::Command(command) => {
            match (&command.network, command.sandbox) {
                // Without a jail nothing holds the process to its hosts, whatever the
                // settings name.
                (ServerNetwork::Open, _) | (_, ServerSandbox::None) => {
                    put("networkMode", "open".into());
                }
                (ServerNetwork::Hosts(hosts), ServerSandbox::Jail) => {
                    let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
                    put("networkMode", "allowlist".into());
                    put("hostsAllow", json!(hosts));
                }
                (ServerNetwork::None, ServerSandbox::Jail) => {}
            }
            put(
                "fileRead",
                (!command.read.is_empty() || !command.write.is_empty()).into(),
            );
            put("fileWrite", (!command.write.is_empty()).into());
        }
        ServerTransport::Url(url) => {
            let host = url::Url::parse(&url.url).ok();
            let host = host.and_then(|url| url.host_str().map(str::to_owned));
            match (host, url.private) {
                (Some(host), false) => {
                    put("networkMode", "allowlist".into());
                    put("hostsAllow", json!([host]));
                }
                // Where it leads is for the operator to know; the risk says so.
                (_, _) => {
                    put("networkMode", "open".into());
                }
            }
        }
    }
    // A server's own word counts only where it admits to more.
    if definition.annotations.destructive == Some(true) {
        put("destructive", true.into());
    }
    Value::Object(overrides)
}
