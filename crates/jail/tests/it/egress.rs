//! A child's only way out is its parent's proxy, whatever program it runs and whatever
//! address it names. The proxy here reaches nothing: it answers with the line it heard.

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::help::{Rung, Scratch, everywhere, is_in_container};

const REACH: &str = include_str!("attack/reach.py");

/// Listeners of the host that no child may reach; they answer, and count.
struct Host {
    arguments: [String; 5],
    reached: Arc<AtomicUsize>,
    udp: UdpSocket,
}

impl Host {
    fn new(scratch: &Scratch) -> Host {
        let reached = Arc::new(AtomicUsize::new(0));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        // A container without a network has none of version 6.
        let tcp6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0));
        let tcp6 = match is_in_container() {
            true => tcp6.or_else(|_| TcpListener::bind("127.0.0.1:0")),
            false => tcp6,
        };
        let tcp6 = tcp6.unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let name = scratch.root.file_name().unwrap().to_str().unwrap();
        let arguments = [
            tcp.local_addr().unwrap().port().to_string(),
            tcp6.local_addr().unwrap().port().to_string(),
            udp.local_addr().unwrap().port().to_string(),
            scratch.text("project/socket"),
            name.to_owned(),
        ];
        for listener in [tcp, tcp6] {
            let reached = Arc::clone(&reached);
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    answer(stream.unwrap(), &reached);
                }
            });
        }
        let path = UnixListener::bind(scratch.path("project/socket")).unwrap();
        scratch.give("project/socket");
        scratch.open_to_all("project/socket", 0o777);
        let hidden = SocketAddr::from_abstract_name(name).unwrap();
        for listener in [path, UnixListener::bind_addr(&hidden).unwrap()] {
            let reached = Arc::clone(&reached);
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    answer(stream.unwrap(), &reached);
                }
            });
        }
        Host {
            arguments,
            reached,
            udp,
        }
    }

    fn arguments(&self) -> [&str; 5] {
        self.arguments.each_ref().map(String::as_str)
    }

    fn reached(&self) -> usize {
        let mut word = [0; 16];
        let mut count = self.reached.swap(0, Ordering::SeqCst);
        while self.udp.recv(&mut word).is_ok() {
            count += 1;
        }
        count
    }
}

fn answer(mut stream: impl std::io::Read + std::io::Write, reached: &AtomicUsize) {
    let mut word = [0; 64];
    let _ = stream.read(&mut word);
    reached.fetch_add(1, Ordering::SeqCst);
    let _ = stream.write_all(b"the host itself\r\n");
}

fn outcomes(printed: &str) -> BTreeMap<&str, &str> {
    let lines = printed.lines();
    lines.filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn nothing_but_the_proxy_is_reached() {
    const PROXY: &str = "HTTP/1.1 403 Forbidden";
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let host = Host::new(&scratch);
        let mut request = scratch.attack(REACH, &host.arguments());
        request["network"] = json!("Proxy");
        request["write"] = json!([scratch.path("project")]);
        let fenced = scratch.run(&request);
        let found = outcomes(fenced.done());
        for (name, came) in &found {
            let expected = match (*name, rung) {
                ("proxy", _) => PROXY,
                // Whatever address is named, the proxy answers.
                (
                    "tcp" | "tcp6" | "any" | "mapped" | "not_blocking" | "dns_tcp",
                    Rung::Landlock,
                ) => PROXY,
                // To its own loopback, where nothing listens.
                ("udp", Rung::Namespaces) => "sent",
                ("relay", Rung::Namespaces) => "only inside",
                (_, _) => "refused",
            };
            assert_eq!(*came, expected, "{name} {user:?} {rung:?}");
        }
        assert_eq!(found.len(), 19);
        assert_eq!(host.reached(), 0, "{user:?} {rung:?}");
        // The control: without a fence the same script reaches five of them and more.
        scratch.run_bare(REACH, &host.arguments());
        let least = if is_in_container() { 4 } else { 6 };
        assert!(host.reached() >= least);
    }
}

/// Programs as they are, each asked for a host that only the proxy could know.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "/usr/bin/curl",
        "curl -s http://api.acme.com/x",
        "GET http://api.acme.com/x HTTP/1.1",
    ),
    (
        "/usr/bin/curl",
        "curl -sv https://api.acme.com/x 2>&1",
        "CONNECT api.acme.com:443 HTTP/1.1",
    ),
    (
        "/usr/bin/git",
        "git ls-remote http://git.acme.com/r.git 2>&1",
        "error: 403",
    ),
    (
        "/usr/bin/git",
        "git ls-remote https://git.acme.com/r.git 2>&1",
        "CONNECT tunnel failed, response 403",
    ),
    (
        "/usr/bin/python3",
        "/usr/bin/python3 -c \"import urllib.request as r, urllib.error as e
try: r.urlopen('http://api.acme.com/p')
except e.HTTPError as f: print(f.read().decode())\"",
        "GET http://api.acme.com/p HTTP/1.1",
    ),
    (
        "/usr/bin/python3",
        "/usr/bin/python3 -c \"import urllib.request as r
try: r.urlopen('https://api.acme.com/p')
except OSError as f: print(f)\"",
        "Tunnel connection failed: 403 Forbidden",
    ),
    (
        "/usr/bin/node",
        "node -e \"require('http').get({host:'127.0.0.1',port:3128,path:'http://api.acme.com/n'},r=>r.pipe(process.stdout))\"",
        "GET http://api.acme.com/n HTTP/1.1",
    ),
    (
        "/usr/lib/python3/dist-packages/pip",
        "/usr/bin/python3 -m pip -vv download x --no-deps --retries 0 --index-url http://pip.acme.com/simple --trusted-host pip.acme.com 2>&1",
        "403",
    ),
    (
        "/usr/bin/npm",
        "npm view left-pad --registry http://npm.acme.com --fetch-retries 0 2>&1",
        "403",
    ),
];

#[test]
fn programs_find_the_proxy_unchanged() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        for (program, line, expected) in PROGRAMS {
            if !Path::new(program).exists() {
                continue;
            }
            let mut request = scratch.request(&["/bin/sh", "-c", line]);
            request["network"] = json!("Proxy");
            let ran = scratch.run(&request);
            assert!(
                ran.stdout.contains(expected),
                "{line} {user:?} {rung:?} {ran:?}"
            );
        }
    }
}

#[test]
fn a_child_cannot_take_the_answers_over() {
    // A second listener for the same calls, whose answer would be to carry them out. The
    // kernel allows one for a chain of filters, and that is the supervisor's: EBUSY.
    let script = r#"
import ctypes, struct, socket
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
code = struct.pack("HBBI", 0x06, 0, 0, 0x7fc00000)
buffer = ctypes.create_string_buffer(code)
program = Program(1, ctypes.addressof(buffer))
made = libc.syscall(317, 1, 8, ctypes.byref(program))
print("listener", made, ctypes.get_errno())
"#;
    for (user, rung) in everywhere() {
        if !cfg!(target_arch = "x86_64") || rung == Rung::Namespaces {
            continue;
        }
        let scratch = Scratch::on(user, rung);
        let mut request = scratch.attack(script, &[]);
        request["network"] = json!("Proxy");
        assert_eq!(scratch.run(&request).done(), "listener -1 16\n", "{user:?}");
    }
}
