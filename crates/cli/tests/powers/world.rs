//! `case.toml`, and the world it asks for.
//!
//! | Key | Means |
//! | --- | --- |
//! | `[overrides]` | the posture of the document, when there is no `tool.json`; `{home}` is the folder of the case |
//! | `[arguments]` | what the tool is called with |
//! | `[secrets]` | variables that are set; `token` is a static variable of each case |
//! | `rows` | rows that are shown by more than the result |
//! | `shows` | what `expect.txt` shows as well: `asked`, `looked up`, `recorded` in full |
//! | `unknown_authority` | the lab's certificate is signed by another authority |
//! | `sub_workspace` | whose workspace it is |
//! | `private_hosts` | names that the operator lets lead inside |
//! | `[limits]` | bounds of `fetch`: times in milliseconds, sizes in bytes |
//! | `[dns]` | name = one answer, or a list of them in order |
//! | `wire` | addresses with ports that lead to the lab; by default [`PUBLIC`] |
//! | `refused` | addresses that may be called although no server listens there |
//! | `hangs` | addresses with ports that accept and never answer |
//! | `tls` | the name in the lab's certificate |
//! | `protocols` | what the lab offers on TLS |
//! | `[[page]]` | what the lab serves; see `page.rs` |
//! | `[files]` | content of files in the workspace |
//! | `[links]`, `pipes`, `[hard_links]` | other things there; `{outside}` is a folder beside it |

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::powers::PowerSettings;
use host::fetch::connect::Connector;
use host::fetch::resolve::Resolve;
use host::fetch::{FetchLimits, Tls, TlsTrust};
use model::network::host_pattern::HostPattern;
use toml::{Table, Value};

use crate::authority::Authority;
use crate::lab::Lab;
use crate::page::{Page, reply_from};
use crate::wire::{Dns, Ends, Wire};

/// A public address that names lead to; the wire takes it to the lab.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// Nothing may ever give this text back.
pub(crate) const CANARY: &str = "CANARY-that-must-stay-outside";

/// Everything around one call.
pub(crate) struct World {
    pub(crate) table: Table,
    /// The case's own folder; the workspace is in it.
    pub(crate) folder: PathBuf,
    pub(crate) plain: Lab,
    pub(crate) secure: Lab,
    pub(crate) dns: Arc<Dns>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) settings: PowerSettings,
}

impl World {
    pub(crate) async fn new(case: &Path) -> World {
        let text = fs::read_to_string(case.join("case.toml")).unwrap_or_default();
        let table: Table = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let folder = scratch(case);
        plant(&table, &folder);
        let (plain, secure, tls) = labs(&table).await;
        let ends = Ends::Labs(routes(&table, &plain, &secure));
        let wire = Arc::new(Wire::new(ends));
        let mut settings = PowerSettings::new(folder.join("ws"));
        settings.trust = TlsTrust::fixed(tls);
        settings.sub_workspace = string(&table, "sub_workspace");
        let private = strings(&table, "private_hosts").into_iter();
        let private = private.map(|host| HostPattern::parse(&host).unwrap());
        settings.private_hosts = private.collect();
        let dns = dns(&table);
        settings.resolver = Arc::clone(&dns) as Arc<dyn Resolve>;
        settings.connector = Arc::clone(&wire) as Arc<dyn Connector>;
        settings.fetch_limits = limits(&table);
        World {
            table,
            folder,
            plain,
            secure,
            dns,
            wire,
            settings,
        }
    }

    /// Invariant 2 of every case: the wire was asked for nothing but what the case
    /// names.
    pub(crate) fn check_wire(&self, case: &Path) {
        let named = |key| strings(&self.table, key);
        let wire: Vec<_> = match &self.wire.ends {
            Ends::Labs(labs) => labs.keys().copied().collect(),
            other => panic!("{other:?}"),
        };
        let refused: Vec<SocketAddr> = named("refused")
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        for address in self.wire.called() {
            assert!(
                wire.contains(&address) || refused.contains(&address),
                "{}: somebody called {address}",
                case.display()
            );
        }
    }
}

pub(crate) fn string(table: &Table, key: &str) -> Option<String> {
    Some(table.get(key)?.as_str()?.to_owned())
}

pub(crate) fn strings(table: &Table, key: &str) -> Vec<String> {
    let values = table.get(key).and_then(Value::as_array);
    let values = values.into_iter().flatten();
    values
        .map(|value| value.as_str().unwrap().to_owned())
        .collect()
}

fn pairs(table: &Table, key: &str) -> Vec<(String, Value)> {
    let inner = table.get(key).and_then(Value::as_table);
    let inner = inner.into_iter().flatten();
    inner
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn scratch(case: &Path) -> PathBuf {
    let kind = case.parent().unwrap().file_name().unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("powers")
        .join(kind)
        .join(case.file_name().unwrap());
    let _ = fs::remove_dir_all(&folder);
    for part in ["ws", "ws-old", "outside"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        fs::write(folder.join(part).join("canary.txt"), CANARY).unwrap();
    }
    fs::remove_file(folder.join("ws/canary.txt")).unwrap();
    folder.canonicalize().unwrap()
}

fn plant(table: &Table, folder: &Path) {
    let place = |name: &str| {
        let path = folder.join("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let filled = |text: &str| text.replace("{outside}", folder.join("outside").to_str().unwrap());
    for (name, content) in pairs(table, "files") {
        match content {
            Value::String(text) => fs::write(place(&name), text).unwrap(),
            // So many bytes, in lines.
            Value::Integer(count) => {
                let lines = "a line of sixteen\n".repeat(usize::try_from(count).unwrap() / 18);
                fs::write(place(&name), lines).unwrap();
            }
            Value::Array(bytes) => {
                let byte = |value: &Value| u8::try_from(value.as_integer().unwrap()).unwrap();
                fs::write(place(&name), bytes.iter().map(byte).collect::<Vec<_>>()).unwrap();
            }
            other => panic!("{name} is {other:?}"),
        }
    }
    for (name, target) in pairs(table, "links") {
        symlink(filled(target.as_str().unwrap()), place(&name)).unwrap();
    }
    for (name, target) in pairs(table, "hard_links") {
        fs::hard_link(filled(target.as_str().unwrap()), place(&name)).unwrap();
    }
    for name in strings(table, "pipes") {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, place(&name), kind, mode, 0).unwrap();
    }
}

async fn labs(table: &Table) -> (Lab, Lab, Tls) {
    let pages = table.get("page").and_then(Value::as_array);
    let pages: Vec<Page> = pages.into_iter().flatten().map(Page::read).collect();
    let pages = Arc::new(pages);
    let authority = Authority::new();
    let name = string(table, "tls").unwrap_or_else(|| "api.example.com".to_owned());
    let protocols = strings(table, "protocols");
    let protocols: Vec<_> = protocols.iter().map(String::as_str).collect();
    let signer = match table.get("unknown_authority") {
        Some(_) => Authority::new().acceptor(&name, &protocols),
        None => authority.acceptor(&name, &protocols),
    };
    let serve = |pages: Arc<Vec<Page>>| move |seen: &crate::lab::Seen| reply_from(&pages, seen);
    let plain = Lab::start(serve(Arc::clone(&pages))).await;
    let secure = Lab::start_tls(signer, serve(pages)).await;
    (plain, secure, Tls::only(&authority.pem).unwrap())
}

fn routes(table: &Table, plain: &Lab, secure: &Lab) -> HashMap<SocketAddr, Option<SocketAddr>> {
    let mut wire = strings(table, "wire");
    if !table.contains_key("wire") {
        wire = ["80", "443"]
            .map(|port| format!("{PUBLIC}:{port}"))
            .to_vec();
    }
    let addresses = wire
        .iter()
        .map(|text| text.parse::<SocketAddr>().unwrap())
        .map(|address| match address.port() {
            443 => (address, Some(secure.address)),
            _ => (address, Some(plain.address)),
        });
    let mut routes: HashMap<_, _> = addresses.collect();
    for text in strings(table, "hangs") {
        routes.insert(text.parse().unwrap(), None);
    }
    routes
}

fn dns(table: &Table) -> Arc<Dns> {
    let dns = Dns::default();
    for (name, answers) in pairs(table, "dns") {
        match answers {
            Value::String(answer) => dns.say(&name, &answer),
            Value::Array(answers) => {
                for answer in answers {
                    dns.say(&name, answer.as_str().unwrap());
                }
            }
            other => panic!("{name} is {other:?}"),
        }
    }
    for name in ["api.example.com", "other.example.com"] {
        dns.say(name, PUBLIC);
    }
    Arc::new(dns)
}

fn limits(table: &Table) -> FetchLimits {
    let mut limits = FetchLimits::default();
    for (name, value) in pairs(table, "limits") {
        let count = u64::try_from(value.as_integer().unwrap()).unwrap();
        let time = Duration::from_millis(count);
        let size = usize::try_from(count).unwrap();
        match name.as_str() {
            "resolve" => limits.resolve = time,
            "connect" => limits.connect = time,
            "first_byte" => limits.first_byte = time,
            "between_bytes" => limits.between_bytes = time,
            "whole" => limits.whole = time,
            "body_bytes_max" => limits.body_bytes_max = size,
            other => panic!("no limit {other}"),
        }
    }
    limits
}
