//! The race lab: one thread swaps a file and a folder for links to the outside
//! and back, as fast as it can, while others call every function. Nothing from
//! outside may be read, and nothing outside may change. `SLOW_TESTS` makes it
//! longer.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::scratch::{CANARY, Scratch, call};

const READS: &[(&str, &str)] = &[
    ("readText", r#"["file.txt"]"#),
    ("readText", r#"["dir/file.txt"]"#),
    ("readText", r#"["dir/sub/file.txt"]"#),
    ("readText", r#"["via/file.txt"]"#),
    ("list", r#"["dir"]"#),
    ("list", r#"["via"]"#),
    ("exists", r#"["dir/only-outside.txt"]"#),
    ("stat", r#"["file.txt"]"#),
    ("stat", r#"["dir/file.txt"]"#),
    ("grep", r#"["C", "file.txt"]"#),
    ("lineCount", r#"["dir/file.txt"]"#),
    ("slice", r#"["dir/file.txt", 0, 1]"#),
    ("cut", r#"["file.txt", {"fields": [1]}]"#),
    ("sort", r#"["dir/sub/file.txt"]"#),
    ("find", r#"["dir"]"#),
    ("find", "[]"),
    ("searchInFiles", r#"["dir", "*", "C"]"#),
    ("searchInFiles", r#"[".", "*", "C"]"#),
];

const WRITES: &[(&str, &str)] = &[
    ("writeText", r#"["file.txt", "mine"]"#),
    ("writeText", r#"["dir/file.txt", "mine"]"#),
    ("writeText", r#"["dir/sub/new.txt", "mine"]"#),
    ("writeText", r#"["dir/fresh/new.txt", "mine"]"#),
    ("appendText", r#"["dir/file.txt", "mine"]"#),
    ("appendText", r#"["file.txt", "mine"]"#),
    ("editText", r#"["file.txt", "i", "mine", true]"#),
    ("editText", r#"["dir/file.txt", "i", "mine", true]"#),
    ("copy", r#"["file.txt", "dir/copy.txt"]"#),
    ("copy", r#"["dir/file.txt", "copied.txt"]"#),
    ("readText", r#"["copied.txt"]"#),
    ("move", r#"["dir/sub/file.txt", "moved.txt"]"#),
    ("move", r#"["dir/sub", "moved"]"#),
    ("readText", r#"["moved.txt"]"#),
    ("searchInFiles", r#"["moved", "*", "C"]"#),
    ("deleteDir", r#"["moved"]"#),
    ("delete", r#"["dir/file.txt"]"#),
    ("deleteDir", r#"["dir/sub"]"#),
    ("deleteDir", r#"["dir"]"#),
];

#[test]
fn names_swapped_under_every_reading_function() {
    race("race-read", READS, 10_000);
}

#[test]
fn names_swapped_under_every_writing_function() {
    race("race-write", WRITES, 3_000);
}

#[derive(Debug)]
struct Counts {
    rounds: u64,
    swaps: u64,
    answered: u64,
    refused: u64,
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture")]
fn race(name: &str, calls: &[(&str, &str)], rounds_least: u64) {
    let scratch = Scratch::new(name);
    fs::write(
        scratch.path.join("outside/only-outside.txt"),
        CANARY.repeat(40),
    )
    .unwrap();
    // The size gives a stat away.
    fs::write(scratch.path.join("outside/file.txt"), CANARY.repeat(40)).unwrap();
    let outside = scratch.outside();
    let workspace = scratch.workspace();
    symlink("dir", workspace.join("via")).unwrap();
    let calls: Vec<(&str, Value)> = calls
        .iter()
        .map(|(function, arguments)| (*function, serde_json::from_str(arguments).unwrap()))
        .collect();
    let is_over = AtomicBool::new(false);
    let swaps = AtomicU64::new(0);
    let rounds_least = match std::env::var_os("SLOW_TESTS") {
        Some(_) => rounds_least * 30,
        None => rounds_least,
    };
    let end = Instant::now() + Duration::from_secs(600);
    let mut counts = Counts {
        rounds: 0,
        swaps: 0,
        answered: 0,
        refused: 0,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                swaps.fetch_add(swap(&workspace, turn), Ordering::Relaxed);
            }
        });
        let _over = Over(&is_over);
        let files = scratch.files();
        // Enough rounds, and enough of them on either side of a swap.
        let is_enough = |counts: &Counts| {
            counts.rounds >= rounds_least && counts.answered > 50 && counts.refused > 50
        };
        while !is_enough(&counts) && Instant::now() < end {
            for (function, arguments) in &calls {
                match call(&files, function, arguments.clone()) {
                    Ok(answer) => {
                        check(function, &answer.value);
                        counts.answered += 1;
                    }
                    Err(fault) => {
                        let policy = ["path-escapes-base", "write-outside-workspace"];
                        let is_policy = policy.contains(&fault.reason)
                            || fault.reason == "write-through-symlink";
                        counts.refused += u64::from(is_policy);
                    }
                }
                counts.rounds += 1;
            }
            drop(files.take_events());
        }
    });
    counts.swaps = swaps.into_inner();
    assert_eq!(scratch.outside(), outside, "{name} changed what is outside");
    // Else nothing was raced.
    assert!(counts.rounds >= rounds_least, "{counts:?}");
    assert!(counts.answered > 50 && counts.refused > 50, "{counts:?}");
    println!("{name}: {counts:?}");
}

/// Ends the swapping, also when a check fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[track_caller]
fn check(function: &str, value: &Value) {
    let shown = value.to_string();
    assert!(!shown.contains("CANARY"), "{function} read {shown}");
    assert!(!shown.contains("only-outside"), "{function} listed {shown}");
    assert!(
        function != "exists" || value == &json!(false),
        "exists looked outside"
    );
    let size = value.get("size").and_then(Value::as_u64).unwrap_or(0);
    assert!(size < 1_000, "{function} measured {size}");
}

/// Makes a real file and folder and a link for each, and exchanges them with
/// what stands under the names, many times. Only what is below `prep` is made or
/// removed by name here, and no call knows that. How many names were exchanged.
fn swap(workspace: &Path, turn: u64) -> u64 {
    let prep = workspace.join(format!("prep-{turn}"));
    fs::create_dir(&prep).unwrap();
    if turn.is_multiple_of(2) {
        symlink("../outside/file.txt", prep.join("file.txt")).unwrap();
        symlink("../outside", prep.join("dir")).unwrap();
    } else {
        fs::write(prep.join("file.txt"), "inside\n").unwrap();
        fs::create_dir_all(prep.join("dir/sub")).unwrap();
        fs::write(prep.join("dir/file.txt"), "inside\n").unwrap();
        fs::write(prep.join("dir/sub/file.txt"), "inside\n").unwrap();
    }
    let mut count = 0;
    for name in ["dir", "file.txt"].iter().cycle().take(41) {
        let (from, to) = (prep.join(name), workspace.join(name));
        let exchanged = renameat_with(CWD, &from, CWD, &to, RenameFlags::EXCHANGE);
        let renamed = exchanged.is_ok() || fs::rename(&from, &to).is_ok();
        count += u64::from(renamed);
    }
    // A call may just be writing into a folder that went there; then it stays.
    let _ = fs::remove_dir_all(&prep);
    count
}
