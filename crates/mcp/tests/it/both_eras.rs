//! What both eras say over both transports: lists, calls, results, errors.

use engine::callable::CallableTool;
use model::caller::{Caller, Origin};
use serde_json::{Value, json};

use crate::client::{Http, LEGACY, Pipe, call, request};
use crate::world::{Server, World, document, echo};

/// One client of each kind.
pub(crate) enum Peer {
    LegacyHttp(Http),
    ModernHttp(Http),
    LegacyPipe(Pipe),
    ModernPipe(Pipe),
}

impl Peer {
    pub(crate) async fn all(world: &World, server: &Server, capabilities: &Value) -> Vec<Peer> {
        let mut http = server.client().await;
        http.begin(LEGACY, capabilities.clone()).await;
        let (mut pipe, _, _) = world.pipe();
        pipe.begin(LEGACY, capabilities.clone()).await;
        let (modern_pipe, _, _) = world.pipe();
        vec![
            Peer::LegacyHttp(http),
            Peer::ModernHttp(server.client().await),
            Peer::LegacyPipe(pipe),
            Peer::ModernPipe(modern_pipe),
        ]
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Peer::ModernHttp(_) | Peer::ModernPipe(_))
    }

    /// The whole answer.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        match self {
            Peer::LegacyHttp(http) => http.post(message).await.last().await,
            Peer::ModernHttp(http) => http.modern(message).await.last().await,
            Peer::LegacyPipe(pipe) => pipe.ask(message).await,
            Peer::ModernPipe(pipe) => pipe.modern(message, json!({})).await,
        }
    }
}

/// What is listed besides the tools of code mode, which come with it.
fn beside_code_mode(listed: &Value) -> Vec<Value> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    let is_ours = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("codecall_");
    assert_eq!(tools.iter().filter(is_ours).count(), 4, "{listed}");
    tools
        .iter()
        .filter(|tool| !is_ours(tool))
        .cloned()
        .collect()
}

#[tokio::test]
async fn code_mode_says_what_it_may_do_and_goes_when_it_is_off() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let list = request(1, "tools/list", json!({}));
    let listed = client.modern(&list).await.last().await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(find("codecall_search")["annotations"]["readOnlyHint"], true);
    let hints = &find("codecall_execute")["annotations"];
    assert_eq!(hints["readOnlyHint"], false);
    assert_eq!(hints["openWorldHint"], true);
    let query = &find("codecall_search")["inputSchema"]["properties"]["queries"]["items"];
    assert_eq!(query["maxLength"], 256);
    let settings = "[exposure]\npreset = \"none\"\n[codecall]\nmode = \"off\"\n";
    world.home.file("ringfence.toml", settings);
    let listed = client.modern(&list).await.last().await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    let script = json!({"script": "return 1 + 1 + 1 + 1 + 1;"});
    let answer = client.modern(&call(2, "codecall_execute", script)).await;
    assert_eq!(answer.last().await["error"]["code"], -32602);
    server.end().await;
}

#[tokio::test]
async fn every_client_lists_the_same() {
    let world = World::new().await;
    let server = world.serve().await;
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        let listed = peer.ask(&request(1, "tools/list", json!({}))).await;
        let tools = beside_code_mode(&listed);
        assert_eq!(tools.len(), 1, "{listed}");
        assert_eq!(tools[0]["name"], "echo");
        assert_eq!(tools[0]["description"], "For a test.");
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to say"}},
            "required": ["text"],
            "additionalProperties": false,
        });
        assert_eq!(tools[0]["inputSchema"], schema);
        let hints = json!({
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
            "openWorldHint": false,
        });
        assert_eq!(tools[0]["annotations"], hints);
        assert_eq!(tools[0]["_meta"]["ringfence/risk"]["level"], "L0");
        let modern = peer.is_modern();
        let hint = |key: &str| listed["result"].get(key).cloned();
        assert_eq!(hint("ttlMs"), modern.then(|| json!(0)));
        assert_eq!(hint("cacheScope"), modern.then(|| json!("private")));
        assert_eq!(hint("resultType"), modern.then(|| json!("complete")));
        let who = &listed["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(who.as_str(), modern.then_some("ringfence"));
    }
    server.end().await;
}

/// What each era makes of a value: its text, and what is structured.
#[tokio::test]
async fn every_value_arrives() {
    let world = World::new().await;
    let rows = [
        ("text", "return 'a\\nb'", "a\nb", Some(json!("a\nb"))),
        (
            "object",
            "return {a: [1]}",
            r#"{"a":[1]}"#,
            Some(json!({"a": [1]})),
        ),
        ("list", "return [1, 2]", "[1,2]", Some(json!([1, 2]))),
        ("null", "return null", "null", Some(json!(null))),
        ("nothing", "console.log('secret talk')", "undefined", None),
    ];
    for (name, code, _, _) in &rows {
        world.publish(&document(name, code, json!({}))).await;
    }
    let server = world.serve().await;
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        for (id, (name, _, text, value)) in rows.iter().enumerate() {
            let id = u64::try_from(id).unwrap();
            let answer = peer.ask(&call(id, name, json!({}))).await;
            let result = answer["result"].as_object().unwrap();
            assert_eq!(result["content"], json!([{"type": "text", "text": text}]));
            assert_eq!(result["isError"], false);
            let shown = match value {
                Some(value) if peer.is_modern() || value.is_object() => Some(value),
                _ => None,
            };
            assert_eq!(result.get("structuredContent"), shown, "{answer}");
            assert!(!answer.to_string().contains("secret talk"));
        }
    }
    server.end().await;
}

#[tokio::test]
async fn errors_are_results_the_model_can_read() {
    let world = World::new().await;
    let code = "if (!go) return 0; throw new Error('no luck')";
    let params = json!([{"name": "go", "type": "BOOLEAN", "required": true, "testValue": "false"}]);
    world
        .publish(&document("throws", code, json!({"params": params})))
        .await;
    let server = world.serve().await;
    let rows = [
        ("echo", json!({}), "argument.missing", "`text` is required"),
        (
            "echo",
            json!({"text": 5}),
            "argument.type",
            "must be a string",
        ),
        (
            "echo",
            json!({"text": "x", "more": 1}),
            "argument.unknown",
            "no argument `more`",
        ),
        ("throws", json!({"go": true}), "tool.threw", "no luck"),
    ];
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        for (tool, arguments, code, words) in &rows {
            let answer = peer.ask(&call(1, tool, arguments.clone())).await;
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{answer}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(words) && text.contains(code), "{text}");
            assert_eq!(result["structuredContent"]["code"], *code);
            assert_eq!(result["structuredContent"]["retryable"], false);
            assert_eq!(
                result["_meta"]["ringfence/error"],
                result["structuredContent"]
            );
        }
    }
    server.end().await;
}

/// A home with a tool behind every gate that hides.
async fn hiding() -> (World, Vec<String>) {
    let settings = "[exposure.exclude]\nnames = [\"excludd\"]\n\
        [callers.ann]\ndeny = [\"deniedd\"]\n[callers.stdio]\ndeny = [\"deniedd\"]\n\
        [expected]\ntools = [\"excludd\", \"deniedd\"]\n";
    let world = World::with(settings).await;
    let long = "l".repeat(200);
    for name in ["deniedd", "excludd", &long, "größer!"] {
        world.publish(&document(name, "return 1", json!({}))).await;
    }
    world.write(&document("draftdd", "return 1", json!({})));
    let needs = json!({"staticVariables": [{"key": "${NOT_SET_ANYWHERE}"}]});
    world.write(&document("needsdd", "return 1", needs));
    let hidden = ["deniedd", "excludd", "draftdd", "needsdd", "größer!", &long];
    (world, hidden.map(str::to_owned).to_vec())
}

/// A hidden tool and an absent one get the same reply, to the byte.
#[tokio::test]
async fn hidden_is_the_same_as_absent() {
    let (world, hidden) = hiding().await;
    let server = world.serve().await;
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let mut modern = server.client().await;
    for name in &hidden {
        let absent: String = name.chars().rev().collect();
        let absent = if absent == *name {
            name.replace('l', "m")
        } else {
            absent
        };
        let plain = name.is_ascii();
        for arguments in [json!({}), json!({"x": 1})] {
            let mut said = Vec::new();
            for tool in [name, &absent] {
                let message = call(1, tool, arguments.clone());
                let answer = legacy.post(&message).await;
                let status = answer.status;
                let text = answer
                    .last()
                    .await
                    .to_string()
                    .replace(tool.as_str(), "NAME");
                assert!(text.contains("-32602"), "{text}");
                said.push((status, text));
                if plain {
                    let answer = modern.modern(&message).await;
                    let status = answer.status;
                    let kind = answer.headers["content-type"].to_str().unwrap().to_owned();
                    let text = answer.text().await.replace(tool.as_str(), "NAME");
                    said.push((status, format!("{kind} {text}")));
                }
            }
            let half = said.len() / 2;
            assert_eq!(said[..half], said[half..]);
        }
    }
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        let listed = peer.ask(&request(1, "tools/list", json!({}))).await;
        assert_eq!(beside_code_mode(&listed).len(), 1, "{listed}");
    }
    server.end().await;
}

/// What is listed can be called, and nothing else can.
#[tokio::test]
async fn list_and_call_agree() {
    let (world, hidden) = hiding().await;
    for caller in ["ann", "bob"] {
        let caller = Caller::named(caller);
        let offered = world.engine().callable_tools(&caller, Origin::Mcp);
        let name = |offered: &CallableTool| offered.usable.document.name.clone();
        let offered: Vec<_> = offered.iter().map(name).collect();
        let every = hidden.iter().map(String::as_str).chain(["echo", "absent"]);
        for tool in every {
            let arguments = json!({"text": "x"});
            let request =
                engine::call::CallRequest::new(caller.clone(), Origin::Mcp, tool, arguments);
            let outcome = world.engine().call(request).await.into_inner();
            let known = outcome
                .error
                .is_none_or(|error| error.reason.code() != "tool.unknown");
            assert_eq!(known, offered.iter().any(|name| name == tool), "{tool}");
        }
    }
}

#[tokio::test]
async fn hints_come_from_the_policy() {
    let world = World::new().await;
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let more = json!({
        "title": "Write \u{202e}it down", "category": "FILE",
        "icons": [{"src": picture, "mimeType": "image/png"}, {"src": "http://plain.test/x.png"}, 5],
        "sandboxOverrides": {"fileWrite": true},
        "params": [{"name": "lines", "type": "ARRAY", "required": false, "description": " "}],
    });
    world.publish(&document("writer", "return 1", more)).await;
    let more =
        json!({"sandboxOverrides": {"networkMode": "allowlist", "hostsAllow": ["api.test"]}});
    world.publish(&document("web", "return 1", more)).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let listed = client
        .modern(&request(1, "tools/list", json!({})))
        .await
        .last()
        .await;
    let tools = beside_code_mode(&listed);
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "web", "writer"]);
    let hints = |tool: &Value| {
        let hints = &tool["annotations"];
        let hint = |key: &str| hints[key].as_bool();
        [
            hint("readOnlyHint"),
            hint("destructiveHint"),
            hint("idempotentHint"),
            hint("openWorldHint"),
        ]
    };
    assert_eq!(
        hints(&tools[1]),
        [Some(false), Some(true), None, Some(true)]
    );
    assert_eq!(
        hints(&tools[2]),
        [Some(false), Some(true), None, Some(false)]
    );
    assert_eq!(tools[2]["title"], "Write \\u{202e}it down");
    assert_eq!(
        tools[2]["icons"],
        json!([{"src": picture, "mimeType": "image/png"}])
    );
    assert_eq!(tools[2]["_meta"]["ringfence/category"], "FILE");
    assert_ne!(tools[2]["_meta"]["ringfence/risk"]["reasons"], json!([]));
    let lines = json!({"type": "array", "items": {}});
    assert_eq!(tools[2]["inputSchema"]["properties"]["lines"], lines);
    server.end().await;
}

#[tokio::test]
async fn revisions_are_agreed_on() {
    let world = World::new().await;
    let server = world.serve().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = server.client().await;
        let begun = client.begin(version, json!({})).await;
        assert_eq!(begun["result"]["protocolVersion"], version);
        assert_eq!(begun["result"]["serverInfo"]["name"], "ringfence");
        assert_eq!(
            begun["result"]["capabilities"],
            json!({"tools": {"listChanged": true}})
        );
        let answer = client
            .post(&call(1, "echo", json!({"text": "hi"})))
            .await
            .last()
            .await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi");
    }
    let mut client = server.client().await;
    let message = request(1, "server/discover", json!({}));
    let found = client.modern(&message).await.last().await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    server.end().await;
}

/// An edit is in force at the next list and the next call.
#[tokio::test]
async fn edits_take_effect_at_the_next_request() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    world
        .publish(&document("late", "return 'here'", json!({})))
        .await;
    let answer = client
        .modern(&call(1, "late", json!({})))
        .await
        .last()
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "here");
    // An edit makes a draft of it.
    world.write(&document("late", "return 'changed'", json!({})));
    let answer = client
        .modern(&call(2, "late", json!({})))
        .await
        .last()
        .await;
    assert_eq!(answer["error"]["code"], -32602);
    let listed = client
        .modern(&request(3, "tools/list", json!({})))
        .await
        .last()
        .await;
    let tools = beside_code_mode(&listed);
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["name"], echo()["name"]);
    server.end().await;
}
