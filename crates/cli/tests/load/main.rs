//! Three servers with homes of their own on one Postgres, under load, while two of them are
//! killed at random and started again, and the database is away for a moment: no acknowledged
//! record is lost, no approval is used twice, no lease is left, and the third one, which lives
//! throughout, grows neither in memory nor in descriptors.
//!
//! `RINGFENCE_LOAD_SECONDS` says for how long; without it nothing runs. `cargo xtask ci` has
//! it as a part of its own; thirty minutes by hand print the curve.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends on the first surprise and prints its curve"
)]

mod check;
mod node;
mod outage;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use node::{Cluster, Node, automate, call, question};

/// For how many seconds.
const SECONDS: &str = "RINGFENCE_LOAD_SECONDS";

/// Clients that call as fast as they are answered.
const CLIENTS: u64 = 6;

/// Calls at one time that the limit of the settings allows: more than there are clients,
/// because places of a killed node are taken until its lease ends.
const CONCURRENT: u64 = 24;

/// What clients saw.
#[derive(Default)]
struct Seen {
    /// The call id of every answer that came.
    acknowledged: Mutex<Vec<String>>,
    ran: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    /// Calls with a person's answer that ran.
    approved: AtomicU64,
    kills: AtomicU64,
    ran_before_outage: AtomicU64,
    is_over: AtomicBool,
}

/// One point of the curve.
struct Sample {
    second: u64,
    ran: u64,
    kilobytes: u64,
    descriptors: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn main() {
    let seconds = std::env::var(SECONDS).ok();
    let Some(seconds) = seconds.and_then(|text| text.parse::<u64>().ok()) else {
        println!("the load test runs with {SECONDS}");
        return;
    };
    let cluster = Cluster::new(CONCURRENT);
    let seen = Seen::default();
    let nodes = ["a", "b", "c"].map(|name| Mutex::new(cluster.serve(name)));
    let curve = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (nodes, seen) = (&nodes, &seen);
            scope.spawn(move || run_client(nodes, seen, client));
        }
        scope.spawn(|| run_questions(&nodes, &seen));
        scope.spawn(|| run_answers(&nodes, &seen));
        scope.spawn(|| run_kills(&cluster, &nodes, &seen));
        let middle = Instant::now() + Duration::from_secs(seconds / 2);
        let seen = &seen;
        scope.spawn(move || outage::run(seen, middle));
        let curve = watch(&nodes, seen, seconds);
        seen.is_over.store(true, Ordering::SeqCst);
        curve
    });
    let nodes = nodes.map(|node| node.into_inner().unwrap_or_else(PoisonError::into_inner));
    print_curve(&curve, &seen);
    check::whole(&cluster, nodes, &seen, &curve);
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
}

/// A number that is different each time.
fn random(seed: &mut u64) -> u64 {
    // xorshift: a test needs no better one, and this one can be repeated.
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn address(nodes: &[Mutex<Node>; 3], number: u64) -> String {
    let place = usize::try_from(number % 3).unwrap();
    lock(nodes.get(place).unwrap()).address.clone()
}

/// Calls one node after the other, at random. An answer with a call id is a promise.
fn run_client(nodes: &[Mutex<Node>; 3], seen: &Seen, client: u64) {
    let mut seed = 0x9E37_79B9 + client;
    let mut number = 0_u64;
    while !seen.is_over.load(Ordering::SeqCst) {
        let address = address(nodes, random(&mut seed));
        number += 1;
        let text = format!("{{\"text\":\"c{client} n{number}\"}}");
        let answer = call(&address, "countWords", &text);
        seen.take(answer.as_deref());
    }
}

impl Seen {
    /// Whether the call ran.
    fn take(&self, answer: Option<&str>) -> bool {
        let Some(answer) = answer else {
            self.lost.fetch_add(1, Ordering::SeqCst);
            // The node is gone; it takes a moment to come back.
            std::thread::park_timeout(Duration::from_millis(20));
            return false;
        };
        if let Some(id) = node::call_id(answer) {
            lock(&self.acknowledged).push(id);
        }
        let ran = answer.contains("\"words\":2");
        let counter = if ran { &self.ran } else { &self.refused };
        counter.fetch_add(1, Ordering::SeqCst);
        ran
    }
}

/// The same question from two nodes at once, again and again.
fn run_questions(nodes: &[Mutex<Node>; 3], seen: &Seen) {
    let mut number = 0_u64;
    while !seen.is_over.load(Ordering::SeqCst) {
        number += 1;
        std::thread::scope(|scope| {
            for place in [number, number + 1] {
                scope.spawn(move || {
                    let answer = question(&address(nodes, place), number);
                    if answer
                        .as_deref()
                        .is_some_and(|it| it.contains("\"base64\":"))
                    {
                        seen.approved.fetch_add(1, Ordering::SeqCst);
                    }
                    if let Some(id) = answer.as_deref().and_then(node::call_id) {
                        lock(&seen.acknowledged).push(id);
                    }
                });
            }
        });
    }
}

/// Agrees to whatever is asked, on any node.
fn run_answers(nodes: &[Mutex<Node>; 3], seen: &Seen) {
    let mut number = 0_u64;
    while !seen.is_over.load(Ordering::SeqCst) {
        number += 1;
        let place = usize::try_from(number % 3).unwrap();
        let home = lock(nodes.get(place).unwrap()).home.clone();
        if !automate(&home) {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

/// Kills the first or the second node, without a word, and starts it again.
fn run_kills(cluster: &Cluster, nodes: &[Mutex<Node>; 3], seen: &Seen) {
    let mut seed = 0xC0FF_EE11;
    while !seen.is_over.load(Ordering::SeqCst) {
        let wait = Duration::from_millis(1_000 + random(&mut seed) % 4_000);
        let until = Instant::now() + wait;
        while Instant::now() < until && !seen.is_over.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let place = usize::try_from(random(&mut seed) % 2).unwrap();
        let node = nodes.get(place).unwrap();
        // The others may ask for its address meanwhile, and find it dead.
        let name = {
            let mut dying = lock(node);
            dying.kill();
            dying.name.clone()
        };
        seen.kills.fetch_add(1, Ordering::SeqCst);
        let again = cluster.serve(&name);
        *lock(node) = again;
    }
}

/// Looks at the third node now and then.
fn watch(nodes: &[Mutex<Node>; 3], seen: &Seen, seconds: u64) -> Vec<Sample> {
    let began = Instant::now();
    let every = Duration::from_millis((seconds * 1_000 / 60).clamp(500, 30_000));
    let mut curve = Vec::new();
    while began.elapsed().as_secs() < seconds {
        std::thread::park_timeout(every);
        let pid = lock(nodes.last().unwrap()).pid();
        curve.push(Sample {
            second: began.elapsed().as_secs(),
            ran: seen.ran.load(Ordering::SeqCst),
            kilobytes: node::resident_kilobytes(pid),
            descriptors: node::descriptors(pid),
        });
    }
    curve
}

fn print_curve(curve: &[Sample], seen: &Seen) {
    println!("second  calls  KB  descriptors");
    for sample in curve {
        let Sample {
            second,
            ran,
            kilobytes,
            descriptors,
        } = sample;
        println!("{second:>6} {ran:>6} {kilobytes:>7} {descriptors:>4}");
    }
    let number = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    println!(
        "{} ran, {} refused, {} without an answer, {} by approval, {} kills, {} acknowledged",
        number(&seen.ran),
        number(&seen.refused),
        number(&seen.lost),
        number(&seen.approved),
        number(&seen.kills),
        lock(&seen.acknowledged).len(),
    );
}
