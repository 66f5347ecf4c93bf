//! The engine does not believe the guest: what was not granted is refused here,
//! whatever a sandbox asks for. And what was asked is on record.

use std::time::Duration;

use host::fetch::connect::Connecting;
use host::fetch::resolve::Lookup;
use model::policy::grant::FileGrant;
use model::policy::host_bound::HostBounds;
use sandbox::job::{HostCallId, HostCallKind};
use serde_json::Value;

use super::*;

fn request(operation: &str, json: &str) -> HostRequest {
    HostRequest {
        id: HostCallId(1),
        kind: HostCallKind::Direct,
        operation: operation.to_owned(),
        payload: Payload {
            json: json.to_owned(),
            bytes: Vec::new(),
        },
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn ask(operation: &str, json: &str) -> HostAnswer {
    runtime().block_on(Powers::none().call(request(operation, json)))
}

/// No name has an answer, and no connection comes about.
#[derive(Debug)]
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        Box::pin(std::future::pending())
    }
}

impl Connector for Nowhere {
    fn connect(&self, address: std::net::SocketAddr) -> Connecting<'_> {
        panic!("somebody called {address}");
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("ringfence-powers-{name}-{}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reading, writing and the network, in a folder.
fn powers(folder: &Folder, change: impl FnOnce(&mut PowerSettings)) -> Powers {
    let mut settings = PowerSettings::new(folder.0.clone());
    settings.resolver = Arc::new(Nowhere);
    settings.connector = Arc::new(Nowhere);
    change(&mut settings);
    let grant = Grant {
        network: NetworkGrant::Strict,
        bounds: HostBounds::default(),
        files: FileGrant {
            read: true,
            write: true,
            base_path: None,
        },
    };
    let secrets = Arc::new(Masker::new([]).expect("a masker"));
    let deadline = Instant::now() + Duration::from_secs(60);
    Powers::from_grant(&grant, &settings, secrets, deadline).expect("powers")
}

fn events(powers: &Powers) -> Vec<String> {
    let (events, dropped) = powers.take_events();
    assert_eq!(dropped, 0);
    let word = |event: &Value, key: &str| {
        let value = event.get(key).and_then(Value::as_str);
        value.unwrap_or("-").to_owned()
    };
    let shown = |event: &Value| {
        let keys = ["kind", "function", "operation", "host", "path", "refusal"];
        keys.map(|key| word(event, key)).join(" ")
    };
    events.iter().map(shown).collect()
}

#[test]
fn events_are_recorded_in_order() {
    let folder = Folder::new("order");
    let powers = powers(&folder, |_| ());
    runtime().block_on(async {
        for (operation, json) in [
            ("fs.writeText", r#"["a.txt", "one"]"#),
            ("fetch", r#"{"url": "http://10.0.0.1/"}"#),
            ("fs.readText", r#"["a.txt"]"#),
            ("fs.readText", r#"["../b.txt"]"#),
            ("fetch", r#"{"url": ""}"#),
            ("probe", "[]"),
            ("parser.yaml", r#"{"text": "a: 1"}"#),
        ] {
            powers.call(request(operation, json)).await;
        }
    });
    assert_eq!(
        events(&powers),
        [
            "file writeText - - a.txt -",
            "fetch - - 10.0.0.1 - literal-private-ip",
            "file readText - - a.txt -",
            "file readText - - ../b.txt path-escapes-base",
            "fetch - -  - missing-url",
            "refused - probe - - not-granted",
        ]
    );
    assert!(events(&powers).is_empty(), "they are handed on once");
}

/// A run that ends drops what is under way; it may have happened all the same.
#[test]
fn interrupted_operations_are_recorded() {
    let folder = Folder::new("dropped");
    let powers = powers(&folder, |_| ());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    // The one thread that could write is held up, so that the write cannot end.
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || held.recv().is_ok());
    runtime.block_on(async {
        let fetch = powers.call(request("fetch", r#"{"url": "http://api.example.com/"}"#));
        let file = powers.call(request("fs.writeText", r#"["a.txt", "one"]"#));
        tokio::select! {
            biased;
            _ = fetch => panic!("nobody answers"),
            _ = file => panic!("nobody writes"),
            () = std::future::ready(()) => {}
        }
    });
    let mut events = events(&powers);
    events.sort();
    assert_eq!(
        events,
        [
            "fetch - - api.example.com - interrupted",
            "file writeText - - a.txt interrupted",
        ]
    );
    drop(release);
}

#[test]
fn events_beyond_the_bound_are_counted() {
    let folder = Folder::new("bound");
    let powers = powers(&folder, |_| ());
    runtime().block_on(async {
        for _ in 0..CALL_EVENTS_MAX + 3 {
            powers.call(request("fs.exists", r#"["a"]"#)).await;
        }
    });
    let (events, dropped) = powers.take_events();
    assert_eq!((events.len(), dropped), (CALL_EVENTS_MAX, 3));
}

#[test]
fn each_caller_has_a_workspace_of_its_own() {
    let folder = Folder::new("callers");
    let path = |caller: &str| {
        let powers = powers(&folder, |settings| {
            settings.sub_workspace = Some(caller.to_owned());
        });
        let answer = runtime().block_on(powers.call(request("fs.workspace", "[]")));
        match answer {
            HostAnswer::Value(payload) => payload.json,
            HostAnswer::Error(text) => panic!("{text}"),
        }
    };
    assert_ne!(path("ada"), path("grace"));
    assert!(path("ada").ends_with("/ada\""));
}

#[track_caller]
fn refused(operation: &str, json: &str, kind: &str, reason: &str) {
    let HostAnswer::Error(text) = ask(operation, json) else {
        panic!("`{operation}` was answered");
    };
    let fault: Value = serde_json::from_str(&text).expect("a fault is JSON");
    assert_eq!(fault["kind"], kind, "{operation}");
    assert_eq!(fault["reason"], reason, "{operation}");
}

#[test]
fn powers_without_a_grant_are_refused() {
    for operation in [
        "fetch",
        "fs.readText",
        "fs.writeText",
        "fs.",
        "",
        "probe",
        "FETCH",
        "parser.htm",
    ] {
        refused(operation, "[]", "SECURITY", "not-granted");
    }
}

#[test]
fn arguments_that_are_not_json_are_refused() {
    refused(
        "crypto.randomUUID",
        "{",
        "INVALID_INPUT",
        "invalid-arguments",
    );
}

#[test]
fn computing_needs_no_grant() {
    let HostAnswer::Value(answer) = ask("parser.yaml", r#"{"text": "a: 1"}"#) else {
        panic!("no answer");
    };
    assert!(answer.json.contains(r#""a":1"#), "{}", answer.json);
}

/// A request to stretch a password, long enough to be seen under way.
fn stretch(rounds: u32) -> HostRequest {
    let asked = format!(r#"{{"hash":"SHA-512","iterations":{rounds},"length":64,"parts":[1,1]}}"#);
    let mut request = request("crypto.pbkdf2", &asked);
    request.payload.bytes = vec![1, 2];
    request
}

/// One caller stretches passwords in sixty calls. Another's parser answers, and a file is
/// read, while those are under way; and when they are dropped, the work ends.
#[test]
fn computation_of_one_caller_does_not_delay_another() {
    let folder = Folder::new("compute");
    let compute = Compute::new(1);
    let of = |caller: &str| {
        powers(&folder, |settings| {
            settings.caller = caller.to_owned();
            settings.compute = compute.clone();
        })
    };
    let greedy: Vec<_> = (0..60).map(|_| of("greedy")).collect();
    let other = of("other");
    runtime().block_on(async {
        let mut under_way: Vec<_> = greedy
            .iter()
            .map(|powers| powers.call(stretch(2_000_000)))
            .collect();
        let mut held = std::pin::pin!(std::future::poll_fn(|context| {
            for work in &mut under_way {
                if work.as_mut().poll(context).is_ready() {
                    return std::task::Poll::Ready("a password was stretched first");
                }
            }
            std::task::Poll::Pending
        }));
        for _ in 0..5 {
            let parsed = other.call(request("parser.yaml", r#"{"text": "a: 1"}"#));
            let answer = tokio::select! {
                biased;
                answer = parsed => answer,
                first = &mut held => panic!("{first}"),
            };
            assert!(matches!(answer, HostAnswer::Value(_)), "{answer:?}");
        }
        let found = other.call(request("fs.exists", r#"["a"]"#)).await;
        assert!(matches!(found, HostAnswer::Value(_)), "{found:?}");
    });
    while compute.load() != (0, 0) {
        std::thread::yield_now();
    }
    let spent = compute.spent();
    runtime().block_on(other.call(request("fs.exists", r#"["a"]"#)));
    assert_eq!(compute.spent(), spent, "nothing goes on after the calls");
}

#[test]
fn helper_computation_is_billed_to_the_call() {
    let folder = Folder::new("charged");
    let settings = PowerSettings::new(folder.0.clone());
    let grant = Grant {
        network: NetworkGrant::Blocked,
        files: FileGrant {
            read: false,
            write: false,
            base_path: None,
        },
        bounds: HostBounds::default(),
    };
    let secrets = Arc::new(Masker::new([]).expect("a masker"));
    let deadline = Instant::now() + Duration::from_millis(30);
    let powers = Powers::from_grant(&grant, &settings, secrets, deadline).expect("powers");
    let answer = runtime().block_on(powers.call(stretch(2_000_000)));
    let HostAnswer::Error(text) = answer else {
        panic!("it was stretched in 30 ms");
    };
    assert!(
        text.contains("stopped") || text.contains("compute-budget"),
        "{text}"
    );
}

#[test]
fn no_power_shows_no_face() {
    assert!(Powers::none().faces().is_empty());
}
