//! Runs scripts in wall one alone, with a small host that answers the probe's calls.

use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use sandbox::cell::{Cell, CellSettings, CellStep, Cells};
use sandbox::job::{
    Breach, CallId, Ended, GuestLine, HostAnswer, HostRequest, Job, JobLimits, Payload, RunReport,
    Up,
};

/// One wall for the whole test binary; memory stays small however many tests run.
pub(crate) fn cells() -> &'static Cells {
    static CELLS: OnceLock<Cells> = OnceLock::new();
    CELLS.get_or_init(|| {
        let settings = CellSettings {
            live_max: 24,
            ..CellSettings::default()
        };
        let cells = Cells::load(&settings).expect("the guest loads");
        cells.start_ticker().expect("the ticker starts");
        cells
    })
}

/// Limits no honest script reaches.
pub(crate) fn limits() -> JobLimits {
    JobLimits {
        work_max: 1_000_000_000,
        cpu_ms_max: 20_000,
        wall_ms_max: 60_000,
        memory_bytes_max: 64 << 20,
        result_bytes_max: 1 << 20,
        result_depth_max: 100,
        console_lines_max: 1_000,
        console_bytes_max: 1 << 20,
        host_calls_max: 1_000,
        host_outstanding_max: 100,
        payload_bytes_max: 1 << 20,
    }
}

/// A job with no parameters, the probe, and a clock that starts at 2026-01-02.
pub(crate) fn job(body: &str) -> Job {
    Job {
        body: body.to_owned(),
        globals: "{}".to_owned(),
        declared: Vec::new(),
        powers: vec!["probe".to_owned()],
        limits: limits(),
        seed: 42,
        now_ms: 1_767_312_000_000,
    }
}

/// A run and what it said on the way.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) report: RunReport,
    pub(crate) console: Vec<GuestLine>,
    pub(crate) requests: Vec<HostRequest>,
}

/// Runs a job with a host that answers by operation:
/// `echo` gives the payload back, `fail` an error, `never` nothing.
pub(crate) fn run(job: Job) -> Ran {
    run_in(cells(), job)
}

pub(crate) fn run_in(cells: &Cells, job: Job) -> Ran {
    let mut cell = cells.start(CallId(1), job);
    let mut ran = Ran {
        report: RunReport::new(Ended::Undefined),
        console: Vec::new(),
        requests: Vec::new(),
    };
    let mut out = Vec::new();
    loop {
        let step = cell.step(&mut out);
        let mut answered = false;
        for up in out.drain(..) {
            match up {
                Up::Console(_, line) => ran.console.push(line),
                Up::Host(_, request) => {
                    answered |= answer(&mut cell, &request);
                    ran.requests.push(request);
                }
                Up::Ended(..) => panic!("a cell never says so itself"),
            }
        }
        match step {
            CellStep::Ready => {}
            CellStep::Waiting if answered => {}
            CellStep::Waiting => {
                // Sleeps: until the deadline, as the worker does in poll.
                thread::sleep(cell.deadline().saturating_duration_since(Instant::now()))
            }
            CellStep::Ended(report) => {
                ran.report = *report;
                return ran;
            }
        }
    }
}

fn answer(cell: &mut Cell, request: &HostRequest) -> bool {
    let answer = match request.operation.as_str() {
        "echo" => HostAnswer::Value(request.payload.clone()),
        "bytes" => HostAnswer::Value(Payload { json: "7".to_owned(), bytes: vec![1, 2, 255] }),
        "big" => HostAnswer::Value(Payload {
            json: "1".to_owned(),
            bytes: vec![0; usize::try_from(limits().payload_bytes_max).unwrap()],
        }),
        "fail" => HostAnswer::Error(
            r#"{"kind":"SECURITY","reason":"host.denied","helper":"fetch","message":"not allowed"}"#
                .to_owned(),
        ),
        "fail-long" => HostAnswer::Error(format!(
            r#"{{"message":"{}","reason":"host.denied"}}"#,
            "x".repeat(40_000)
        )),
        _ => return false,
    };
    cell.answer(request.id, answer);
    true
}

/// The end of a body, in one line: `value 3`, `threw TypeError: no`, `breached Cpu`.
pub(crate) fn ended(body: &str) -> String {
    show(&run(job(body)).report.ended)
}

pub(crate) fn show(ended: &Ended) -> String {
    match ended {
        Ended::Value(json) => format!("value {json}"),
        Ended::Undefined => "undefined".to_owned(),
        Ended::Threw(thrown) => format!("threw {}: {}", thrown.name, thrown.message),
        Ended::Breached(breach) => format!("breached {breach:?}"),
        Ended::Cancelled => "cancelled".to_owned(),
        Ended::Broken(text) => format!("broken {text}"),
    }
}

/// A body and the line its end should be.
#[track_caller]
pub(crate) fn check(body: &str, expected: &str) {
    assert_eq!(ended(body), expected, "{body}");
}

#[track_caller]
pub(crate) fn check_breach(job: Job, breach: Breach) {
    let body = job.body.clone();
    assert_eq!(run(job).report.ended, Ended::Breached(breach), "{body}");
}
