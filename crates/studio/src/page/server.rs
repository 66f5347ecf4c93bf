//! Other people's MCP servers: how they stand, what they offer against what was accepted,
//! and adding one. An address that adds a program is a shell: the exact command is shown
//! first, and only what was shown is taken.

/// Servers of a client's settings.
mod import;
/// Trying a server out.
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use engine::life::revision;
use engine::policy_admin::ApplyFault;
use engine::server_admin::{ServerAdmin, ServerAdminError, ServerReview};
use engine::server_launch::ServerLaunch;
use engine::server_settings::{self, WrittenServer};
use engine::server_sheet::{self, SheetFinding, SheetItem};
use engine::servers::ServerView as KnownServer;
use model::document::digest;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::policy::applied;
use super::view::{DiffLine, RiskView, diff, refused};
use super::{DoneView, Nothing};
use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::route::{CHANGE, Route, VIEW};
use crate::studio::Studio;

pub(super) fn routes() -> Vec<Route> {
    let mut all = adding_routes();
    all.extend(known_routes());
    all
}

/// Before a server is in the settings.
fn adding_routes() -> Vec<Route> {
    vec![
        Route::send(
            Method::POST,
            "/api/v1/servers",
            CHANGE,
            "Adds the server whose exact start was shown; nothing of it is accepted",
            add,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/preview",
            CHANGE,
            "The exact command, environment and settings of a server to be added",
            preview,
        ),
        Route::send_later(
            Method::POST,
            "/api/v1/servers/trial",
            CHANGE,
            "Starts the server whose exact start was shown, lists it and ends it; nothing is kept",
            trial::trial,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/import/preview",
            CHANGE,
            "What importing the servers of a client's settings would do",
            import::preview,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/import",
            CHANGE,
            "Imports the servers that were shown; nothing of them is accepted",
            import::import,
        ),
    ]
}

fn known_routes() -> Vec<Route> {
    let at = "/api/v1/servers/{name}";
    vec![
        Route::get(
            "/api/v1/servers",
            VIEW,
            "The servers and how they stand",
            &[],
            list,
        ),
        Route::get(at, VIEW, "One server", &[], |studio, asked| {
            show(studio, asked.part("name"))
        }),
        Route::send(Method::DELETE, at, CHANGE, "Removes a server", remove),
        Route::get_later(
            "/api/v1/servers/{name}/review",
            VIEW,
            "What it offers against what was accepted",
            &["fresh"],
            review,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/{name}/accept",
            CHANGE,
            "Accepts what was reviewed, or some of its tools",
            accept,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/{name}/block",
            CHANGE,
            "Blocks a server or one of its tools",
            block,
        ),
        Route::send(
            Method::POST,
            "/api/v1/servers/{name}/restart",
            CHANGE,
            "Starts a server again, and forgets its failures",
            restart,
        ),
        Route::get(
            "/api/v1/servers/{name}/logs",
            CHANGE,
            "What its processes wrote on standard error last; starts nothing",
            &[],
            logs,
        ),
    ]
}

/// A server in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerRow {
    name: String,
    decision: &'static str,
    state: &'static str,
    words: String,
    callable: usize,
    held: usize,
    listed: bool,
    launch: String,
    fault: Option<String>,
}

impl ServerRow {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerList {
    items: Vec<ServerRow>,
}

fn list(studio: &Studio, _: &Asked) -> ApiResult<ServerList> {
    let now = studio.engine().registry().current();
    let servers = now.servers().servers().iter();
    Ok(ServerList {
        items: servers.map(|(name, view)| row(name, view)).collect(),
    })
}

pub(crate) fn row(name: &str, view: &KnownServer) -> ServerRow {
    let tools = server_sheet::tools(view);
    let count = |word: &str| {
        tools
            .iter()
            .filter(|(_, _, state, _)| *state == word)
            .count()
    };
    let (callable, held) = (count("callable"), count("held"));
    let listed = !view.record.seen.is_empty();
    let fault = view.served.as_ref().err().map(|why| text::one_line(why));
    let (state, words) = match (&fault, listed) {
        (Some(why), _) => ("faulty", why.clone()),
        (None, false) => ("never-listed", "never listed".to_owned()),
        (None, true) if held > 0 => ("review", format!("{callable} callable, {held} held")),
        (None, true) => ("ready", format!("{callable} callable")),
    };
    ServerRow {
        name: text::one_line(name),
        decision: server_sheet::decision(view),
        state,
        words,
        callable,
        held,
        listed,
        launch: ServerLaunch::of(&view.config).shown(),
        fault,
    }
}

/// One server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerShown {
    #[serde(flatten)]
    row: ServerRow,
    secrets: Vec<String>,
    findings: Vec<FoundView>,
    tools: Vec<ServerToolView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ServerToolView {
    name: String,
    #[serde(rename = "as")]
    here: Option<String>,
    state: &'static str,
    words: String,
}

/// Something suspicious.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundView {
    code: &'static str,
    severity: &'static str,
    message: String,
    place: String,
    evidence: Option<String>,
}

fn found(finding: &SheetFinding) -> FoundView {
    FoundView {
        code: finding.code,
        severity: finding.weight,
        message: finding.message.clone(),
        place: finding.place.clone(),
        evidence: finding.evidence.clone(),
    }
}

pub(crate) fn show(studio: &Studio, name: &str) -> ApiResult<ServerShown> {
    let now = studio.engine().registry().current();
    let view = now.servers().servers().get(name);
    let view = view.ok_or_else(|| ApiError::unknown("there is no such server"))?;
    let findings = ServerLaunch::of(&view.config).findings();
    let findings = findings.iter().map(SheetFinding::of);
    let tools = server_sheet::tools(view).into_iter();
    Ok(ServerShown {
        row: row(name, view),
        secrets: view
            .config
            .secrets()
            .into_iter()
            .map(text::one_line)
            .collect(),
        findings: findings.map(|finding| found(&finding)).collect(),
        tools: tools
            .map(|(name, here, state, words)| ServerToolView {
                name,
                here,
                state,
                words,
            })
            .collect(),
    })
}

/// A server to be added.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerBody {
    name: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    network: Option<NetworkWord>,
    /// The hosts it may reach, in place of `network`.
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    private: bool,
    /// The digest of the preview: proof that this very start was shown.
    #[serde(default)]
    digest: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NetworkWord {
    None,
    Open,
}

impl ServerBody {
    fn written(&self) -> ApiResult<WrittenServer> {
        if let Err(why) = server_settings::check_name(&self.name) {
            return Err(ApiError::invalid(why));
        }
        let is_url = self.url.as_deref().is_some_and(|url| !url.is_empty());
        if is_url != self.command.is_empty() {
            return Err(ApiError::invalid("name a command or an address"));
        }
        // A relative folder would depend on where the server was started.
        let is_relative = |path: &&String| !path.starts_with('/');
        if let Some(path) = self.read.iter().chain(&self.write).find(is_relative) {
            let path = text::elided(&text::one_line(path), 80);
            return Err(ApiError::invalid(format!("`{path}` must begin with `/`")));
        }
        Ok(WrittenServer {
            name: self.name.clone(),
            command: self.command.clone(),
            url: self.url.clone().filter(|_| is_url),
            values: match is_url {
                true => self.headers.clone(),
                false => self.environment.clone(),
            },
            read: self.read.clone(),
            write: self.write.clone(),
            network: self.network.map(|network| match network {
                NetworkWord::None => "none",
                NetworkWord::Open => "open",
            }),
            hosts: self.hosts.clone(),
            era: None,
            private: self.private,
        })
    }
}

/// What would be started, exactly.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerPreview {
    name: String,
    argv: Vec<String>,
    environment: Vec<ValueView>,
    url: Option<String>,
    diff: Vec<DiffLine>,
    findings: Vec<FoundView>,
    refused: Option<String>,
    digest: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ValueView {
    name: String,
    value: String,
}

fn preview(studio: &Studio, _: &Asked, given: ServerBody) -> ApiResult<ServerPreview> {
    let written = given.written()?;
    let now = studio.engine().registry().current();
    let launch = launch(&written);
    let secrets = launch.plain_secrets();
    let value = |(name, value): (&String, &String)| ValueView {
        name: text::one_line(name),
        // A value that looks like a secret is not sent back to the page, not
        // even to its author.
        value: match secrets.contains(name) {
            true => "…".to_owned(),
            false => text::one_line(value),
        },
    };
    let changed = server_settings::with(&now.settings.text, std::slice::from_ref(&written));
    let changed = changed.map_err(|fault| refused(studio, &fault))?;
    let findings: Vec<_> = launch.findings().iter().map(SheetFinding::of).collect();
    Ok(ServerPreview {
        name: written.name.clone(),
        argv: written
            .command
            .iter()
            .map(|word| text::one_line(word))
            .collect(),
        environment: written.values.iter().map(value).collect(),
        url: written.url.as_deref().map(text::one_line),
        diff: diff(&now.settings.text, &changed),
        refused: secret_in(&secrets),
        findings: findings.iter().map(found).collect(),
        digest: digest_of(&written),
    })
}

fn launch(written: &WrittenServer) -> ServerLaunch {
    ServerLaunch {
        command: written.command.clone(),
        url: written.url.clone(),
        values: written.values.clone(),
    }
}

/// A secret in the settings would be shown, copied and committed.
fn secret_in(names: &BTreeSet<String>) -> Option<String> {
    let name = text::one_line(names.iter().next()?);
    Some(format!(
        "the value of `{name}` looks like a secret; set it under Secrets and write `${{NAME}}` here"
    ))
}

fn digest_of(written: &WrittenServer) -> String {
    // Everything that decides what is started. What is not in here could be changed unseen.
    let exact = json!([
        written.name,
        written.command,
        written.url,
        written.values,
        written.read,
        written.write,
        written.network,
        written.hosts,
        written.private,
    ]);
    digest::of_value(&exact).unwrap_or_default()
}

/// A program is started or added only as it was shown, and without a secret in plain text.
fn check_shown(given: &ServerBody, written: &WrittenServer) -> ApiResult<()> {
    // Attack: another page, or another tab, exchanges the command between preview and yes.
    if given.digest.as_deref() != Some(digest_of(written).as_str()) {
        return Err(ApiError::invalid(
            "what is to be added is not what was shown",
        ));
    }
    match secret_in(&launch(written).plain_secrets()) {
        Some(why) => Err(ApiError::invalid(why)),
        None => Ok(()),
    }
}

fn add(studio: &Studio, asked: &Asked, given: ServerBody) -> ApiResult<ServerShown> {
    let written = given.written()?;
    check_shown(&given, &written)?;
    let launch = launch(&written);
    let engine = studio.engine();
    let now = engine.registry().current();
    if now.servers().servers().contains_key(&written.name) {
        return Err(ApiError::invalid("there is a server of that name already"));
    }
    let seen = &now.settings.text;
    let changed = server_settings::with(seen, std::slice::from_ref(&written));
    let changed = changed.map_err(|fault| refused(studio, &fault))?;
    let actor = asked.actor()?;
    // The notice first: nothing is added that the audit does not know of.
    let noted = engine
        .servers()
        .by(actor)
        .note_added(&written.name, &launch.shown());
    noted.map_err(|fault| failed(studio, &fault))?;
    let reason = format!("the server `{}` was added", written.name);
    // By the revision that was shown: settings that changed meanwhile are not overwritten.
    let applied_text = engine.apply_settings(&changed, &revision(seen), (actor, &reason));
    match applied_text {
        Ok(()) => show(studio, &written.name),
        Err(ApplyFault::Changed) => Err(ApiError::conflict("the settings changed since", &())),
        Err(fault) => Err(applied(studio, &fault)),
    }
}

fn remove(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<DoneView> {
    let engine = studio.engine();
    let name = asked.part("name");
    let now = engine.registry().current();
    let seen = &now.settings.text;
    let changed = server_settings::without(seen, name);
    let changed = changed.map_err(|fault| refused(studio, &fault))?;
    let changed = changed.ok_or_else(|| ApiError::unknown("there is no such server"))?;
    let actor = asked.actor()?;
    // What was accepted goes first: if this ends in between, the server is held.
    let forgotten = engine.servers().by(actor).forget(name);
    forgotten.map_err(|fault| failed(studio, &fault))?;
    let reason = format!("the server `{}` was removed", text::one_line(name));
    match engine.apply_settings(&changed, &revision(seen), (actor, &reason)) {
        Ok(()) => Ok(DoneView::OK),
        Err(fault) => Err(applied(studio, &fault)),
    }
}

/// What a server offers against what was accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReviewView {
    server: String,
    digest: String,
    decision: String,
    settled: bool,
    items: Vec<ReviewItem>,
    findings: Vec<FoundView>,
    instructions: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReviewItem {
    name: String,
    change: &'static str,
    state: &'static str,
    state_words: String,
    risk: Option<RiskView>,
    fields: Vec<FieldView>,
    findings: Vec<FoundView>,
    offered: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FieldView {
    field: String,
    class: &'static str,
    before: Option<String>,
    after: Option<String>,
}

async fn review(studio: Studio, asked: Asked) -> ApiResult<ReviewView> {
    let name = asked.part("name").to_owned();
    if asked.flag("fresh")?.unwrap_or(false) {
        if asked.person()?.role < model::govern::person::PersonRole::Owner {
            return Err(ApiError::role("owner"));
        }
        let looked = studio.engine().servers().look(&name).await;
        looked.map_err(|fault| failed(&studio, &fault))?;
    }
    let reviewed = studio.engine().servers().review(&name);
    let reviewed = reviewed.map_err(|fault| failed(&studio, &fault))?;
    Ok(reviewed_view(&name, &reviewed))
}

fn reviewed_view(name: &str, review: &ServerReview) -> ReviewView {
    let own = review
        .findings
        .iter()
        .filter(|finding| finding.item.is_none());
    let own: Vec<_> = own.map(SheetFinding::of).collect();
    let instructions = review.seen.server.instructions.as_deref();
    ReviewView {
        server: text::one_line(name),
        digest: review.digest.clone(),
        decision: model::word::Word::word(review.decision).to_owned(),
        settled: server_sheet::is_settled(review),
        items: server_sheet::items(review).into_iter().map(item).collect(),
        findings: own.iter().map(found).collect(),
        instructions: instructions.map(super::view::lines),
    }
}

fn item(item: SheetItem) -> ReviewItem {
    ReviewItem {
        name: item.name,
        change: item.change,
        state: item.state,
        state_words: item.state_words,
        risk: item.risk.as_ref().map(RiskView::of),
        fields: item
            .fields
            .into_iter()
            .map(|field| FieldView {
                field: field.field,
                class: field.effect,
                before: field.before,
                after: field.after,
            })
            .collect(),
        findings: item.findings.iter().map(found).collect(),
        offered: item.offered,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcceptBody {
    digest: String,
    #[serde(default)]
    tools: Option<BTreeSet<String>>,
}

fn accept(studio: &Studio, asked: &Asked, given: AcceptBody) -> ApiResult<ServerShown> {
    let name = asked.part("name");
    let done = admin(studio, asked)?.accept(name, &given.digest, given.tools.as_ref());
    done.map_err(|fault| failed(studio, &fault))?;
    show(studio, name)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockBody {
    #[serde(default)]
    tool: Option<String>,
}

fn block(studio: &Studio, asked: &Asked, given: BlockBody) -> ApiResult<ServerShown> {
    let name = asked.part("name");
    let done = admin(studio, asked)?.block(name, given.tool.as_deref());
    done.map_err(|fault| failed(studio, &fault))?;
    show(studio, name)
}

fn restart(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<ServerShown> {
    let name = asked.part("name");
    let done = admin(studio, asked)?.restart(name);
    done.map_err(|fault| failed(studio, &fault))?;
    show(studio, name)
}

fn admin<'a>(studio: &'a Studio, asked: &'a Asked) -> ApiResult<ServerAdmin<'a>> {
    Ok(studio.engine().servers().by(asked.actor()?))
}

/// What the processes of a server wrote on standard error, the newest last.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogView {
    items: Vec<ProcessLog>,
}

/// The last lines of one process.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProcessLog {
    running: bool,
    changed_at_ms: i64,
    lines: Vec<String>,
}

fn logs(studio: &Studio, asked: &Asked) -> ApiResult<LogView> {
    let logs = studio.engine().servers().logs(asked.part("name"));
    let logs = logs.map_err(|fault| failed(studio, &fault))?;
    let shown = logs.into_iter().map(|log| {
        let changed = log.changed.duration_since(std::time::UNIX_EPOCH);
        let changed = changed.unwrap_or_default().as_millis();
        ProcessLog {
            running: log.is_running,
            changed_at_ms: i64::try_from(changed).unwrap_or_default(),
            lines: log.lines.iter().map(|line| text::one_line(line)).collect(),
        }
    });
    Ok(LogView {
        items: shown.collect(),
    })
}

fn failed(studio: &Studio, fault: &ServerAdminError) -> ApiError {
    let words = text::one_line(&fault.to_string());
    match fault {
        ServerAdminError::NoSuchServer { .. } | ServerAdminError::NoSuchTool { .. } => {
            ApiError::unknown(words)
        }
        ServerAdminError::Changed(_) => ApiError::conflict(words, &()),
        ServerAdminError::NeverSeen(_) | ServerAdminError::Record { .. } => {
            ApiError::invalid(words)
        }
        ServerAdminError::Fault { log, .. } => {
            let lines: Vec<_> = log.iter().map(|line| text::one_line(line)).collect();
            ApiError::invalid(words).with_details(json!({ "log": lines }))
        }
        ServerAdminError::Engine(fault) => refused(studio, fault),
        ServerAdminError::Store(_) => studio.alarm("the server could not do that", fault),
    }
}
