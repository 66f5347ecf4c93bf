//! A real Prometheus scrapes a server once, finds its metrics sound, and evaluates the
//! alert rules we ship.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::Home;

/// Ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn program(name: &str) -> PathBuf {
    let path = root().join("target/peers/debian/usr/bin").join(name);
    assert!(path.exists(), "{}; run `cargo xtask peers`", path.display());
    path
}

/// The body of an answer to a GET. In version 1.0, a body is not sent in chunks.
fn get(address: &str, version: &str, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!("GET {path} HTTP/{version}\r\nhost: {address}\r\n{headers}");
    let request = format!("{head}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1);
    (status == Some("200")).then(|| body.to_owned())
}

/// What Prometheus answers to a query of its API.
fn api(address: &str, path: &str) -> Option<Value> {
    serde_json::from_str(&get(address, "1.0", path, "")?).ok()
}

fn promtool(arguments: &[&str], input: Option<&str>) -> String {
    let mut child = Command::new(program("promtool"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(input.unwrap_or_default().as_bytes())
        .unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// A page of OpenMetrics in the older text format, which is all that `promtool` reads: there,
/// the name of a counter ends with `_total`, and what is known of a build is a gauge.
fn older_format(page: &str) -> String {
    let is = |name: &str, kind: &str| {
        let wanted = format!("# TYPE {name} {kind}");
        page.lines().any(|line| line == wanted)
    };
    let mut older = String::new();
    for line in page.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let line = match words.as_slice() {
            ["#", "HELP" | "TYPE", name, rest] => {
                let (word, rest) = (words[1], rest.trim_end_matches('.'));
                if is(name, "counter") {
                    format!("# {word} {name}_total {rest}")
                } else if is(name, "info") {
                    format!("# {word} {name}_info {}", rest.replace("info", "gauge"))
                } else {
                    format!("# {word} {name} {rest}")
                }
            }
            [name, ..] if name.starts_with("ringfence_") => line.to_owned(),
            _ => continue,
        };
        older.push_str(&line);
        older.push('\n');
    }
    older
}

#[test]
fn a_prometheus_scrapes_a_server_and_takes_its_alerts() {
    let alerts = root().join("docs/dashboards/alerts.yml");
    let checked = promtool(&["check", "rules", alerts.to_str().unwrap()], None);
    assert!(checked.contains("SUCCESS"), "{checked}");

    let home = Home::new("prometheus");
    home.must(&["run", "greet", "--args", r#"{"who": "Ada"}"#]);
    let key = home.must(&["keys", "add", "prometheus", "--role", "operator"]);
    let key = key.trim();
    let server = home.serve();
    let target = server.url.strip_prefix("http://").unwrap();
    let target = target.strip_suffix("/mcp").unwrap();

    let authorization = format!("authorization: Bearer {key}\r\n");
    let page = get(target, "1.1", "/metrics", &authorization).unwrap();
    let page = older_format(&page);
    assert!(page.lines().count() > 50, "{page}");
    let said = promtool(&["check", "metrics"], Some(&page));
    assert_eq!(said, "");

    let folder = PathBuf::from(home.path()).join("prometheus");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("key"), key).unwrap();
    let settings = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\n\
         rule_files: [{:?}]\n\
         scrape_configs:\n  - job_name: ringfence\n    authorization:\n      \
         credentials_file: {:?}\n    static_configs:\n      - targets: [{target:?}]\n",
        alerts.canonicalize().unwrap(),
        folder.join("key"),
    );
    let settings_path = folder.join("prometheus.yml");
    fs::write(&settings_path, settings).unwrap();
    promtool(&["check", "config", settings_path.to_str().unwrap()], None);
    let (_running, address) = start(&settings_path, &folder);
    let within = Instant::now() + Duration::from_secs(60);
    scraped(&address, &page, within);
    evaluated(&address, within);
    // A server that shows nothing is seen by the one rule about `up`.
    assert_eq!(state(&address, "RingfenceGone"), "inactive");
    drop(server);
    let within = Instant::now() + Duration::from_secs(60);
    while state(&address, "RingfenceGone") != "pending" {
        assert!(Instant::now() < within, "nothing sees that it is gone");
        std::thread::yield_now();
    }
}

/// Whether an alert is inactive, pending or firing.
fn state(address: &str, alert: &str) -> String {
    let rules = rules(address);
    let rule = rules.iter().find(|rule| rule["name"] == alert).unwrap();
    rule["state"].as_str().unwrap().to_owned()
}

/// The rules, as Prometheus has them.
fn rules(address: &str) -> Vec<Value> {
    let rules = api(address, "/api/v1/rules").unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    rules.clone()
}

/// Starts Prometheus on a free port.
fn start(settings_path: &Path, folder: &Path) -> (Running, String) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let prometheus = Command::new(program("prometheus"))
        .arg(format!("--config.file={}", settings_path.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    (Running(prometheus.unwrap()), address)
}

/// Waits until the server was scraped, and compares what arrived with its page.
fn scraped(address: &str, page: &str, within: Instant) {
    let health = loop {
        let targets = api(address, "/api/v1/targets");
        let found = targets.and_then(|it| it["data"]["activeTargets"].get(0).cloned());
        match found {
            Some(found) if found["health"] != "unknown" => break found,
            _ => assert!(Instant::now() < within, "Prometheus does not scrape"),
        }
        std::thread::yield_now();
    };
    assert_eq!(health["health"], "up", "{health}");
    // Every metric of the page arrived.
    let named: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("ringfence_"))
        .filter_map(|line| line.split(['{', ' ']).next())
        .map(|name| format!("ringfence_{name}"))
        .collect();
    let names = api(address, "/api/v1/label/__name__/values").unwrap();
    let names: Vec<&str> = names["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !names.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?} of {names:?}");
}

/// Waits until every rule was evaluated.
fn evaluated(address: &str, within: Instant) {
    loop {
        let rules = rules(address);
        assert!(rules.len() > 5, "{rules:?}");
        let is_bad = |rule: &&Value| rule["health"] == "err";
        assert_eq!(rules.iter().find(is_bad), None);
        if rules.iter().all(|rule| rule["health"] == "ok") {
            break;
        }
        assert!(Instant::now() < within, "{rules:?}");
        std::thread::yield_now();
    }
}
