//! What a child may use up, and that its parent is unharmed.

use serde_json::json;

use crate::help::{Scratch, User, everywhere, marked, marker};

/// Doubles its processes nine times and no more, for the machine's sake.
const BOMB: &str = include_str!("attack/bomb.py");

#[test]
fn a_bomb_of_processes_is_killed_whole() {
    for (user, rung) in everywhere() {
        let (scratch, marker) = (Scratch::on(user, rung), marker());
        let mut request = scratch.attack(BOMB, &[&marker, "9"]);
        request["limits"]["processes"] = json!(40);
        let ran = scratch.run(&request);
        assert_eq!(
            ran.exit, r#"Bound("more than 40 processes and threads")"#,
            "{ran:?}"
        );
        assert_eq!(marked(&marker), 0);
        // The control: fewer are left alone.
        let mut request = scratch.attack(BOMB, &[&marker, "3"]);
        request["limits"]["processes"] = json!(40);
        assert_eq!(scratch.run(&request).exit, "Code(0)");
    }
}

#[test]
fn memory_is_bounded() {
    let scratch = Scratch::new(User::Same);
    let script = "import sys\ntry:\n  b = bytearray(int(sys.argv[1]) << 20); print('got')\n\
                  except MemoryError:\n  print('refused')";
    for (megabytes, expected) in [("100", "got\n"), ("600", "refused\n")] {
        let mut request = scratch.attack(script, &[megabytes]);
        request["limits"]["memory_bytes"] = json!(300 << 20);
        assert_eq!(scratch.run(&request).done(), expected);
    }
}

#[test]
fn files_are_bounded() {
    let scratch = Scratch::new(User::Same);
    let script = "import os, sys\nf = os.open('big', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n\
                  try:\n  for _ in range(int(sys.argv[1])): os.write(f, b'x' * 1000)\n  print('written')\n\
                  except OSError as e:\n  print(e)";
    for (count, expected) in [("50", "written\n"), ("150", "[Errno 27] File too large\n")] {
        let mut request = scratch.attack(script, &[count]);
        request["limits"]["file_bytes"] = json!(100_000);
        assert_eq!(scratch.run(&request).done(), expected);
    }
}

#[test]
fn open_files_are_bounded() {
    let scratch = Scratch::new(User::Same);
    let script = "import sys\ntry:\n  f = [open('/dev/null') for _ in range(int(sys.argv[1]))]; \
                  print('open')\nexcept OSError as e:\n  print(e.errno)";
    for (count, expected) in [("20", "open\n"), ("80", "24\n")] {
        let mut request = scratch.attack(script, &[count]);
        request["limits"]["open_files"] = json!(64);
        assert_eq!(scratch.run(&request).done(), expected);
    }
}

#[test]
fn processor_time_is_bounded() {
    const KILLED: &str = "Signal(9)";
    let scratch = Scratch::new(User::Same);
    let mut request = scratch.attack("while True: pass", &[]);
    request["limits"]["cpu_seconds"] = json!(1);
    // Both bounds are the same, so the kernel kills at once.
    assert_eq!(scratch.run(&request).exit, KILLED);
}

#[test]
fn a_bound_cannot_be_raised() {
    let scratch = Scratch::new(User::Same);
    let script = "import resource as r\ntry:\n  r.setrlimit(r.RLIMIT_NOFILE, (128, 128)); print('raised')\n\
                  except (OSError, ValueError): print('refused')";
    let mut request = scratch.attack(script, &[]);
    request["limits"]["open_files"] = json!(64);
    assert_eq!(scratch.run(&request).done(), "refused\n");
    request["limits"]["open_files"] = json!(256);
    assert_eq!(scratch.run(&request).done(), "raised\n");
}
