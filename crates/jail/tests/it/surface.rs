//! What a child finds around it: descriptors, devices, terminals, its own first process, and
//! what is left when it has ended, on both rungs and as both users.

use std::collections::BTreeMap;
use std::fs;

use crate::help::{PROGRAM, Rung, Scratch, User, everywhere, is_in_container, marked, marker};

const DEVICES: &str = include_str!("attack/devices.py");
const DAEMON: &str = include_str!("attack/daemon.py");

fn outcomes(printed: &str) -> BTreeMap<&str, &str> {
    let lines = printed.lines();
    lines.filter_map(|line| line.split_once(' ')).collect()
}

fn count(found: &BTreeMap<&str, &str>, value: &str) -> usize {
    found.values().filter(|one| **one == value).count()
}

/// Every descriptor there is, without `/proc`: its number, and what is read from it.
const DESCRIPTORS: &str = "import os\n\
    for number in range(256):\n  \
    try: os.fstat(number)\n  \
    except OSError: continue\n  \
    print(number, os.read(number, 9).decode() if number > 2 else '')";

#[test]
fn inherited_descriptors_are_not_there() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let canary = scratch.text("home/canary");
        // Two of them: at a low number and at a high one.
        let opened = |then: &str| format!("exec 7<'{canary}' 99<'{canary}'; exec {then}");
        let mut bare = user.command("/bin/bash");
        bare.args(["-c", &opened("/usr/bin/python3 -c \"$0\""), DESCRIPTORS]);
        let bare = bare.output().unwrap();
        let bare = String::from_utf8(bare.stdout).unwrap();
        for line in ["7 canary", "99 canary"] {
            assert!(bare.lines().any(|found| found == line), "{bare}");
        }
        let mut parent = user.command("/bin/bash");
        let role = scratch.role().join(" ");
        parent.args(["-c", &opened(&format!("'{PROGRAM}' {role}"))]);
        let ran = scratch.run_by(&scratch.attack(DESCRIPTORS, &[]), parent);
        assert_eq!(ran.done(), "0 \n1 \n2 \n", "{user:?} {rung:?}");
    }
}

#[test]
fn devices_and_terminals_are_not_there() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let ran = scratch.run(&scratch.attack(DEVICES, &[]));
        let found = outcomes(ran.done());
        assert!(found.len() > 12, "{found:?}");
        for (name, came) in &found {
            let expected = match *name {
                // What every program needs.
                "null" | "zero" | "urandom" => "done",
                _ => "refused",
            };
            assert_eq!(*came, expected, "{name} {user:?} {rung:?}");
        }
    }
    if User::all().len() > 1 && !is_in_container() {
        // The control: root opens and makes them.
        let scratch = Scratch::new(User::Same);
        let bare = scratch.run_bare(DEVICES, &[]);
        let bare = outcomes(&bare);
        for name in ["null", "kmsg", "make_null", "make_disk", "terminals"] {
            assert_eq!(bare.get(name), Some(&"done"), "{name} {bare:?}");
        }
        // To type into what is no terminal is an error of another kind.
        assert_eq!(bare.get("type"), Some(&"failed: 25"), "{bare:?}");
    }
}

#[test]
fn the_first_process_inside_does_not_die_by_its_child() {
    // Process 1 is the jail's own inside, and the machine's outside.
    let script = "import os, sys\n\
                  for number in map(int, sys.argv[1:]):\n  \
                  try: os.kill(1, number); print(number, 'sent')\n  \
                  except OSError: print(number, 'refused')\n\
                  print('alive yes')";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let signals: &[&str] = match rung {
            Rung::Namespaces => &["19", "15", "2", "9", "0"],
            // Only asks whether one could be sent: it is the machine's.
            Rung::Landlock => &["0"],
        };
        let ran = scratch.run(&scratch.attack(script, signals));
        let found = outcomes(ran.done());
        assert_eq!(count(&found, "refused"), signals.len(), "{found:?}");
        assert_eq!(found.get("alive"), Some(&"yes"));
    }
}

#[test]
fn no_daemon_is_left_on_either_rung() {
    for (user, rung) in everywhere() {
        let (scratch, marker) = (Scratch::on(user, rung), marker());
        let ran = scratch.run(&scratch.attack(DAEMON, &[&marker, "end"]));
        assert_eq!(ran.exit, "Code(7)", "{user:?} {rung:?}");
        assert_eq!(marked(&marker), 0, "{user:?} {rung:?}");
    }
}

#[test]
fn local_sockets_work_in_pairs_and_by_no_name() {
    // What holds for AF_UNIX, on each rung the same: a pair of streams or of packets can be
    // made and used, descriptors pass between its ends; no socket with a name can be made,
    // so none can be listened on, connected to, or sent to.
    let script = "import array, os, socket\n\
        for name, kind in (('stream', socket.SOCK_STREAM), ('packets', socket.SOCK_SEQPACKET)):\n  \
        a, b = socket.socketpair(socket.AF_UNIX, kind)\n  \
        a.send(b'x'); print(name, b.recv(9).decode())\n  \
        r, w = os.pipe(); os.write(w, b'y')\n  \
        socket.send_fds(a, [b'z'], [r]); fds = socket.recv_fds(b, 9, 1)[1]\n  \
        print(name + '_descriptor', os.read(fds[0], 9).decode())\n\
        def attempt(name, action):\n  \
        try: action(); print(name, 'done')\n  \
        except OSError as e: print(name, 'refused' if e.errno in (1, 13) else e)\n\
        for kind in (1, 2, 5): attempt(f'socket{kind}', lambda: socket.socket(socket.AF_UNIX, kind))\n\
        attempt('datagrams', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))\n";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for network in ["None", "Proxy", "Open"] {
            let mut request = scratch.attack(script, &[]);
            request["network"] = serde_json::json!(network);
            let ran = scratch.run(&request);
            let found = outcomes(ran.done());
            for (name, expected) in [
                ("stream", "x"),
                ("packets", "x"),
                ("stream_descriptor", "y"),
                ("packets_descriptor", "y"),
                ("socket1", "refused"),
                ("socket2", "refused"),
                ("socket5", "refused"),
                ("datagrams", "refused"),
            ] {
                assert_eq!(
                    found.get(name),
                    Some(&expected),
                    "{name} {rung:?} {network}"
                );
            }
        }
        let bare = scratch.run_bare(script, &[]);
        assert_eq!(count(&outcomes(&bare), "done"), 4, "{bare}");
    }
}

#[test]
fn after_every_bomb_the_next_child_runs() {
    // The machine, the parent and the next child are unharmed by what was used up.
    let bombs = [
        // Threads instead of processes.
        "import threading, time\n\
         for _ in range(600): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\
         time.sleep(60)",
        // Memory, touched, in several processes.
        "import os\n\
         for _ in range(4):\n  if os.fork() == 0:\n    b = []\n    \
         while True: b.append(bytearray(8 << 20))\n\
         for _ in range(4): os.wait()",
        // Files in its own folder and in the folder for temporary files.
        "import os\n\
         for folder in ('.', os.environ['TMPDIR']):\n  \
         for n in range(400):\n    \
         try: open(f'{folder}/{n}', 'wb').write(bytes(1 << 20))\n    \
         except OSError: break",
        // Open files and pipes.
        "import os\n\
         try:\n  while True: os.pipe()\n\
         except OSError: pass",
    ];
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for bomb in bombs {
            let mut request = scratch.attack(bomb, &[]);
            request["limits"] = serde_json::json!({
                "cpu_seconds": 10, "memory_bytes": 128 << 20, "processes": 100,
                "open_files": 256, "file_bytes": 16 << 20,
                "temporary_bytes": 32 << 20, "disk_bytes": 64 << 20,
            });
            let ran = scratch.run(&request);
            assert_ne!(ran.exit, "still running", "{bomb} {user:?} {rung:?}");
            assert_eq!(ran.fault, "", "{bomb}");
            let next = scratch.run(&scratch.request(&["/bin/echo", "unharmed"]));
            assert_eq!(next.done(), "unharmed\n");
            if rung == Rung::Landlock {
                // What was written there stays: it is the child's own folder.
                let own = scratch.path("home/.ringfence/own");
                fs::remove_dir_all(own).unwrap();
                fs::create_dir(scratch.path("home/.ringfence/own")).unwrap();
                scratch.give("home/.ringfence/own");
            }
        }
    }
}
