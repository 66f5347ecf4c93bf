//! What a child reaches for and does not get: processes, files, sockets, the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use serde_json::json;

use crate::help::{PROGRAM, Rung, Scratch, User, everywhere, is_in_container};

const PROCESS: &str = include_str!("attack/process.py");
const KERNEL: &str = include_str!("attack/kernel.py");
const NETWORK: &str = include_str!("attack/network.py");
const FILES: &str = include_str!("attack/files.py");

/// A script's lines: each attempt and what came of it.
fn outcomes(printed: &str) -> BTreeMap<&str, &str> {
    printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect()
}

#[track_caller]
fn all_are(expected: &str, printed: &str) {
    let outcomes = outcomes(printed);
    assert!(!outcomes.is_empty());
    let others: Vec<_> = outcomes
        .iter()
        .filter(|(_, came)| **came != expected)
        .collect();
    assert!(others.is_empty(), "not {expected}: {others:?}");
}

#[test]
fn other_processes_of_the_user_are_out_of_reach() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        // A process of the same user, outside.
        let mut target = user.command("/bin/sleep").arg("600").spawn().unwrap();
        let pid = target.id().to_string();
        let bare = scratch.run_bare(PROCESS, &[&pid]);
        let fenced = scratch.run(&scratch.attack(PROCESS, &[&pid]));
        target.kill().unwrap();
        target.wait().unwrap();
        // The filter of a container's engine refuses some of it by itself.
        if !is_in_container() {
            all_are("done", &bare);
        }
        all_are("refused", fenced.done());
    }
}

#[test]
fn the_supervisor_is_out_of_reach() {
    let script = format!("import os, sys\nsys.argv.append(str(os.getppid()))\n{PROCESS}");
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        all_are("refused", scratch.run(&scratch.attack(&script, &[])).done());
    }
}

#[test]
fn calls_into_the_kernel_are_refused() {
    const REFUSED: &str = "1";
    const ABSENT: &str = "38";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let fenced = scratch.run(&scratch.attack(KERNEL, &[]));
        let fenced = outcomes(fenced.done());
        assert!(fenced.len() > 30);
        for (name, error) in &fenced {
            let is_absent = name.starts_with("io_uring") || *name == "clone3";
            // With namespaces, what processes share is their own.
            let is_own = ["shmget", "msgget", "semget", "mq_open"].contains(name)
                && rung == Rung::Namespaces;
            let expected = if is_absent { ABSENT } else { REFUSED };
            assert_eq!(*error != expected, is_own, "{name} {error}");
        }
        // For the control root: to an ordinary user the kernel refuses many by itself.
        if user == User::Same && User::all().len() > 1 && !is_in_container() {
            let bare = scratch.run_bare(KERNEL, &[]);
            for (name, error) in outcomes(&bare) {
                assert_ne!(error, REFUSED, "{name}");
            }
        }
    }
}

/// Listeners on everything a child could reach, and what came to them.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    path: UnixListener,
    abstract_name: String,
    abstract_one: UnixListener,
    datagrams: UnixDatagram,
}

impl Listeners {
    fn new(scratch: &Scratch) -> Listeners {
        let abstract_name = scratch
            .root
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let listeners = Listeners {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            path: UnixListener::bind(scratch.path("project/socket")).unwrap(),
            abstract_name,
            abstract_one: UnixListener::bind_addr(&address).unwrap(),
            datagrams: UnixDatagram::bind(scratch.path("project/datagrams")).unwrap(),
        };
        for name in ["project/socket", "project/datagrams"] {
            scratch.give(name);
            scratch.open_to_all(name, 0o777);
        }
        listeners.datagrams.set_nonblocking(true).unwrap();
        listeners.tcp.set_nonblocking(true).unwrap();
        listeners.udp.set_nonblocking(true).unwrap();
        listeners.path.set_nonblocking(true).unwrap();
        listeners.abstract_one.set_nonblocking(true).unwrap();
        listeners
    }

    fn arguments(&self, scratch: &Scratch) -> [String; 5] {
        [
            self.tcp.local_addr().unwrap().port().to_string(),
            self.udp.local_addr().unwrap().port().to_string(),
            scratch.text("project/socket"),
            self.abstract_name.clone(),
            scratch.text("project/datagrams"),
        ]
    }

    /// Which of them something came to: TCP, UDP, path, abstract, and datagrams twice.
    fn reached(&self) -> [bool; 6] {
        let mut word = [0; 16];
        [
            self.tcp.accept().is_ok(),
            self.udp.recv(&mut word).is_ok(),
            self.path.accept().is_ok(),
            self.abstract_one.accept().is_ok(),
            self.datagrams.recv(&mut word).is_ok(),
            self.datagrams.recv(&mut word).is_ok(),
        ]
    }
}

#[test]
fn without_a_network_nothing_is_reached() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let listeners = Listeners::new(&scratch);
        let arguments = listeners.arguments(&scratch);
        let arguments = arguments.each_ref().map(String::as_str);
        // The socket's folder is even given: that is for files.
        let mut request = scratch.attack(NETWORK, &arguments);
        request["write"] = json!([scratch.path("project")]);
        let fenced = scratch.run(&request);
        let mut outcomes = outcomes(fenced.done());
        // Programs talk to their own children with it.
        assert_eq!(outcomes.remove("pair"), Some("done"));
        assert!(
            outcomes.values().all(|came| *came == "refused"),
            "{outcomes:?}"
        );
        assert_eq!(listeners.reached(), [false; 6]);
        scratch.run_bare(NETWORK, &arguments);
        assert_eq!(listeners.reached(), [true; 6]);
    }
}

#[test]
fn an_open_network_reaches_addresses_but_no_local_socket() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let listeners = Listeners::new(&scratch);
        let arguments = listeners.arguments(&scratch);
        let arguments = arguments.each_ref().map(String::as_str);
        let mut request = scratch.attack(NETWORK, &arguments);
        request["network"] = json!("Open");
        request["write"] = json!([scratch.path("project")]);
        let fenced = scratch.run(&request);
        let outcomes = outcomes(fenced.done());
        for (name, came) in [
            ("tcp", "done"),
            ("udp", "done"),
            ("netlink", "done"),
            ("pair", "done"),
            ("path", "refused"),
            ("abstract", "refused"),
            ("pair_sends", "refused"),
            ("pair_connects", "refused"),
            ("raw", "refused"),
        ] {
            assert_eq!(outcomes.get(name), Some(&came), "{name}");
        }
        assert_eq!(
            listeners.reached(),
            [true, true, false, false, false, false]
        );
    }
}

#[test]
fn files_that_were_not_given_stay_closed() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for secret in ["home/canary", "home/.ringfence/key"] {
            let arguments = [scratch.text(secret), scratch.text("other")];
            let arguments = arguments.each_ref().map(String::as_str);
            fs::write(scratch.path("other/removable"), "").unwrap();
            scratch.give("other/removable");
            all_are(
                "refused",
                scratch.run(&scratch.attack(FILES, &arguments)).done(),
            );
            assert_eq!(
                fs::read_to_string(scratch.path("other/file")).unwrap(),
                "canary"
            );
            all_are("done", &scratch.run_bare(FILES, &arguments));
            for (name, remove) in [("file", "canary"), ("new", ""), ("sub", "")] {
                let path = scratch.path("other").join(name);
                match remove {
                    "" if path.is_dir() => fs::remove_dir(path).unwrap(),
                    "" => fs::remove_file(path).unwrap(),
                    text => fs::write(path, text).unwrap(),
                }
            }
        }
    }
}

#[test]
fn a_declared_folder_can_be_written_and_its_neighbour_cannot() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let arguments = [scratch.text("home/canary"), scratch.text("project")];
        let arguments = arguments.each_ref().map(String::as_str);
        fs::write(scratch.path("project/removable"), "").unwrap();
        scratch.give("project/removable");
        let mut request = scratch.attack(FILES, &arguments);
        request["write"] = json!([scratch.path("project")]);
        let fenced = scratch.run(&request);
        let outcomes = outcomes(fenced.done());
        for name in ["append", "truncate", "create", "folder", "rename", "remove"] {
            assert_eq!(outcomes.get(name), Some(&"done"), "{name}");
        }
        for name in ["read", "list", "link", "hard_link"] {
            assert_eq!(outcomes.get(name), Some(&"refused"), "{name}");
        }
    }
}

#[test]
fn a_folder_declared_for_reading_is_not_written() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let arguments = [scratch.text("project/file"), scratch.text("project")];
        let arguments = arguments.each_ref().map(String::as_str);
        let mut request = scratch.attack(FILES, &arguments);
        request["read"] = json!([scratch.path("project")]);
        let fenced = scratch.run(&request);
        let outcomes = outcomes(fenced.done());
        for name in ["read", "list", "link"] {
            assert_eq!(outcomes.get(name), Some(&"done"), "{name}");
        }
        for name in [
            "append",
            "truncate",
            "create",
            "folder",
            "rename",
            "hard_link",
        ] {
            assert_eq!(outcomes.get(name), Some(&"refused"), "{name}");
        }
    }
}

#[test]
fn a_child_of_root_is_not_root() {
    let script = "id -u; cat /etc/passwd > /dev/null && echo read; cat /etc/shadow; \
                  ls /etc/ssl/private; echo x > /proc/sys/kernel/core_pattern; \
                  mknod device c 1 3; chown 0 .; true";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let ran = scratch.run(&scratch.request(&["/bin/sh", "-c", script]));
        let (id, rest) = ran.done().split_once('\n').unwrap();
        assert_ne!(id, "0", "{ran:?}");
        assert_eq!(rest, "read\n", "{ran:?}");
        for name in ["shadow", "private", "core_pattern", "device", "chown"] {
            let is_refused = ran.stderr.lines().any(|line| line.contains(name));
            assert!(is_refused, "{name} {ran:?}");
        }
    }
    if User::all().len() > 1 && !is_in_container() {
        // The control: root without a fence reads it, and could write the pattern.
        assert!(fs::read("/etc/shadow").is_ok());
        let pattern = fs::OpenOptions::new()
            .write(true)
            .open("/proc/sys/kernel/core_pattern");
        assert!(pattern.is_ok());
    }
}

#[test]
fn two_children_of_root_are_two_users() {
    if User::all().len() == 1 {
        return;
    }
    let (one, other) = (Scratch::new(User::Same), Scratch::new(User::Same));
    let mut first = crate::help::start(
        &one.request(&["/bin/sh", "-c", "id -u; sleep 600"]),
        User::Same.command(PROGRAM).arg("hold"),
    );
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(first.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let held: serde_json::Value = serde_json::from_str(&line).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", held["pid"])).unwrap();
    let user = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    let ran = other.run(&other.request(&["/usr/bin/id", "-u"]));
    assert!(!user.contains(ran.done().trim()), "{user} {ran:?}");
    first.kill().unwrap();
    first.wait().unwrap();
}
