//! `ringfence run` and `ringfence doctor`: documents in the real sandbox, with the
//! real powers.
//!
//! `cases/run/<name>/`: `code.js` is the body of a tool, `overrides.json` its
//! posture, `arguments.json` what it is called with; `expect.txt` is what comes
//! out. Every case starts with an empty home.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cases::compare;
use crate::ringfence;
use crate::terminal::Terminal;

pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("run")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn read_json(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).expect("a case holds JSON"))
}

/// Writes the case's document into a fresh home and runs it there.
fn run(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let home = scratch(name);
    let arguments = read_json(&folder.join("arguments.json")).unwrap_or_else(|| json!({}));
    let param = |(name, value): (&String, &Value)| {
        let kind = match value {
            Value::String(_) => "STRING",
            Value::Number(number) if number.is_i64() => "INTEGER",
            Value::Number(_) => "NUMBER",
            Value::Bool(_) => "BOOLEAN",
            Value::Array(_) => "ARRAY",
            Value::Object(_) | Value::Null => "OBJECT",
        };
        json!({"name": name, "type": kind, "required": false})
    };
    let params: Vec<_> = arguments.as_object().unwrap().iter().map(param).collect();
    let document = json!({
        "name": "case",
        "code": fs::read_to_string(folder.join("code.js")).unwrap(),
        "codeType": "Javascript",
        "params": params,
        "staticVariables": [{"token": "${CASE_TOKEN}"}],
        "sandboxOverrides": read_json(&folder.join("overrides.json")),
    });
    fs::write(home.join("tool.json"), document.to_string()).unwrap();
    let arguments = arguments.to_string();
    ringfence(&[
        "run",
        "tool.json",
        "--yes",
        "--home",
        ".",
        "--args",
        &arguments,
    ])
    .within(&home)
    .variable("CASE_TOKEN", "sesame-open-1234")
    .shown()
}

#[test]
fn cases_in_the_real_sandbox() {
    compare("run", 20, run);
}

#[test]
fn json_has_the_agreed_shape() {
    let output = ringfence(&[
        "run",
        "examples/hello.json",
        "--args",
        r#"{"who": "Ada"}"#,
        "--json",
    ])
    .variable("RINGFENCE_HOME", &scratch("json").display().to_string())
    .output();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<_> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "callId",
            "status",
            "result",
            "error",
            "console",
            "elapsedMs"
        ]
    );
    assert_eq!(value.get("status").unwrap(), "done");
    assert_eq!(
        value.get("result").unwrap(),
        &json!({"greeting": "Hello, Ada!", "length": 11})
    );
}

fn hello(arguments: &[&str], home: &str) -> String {
    let mut all = vec!["run", "examples/hello.json"];
    all.extend(arguments);
    ringfence(&all)
        .variable("RINGFENCE_HOME", &scratch(home).display().to_string())
        .shown()
}

#[test]
fn a_call_that_does_not_fit_is_refused_before_it_runs() {
    insta::assert_snapshot!(hello(&["--args", r#"{"wo": "Ada"}"#], "unfit"), @r"
    exit 1
    --- stderr
    refused[argument.unknown]: there is no argument `wo`; did you mean `who`?; the argument `who` is required; give a string
    ");
    insta::assert_snapshot!(hello(&["--args", "{who}"], "unfit"), @r"
    exit 2
    --- stderr
    error: `--args` is not JSON: expected a key in double quotes
    ");
}

#[test]
fn a_missing_variable_is_named_and_nothing_runs() {
    let run = ringfence(&[
        "run",
        "examples/weather.json",
        "--args",
        r#"{"city": "Oslo"}"#,
    ])
    .variable("RINGFENCE_HOME", &scratch("missing").display().to_string());
    insta::assert_snapshot!(run.shown(), @r"
    exit 1
    --- stderr
    refused[requirement.missing]: not set: FORECAST_API_KEY
    ");
}

#[test]
fn approval_without_a_terminal_is_a_refusal() {
    let folder = scratch("approval");
    let document = json!({"name": "a", "code": "return 1", "codeType": "Javascript",
        "humanInTheLoop": {"mode": "REQUIRED"}});
    fs::write(folder.join("tool.json"), document.to_string()).unwrap();
    let settings = "[approvals]\nwait_seconds = 1\n";
    fs::write(folder.join("ringfence.toml"), settings).unwrap();
    let run = ringfence(&["run", "tool.json", "--home", "."])
        .within(&folder)
        .input(b"y\n");
    let id = regex::Regex::new("[0-9a-f]{32}").unwrap();
    insta::assert_snapshot!(id.replace_all(&run.shown(), "<id>"), @r"
    exit 1
    --- stderr
    waiting for a person to approve the call: `ringfence approvals approve <id>`
    refused[approval.pending]: a person must approve this call and has not answered yet; it did not run: approve it with `ringfence approvals approve <id>`, then repeat the same call
    ");
}

/// A person at a terminal is asked there.
#[test]
fn a_person_at_a_terminal_is_asked() {
    let folder = scratch("terminal");
    let document = json!({"name": "send", "code": "return `sent ${text}`", "codeType": "Javascript",
        "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
        "sandboxOverrides": {"networkMode": "open"}, "humanInTheLoop": {"mode": "REQUIRED"}});
    fs::write(folder.join("tool.json"), document.to_string()).unwrap();
    let program = env!("CARGO_BIN_EXE_ringfence");
    let line =
        format!(r#"{program} run tool.json --yes --home ring --args '{{"text":"hi\u202e"}}'"#);
    for (answer, expected) in [
        ("y\n", "sent hi"),
        ("n\n", "refused[approval.declined]"),
        ("\n", "refused[approval.declined]"),
        ("a\n", "sent hi"),
    ] {
        let mut terminal = Terminal::start(&line, &folder);
        terminal.answer(answer, 1);
        let (_, shown) = terminal.end();
        for part in [
            "[risk L4 High] `owner` wants to run `send`\r\n",
            "question:\r\n| Run `send` with {\"text\":\"hi\\u{202e}\"}?\r\n",
            "arguments:\r\n| {\"text\":\"hi\\u{202e}\"}\r\n",
            "answer for [risk L4 High] `send`, called by `owner`:\r\n  y = yes, for this call\r\n",
            "  a = yes, for this tool with these arguments, for an hour\r\n",
            "  anything else = no\r\n> ",
            ": [risk L4 High] `send`, called by `owner`\r\n",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains(expected), "{shown}");
    }
}

/// Ctrl-C ends the call, not only the command: the audit says cancelled.
#[test]
fn an_interrupted_call_is_cancelled() {
    let folder = scratch("interrupted");
    let document = json!({"name": "spin", "code": "while (true) {}", "codeType": "Javascript"});
    fs::write(folder.join("spin.json"), document.to_string()).unwrap();
    let home = folder.join("ring").display().to_string();
    // The list may be asked for before the call has made the home.
    fs::create_dir(&home).unwrap();
    fs::write(folder.join("ring/ringfence.toml"), "").unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["run", "spin.json", "--home", &home])
        .current_dir(&folder)
        .env_clear()
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let entries = || {
        let listed = ringfence(&["audit", "list", "--json", "--home", &home]).output();
        let entries: Value = serde_json::from_slice(&listed.stdout).unwrap();
        entries.as_array().unwrap().clone()
    };
    while entries().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    }
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let closing = entries().first().unwrap().get("closing").unwrap().clone();
    assert_eq!(closing.get("status").unwrap(), "cancelled");
}

#[test]
fn doctor_finds_both_sandbox_layers_active() {
    let home = scratch("doctor").display().to_string();
    let output = ringfence(&["doctor", "--json"])
        .variable("RINGFENCE_HOME", &home)
        .output();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{value:#}");
    assert_eq!(value.get("ok").unwrap(), true);
    let layers = value.get("layers").unwrap().as_array().unwrap();
    assert_eq!(layers.len(), 13);
    let children = value
        .pointer("/children/layers")
        .unwrap()
        .as_array()
        .unwrap();
    assert!(children.len() >= 13);
    // A control group only where one may be made.
    let is_up = |wall: &Value| wall["up"] == true || wall["layer"] == "control_group";
    assert!(children.iter().all(is_up), "{value:#}");
}

/// `approvals watch` asks at its terminal what another process
/// wants to run; what was typed before the question is no answer to it.
#[test]
fn questions_of_another_process_are_answered_while_watching() {
    let folder = scratch("watch");
    let document = json!({"name": "send", "code": "return `sent ${text}`", "codeType": "Javascript",
        "params": [{"name": "text", "type": "STRING", "required": true, "testValue": "t"}],
        "sandboxOverrides": {"networkMode": "open"}, "humanInTheLoop": {"mode": "REQUIRED"}});
    fs::write(folder.join("tool.json"), document.to_string()).unwrap();
    // The watch begins before the first call.
    fs::create_dir(folder.join("ring")).unwrap();
    fs::write(folder.join("ring/ringfence.toml"), "").unwrap();
    let program = env!("CARGO_BIN_EXE_ringfence");
    for (answer, expected) in [("y\n", "sent hi"), ("n\n", "refused[approval.declined]")] {
        let line = format!("{program} approvals watch --count 1 --home ring");
        let mut watch = Terminal::start(&line, &folder);
        // Once it is echoed, the terminal holds it.
        watch.type_in("y\n");
        watch.until("y\r\n", 1);
        let mut call = std::process::Command::new(program)
            .args(["run", "tool.json", "--yes", "--home", "ring"])
            .args(["--args", r#"{"text":"hi"}"#])
            .current_dir(&folder)
            .env_clear()
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        watch.until("[risk L4 High] `owner` wants to run `send`", 1);
        watch.until("input typed before the question is ignored", 1);
        for question in 1.. {
            watch.until("> ", question);
            // On a busy machine even this one may count as too fast; then it is asked
            // once more.
            // Sleeps: a faster answer counts as an accident.
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert!(call.try_wait().unwrap().is_none(), "an old key was enough");
            watch.type_in(answer);
            if watch.either("called by `owner`\r\n", "once more", question) {
                break;
            }
        }
        let called = call.wait_with_output().unwrap();
        let said = [called.stdout, called.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(expected), "{said}");
        let (status, shown) = watch.end();
        assert!(status.success(), "{shown}");
    }
}

/// A question at a terminal that is answered elsewhere stops waiting for a key.
#[test]
fn a_question_at_a_terminal_can_be_answered_elsewhere() {
    let folder = scratch("elsewhere");
    let document = json!({"name": "send", "code": "return 'sent'", "codeType": "Javascript",
        "humanInTheLoop": {"mode": "REQUIRED"}});
    fs::write(folder.join("tool.json"), document.to_string()).unwrap();
    fs::create_dir(folder.join("ring")).unwrap();
    let settings = "[approvals]\nautomation = \"L0\"\n";
    fs::write(folder.join("ring/ringfence.toml"), settings).unwrap();
    let line = format!(
        "{} run tool.json --home ring",
        env!("CARGO_BIN_EXE_ringfence")
    );
    let mut terminal = Terminal::start(&line, &folder);
    let inbox = |arguments: &[&str]| {
        let mut all = vec!["approvals"];
        all.extend(arguments);
        all.extend(["--json", "--home", "ring"]);
        let output = ringfence(&all).within(&folder).output();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let id = loop {
        assert!(terminal.is_running(), "it ended by itself");
        let listed = inbox(&["list"]);
        if let Some(first) = listed.as_array().unwrap().first() {
            break first.get("id").unwrap().as_str().unwrap().to_owned();
        }
    };
    let given = inbox(&["approve", &id, "--automation"]);
    assert_eq!(given.get("state").unwrap(), "approved");
    let (_, shown) = terminal.end();
    assert!(shown.contains("wants to run `send`"), "{shown}");
    let over = "no answer is needed any more: [risk L0 Verified] `send`";
    assert!(shown.contains(over), "{shown}");
    assert!(shown.trim_end().ends_with("sent"), "{shown}");
}
