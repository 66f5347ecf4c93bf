//! An MCP server over standard input and output for tests: one that behaves, and many
//! that do not. The first argument says how it behaves; `--tools FILE` gives it another
//! list. It is written by hand, for a library would not let it misbehave.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

struct TestServer {
    behaviour: String,
    tools: Option<String>,
    call_count: usize,
    modern: bool,
    /// Who listens to changes, in the newer era.
    listener: Option<Value>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut server = TestServer {
        behaviour: "good".to_owned(),
        tools: None,
        call_count: 0,
        modern: false,
        listener: None,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--tools" => server.tools = arguments.next(),
            "--modern" => server.modern = true,
            behaviour => server.behaviour = behaviour.to_owned(),
        }
    }
    server.run()
}

/// The next line of standard input. It is not kept locked: a call may read too.
fn read_line() -> Option<String> {
    let mut line = String::new();
    let count = std::io::stdin().read_line(&mut line).ok()?;
    (count > 0).then_some(line)
}

/// A server takes its time; nothing else here ends a wait.
fn wait(time: Duration) {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
    drop(sender);
}

fn send(message: &Value) {
    send_line(&message.to_string());
}

fn send_line(message: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

fn answer(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

impl TestServer {
    fn run(&mut self) -> ExitCode {
        match self.behaviour.as_str() {
            "exit-early" => {
                complain("cannot start: the disk is on fire");
                return ExitCode::from(3);
            }
            "noise" => {
                for line in 0..100 {
                    let _ = writeln!(std::io::stdout(), "starting up, step {line}");
                }
            }
            "endless-noise" => {
                while writeln!(std::io::stdout(), "still starting up").is_ok() {}
                return ExitCode::FAILURE;
            }
            "slow-handshake" => wait(Duration::from_secs(30)),
            "fork" => {
                // A grandchild that outlives its parent.
                let _ = std::process::Command::new("/bin/sh")
                    .args(["-c", "setsid sleep 300 & exit 0"])
                    .spawn()
                    .and_then(|mut child| child.wait());
            }
            "stubborn" => ignore_term(),
            _ => {}
        }
        while let Some(line) = read_line() {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if let Some(exit) = self.handle(&message) {
                return exit;
            }
        }
        if self.behaviour == "stubborn" {
            wait(Duration::from_secs(300));
        }
        ExitCode::SUCCESS
    }

    fn handle(&mut self, message: &Value) -> Option<ExitCode> {
        let method = message.get("method")?.as_str()?;
        let id = message.get("id").cloned().unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_default();
        match method {
            "initialize" if !self.modern => answer(
                &id,
                json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities(),
                    "serverInfo": {"name": "test-server", "version": "1.0.0"},
                    "instructions": "A server for tests.",
                }),
            ),
            "server/discover" if self.modern => answer(
                &id,
                json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities(),
                    "serverInfo": {"name": "test-server", "version": "1.0.0"},
                    "instructions": "A server for tests.",
                    "ttlMs": 0,
                    "cacheScope": "private",
                }),
            ),
            "tools/list" => self.list(&id, &params),
            "tools/call" => return self.call(&id, &params),
            "prompts/list" => self.complete(&id, json!({"prompts": prompts()})),
            "prompts/get" => match prompt(&params) {
                Some(result) => self.complete(&id, result),
                None => refuse(&id, -32602, "no such prompt"),
            },
            "resources/list" => self.complete(&id, json!({"resources": resources()})),
            "resources/templates/list" => self.complete(
                &id,
                json!({"resourceTemplates": [{"uriTemplate": "test://item/{id}", "name": "item"}]}),
            ),
            "resources/read" => match resource(&params) {
                Some(result) => self.complete(&id, result),
                None => refuse(&id, -32002, "no such resource"),
            },
            "subscriptions/listen" if self.modern => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                send(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {
                        "_meta": meta,
                        "notifications": params.get("notifications").cloned().unwrap_or_default(),
                    },
                }));
                self.listener = Some(id);
            }
            "ping" => answer(&id, json!({})),
            _ if id.is_null() => {}
            _ => refuse(&id, -32601, "no such method"),
        }
        None
    }

    /// Answers with what the newer era wants besides.
    fn complete(&self, id: &Value, mut result: Value) {
        if let (true, Some(members)) = (self.modern, result.as_object_mut()) {
            members.insert("resultType".to_owned(), "complete".into());
            members.insert("ttlMs".to_owned(), 0.into());
            members.insert("cacheScope".to_owned(), "private".into());
        }
        answer(id, result);
    }

    /// Tells that the list of tools is another one.
    fn tell_change(&self) {
        let mut message =
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
        if let (Some(listener), Some(params)) = (&self.listener, message.get_mut("params")) {
            *params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": listener}});
        }
        send(&message);
    }

    fn list(&self, id: &Value, params: &Value) {
        let page = |tools: Value, next: Option<&str>| {
            let mut page = json!({"tools": tools});
            if let (Some(next), Some(members)) = (next, page.as_object_mut()) {
                members.insert("nextCursor".to_owned(), next.into());
            }
            if let (true, Some(members)) = (self.modern, page.as_object_mut()) {
                members.insert("resultType".to_owned(), "complete".into());
                members.insert("ttlMs".to_owned(), 0.into());
                members.insert("cacheScope".to_owned(), "private".into());
            }
            page
        };
        let one = |name: String| json!([{"name": name, "inputSchema": {"type": "object"}}]);
        let cursor = params.get("cursor").and_then(Value::as_str).unwrap_or("0");
        let number: u64 = cursor.parse().unwrap_or_default();
        match self.behaviour.as_str() {
            "same-cursor" => answer(id, page(one(format!("t{number}")), Some("1"))),
            "endless-pages" => {
                let next = (number + 1).to_string();
                answer(id, page(one(format!("t{number}")), Some(&next)));
            }
            "many-tools" => {
                let all = (0..100_000).map(
                    |index| json!({"name": format!("t{index}"), "inputSchema": {"type": "object"}}),
                );
                answer(id, page(all.collect(), None));
            }
            "long-line" => {
                let words = "x".repeat(16 * 1024 * 1024);
                let tool =
                    json!([{"name": "t", "description": words, "inputSchema": {"type": "object"}}]);
                answer(id, page(tool, None));
            }
            "no-list" => refuse(id, -32603, "no list today"),
            "grows-on-second-page" if number == 0 => answer(id, page(self.tools(), Some("1"))),
            "grows-on-second-page" => {
                let required = if self.call_count >= 3 {
                    json!(["more"])
                } else {
                    json!([])
                };
                let schema = json!({
                    "type": "object", "required": required,
                    "properties": {"more": {"type": "string"}},
                });
                answer(
                    id,
                    page(json!([{"name": "second", "inputSchema": schema}]), None),
                );
            }
            "two-pages" if number == 0 => answer(id, page(self.tools(), Some("1"))),
            "two-pages" => answer(id, page(one("second".to_owned()), None)),
            _ => answer(id, page(self.tools(), None)),
        }
    }

    fn tools(&self) -> Value {
        if let Some(file) = &self.tools
            && let Ok(text) = std::fs::read_to_string(file)
            && let Ok(tools) = serde_json::from_str(&text)
        {
            return tools;
        }
        let words = |name: &str, about: &str, properties: Value| {
            json!({
                "name": name, "description": about,
                "inputSchema": {"type": "object", "properties": properties},
            })
        };
        let description = match self.behaviour.as_str() {
            "changes-after-three" if self.call_count >= 3 => "Gives the words back, and more.",
            _ => "Gives the words back.",
        };
        json!([
            {
                "name": "echo", "title": "Echo", "description": description,
                "inputSchema": {
                    "type": "object", "required": ["words"], "additionalProperties": false,
                    "properties": {"words": {"type": "string"}},
                },
            },
            {
                "name": "add", "description": "Adds two numbers.",
                "inputSchema": {
                    "type": "object", "required": ["a", "b"],
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                },
                "outputSchema": {
                    "type": "object", "required": ["sum"],
                    "properties": {"sum": {"type": "number"}},
                },
            },
            words("fail", "Fails.", json!({})),
            words("refuse", "Answers with an error of the protocol.", json!({})),
            words("picture", "Gives every type of content.", json!({})),
            words("slow", "Waits, and tells how far it is.", json!({"ms": {"type": "integer"}})),
            words("variable", "Gives a variable back.", json!({"name": {"type": "string"}})),
            words("read", "Reads a file.", json!({"path": {"type": "string"}})),
            words("ask", "Asks a person for a colour.", json!({})),
            words("die", "Ends the server.", json!({})),
        ])
    }

    /// What happens before a call is answered.
    fn begin_call(&mut self) {
        self.call_count += 1;
        if self.behaviour == "list-flood" {
            for _ in 0..10_000 {
                self.tell_change();
            }
        }
        let changes = ["changes-after-three", "grows-on-second-page"];
        if changes.contains(&self.behaviour.as_str()) && self.call_count == 3 {
            self.tell_change();
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Option<ExitCode> {
        self.begin_call();
        let name = params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let arguments = params.get("arguments").cloned().unwrap_or_default();
        let word = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let result = match name {
            "echo" => {
                if word("words").starts_with("complain") {
                    complain(word("words"));
                }
                text(word("words"))
            }
            "add" => {
                let number = |key: &str| arguments.get(key).and_then(Value::as_f64);
                let sum = number("a").unwrap_or_default() + number("b").unwrap_or_default();
                json!({
                    "content": [{"type": "text", "text": sum.to_string()}],
                    "structuredContent": {"sum": sum},
                })
            }
            "second" => text("from the second page"),
            "fail" => json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}),
            "refuse" => {
                refuse(id, -32000, "not today");
                return None;
            }
            "picture" => every_content(),
            "slow" => {
                slow(params, &arguments);
                text("done")
            }
            "variable" => text(&std::env::var(word("name")).unwrap_or_else(|_| "unset".to_owned())),
            "read" => read(word("path")),
            "ask" if self.modern => match params.get("inputResponses") {
                Some(answers) => text(&answers.to_string()),
                None => {
                    answer(id, asks(&arguments));
                    return None;
                }
            },
            "ask" => match ask(&arguments) {
                Some(answered) => text(&answered.to_string()),
                None => text("no answer"),
            },
            "die" => {
                complain("told to die");
                return Some(ExitCode::from(9));
            }
            _ => return odd_call(id, name),
        };
        let mut result = result;
        if let (true, Some(members)) = (self.modern, result.as_object_mut()) {
            members.insert("resultType".to_owned(), "complete".into());
        }
        answer(id, result);
        None
    }
}

/// Calls that no library would answer so.
fn odd_call(id: &Value, name: &str) -> Option<ExitCode> {
    match name {
        "long" => answer(id, text(&"x".repeat(9 * 1024 * 1024))),
        "babble" => {
            while writeln!(std::io::stdout(), "thinking").is_ok() {}
            return Some(ExitCode::FAILURE);
        }
        "half" => {
            // As a server in JavaScript writes a text that it cut inside an emoji.
            let result = text("a@ \u{1f600}").to_string().replace('@', "\\ud83d");
            send_line(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
            ));
        }
        _ => refuse(id, -32602, "no such tool"),
    }
    None
}

fn read(path: &str) -> Value {
    match std::fs::read_to_string(path) {
        Ok(content) => text(&content),
        Err(error) => {
            json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true})
        }
    }
}

fn every_content() -> Value {
    json!({"content": [
        {"type": "text", "text": "all of them"},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "test://a", "text": "inside"}},
        {"type": "resource_link", "uri": "test://b", "name": "b"},
    ]})
}

/// The value of the variable a call names.
fn variable(arguments: &Value) -> Option<String> {
    std::env::var(arguments.get("variable")?.as_str()?).ok()
}

/// Waits in ten parts and tells of each.
fn slow(params: &Value, arguments: &Value) {
    let ms = arguments.get("ms").and_then(Value::as_u64).unwrap_or(100);
    let words = variable(arguments).unwrap_or_else(|| "working".to_owned());
    let token = params
        .get("_meta")
        .and_then(|meta| meta.get("progressToken"));
    for step in 1..=10 {
        wait(Duration::from_millis(ms / 10));
        if let Some(token) = token {
            send(&json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": step, "total": 10, "message": words},
            }));
        }
    }
}

/// An answer that ends with a question, as the newer era has it.
fn asks(arguments: &Value) -> Value {
    let request = json!({"method": "elicitation/create", "params": question(arguments)});
    json!({
        "resultType": "input_required", "requestState": "round one",
        "inputRequests": {"colour": request},
    })
}

fn question(arguments: &Value) -> Value {
    let words = variable(arguments).unwrap_or_else(|| "Which colour?".to_owned());
    let field = arguments.get("field").and_then(Value::as_str);
    let field = field.unwrap_or("colour");
    json!({
        "mode": "form",
        "message": words,
        "requestedSchema": {
            "type": "object", "properties": {field: {"type": "string"}},
        },
    })
}

fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true},
    })
}

fn prompts() -> Value {
    json!([{
        "name": "greet", "description": "Greets a person.",
        "arguments": [{"name": "who", "description": "The person.", "required": true}],
    }])
}

fn prompt(params: &Value) -> Option<Value> {
    let name = params.get("name")?.as_str()?;
    let who = params.get("arguments")?.get("who")?.as_str()?;
    let words = format!("Greet {who}.\u{1b}[31m");
    let message =
        json!({"role": "user", "content": {"type": "text", "text": words, "_meta": {"x": 1}}});
    (name == "greet").then(|| json!({"description": "A greeting.", "messages": [message]}))
}

fn resources() -> Value {
    json!([
        {"uri": "test://page", "name": "page", "description": "A page.", "mimeType": "text/plain"},
        {"uri": "test://token", "name": "token", "mimeType": "text/plain"},
    ])
}

fn resource(params: &Value) -> Option<Value> {
    let uri = params.get("uri")?.as_str()?;
    let words = match uri {
        "test://page" => "a page".to_owned(),
        "test://token" => std::env::var("TOKEN").unwrap_or_else(|_| "unset".to_owned()),
        _ => format!("item {}", uri.strip_prefix("test://item/")?),
    };
    let content = json!({"uri": uri, "mimeType": "text/plain", "text": words, "_meta": {"x": 1}});
    Some(json!({"contents": [content]}))
}

/// Asks the client, and waits for its answer.
fn ask(arguments: &Value) -> Option<Value> {
    send(&json!({
        "jsonrpc": "2.0", "id": "ask-1", "method": "elicitation/create",
        "params": question(arguments),
    }));
    while let Some(line) = read_line() {
        let message: Value = serde_json::from_str(&line).ok()?;
        if message.get("id") == Some(&json!("ask-1")) {
            return message.get("result").cloned();
        }
    }
    None
}

/// A process that does not care about SIGTERM: its shell traps it.
fn ignore_term() {
    let _ = std::process::Command::new("/bin/sh")
        .args(["-c", "trap '' TERM; sleep 300"])
        .spawn();
}
