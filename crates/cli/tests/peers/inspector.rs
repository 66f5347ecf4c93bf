//! The Inspector's command line: a list and a call, in each of its eras and over pipes.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{node, peers};
use crate::world::Home;

#[test]
fn the_inspector_lists_and_calls_over_http() {
    let home = Home::new("inspector-http");
    let server = home.serve();
    let token = format!("Authorization: Bearer {}", server.token);
    for era in ["legacy", "auto", "modern"] {
        let target = [
            server.url.as_str(),
            "--transport",
            "http",
            "--protocol-era",
            era,
            "--header",
            &token,
        ];
        look(&home, &target, era);
    }
}

#[test]
fn the_inspector_lists_and_calls_over_pipes() {
    let home = Home::new("inspector-pipes");
    let environment = format!("RINGFENCE_HOME={}", home.path());
    let target = [env!("CARGO_BIN_EXE_ringfence"), "stdio", "-e", &environment];
    look(&home, &target, "stdio");
}

/// The Inspector reads the settings of other clients as they read them.
pub(crate) fn listed_by_file(home: &Home, file: &Path, what: &str) {
    let target = ["--config", file.to_str().unwrap(), "--server", "ringfence"];
    let listed = inspect(home, &target, &["--method", "tools/list"], what);
    assert!(listed.to_string().contains("greet"), "{what}: {listed}");
}

fn look(home: &Home, target: &[&str], what: &str) {
    let listed = inspect(home, target, &["--method", "tools/list"], what);
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"greet") && names.contains(&"convertUnits"),
        "{what}: {names:?}"
    );
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "greet",
        "--tool-arg",
        "who=Ada",
    ];
    let called = inspect(home, target, &call, what);
    assert!(
        called.to_string().contains("Hello, Ada!"),
        "{what}: {called}"
    );
    assert_ne!(called["result"]["isError"], json!(true), "{what}: {called}");
}

pub(crate) fn inspect(home: &Home, target: &[&str], method: &[&str], what: &str) -> Value {
    let package = peers().join("node/node_modules/@modelcontextprotocol/inspector");
    let output = Command::new(node())
        .arg(package.join("clients/launcher/build/index.js"))
        .arg("--cli")
        .args(target)
        .args(method)
        .args(["--format", "json", "-q"])
        // It keeps a catalog of servers in the user's home.
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{what}: {printed}{said}");
    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{what}: printed {printed}{said}"))
}
