//! What a child may use up, and that its parent is unharmed.

use serde_json::json;

use crate::help::{PROGRAM, Scratch, User, everywhere, marked, marker};

/// Doubles its processes nine times and no more, for the machine's sake.
const BOMB: &str = include_str!("attack/bomb.py");

#[test]
fn a_bomb_of_processes_is_killed_whole() {
    for (user, rung) in everywhere() {
        let (scratch, marker) = (Scratch::on(user, rung), marker());
        let mut request = scratch.attack(BOMB, &[&marker, "9"]);
        request["limits"]["processes"] = json!(40);
        let ran = scratch.run(&request);
        // The supervisor counts and kills, unless the kernel's own bound ended the bomb first.
        let is_killed = ran.exit == r#"Bound("more than 40 processes and threads")"#;
        let is_refused = ran.exit == "Code(1)" && ran.stderr.contains("[Errno 11]");
        assert!(is_killed || is_refused, "{ran:?}");
        assert_eq!(marked(&marker), 0);
        // The control: fewer are left alone.
        let mut request = scratch.attack(BOMB, &[&marker, "3"]);
        request["limits"]["processes"] = json!(40);
        assert_eq!(scratch.run(&request).exit, "Code(0)");
    }
}

#[test]
fn processes_up_to_the_bound_are_left_alone_and_more_are_killed() {
    // The first process goes on, whatever the kernel refuses.
    let script = "import os, sys, time\n\
                  for _ in range(int(sys.argv[2])):\n  try:\n    if os.fork() == 0: time.sleep(60)\n  \
                  except OSError: pass\n\
                  if int(sys.argv[2]) > 19: time.sleep(60)";
    for (user, rung) in everywhere() {
        let (scratch, marker) = (Scratch::on(user, rung), marker());
        for (count, expected) in [
            ("19", "Code(0)"),
            ("26", r#"Bound("more than 20 processes and threads")"#),
        ] {
            let mut request = scratch.attack(script, &[&marker, count]);
            request["limits"]["processes"] = json!(20);
            assert_eq!(scratch.run(&request).exit, expected, "{user:?} {rung:?}");
            assert_eq!(marked(&marker), 0);
        }
    }
}

/// Where this machine has a tree of version two in which groups can be made; a container has
/// none, nor has an ordinary user without delegation.
#[test]
fn a_process_begins_in_a_group_of_version_two() {
    let name = format!("ringfence-test-{}", std::process::id());
    let trees = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(std::path::Path::new);
    let made = trees.iter().find_map(|tree| {
        let folder = tree.join(&name);
        let is_two = tree.join("cgroup.controllers").exists();
        (is_two && std::fs::create_dir(&folder).is_ok()).then_some(folder)
    });
    let Some(folder) = made else { return };
    let ran = std::process::Command::new(PROGRAM)
        .arg("group")
        .arg(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let said: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(said["begun"], true, "{said}");
    let groups = said["groups"].as_str().unwrap();
    let own = groups.lines().find(|line| line.starts_with("0::")).unwrap();
    assert!(own.ends_with(&name), "{groups}");
}

#[test]
fn memory_is_bounded() {
    let script = "import sys\ntry:\n  b = bytearray(int(sys.argv[1]) << 20); print('got')\n\
                  except MemoryError:\n  print('refused')";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for (megabytes, expected) in [("100", "got\n"), ("600", "refused\n")] {
            let mut request = scratch.attack(script, &[megabytes]);
            request["limits"]["memory_bytes"] = json!(300 << 20);
            assert_eq!(scratch.run(&request).done(), expected, "{user:?} {rung:?}");
        }
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

#[test]
fn the_memory_of_all_processes_together_is_bounded_where_groups_can_be_made() {
    // Each process stays below the bound of one; together they are above.
    let script = "import os, time\n\
                  for _ in range(6):\n  if os.fork() == 0:\n    b = bytearray(60 << 20); time.sleep(60)\n\
                  while True:\n  _, s = os.wait()\n  if os.WIFSIGNALED(s): os._exit(9)";
    let scratch = Scratch::new(User::Same);
    let ran = scratch.run(&scratch.request(&["/bin/true"]));
    if ran.walls.get("control_group").is_none_or(Option::is_some) {
        // Said in the report; there is nothing to try here.
        return;
    }
    let mut request = scratch.attack(script, &[]);
    request["limits"]["memory_bytes"] = json!(200 << 20);
    request["limits"]["cpu_seconds"] = json!(20);
    let ran = scratch.run(&request);
    // The kernel killed one of them.
    assert_eq!(ran.exit, "Code(9)", "{ran:?}");
    // The control: less is left alone.
    let script = "b = bytearray(60 << 20); print('held')";
    let mut request = scratch.attack(script, &[]);
    request["limits"]["memory_bytes"] = json!(200 << 20);
    assert_eq!(scratch.run(&request).done(), "held\n");
}

#[test]
fn what_is_written_is_bounded() {
    let script = "import os, sys, time\n\
                  for n in range(int(sys.argv[1])):\n  open(f'file{n}', 'wb').write(os.urandom(1 << 20))\n\
                  os.sync()\n\
                  if int(sys.argv[1]) > 50: time.sleep(60)\n\
                  print('written')";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for (count, expected) in [
            ("20", "Code(0)"),
            ("120", r#"Bound("more than 67108864 bytes written")"#),
        ] {
            let mut request = scratch.attack(script, &[count]);
            request["limits"]["disk_bytes"] = json!(64 << 20);
            assert_eq!(scratch.run(&request).exit, expected, "{user:?} {rung:?}");
        }
    }
}

#[test]
fn the_folder_for_temporary_files_is_bounded() {
    let script = "import os, sys\n\
                  try:\n  open('/tmp/file', 'wb').write(bytes(int(sys.argv[1]) << 20)); print('written')\n\
                  except OSError as e:\n  print(e.errno)";
    for user in User::all() {
        let scratch = Scratch::new(user);
        for (megabytes, expected) in [("1", "written\n"), ("8", "28\n")] {
            let mut request = scratch.attack(script, &[megabytes]);
            request["limits"]["temporary_bytes"] = json!(4 << 20);
            assert_eq!(scratch.run(&request).done(), expected);
        }
    }
}

#[test]
fn a_flood_of_output_is_only_read() {
    let script = "import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, b)";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let ran = scratch.run(&scratch.attack(script, &[]));
        assert_eq!(ran.exit, "Code(0)", "{user:?} {rung:?}");
        assert!(ran.stdout.len() < 2 << 20, "{}", ran.stdout.len());
    }
}
