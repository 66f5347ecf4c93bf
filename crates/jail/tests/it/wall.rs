//! A missing wall is a refusal, unless the settings accept it.

use std::fs;

use serde_json::json;

use crate::help::{Rung, Scratch, User, everywhere};

const ALL: [&str; 14] = [
    "capabilities",
    "control_group",
    "descriptors",
    "facts",
    "files",
    "identity",
    "namespaces",
    "network",
    "no_new_privs",
    "parent_death",
    "rlimits",
    "session",
    "signals",
    "system_calls",
];

/// Without which a child starts.
const OPTIONAL: [&str; 3] = ["control_group", "facts", "namespaces"];

#[test]
fn every_wall_is_up() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let ran = scratch.run(&scratch.request(&["/bin/true"]));
        ran.done();
        for layer in ALL {
            let is_up = ran.walls.get(layer).is_some_and(Option::is_none);
            let is_expected = match (layer, rung) {
                ("namespaces" | "facts", Rung::Landlock) => false,
                // Only where groups may be made.
                ("control_group", _) => is_up,
                (_, _) => true,
            };
            assert_eq!(is_up, is_expected, "{layer} {rung:?} {:?}", ran.walls);
        }
    }
}

#[test]
fn a_rung_that_is_required_and_missing_is_a_refusal() {
    for user in User::all() {
        let scratch = Scratch::on(user, Rung::Landlock);
        let mut request = scratch.request(&["/bin/true"]);
        request["require"] = json!("Namespaces");
        let ran = scratch.run(&request);
        assert!(
            ran.fault
                .contains("namespaces (user namespaces are refused"),
            "{ran:?}"
        );
        // The control: where they are, nothing is missing.
        let scratch = Scratch::new(user);
        let mut request = scratch.request(&["/bin/true"]);
        request["require"] = json!("Namespaces");
        scratch.run(&request).done();
    }
}

#[test]
fn the_kernel_says_the_same() {
    let scratch = Scratch::new(User::Same);
    let ran = scratch.run(&scratch.request(&["/bin/cat", "/proc/self/status"]));
    for line in [
        "CapEff:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        // The bounding set of an ordinary user is not his to change.
        if line.starts_with("CapBnd") && User::all().len() == 1 {
            continue;
        }
        assert!(ran.done().contains(line), "{line}");
    }
}

#[test]
fn a_missing_wall_is_refused_unless_accepted() {
    for user in User::all() {
        let scratch = Scratch::new(user);
        for (without, missing) in [
            ("without-landlock", ["files", "signals"]),
            ("without-seccomp", ["network", "system_calls"]),
        ] {
            let file = scratch.text("home/.ringfence/own/ran");
            let mut request = scratch.request(&["/usr/bin/touch", &file]);
            let ran = scratch.run_with(&request, &["run", without]);
            for layer in missing {
                assert!(ran.fault.contains(layer), "{}", ran.fault);
            }
            assert!(!fs::exists(&file).unwrap(), "it ran");
            request["accept_missing"] = json!(true);
            let ran = scratch.run_with(&request, &["run", without]);
            ran.done();
            assert!(fs::exists(&file).unwrap());
            for (layer, reason) in &ran.walls {
                if OPTIONAL.contains(&layer.as_str()) {
                    continue;
                }
                assert_eq!(
                    reason.is_some(),
                    missing.contains(&layer.as_str()),
                    "{layer}"
                );
            }
            fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn the_machine_is_asked_without_a_child() {
    let walls = jail::probe();
    assert_eq!(walls.len(), ALL.len());
    // The tests need a kernel that has them all.
    let is_up = |wall: &jail::Wall| wall.is_up() || wall.layer.is_optional();
    assert!(walls.iter().all(is_up), "{walls:?}");
}
