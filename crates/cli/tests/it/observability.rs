//! What operators watch: every metric that a dashboard or an alert names is on the page
//! that a running server shows after some calls, and every metric of that page is in the
//! guide.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;
use serde_json::{Value, json};

use crate::masked::{ask, call, key};
use crate::run::scratch;
use crate::serve::{command, command_to, first_line, terminate};
use crate::{ringfence, root};

/// Names of metrics in a text, without what the format adds to them.
fn metrics(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\bringfence_[a-z_]+").unwrap();
    let names = name.find_iter(text).map(|found| base(found.as_str()));
    names.collect()
}

/// The name of a metric that a series belongs to.
fn base(series: &str) -> String {
    let endings = ["_total", "_bucket", "_count", "_sum", "_info"];
    let mut name = series;
    for ending in endings {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name.to_owned()
}

#[test]
fn dashboards_alerts_and_the_guide_name_what_a_server_shows() {
    let home = scratch("observability").join("ring");
    let place = home.display().to_string();
    let made = ringfence(&["expose", "countWords", "--home", &place]);
    assert!(made.shown().starts_with("exit 0"), "{}", made.shown());
    let file = home.join("ringfence.toml");
    let settings = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, settings + "\n[toolbox]\nenabled = [\"terminal\"]\n").unwrap();
    let agent = key(&home, "ann", "agent");
    let operator = key(&home, "bob", "operator");
    let mut child = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &home);
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();
    // A call that is done, one that is refused, and a request without a key.
    call(&address, &agent, "countWords", &json!({"text": "one two"}));
    call(&address, &agent, "nothing", &json!({}));
    ask(&address, "no key", "GET /metrics HTTP/1.1\r\n", "");
    let page = ask(&address, &operator, "GET /metrics HTTP/1.1\r\n", "");
    assert_eq!(terminate(&mut child), Some(0));
    assert!(page.contains("# EOF"), "{page}");
    for line in [
        "ringfence_approvals_waiting 0",
        "ringfence_audit_owed 0",
        "ringfence_audit_signing_fault 0",
        "ringfence_audit_contradictions 0",
        "ringfence_servers{state=\"failed\"} 0",
        "ringfence_jails_running 0",
        "ringfence_jail_layer{layer=\"files\"} 1",
        "ringfence_jail_layer{layer=\"system_calls\"} 1",
        "ringfence_egress_decisions_total{verdict=\"refused\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    // Gauges that a call moved.
    for (metric, least) in [
        ("ringfence_workers_ready", 1.0),
        ("ringfence_audit_bytes", 100.0),
    ] {
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("{metric} ")));
        let value: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(value >= least, "{metric}: {value}");
    }
    let series = page.lines().filter(|line| !line.starts_with('#'));
    let shown = metrics(&series.collect::<Vec<_>>().join("\n"));
    for file in ["calls.json", "load.json", "alerts.yml"] {
        let path = root().join("docs/dashboards").join(file);
        let text = fs::read_to_string(&path).unwrap();
        if file.ends_with(".json") {
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{file}");
        }
        let named = metrics(&text);
        assert!(named.len() > 5, "{file} names {named:?}");
        let missing: Vec<_> = named.difference(&shown).collect();
        assert!(missing.is_empty(), "{file} names {missing:?}");
    }
    let guide = fs::read_to_string(root().join("docs/guide/observability.md")).unwrap();
    let rows = guide
        .lines()
        .filter(|line| line.starts_with("| `ringfence_"));
    let documented = metrics(&rows.collect::<Vec<_>>().join("\n"));
    assert_eq!(documented, shown);
}

/// `up` is a series of Prometheus itself: all there is while a server shows nothing.
#[test]
fn one_alert_is_about_a_server_that_shows_nothing() {
    let alerts = fs::read_to_string(root().join("docs/dashboards/alerts.yml")).unwrap();
    let (mut ours, mut its_own) = (0, 0);
    for expression in alerts
        .lines()
        .filter_map(|it| it.trim().strip_prefix("expr: "))
    {
        match metrics(expression).is_empty() {
            false => ours += 1,
            true => {
                assert_eq!(expression, "up{job=\"ringfence\"} == 0");
                its_own += 1;
            }
        }
    }
    assert!(ours > 5, "{ours}");
    assert_eq!(its_own, 1);
    let guide = fs::read_to_string(root().join("docs/guide/observability.md")).unwrap();
    assert!(guide.contains("job_name: ringfence\n"));
}

#[test]
fn the_log_of_a_server_is_json_with_call_ids_and_no_payloads() {
    let home = scratch("json-log").join("ring");
    let place = home.display().to_string();
    let made = ringfence(&["expose", "countWords", "--home", &place]);
    assert!(made.shown().starts_with("exit 0"), "{}", made.shown());
    let agent = key(&home, "ann", "agent");
    // Nothing listens there: the warning about it is a line of the log as well.
    let settings = "[telemetry]\notlp_endpoint = \"http://127.0.0.1:1/v1/traces\"\n";
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let log = home.join("stderr");
    let words = [
        "serve",
        "--json",
        "--logs",
        "json",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut child = command_to(&words, &home, fs::File::create(&log).unwrap().into());
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();
    let payload = "a-word-that-stays-inside";
    call(&address, &agent, "countWords", &json!({"text": payload}));
    call(&address, &agent, "nothing", &json!({}));
    // A warning: settings that cannot be read.
    fs::write(home.join("ringfence.toml"), "[nothing]\n").unwrap();
    call(&address, &agent, "countWords", &json!({"text": payload}));
    assert_eq!(terminate(&mut child), Some(0));
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains(payload), "{text}");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let is = |line: &Value, name: &str, value: &str| {
        line.get(name).and_then(Value::as_str) == Some(value)
    };
    let calls: Vec<_> = lines
        .iter()
        .filter(|it| is(it, "message", "call"))
        .collect();
    assert_eq!(calls.len(), 3, "{text}");
    assert!(lines.iter().any(|it| is(it, "level", "warning")), "{text}");
    assert!(text.contains("traces cannot be sent"), "{text}");
    let refused = calls.iter().find(|it| is(it, "status", "refused"));
    assert!(is(refused.unwrap(), "code", "tool.unknown"), "{text}");
    // The id leads to the audit.
    let id = calls.first().and_then(|it| it.get("callId")).unwrap();
    let shown = ringfence(&["audit", "show", id.as_str().unwrap(), "--home", &place]);
    assert!(shown.shown().starts_with("exit 0"), "{}", shown.shown());
}

#[test]
fn a_question_that_waits_is_a_line_of_the_json_log() {
    let home = scratch("json-question").join("ring");
    fs::create_dir_all(&home).unwrap();
    let settings = "[approvals]\nwait_seconds = 3\n\n[telemetry]\nlogs = \"json\"\n\n\
                    [[rule]]\nid = \"ask\"\ntools = [\"countWords\"]\neffect = \"ask\"\n";
    fs::write(home.join("ringfence.toml"), settings).unwrap();
    let agent = key(&home, "ann", "agent");
    let log = home.join("stderr");
    let words = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let mut child = command_to(&words, &home, fs::File::create(&log).unwrap().into());
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = ready.get("url").unwrap().as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap().to_owned();
    call(&address, &agent, "countWords", &json!({"text": "one two"}));
    assert_eq!(terminate(&mut child), Some(0));
    let text = fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.map(|line| line.expect(&text)).collect();
    let is_it = |line: &&Value| {
        let said = line["message"].as_str().unwrap_or_default();
        said.starts_with("a call of `countWords` by `ann` waits for approval: answer it with")
    };
    assert_eq!(lines.iter().filter(is_it).count(), 1, "{text}");
}

/// `audit tail | head` ends when `head` does.
#[test]
fn a_tail_ends_with_its_reader() {
    let home = scratch("tail").join("ring");
    let make = || {
        let place = home.display().to_string();
        let words = [
            "run",
            "countWords",
            "--args",
            r#"{"text": "a"}"#,
            "--home",
            &place,
        ];
        let made = ringfence(&words);
        assert!(made.shown().starts_with("exit 0"), "{}", made.shown());
    };
    make();
    let mut tail = command(&["audit", "tail"], &home);
    // The first line shows that it runs; then its reader goes. It sees that at its next line.
    let reading = std::thread::scope(|scope| {
        let line = scope.spawn(|| first_line(&mut tail));
        while !line.is_finished() {
            make();
        }
        line.join().unwrap()
    });
    assert!(reading.contains("countWords"), "{reading}");
    drop(tail.stdout.take());
    for _ in 0..20 {
        make();
        if let Some(status) = tail.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            return;
        }
    }
    tail.kill().unwrap();
    panic!("it goes on without a reader");
}
