//! Which programs there are, and what becomes of failed tests.

use std::env;

use super::*;

const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/cli#ringfence-cli@0.1.0","manifest_path":"/w/crates/cli/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/w/target/debug/deps/it-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":true},"executable":"/w/target/debug/deps/xtask-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/cli#ringfence-cli@0.1.0","manifest_path":"/w/crates/cli/Cargo.toml","target":{"name":"load"},"profile":{"test":true},"executable":"/w/target/debug/deps/load-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/cli#ringfence-cli@0.1.0","manifest_path":"/w/crates/cli/Cargo.toml","target":{"name":"ringfence"},"profile":{"test":false},"executable":"/w/target/debug/ringfence"}
{"reason":"build-finished","success":true}
"#;

#[test]
fn programs_with_tests_are_found() {
    let programs = read(MESSAGES);
    let names: Vec<_> = programs.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["ringfence-cli it", "xtask xtask"]);
    assert_eq!(programs[0].folder, Path::new("/w/crates/cli"));
}

/// A program that prints what a test program does: one test passes, and one fails but alone.
fn late(name: &str, alone: &str) -> TestProgram {
    let path = env::temp_dir().join(format!("ringfence-{name}-{}", std::process::id()));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --exact ]; then {alone}; fi\n\
         echo 'test a ... ok'; echo 'test b ... FAILED'\n\
         echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'\nexit 101\n"
    );
    std::fs::write(&path, script).unwrap();
    let mut chmod = Command::new("chmod");
    assert!(chmod.arg("+x").arg(&path).status().unwrap().success());
    TestProgram {
        name: name.to_owned(),
        path,
        folder: env::temp_dir(),
    }
}

fn run_late(name: &str, alone: &str) -> (TaskAnswer, String) {
    let program = late(name, alone);
    let path = program.path.clone();
    // What is shown is not counted here: the run that this test is a part of would add it.
    let mut ended = run_one(program, &[], &|_: &mut Command| {}).unwrap();
    assert_eq!(failed_tests(&ended.lines), ["b"]);
    let failed = failed_tests(&ended.lines);
    let again = run_one(ended.program.clone(), &failed, &|_: &mut Command| {}).unwrap();
    ended.take(&again, &failed);
    let _ = std::fs::remove_file(path);
    (ended.answer, ended.totals.to_string())
}

#[test]
fn a_test_that_passes_alone_was_late() {
    let alone =
        "[ \"$2\" = b ] || exit 9; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; exit 0";
    let (answer, totals) = run_late("late", alone);
    assert_eq!(
        (answer, totals.as_str()),
        (TaskAnswer::Yes, "2 passed, 0 failed")
    );
}

#[test]
fn a_test_that_fails_again_or_does_not_run_has_failed() {
    for alone in [
        "true",
        "exit 0",
        "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'; exit 0",
    ] {
        let (answer, totals) = run_late("wrong", alone);
        assert_eq!(
            (answer, totals.as_str()),
            (TaskAnswer::No, "1 passed, 1 failed")
        );
    }
}
