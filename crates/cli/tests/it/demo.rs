//! The demo does what it says: six steps, each with its real verdict, and nothing left
//! behind.

use std::fs;
use std::process::Command;

use crate::run::scratch;

#[test]
fn the_demo_shows_every_kind_of_verdict_and_leaves_nothing() {
    let temporary = scratch("demo");
    let demo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command.arg("demo").args(arguments).env_clear();
        let output = command.env("TMPDIR", &temporary).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{output:?}");
        assert_eq!(
            fs::read_dir(&temporary).unwrap().count(),
            0,
            "its home is gone"
        );
        said
    };
    let said = demo(&[]);
    for words in [
        "\"words\":4",
        "it would reach api.weather.example",
        "denied: host not in allowlist: collect.attacker.example",
        "approval.pending: ",
        "[risk L5] demo-agent wants to run deleteFile",
        "\"deleted\":true",
        "`constructor`",
        "| rules        ask",
        "whole: ",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    let value: serde_json::Value = serde_json::from_str(&demo(&["--json"])).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 6);
}
