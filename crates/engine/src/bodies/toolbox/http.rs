//! `httpRequest` and `readPage`: one request through the guard of `fetch`, with redirects
//! only where they are asked for, and pages without what a person would not see.

use std::sync::Arc;
use std::time::Duration;

use host::compute::{Account, Turn};
use host::fetch::{Fetch, FetchSettings};
use host::message::{PowerFault, PowerReply, PowerRequest};
use host::page::{PageForm, PageText, read_page};
use model::config::{ConnectionConfig, ConnectionKind, ConnectionTls};
use model::policy::grant::{Grant, NetworkGrant};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use serde_json::{Map, Value, json};
use url::Url;

use crate::bodies::toolbox::ToolboxWork;
use crate::connections;
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::toolbox::only_asks;

mod charset;

/// Seconds of a request that does not say how many.
const SECONDS_DEFAULT: u64 = 30;

/// One request, as its arguments say.
pub(super) async fn request(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let mut headers = match work.arguments.get("headers") {
        Some(Value::Object(headers)) => headers.clone(),
        _ => Map::new(),
    };
    let body = body(work, &mut headers)?;
    let method = work.text("method").unwrap_or("GET");
    let connection = match work.text("connection") {
        None => None,
        Some(name) => Some(find(work, name)?),
    };
    let url = match connection {
        None => work.text("url").unwrap_or_default().to_owned(),
        Some(connection) => {
            authorize(work, connection, &mut headers)?;
            address(connection, work.text("url").unwrap_or_default())?
        }
    };
    // A redirect must not carry the operator's credential to another host.
    let redirect = match work.flag("followRedirects") && connection.is_none() {
        true => "follow",
        false => "manual",
    };
    let ask = PowerRequest {
        arguments: json!({"url": url, "method": method, "headers": headers, "redirect": redirect}),
        bytes: body,
    };
    let reply = fetch(work, ask, connection).await?;
    answer(work, &reply).await.map(RunResult::done)
}

/// One page, as Markdown.
pub(super) async fn read(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let url = work.text("url").unwrap_or_default();
    let ask = PowerRequest {
        arguments: json!({"url": url, "headers": {"accept": "text/html, text/plain;q=0.8"}}),
        bytes: Vec::new(),
    };
    let reply = fetch(work, ask, None).await?;
    let kind = text_of(&reply.value, "contentType").to_lowercase();
    // A page with a wrong type, or none, must not show the text it hides from people.
    let page = match is_page(&kind) || looks_like_page(&reply.bytes) {
        true => page(work, &reply, PageForm::Markdown).await?,
        false if is_text(&kind) => PageText {
            text: clean(&charset::decode(&reply.bytes, &kind)),
            ..PageText::default()
        },
        false => {
            let message = "the address does not lead to a page or a text";
            return Err(refuse(Reason::HttpFailed, message));
        }
    };
    let start = usize::try_from(work.number("startIndex").unwrap_or(0)).unwrap_or(usize::MAX);
    let most = work
        .number("maxLength")
        .unwrap_or(limit::PAGE_CHARS_DEFAULT);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let shown: String = page.text.chars().skip(start).take(most).collect();
    let count = shown.chars().count();
    let is_more = page.text.chars().nth(start.saturating_add(count)).is_some();
    Ok(RunResult::done(json!({
        "url": text_of(&reply.value, "url"),
        "status": reply.value.get("status"),
        "title": page.title,
        "markdown": shown,
        "truncated": is_more || page.truncated,
        "nextStartIndex": is_more.then(|| start.saturating_add(count)),
        "hiddenElements": page.hidden_elements,
        "hiddenCharacters": page.hidden_characters,
    })))
}

/// The body and, where the caller says nothing, its type.
fn body(work: &ToolboxWork<'_>, headers: &mut Map<String, Value>) -> Result<Vec<u8>, CallRefusal> {
    let (text, kind) = match (work.text("body"), work.arguments.get("json")) {
        (Some(_), Some(_)) => {
            let message = "give `body` or `json`, not both";
            return Err(refuse(Reason::ArgumentSchema, message));
        }
        (Some(text), None) => (text.to_owned(), "text/plain; charset=utf-8"),
        (None, Some(json)) => (json.to_string(), "application/json"),
        (None, None) => return Ok(Vec::new()),
    };
    let is_typed = headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("content-type"));
    if !is_typed {
        headers.insert("content-type".to_owned(), kind.into());
    }
    Ok(text.into_bytes())
}

/// A connection of the operator's, for a request that it takes.
fn find<'a>(work: &'a ToolboxWork<'_>, name: &str) -> Result<&'a ConnectionConfig, CallRefusal> {
    let config = &work.now.config;
    let kind = ConnectionKind::Http;
    let found = connections::find(config, work.request, &work.groups, name, kind)?;
    match only_asks(&work.arguments) || found.write {
        true => Ok(found),
        false => {
            let message = format!("nothing is sent to `{name}` that could change something");
            let note = "the connection does not have `write = true`";
            Err(refuse(Reason::HttpDenied, message).noted(note))
        }
    }
}

/// Adds the credential. A caller's own header of the same name would decide who we are.
fn authorize(
    work: &ToolboxWork<'_>,
    connection: &ConnectionConfig,
    headers: &mut Map<String, Value>,
) -> Result<(), CallRefusal> {
    // A cookie would sign in as someone else, and `host` would choose another site behind
    // the same address.
    headers.retain(|name, _| {
        !["authorization", "cookie", "host"].contains(&name.to_ascii_lowercase().as_str())
    });
    let Some(secret) =
        connections::credential(work.engine.variable_source(), &work.masker, connection)?
    else {
        return Ok(());
    };
    let value = match &connection.user {
        None => format!("Bearer {secret}"),
        Some(user) => format!("Basic {}", base64(format!("{user}:{secret}").as_bytes())),
    };
    headers.insert("authorization".to_owned(), value.into());
    Ok(())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |index: usize| usize::from(three.get(index).copied().unwrap_or(0));
        let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for index in 0..4 {
            let letter = LETTERS.get((number >> (18 - 6 * index)) & 63);
            match index > three.len() {
                true => text.push('='),
                false => text.extend(letter.map(|letter| char::from(*letter))),
            }
        }
    }
    text
}

/// The address at the connection's host, whatever the caller wrote before the path.
fn address(connection: &ConnectionConfig, raw_url: &str) -> Result<String, CallRefusal> {
    let scheme = match connection.tls {
        ConnectionTls::Required => "https",
        ConnectionTls::Off => "http",
    };
    let away = || {
        let message = format!("`url` leads away from the host of `{}`", connection.name);
        refuse(Reason::HttpDenied, message)
    };
    let base = format!("{scheme}://{}:{}/", connection.host, connection.port);
    let base = Url::parse(&base).map_err(|_| away())?;
    let joined = base.join(raw_url).map_err(|_| away())?;
    let is_same = joined.origin() == base.origin()
        && joined.username().is_empty()
        && joined.password().is_none();
    match is_same {
        true => Ok(joined.into()),
        false => Err(away()),
    }
}

/// One request with the grant of the call, its hops on record. A connection's host is
/// granted by the operator, and nothing else is reached with it.
async fn fetch(
    work: &ToolboxWork<'_>,
    ask: PowerRequest,
    connection: Option<&ConnectionConfig>,
) -> Result<PowerReply, CallRefusal> {
    let seconds = work.number("timeout").unwrap_or(SECONDS_DEFAULT);
    let seconds = seconds.min(work.now.config.toolbox.seconds_max);
    let settings = &work.settings;
    let tls = settings.trust.tls().map_err(|fault| {
        let message = "the network of the call cannot be set up";
        refuse(Reason::PowerUnavailable, message).noted(crate::error::causes(&fault))
    })?;
    let mut fetch_settings = FetchSettings::new(tls, Arc::clone(&work.masker));
    fetch_settings.limits = settings.fetch_limits.clone();
    fetch_settings.limits.whole = Duration::from_secs(seconds);
    fetch_settings.limits.first_byte = Duration::from_secs(seconds);
    fetch_settings.limits.body_bytes_max = limit::HTTP_BODY_BYTES_MAX;
    fetch_settings.resolver = Arc::clone(&settings.resolver);
    fetch_settings.connector = Arc::clone(&settings.connector);
    fetch_settings.private_hosts = Arc::clone(&settings.private_hosts);
    let mut grant = Grant::from_policy(&work.policy);
    let own = &work.now.config.toolbox.hosts;
    match (&mut grant.network, connection) {
        // The hosts of connections are for calls that name one.
        (NetworkGrant::Allowlist(hosts), None) => hosts.retain(|host| own.contains(host)),
        (NetworkGrant::Allowlist(_) | NetworkGrant::Strict | NetworkGrant::Open, _) => {}
        (NetworkGrant::Blocked, None) => {}
        (NetworkGrant::Blocked, Some(_)) => {
            let message = "the caller's level leaves this tool no network";
            return Err(refuse(Reason::LevelDenied, message));
        }
    }
    if let Some(connection) = connection {
        let pattern = connection
            .pattern()
            .ok_or_else(|| refuse(Reason::ConnectionFailed, "the connection has no host"))?;
        // Only this host may be private. The list of the settings is for calls without a
        // credential.
        if connection.private {
            fetch_settings.private_hosts = Arc::from([pattern.clone()]);
        }
        grant.network = NetworkGrant::Allowlist(vec![pattern]);
    }
    let Some(fetch) = Fetch::from_grant(&grant.network, &grant.bounds, fetch_settings) else {
        let message = "no host is allowed; the operator lists hosts in `toolbox.hosts`";
        return Err(refuse(Reason::HttpDenied, message));
    };
    let mut note = FetchNote {
        work,
        fetch: &fetch,
    };
    let fetched = fetch.run(ask).await;
    for event in &fetched.events {
        work.powers.note(event.to_json());
    }
    note.close();
    fetched.outcome.map_err(|fault| explain(work, &fault))
}

/// Hops of a request that was dropped while it was under way belong in the record too.
struct FetchNote<'a> {
    work: &'a ToolboxWork<'a>,
    fetch: &'a Fetch,
}

impl FetchNote<'_> {
    fn close(&mut self) {
        for event in self.fetch.take_abandoned() {
            self.work.powers.note(event.to_json());
        }
    }
}

impl Drop for FetchNote<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// The reply as the caller asked for it.
async fn answer(work: &ToolboxWork<'_>, reply: &PowerReply) -> Result<Value, CallRefusal> {
    let kind = text_of(&reply.value, "contentType").to_lowercase();
    let asked = work.text("as").unwrap_or("auto");
    let form = match asked {
        "auto" if kind.contains("json") => "json",
        "auto" if is_page(&kind) => "page",
        "auto" => "text",
        asked => asked,
    };
    let mut value = json!({
        "status": reply.value.get("status"),
        "ok": reply.value.get("ok"),
        "url": text_of(&reply.value, "url"),
        "headers": headers(&reply.value),
        "contentType": reply.value.get("contentType"),
        "bytes": reply.bytes.len(),
        "truncated": false,
    });
    let mut put = |name: &str, member: Value| {
        if let Some(members) = value.as_object_mut() {
            members.insert(name.to_owned(), member);
        }
    };
    match form {
        "json" => match serde_json::from_slice::<Value>(&reply.bytes) {
            Ok(json) => put("json", json),
            // What calls itself JSON and is none is shown as what it is.
            Err(_) if asked == "auto" => put("text", shown(&reply.bytes, &kind).into()),
            Err(_) => return Err(refuse(Reason::HttpFailed, "the body is not JSON")),
        },
        "page" => {
            let page = page(work, reply, PageForm::Text).await?;
            put("title", page.title.into());
            put("text", page.text.into());
            put("truncated", page.truncated.into());
            put("hiddenElements", page.hidden_elements.into());
            put("hiddenCharacters", page.hidden_characters.into());
        }
        _ if is_binary(&reply.bytes) => {
            put("text", "".into());
            put("truncated", (!reply.bytes.is_empty()).into());
        }
        _ => put("text", shown(&reply.bytes, &kind).into()),
    }
    Ok(value)
}

/// A page takes long to read, so it is read where computations take turns.
async fn page(
    work: &ToolboxWork<'_>,
    reply: &PowerReply,
    form: PageForm,
) -> Result<PageText, CallRefusal> {
    let kind = text_of(&reply.value, "contentType").to_lowercase();
    let text = charset::decode(&reply.bytes, &kind);
    let base = Url::parse(text_of(&reply.value, "url")).ok();
    let time = Duration::from_secs(limit::COMPUTE_SECONDS_MAX);
    let deadline = std::time::Instant::now() + time;
    let account = Account::new(&work.settings.caller, time, deadline);
    let reading = move |turn: &Turn| {
        let page = read_page(&text, base.as_ref(), form, turn)?;
        Ok(PowerReply {
            value: json!({
                "title": page.title, "truncated": page.truncated,
                "elements": page.hidden_elements, "characters": page.hidden_characters,
            }),
            bytes: page.text.into_bytes(),
        })
    };
    let read = work.settings.compute.run(&account, "page", reading).await;
    let read = read.map_err(|fault| explain(work, &fault))?;
    let count = |name: &str| {
        let count = read.value.get(name).and_then(Value::as_u64);
        usize::try_from(count.unwrap_or(0)).unwrap_or(usize::MAX)
    };
    Ok(PageText {
        title: read
            .value
            .get("title")
            .and_then(Value::as_str)
            .map(str::to_owned),
        truncated: read.value.get("truncated") == Some(&Value::Bool(true)),
        hidden_elements: count("elements"),
        hidden_characters: count("characters"),
        text: String::from_utf8_lossy(&read.bytes).into_owned(),
    })
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_page(kind: &str) -> bool {
    kind.contains("html")
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || kind.contains("json") || kind.contains("xml") || kind.is_empty()
}

fn looks_like_page(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(256)).unwrap_or_default();
    let head = String::from_utf8_lossy(head).trim_start().to_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

fn shown(bytes: &[u8], kind: &str) -> String {
    clean(&charset::decode(bytes, kind))
}

/// Text without characters that draw nothing.
fn clean(text: &str) -> String {
    let keeps =
        |character: &char| matches!(character, '\n' | '\t') || !model::text::is_hidden(*character);
    text.chars().filter(keeps).collect()
}

/// The headers of a reply by name; cookies are between the server and a browser.
fn headers(reply: &Value) -> Value {
    let mut headers = Map::new();
    let pairs = reply.get("headers").and_then(Value::as_array);
    for pair in pairs.into_iter().flatten() {
        let (Some(name), Some(value)) = (
            pair.get(0).and_then(Value::as_str),
            pair.get(1).and_then(Value::as_str),
        ) else {
            continue;
        };
        if name != "set-cookie" {
            let before = headers.get(name).and_then(Value::as_str);
            let joined = before.map(|before| format!("{before}, {value}"));
            headers.insert(
                name.to_owned(),
                joined.unwrap_or_else(|| value.to_owned()).into(),
            );
        }
    }
    Value::Object(headers)
}

fn refuse(reason: Reason, message: impl Into<String>) -> CallRefusal {
    CallRefusal::with_status(Status::Failed, CallError::new(reason, message.into()))
}

/// What the guard or the network said, masked before anything of it is cut.
fn explain(work: &ToolboxWork<'_>, fault: &PowerFault) -> CallRefusal {
    let reason = match fault.kind {
        host::FaultKind::Security => Reason::HttpDenied,
        host::FaultKind::InvalidInput => Reason::ArgumentSchema,
        host::FaultKind::HelperRuntime => Reason::HttpFailed,
    };
    let message = fault.told(&work.masker);
    refuse(reason, format!("{message} ({})", fault.reason))
}
