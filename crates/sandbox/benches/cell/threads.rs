//! The design that was not taken for direct host calls: a thread for each guest that
//! waits inside one. The same guests, the same answers, but each has a thread of its own
//! that blocks until its answer is there; the loop that serves them is another.
//!
//! The guest still runs on a fiber below, which costs two switches of 50 ns a call and
//! the same pages either way, so what is compared is the handing over.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rustix::time::{ClockId, clock_gettime};
use sandbox::cell::{CellStep, Cells};
use sandbox::job::{CallId, HostAnswer, HostCallId, HostRequest, Job, Up};

use super::{Lines, cells, job, private_kb, run};

const CALLS: usize = 1_000;
const PARKED: u32 = 500;

type Answer = (HostCallId, HostAnswer);

/// A guest that waits on a thread of its own.
struct Waiting {
    give: Sender<Answer>,
    guest: JoinHandle<()>,
}

/// A guest's thread needs no more; its guest has a stack of its own.
const STACK_BYTES: usize = 256 << 10;

pub(super) fn compare(lines: &mut Lines) -> io::Result<()> {
    let cells = cells(64)?;
    for (name, body) in [
        ("direct_1", "return probe.direct('echo', 1)"),
        (
            "direct_10",
            "let s = 0; for (let i = 0; i < 10; i++) s += probe.direct('echo', i); return s",
        ),
    ] {
        let mut least = [f64::INFINITY; 2];
        // In turn, so that a busy machine is as unfair to one as to the other.
        for _ in 0..5 {
            let fiber = per_call_us(|| (0..CALLS).for_each(|_| run(&cells, job(body, "{}"))));
            let thread = per_call_us(|| through_thread(&cells, body));
            for (least, us) in least.iter_mut().zip([fiber, thread]) {
                *least = least.min(us);
            }
        }
        for (design, us) in ["fiber", "thread"].iter().zip(least) {
            lines.add(&format!("{name}_{design}_process_us"), us);
        }
    }
    parked(lines)
}

/// Calls one after the other, each run by one standing thread, answered by this one.
fn through_thread(cells: &Cells, body: &str) {
    let (ask, asked) = mpsc::channel();
    let (give, given) = mpsc::channel();
    let (cells, body) = (cells.clone(), body.to_owned());
    let guest = thread::spawn(move || {
        for _ in 0..CALLS {
            serve(&cells, job(&body, "{}"), &ask, &given);
        }
    });
    while let Ok(request) = asked.recv() {
        let answer = HostAnswer::Value(request.payload);
        assert!(give.send((request.id, answer)).is_ok());
    }
    assert!(guest.join().is_ok());
}

/// One guest on this thread, to its end or until its host stops answering.
fn serve(cells: &Cells, job: Job, ask: &Sender<HostRequest>, given: &Receiver<Answer>) {
    let mut cell = cells.start(CallId(1), job);
    let mut out = Vec::new();
    loop {
        let step = cell.step(&mut out);
        for up in out.drain(..) {
            if let Up::Host(_, request) = up {
                assert!(ask.send(request).is_ok());
            }
        }
        match step {
            CellStep::Ended(_) => return,
            CellStep::Ready => {}
            CellStep::Waiting => match given.recv() {
                Ok((id, answer)) => cell.answer(id, answer),
                Err(_) => return,
            },
        }
    }
}

/// What each thread that waits holds: its own pages, and its stack in the kernel.
fn parked(lines: &mut Lines) -> io::Result<()> {
    let cells = cells(PARKED)?;
    let (own, kernel) = (private_kb()?, kernel_stacks_kb()?);
    let (ask, asked) = mpsc::channel();
    let mut threads = Vec::new();
    for _ in 0..PARKED {
        let (give, given) = mpsc::channel();
        let (cells, ask) = (cells.clone(), ask.clone());
        let guest = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || serve(&cells, job("probe.direct('never')", "{}"), &ask, &given))?;
        threads.push(Waiting { give, guest });
        // The request is out, so the guest stands inside its call.
        assert!(asked.recv().is_ok());
    }
    lines.add(
        "parked_thread_kb",
        (private_kb()? - own) / f64::from(PARKED),
    );
    lines.add(
        "parked_thread_kernel_kb",
        (kernel_stacks_kb()? - kernel) / f64::from(PARKED),
    );
    for Waiting { give, guest } in threads {
        drop(give);
        assert!(guest.join().is_ok());
    }
    Ok(())
}

/// Of the whole machine, so that what others start and end shows in it.
fn kernel_stacks_kb() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with("KernelStack:"));
    Ok(line
        .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(f64::NAN))
}

fn per_call_us(calls: impl FnOnce()) -> f64 {
    let cpu_us = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    };
    let before = cpu_us();
    calls();
    (cpu_us() - before) / CALLS as f64
}
