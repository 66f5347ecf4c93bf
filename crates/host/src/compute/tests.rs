//! Who gets a turn, and when work stops. Nothing here measures time: work goes on for as
//! long as it may, and what must happen meanwhile happens or the test does not end.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn account(caller: &str) -> Account {
    let deadline = Instant::now() + Duration::from_secs(600);
    Account::new(caller, Duration::from_secs(600), deadline)
}

fn done() -> Result<PowerReply, PowerFault> {
    Ok(PowerReply::default())
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// Work that never ends by itself, and counts its chunks.
fn endless(
    chunks: &Arc<AtomicU64>,
) -> impl FnOnce(&Turn) -> Result<PowerReply, PowerFault> + Send + 'static {
    let chunks = Arc::clone(chunks);
    move |turn| loop {
        chunks.fetch_add(1, Ordering::Relaxed);
        turn.check().map_err(|stopped| stopped.into_fault("test"))?;
        thread::yield_now();
    }
}

/// Waits until the pool has nothing to do.
fn wait_until_idle(pool: &Compute) {
    while pool.load() != (0, 0) {
        thread::yield_now();
    }
}

fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

/// One caller with work without end, more than there are threads; another's small work
/// goes through, again and again.
#[test]
fn no_caller_keeps_another_from_its_turn() {
    for turns in [1, 2] {
        let pool = Compute::new(turns);
        let chunks = Arc::new(AtomicU64::new(0));
        let greedy = account("greedy");
        let mut held: Vec<_> = (0..60)
            .map(|_| Box::pin(pool.run(&greedy, "test", endless(&chunks))))
            .collect();
        for work in &mut held {
            assert!(poll(&mut work.as_mut()).is_pending());
        }
        while chunks.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        for _ in 0..20 {
            let other = account("other");
            assert!(block_on(pool.run(&other, "test", |_| done())).is_ok());
        }
        // So many of one caller have begun, and no more.
        while pool.load().0 != THREADS_PER_CALLER_MAX {
            thread::yield_now();
        }
        assert!(
            held.iter_mut()
                .all(|work| poll(&mut work.as_mut()).is_pending())
        );
        // Nobody waits any more: it all ends, and nothing is computed after that.
        drop(held);
        wait_until_idle(&pool);
        let (after, spent) = (chunks.load(Ordering::Relaxed), pool.spent());
        assert!(block_on(pool.run(&account("other"), "test", |_| done())).is_ok());
        assert_eq!(chunks.load(Ordering::Relaxed), after);
        assert!(spent > Duration::ZERO);
    }
}

/// The calls of one caller take turns too.
#[test]
fn calls_of_one_caller_take_turns() {
    let pool = Compute::new(1);
    let one = account("one");
    let counts: Vec<_> = (0..3).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let mut held: Vec<_> = counts
        .iter()
        .map(|chunks| Box::pin(pool.run(&one, "test", endless(chunks))))
        .collect();
    for work in &mut held {
        assert!(poll(&mut work.as_mut()).is_pending());
    }
    // Each gets on, although one alone would keep the only turn for ever.
    for chunks in &counts {
        let before = chunks.load(Ordering::Relaxed);
        while chunks.load(Ordering::Relaxed) < before + 10 {
            thread::yield_now();
        }
    }
    drop(held);
    wait_until_idle(&pool);
}

#[test]
fn work_is_charged_to_its_call() {
    let pool = Compute::new(1);
    let deadline = Instant::now() + Duration::from_secs(600);
    let poor = Account::new("poor", Duration::from_millis(20), deadline);
    let chunks = Arc::new(AtomicU64::new(0));
    let spent = block_on(pool.run(&poor, "test", endless(&chunks)));
    assert_eq!(spent.map_err(|fault| fault.reason), Err("compute-budget"));
    // Nothing is left for the next, which does not begin.
    let next = block_on(pool.run(&poor, "test", |_| done()));
    assert_eq!(next.map_err(|fault| fault.reason), Err("compute-budget"));
    let rich = account("poor");
    assert!(block_on(pool.run(&rich, "test", |_| done())).is_ok());
}

#[test]
fn work_ends_with_its_call() {
    let pool = Compute::new(1);
    let late = Account::new("late", Duration::from_secs(1), Instant::now());
    let stopped = block_on(pool.run(&late, "test", |_| done()));
    assert_eq!(stopped.map_err(|fault| fault.reason), Err("stopped"));
}

#[test]
fn the_line_of_a_caller_is_bounded() {
    let pool = Compute::new(1);
    let (greedy, chunks) = (account("greedy"), Arc::new(AtomicU64::new(0)));
    let mut held = Vec::new();
    let reason = loop {
        let mut work = Box::pin(pool.run(&greedy, "test", endless(&chunks)));
        match poll(&mut work.as_mut()) {
            Poll::Pending => held.push(work),
            Poll::Ready(answered) => break answered.map_err(|fault| fault.reason),
        }
        assert!(held.len() <= WAITING_PER_CALLER_MAX + THREADS_PER_CALLER_MAX);
    };
    assert_eq!(reason, Err("busy"));
    assert!(block_on(pool.run(&account("other"), "test", |_| done())).is_ok());
    drop(held);
    wait_until_idle(&pool);
}

#[test]
fn work_that_panics_is_an_error_and_gives_its_turn_back() {
    let pool = Compute::new(1);
    let one = account("one");
    let broke = block_on(pool.run(&one, "test", |_| panic!("on purpose")));
    assert_eq!(broke.map_err(|fault| fault.reason), Err("busy"));
    assert!(block_on(pool.run(&one, "test", |_| done())).is_ok());
    wait_until_idle(&pool);
}

#[test]
fn what_has_not_begun_is_forgotten_at_once() {
    let pool = Compute::new(1);
    let (one, chunks) = (account("one"), Arc::new(AtomicU64::new(0)));
    let mut first: Vec<_> = (0..THREADS_PER_CALLER_MAX)
        .map(|_| Box::pin(pool.run(&one, "test", endless(&chunks))))
        .collect();
    for work in &mut first {
        assert!(poll(&mut work.as_mut()).is_pending());
    }
    {
        let mut waits = pin!(pool.run(&one, "test", |_| done()));
        assert!(poll(&mut waits).is_pending());
        while pool.load() != (THREADS_PER_CALLER_MAX, 1) {
            thread::yield_now();
        }
    }
    assert_eq!(pool.load().1, 0);
    drop(first);
    wait_until_idle(&pool);
}
