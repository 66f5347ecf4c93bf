//! Who looks names up, and where.

use serde_json::json;

use crate::help::{Rung, Scratch, everywhere};

/// Prints what a name leads to, or that it leads nowhere.
const LOOK_UP: &str = "
import socket, sys
try:
    print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])
except OSError:
    print('nowhere')
";

/// A name of this machine's own that no child has by itself.
fn own_name() -> Option<String> {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let mut names = hosts.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().nth(1)
    });
    let is_local = |name: &&str| name.contains("localhost") || name.starts_with("ip6-");
    names.find(|name| !is_local(name)).map(str::to_owned)
}

#[test]
fn only_a_child_with_an_open_network_looks_names_up_as_the_machine_does() {
    let machine = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let run = |network: &str, command: &[&str]| {
            let mut request = scratch.request(command);
            request["network"] = json!(network);
            scratch.run(&request).stdout
        };
        for file in ["/etc/hosts", "/etc/resolv.conf"] {
            assert_eq!(run("Open", &["/bin/cat", file]), machine(file), "{file}");
        }
        let sources = ["/bin/grep", "^hosts:", "/etc/nsswitch.conf"];
        let switch = machine("/etc/nsswitch.conf");
        let expected = switch.lines().find(|line| line.starts_with("hosts:"));
        assert_eq!(
            run("Open", &sources).trim(),
            expected.unwrap_or("hosts: files dns").trim(),
            "{user:?} {rung:?}"
        );
        // The lower rung shows `/etc` as it is, and refuses the way to a resolver.
        if rung == Rung::Namespaces {
            assert_eq!(run("None", &["/bin/cat", "/etc/resolv.conf"]), "");
            assert_eq!(run("None", &sources), "hosts: files\n");
        }
        let Some(name) = own_name() else { continue };
        let look_up = ["/usr/bin/python3", "-c", LOOK_UP, &name];
        let control = scratch.run_bare(LOOK_UP, &[&name]);
        assert_eq!(run("Open", &look_up), control, "{user:?} {rung:?}");
        if rung == Rung::Namespaces {
            assert_eq!(run("None", &look_up), "nowhere\n", "{user:?} {rung:?}");
        }
    }
}
