//! A process for tests to kill. It writes to the store of a home and says on
//! standard output what it was told was done; whatever it said must be there
//! after its death.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a child that cannot go on should stop, and its parent sees it"
)]

use std::future::poll_fn;
use std::io::Write as _;
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;

use model::caller::Origin;
use model::govern::access::quota::{self, LimitExceeded, LimitedCall, RateLimit};
use model::record::audit::{Closing, Opening, Status};
use model::record::job::JobState;
use rustix::process::{Signal, getpid, kill_process};
use store::approvals::Claim;
use store::{
    Durability, JobEnd, NewJob, Retention, ScriptJournal, Store, StoreError, StoreSettings,
};
use tokio::runtime::Builder;

fn main() {
    // The password of the Postgres that tests start.
    store::set_secret_reader(|_, _| Ok(Some("correct horse battery staple".to_owned())));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["step", home, step] => run_to(Path::new(home), step),
        ["load", home, callers] => load(Path::new(home), callers.parse().unwrap()),
        ["churn", home] => churn(Path::new(home)),
        ["write", home, name, count] => write(Path::new(home), name, count.parse().unwrap()),
        ["until-full", home] => until_full(Path::new(home)),
        ["enter", home] => enter(Path::new(home)),
        ["node", home, name, step] => {
            store::testing::kill_at_step(step.parse().unwrap());
            live(Path::new(home), name);
        }
        ["clock", home, ahead] => {
            store::testing::set_clock_ahead(ahead.parse().unwrap());
            tell_time(Path::new(home));
        }
        ["hold", home, call_id] => hold(Path::new(home), call_id),
        other => panic!("no such work: {other:?}"),
    }
}

fn settings() -> StoreSettings {
    let durability = match std::env::var("STORE_TEST_DURABILITY") {
        Ok(word) if word == "full" => Durability::Full,
        Ok(_) | Err(_) => Durability::Standard,
    };
    StoreSettings {
        durability,
        ..StoreSettings::standard()
    }
}

fn open(home: &Path) -> Store {
    Store::open(home, settings()).unwrap()
}

/// Lets a call in under a limit and dies while it runs.
fn enter(home: &Path) {
    let store = open(home);
    let entered = take_place(&store, "ann");
    say("entered", &format!("{entered:?}"));
    die();
}

/// Takes the one place there is under the key `name`.
fn take_place(store: &Store, name: &str) -> Result<(), LimitExceeded> {
    let limit = RateLimit {
        id: "few".to_owned(),
        callers: Vec::new(),
        groups: Vec::new(),
        tools: Vec::new(),
        calls_per_minute: None,
        concurrent: Some(1),
        units_per_day: None,
    };
    let usage = store.usage();
    let process = usage.process().clone();
    let keys = [("few".to_owned(), name.to_owned())];
    let entered = usage.change(&keys, 0, move |tallies| {
        let visit = LimitedCall {
            caller: "ann",
            groups: &[],
            tool: "tool",
            units: 1,
            at_ms: 0,
        };
        let mut held = vec![(&limit, tallies.remove(0))];
        let entered = quota::enter(&mut held, &visit, &process);
        tallies.extend(held.into_iter().map(|(_, tally)| tally));
        entered
    });
    entered.unwrap().unwrap()
}

/// What a node does with a shared store, one thing after the other. The parent kills it at
/// every step.
fn live(home: &Path, name: &str) {
    let store = open(home);
    store.shared_files().unwrap().sync().unwrap();
    say("synced", name);
    let job = NewJob {
        id: format!("job-{name}"),
        caller: "ann".to_owned(),
        call_id: "call".to_owned(),
        command: "sh".to_owned(),
        started_at_ms: 1,
    };
    assert!(store.jobs().start(&job, 1_000).unwrap().found);
    say("started", name);
    let claim = Claim {
        call_id: format!("call-{name}"),
        binding: name.to_owned(),
        tool_binding: "tool".to_owned(),
        session: None,
        separate: false,
        own_client: true,
    };
    if store
        .approvals()
        .claim(&claim, 1_000_002)
        .unwrap()
        .is_some()
    {
        say("claimed", name);
    }
    let script = ScriptJournal {
        key: format!("key-{name}"),
        // One for each: the journals of a caller are bounded.
        caller: name.to_owned(),
        kept_at_ms: 1_000_000,
        expires_at_ms: 1_600_000,
        journal: "journal".to_owned(),
    };
    store.scripts().keep(&script, None).unwrap();
    let taken = store.scripts().take(&script.key, 1_000_001).unwrap();
    store
        .scripts()
        .add(taken.unwrap().id, "step", 1_600_000)
        .unwrap();
    say("stepped", name);
    enter_and_leave(&store, name);
    let end = JobEnd {
        state: JobState::Done,
        ended_at_ms: 2,
        exit_code: Some(0),
        stdout_bytes: 0,
        stderr_bytes: 0,
        why: None,
        changes: None,
    };
    store.jobs().end(&job.id, &end).unwrap();
    say("ended", name);
    drop(store);
    say("over", name);
}

fn enter_and_leave(store: &Store, name: &str) {
    let usage = store.usage();
    let keys = [("few".to_owned(), name.to_owned())];
    assert!(take_place(store, name).is_ok());
    say("entered", name);
    let process = usage.process().clone();
    let left = usage.change(&keys, 0, move |tallies| {
        for tally in tallies {
            tally.leave(&process, 0, 0);
        }
    });
    left.unwrap();
    say("left", name);
}

/// The time as this node sees it.
fn tell_time(home: &Path) {
    let store = open(home);
    store.reach().unwrap();
    say("now", &store::clock::now_ms().to_string());
}

/// Each line is written at once: what was said stays said.
fn say(word: &str, what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{word} {what}\n").as_bytes())
        .unwrap();
    out.flush().unwrap();
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    panic!("still alive");
}

/// One call, up to a step, and death.
fn run_to(home: &Path, step: &str) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = open(home);
    let audit = store.audit();
    let die_at = |here: &str| {
        if step == here {
            die();
        }
    };
    die_at("before-open");
    runtime.block_on(async {
        let mut opening = pin!(audit.open(opening("stepped")));
        if step == "during-open" {
            die_once_polled(opening.as_mut()).await;
        }
        let row = opening.await.unwrap();
        say("opened", "stepped");
        die_at("after-open");
        if step == "during-secure" {
            let mut secure = pin!(audit.secure(&row));
            die_once_polled(secure.as_mut()).await;
        }
        audit.secure(&row).await.unwrap();
        say("secured", "stepped");
        die_at("after-secure");
        if step == "drop" {
            drop(row);
            die();
        }
        let mut close = pin!(audit.close(row, closing()));
        if step == "during-close" {
            die_once_polled(close.as_mut()).await;
        }
        close.await.unwrap();
        say("closed", "stepped");
        die_at("after-close");
    });
    die_at("before-end");
    drop(store);
    die_at("after-end");
    panic!("no such step");
}

/// Starts something and dies. What it may give at once is not dropped, for
/// dropping a row is an act of its own.
async fn die_once_polled<F: Future>(mut future: Pin<&mut F>) {
    let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    std::mem::forget(polled);
    die();
}

/// Many callers, endlessly; the parent ends it.
fn load(home: &Path, callers: usize) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let store = open(home);
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = store.clone();
            runtime.spawn(async move {
                for number in 0_u64.. {
                    let call_id = format!("{}-{caller}-{number}", std::process::id());
                    let row = store.audit().open(opening(&call_id)).await.unwrap();
                    say("opened", &call_id);
                    if number % 3 == 0 {
                        store.audit().secure(&row).await.unwrap();
                    }
                    store.audit().close(row, closing()).await.unwrap();
                    say("closed", &call_id);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Callers, and removals that take their entries away again, endlessly.
fn churn(home: &Path) {
    let store = open(home);
    let beside = home.to_owned();
    std::thread::spawn(move || load(&beside, 8));
    let rule = Retention {
        bytes_max: Some(100_000),
        ..Retention::default()
    };
    loop {
        let removed = store.audit().retain(&rule).unwrap();
        if removed.entries > 0 {
            say("removed", &removed.entries.to_string());
        }
    }
}

/// So many entries one after the other, then a clean end.
fn write(home: &Path, name: &str, count: usize) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = open(home);
    runtime.block_on(async {
        for number in 0..count {
            let call_id = format!("{name}-{number}");
            let row = store.audit().open(opening(&call_id)).await.unwrap();
            store.audit().close(row, closing()).await.unwrap();
            say("closed", &call_id);
        }
    });
}

/// Until the first refusal, and some attempts beyond it.
fn until_full(home: &Path) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = open(home);
    runtime.block_on(async {
        let mut refusals = 0;
        for number in 0..100_000 {
            let call_id = format!("full-{number}");
            match store.audit().open(opening(&call_id)).await {
                Ok(row) => {
                    say("opened", &call_id);
                    match store.audit().close(row, closing()).await {
                        Ok(_) => say("closed", &call_id),
                        Err(error) => say("unclosed", kind(&error)),
                    }
                }
                Err(error) => {
                    say("refused", kind(&error));
                    refusals += 1;
                }
            }
            if refusals == 5 {
                return;
            }
        }
        panic!("never full");
    });
}

fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Full { .. } => "full",
        StoreError::Database { .. } => "database",
        _ => "other",
    }
}

/// Opens an entry and waits for the end of standard input.
fn hold(home: &Path, call_id: &str) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = open(home);
    let row = runtime
        .block_on(store.audit().open(opening(call_id)))
        .unwrap();
    say("opened", call_id);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    runtime
        .block_on(store.audit().close(row, closing()))
        .unwrap();
    say("closed", call_id);
}

fn opening(call_id: &str) -> Opening {
    Opening {
        call_id: call_id.to_owned(),
        parent_id: None,
        at_ms: 1_700_000_000_000,
        origin: Origin::Mcp,
        caller: "child".to_owned(),
        tool: "hello".to_owned(),
        arguments_digest: "00".repeat(32),
    }
}

fn closing() -> Closing {
    Closing::bare(1_700_000_000_001, Status::Done, None)
}
