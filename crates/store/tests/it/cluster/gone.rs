//! The database is gone, slow or cut off: nodes refuse within a bound, nothing is done twice,
//! and all goes on by itself when it is back. A proxy between node and database plays the
//! failures.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use store::{Store, StoreError};

use crate::lab::{SharedHome, open, postgres, until, write_settings};
use crate::scratch::{Home, closing, opening, wait};

const FORWARD: u8 = 0;
const REFUSE: u8 = 1;
const SILENT: u8 = 2;

/// A way to the database that can be cut.
struct Proxy {
    address: SocketAddr,
    mode: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn new() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mode = Arc::new(AtomicU8::new(FORWARD));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (its_mode, its_open) = (Arc::clone(&mode), Arc::clone(&open));
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                if its_mode.load(Ordering::SeqCst) == REFUSE {
                    continue;
                }
                let far = TcpStream::connect(postgres::server().address).unwrap();
                let mut open = its_open.lock().unwrap();
                open.push(near.try_clone().unwrap());
                open.push(far.try_clone().unwrap());
                drop(open);
                let pairs = [
                    (near.try_clone().unwrap(), far.try_clone().unwrap()),
                    (far, near),
                ];
                for (from, to) in pairs {
                    let mode = Arc::clone(&its_mode);
                    std::thread::spawn(move || pump(from, to, &mode));
                }
            }
        });
        Proxy {
            address,
            mode,
            open,
        }
    }

    fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
        if mode == REFUSE {
            for stream in self.open.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// The home of a node that goes this way.
    fn node(&self, shared: &SharedHome, name: &str) -> Home {
        let home = Home::new(name);
        let port = postgres::server().address.port().to_string();
        let url = shared
            .url()
            .replace(&port, &self.address.port().to_string());
        write_settings(&home.path, &url, "connections = 4\n");
        home
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mode: &AtomicU8) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        // Bytes that are swallowed never arrive, as behind a firewall that drops packets.
        if mode.load(Ordering::SeqCst) == SILENT {
            continue;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(
        result,
        Err(StoreError::Unavailable { .. } | StoreError::InDoubt { .. })
    )
}

fn pause(store: &Store, name: &str) -> Result<(), StoreError> {
    let changed = store.callers().change(name, 1, |row| {
        row.denials = row.denials.denied();
    });
    changed.map(drop)
}

#[test]
fn a_node_without_its_database_refuses_and_recovers() {
    let shared = SharedHome::new("gone");
    let proxy = Proxy::new();
    let home = proxy.node(&shared, "gone");
    let store = open(&home.path);
    pause(&store, "ann").unwrap();
    store.ready().unwrap();
    // A call that was admitted before ends, and is recorded in the home.
    let admitted = wait(store.audit().open(opening(1))).unwrap();
    proxy.set(REFUSE);
    until("nothing runs", || {
        is_unavailable(&store.callers().version())
    });
    let began = Instant::now();
    for _ in 0..50 {
        assert!(is_unavailable(&pause(&store, "ann")));
        assert!(is_unavailable(&store.approvals().count_pending(1)));
        assert!(is_unavailable(&store.ready()));
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "they fail at once"
    );
    let closed = closing(model::record::audit::Status::Done);
    wait(store.audit().close(admitted, closed)).unwrap();
    proxy.set(FORWARD);
    until("it recovers", || store.callers().version().is_ok());
    pause(&store, "ann").unwrap();
    let row = store.callers().get("ann").unwrap().unwrap();
    assert_eq!(row.denials.in_all, 2, "what was refused was not done");
}

/// No packet arrives any more and no connection is closed: nobody waits longer than the bound.
#[test]
fn a_silent_database_hangs_nobody() {
    let shared = SharedHome::new("silent");
    let proxy = Proxy::new();
    let home = proxy.node(&shared, "silent");
    let store = open(&home.path);
    pause(&store, "ann").unwrap();
    proxy.set(SILENT);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert!(is_unavailable(&pause(&store, "ann"))));
        }
    });
    let bound = Duration::from_millis(2 * store::limit::SHARED_WAIT_MS_MAX);
    assert!(began.elapsed() < bound, "{:?}", began.elapsed());
    until("it knows", || is_unavailable(&store.callers().version()));
    proxy.set(REFUSE);
    proxy.set(FORWARD);
    until("it recovers", || pause(&store, "ann").is_ok());
}

/// The connection breaks while fifty calls take one approval and thirty units: none is given
/// twice, however often the connection is cut.
#[test]
fn a_cut_connection_gives_nothing_twice() {
    let shared = SharedHome::new("cut");
    let proxy = Proxy::new();
    let (here, there) = (proxy.node(&shared, "cut-a"), proxy.node(&shared, "cut-b"));
    let stores = [open(&here.path), open(&there.path)];
    let key = [("few".to_owned(), "ann".to_owned())];
    let given = std::sync::atomic::AtomicUsize::new(0);
    let tried = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..16_usize {
            let (store, key) = (&stores[number % 2], &key);
            let (given, tried) = (&given, &tried);
            scope.spawn(move || {
                for _ in 0..20 {
                    let process = store.usage().process().clone();
                    let entered = store.usage().change(key, 0, move |tallies| {
                        let spent = tallies[0].units();
                        let limit = model::govern::access::quota::RateLimit {
                            id: "few".to_owned(),
                            callers: Vec::new(),
                            groups: Vec::new(),
                            tools: Vec::new(),
                            calls_per_minute: None,
                            concurrent: None,
                            units_per_day: Some(100),
                        };
                        let visit = model::govern::access::quota::LimitedCall {
                            caller: "ann",
                            groups: &[],
                            tool: "tool",
                            units: 1,
                            at_ms: 0,
                        };
                        let mut held = vec![(&limit, tallies.remove(0))];
                        let entered =
                            model::govern::access::quota::enter(&mut held, &visit, &process);
                        tallies.extend(held.into_iter().map(|(_, tally)| tally));
                        (spent, entered.is_ok())
                    });
                    tried.fetch_add(1, Ordering::SeqCst);
                    if matches!(entered, Ok(Some((_, true)))) {
                        given.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        // Cut again and again while they work, each time after some more tries.
        for cut in 1..=5 {
            until("they try", || tried.load(Ordering::SeqCst) >= cut * 50);
            proxy.set(REFUSE);
            proxy.set(FORWARD);
        }
    });
    let given = given.load(Ordering::SeqCst);
    assert!(given <= 100, "{given} of 100 were given");
    let fresh = shared.store();
    let used = fresh.usage().peek(&key).unwrap()[0].units();
    let given = u64::try_from(given).unwrap();
    assert!(used >= given && used <= 100, "{used} used, {given} given");
    // Positive control: without cuts the rest is given, to the last unit.
    assert!(used > 0);
}
