//! Code mode with other people's clients: four tools on the list, a search, a
//! description, and the answer of a job of ten tools from one script.

use serde_json::{Value, json};

use crate::client::{Client, Kind, Way};
use crate::inspector::inspect;
use crate::tools::{named, said};
use crate::world::Home;

const FOUR: [&str; 4] = [
    "codecall_describe",
    "codecall_execute",
    "codecall_invoke",
    "codecall_search",
];

/// Calls ten tools, each with what the ones before it gave.
const JOB: &str = r#"
const greeting = await callTool("greet", { who: "Ada" });
const snake = await callTool("convertCase", { text: greeting, to: "snake" });
const words = await callTool("countWords", { text: greeting });
const hash = await callTool("hashText", { input: greeting });
const encoded = await callTool("encodeBase64", { text: greeting });
const decoded = await callTool("decodeBase64", { base64: encoded.base64 });
const slug = await callTool("slugifyText", { text: greeting });
const length = await callTool("convertUnits", { value: 2, from: "km", to: "m" });
const sum = await callTool("evaluateExpression", { expression: "6 * 7" });
const roman = await callTool("convertRoman", { input: "XLII" });
mcpNotify("progress", { done: 10 });
const all = [greeting, snake, words, hash, encoded, decoded, slug, length, sum, roman];
return { greeting: decoded.text, sum: sum.result, count: all.length };
"#;

fn home(name: &str) -> Home {
    let home = Home::new(name);
    let settings = "[exposure]\npreset = \"everything\"\n[codecall]\nmode = \"codecall_only\"\n";
    home.settings(settings);
    home
}

fn visit(kind: Kind, mode: (&str, bool), way: Way<'_>) {
    let steps = json!([
        {"do": "list"},
        {"do": "call", "name": "codecall_search", "arguments": {"queries": ["greet somebody", "zzqx"]}},
        {"do": "call", "name": "codecall_describe", "arguments": {"toolNames": ["greet", "nothing"]}},
        {"do": "call", "name": "codecall_execute", "arguments": {"script": JOB}, "progress": true},
        {"do": "call", "name": "codecall_invoke", "arguments": {"tool": "greet", "input": {"who": "Zoë"}}},
        {"do": "call", "name": "greet", "arguments": {"who": "Zoë"}},
    ]);
    let client = Client::start(kind, mode, way, &json!({"steps": steps}));
    let listed = client.step(0);
    client.check(named(&listed) == FOUR, &listed);

    let found = client.step(1);
    client.check(found["isError"] == json!(false), &found);
    let answer: Value = serde_json::from_str(said(&found)).unwrap();
    client.check(answer["tools"][0]["name"] == json!("greet"), &found);
    client.check(answer["warnings"][0]["type"] == json!("no_results"), &found);

    let described = client.step(2);
    let answer: Value = serde_json::from_str(said(&described)).unwrap();
    let code = answer["tools"][0]["usageExamples"][0]["code"].as_str();
    let expected = r#"return await callTool("greet", {"who":"Ada"});"#;
    client.check(code == Some(expected), &described);
    client.check(answer["notFound"] == json!(["nothing"]), &described);

    let executed = client.step(3);
    client.check(executed["isError"] == json!(false), &executed);
    let answer: Value = serde_json::from_str(said(&executed)).unwrap();
    client.check(answer["status"] == json!("ok"), &executed);
    client.check(answer["result"]["count"] == json!(10), &executed);
    client.check(
        answer["result"]["greeting"] == json!("Hello, Ada!"),
        &executed,
    );
    client.check(answer["result"]["sum"] == json!(42), &executed);
    client.check(
        !executed["progress"].as_array().unwrap().is_empty(),
        &executed,
    );

    let invoked = client.step(4);
    client.check(said(&invoked).contains("Hello, Zoë!"), &invoked);
    let direct = client.step(5);
    client.check(direct["error"]["code"] == json!(-32602), &direct);
}

#[test]
fn every_client_does_a_job_of_ten_tools_in_one_script() {
    let home = home("codecall-http");
    let server = home.serve();
    for kind in [Kind::Python, Kind::SdkV1, Kind::ClientV2] {
        for mode in kind.modes() {
            visit(kind, *mode, Way::Http(&server));
        }
    }
    drop(server);
    visit(Kind::Python, ("legacy", false), Way::Pipes(&home));
}

#[test]
fn the_inspector_does_it_too() {
    let home = home("codecall-inspector");
    let server = home.serve();
    let token = format!("Authorization: Bearer {}", server.token);
    for era in ["legacy", "modern"] {
        let target = [
            server.url.as_str(),
            "--transport",
            "http",
            "--protocol-era",
            era,
            "--header",
            &token,
        ];
        let listed = inspect(&home, &target, &["--method", "tools/list"], era);
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, FOUR);
        let call = |tool: &str, argument: &str| {
            let method = [
                "--method",
                "tools/call",
                "--tool-name",
                tool,
                "--tool-arg",
                argument,
            ];
            let called = inspect(&home, &target, &method, era);
            assert_ne!(called["result"]["isError"], json!(true), "{era}: {called}");
            called["result"]["structuredContent"].clone()
        };
        let found = call("codecall_search", r#"queries=["greet somebody"]"#);
        assert_eq!(found["tools"][0]["name"], "greet", "{era}");
        let described = call("codecall_describe", r#"toolNames=["greet"]"#);
        assert_eq!(described["tools"][0]["name"], "greet", "{era}");
        let done = call("codecall_execute", &format!("script={JOB}"));
        assert_eq!(done["result"]["count"], 10, "{era}: {done}");
    }
}
