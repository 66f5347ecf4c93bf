//! The hostile scripts in `cases/attack/sandbox`: each ends by the name in its
//! `expect.txt`, in time, and the next call is as good as the first.

use std::fs;
use std::path::{Path, PathBuf};

use sandbox::job::{Breach, Ended, Job, JobLimits};

use super::cell_run::{job, run, show};

/// Limits small enough that a run of all cases is short.
fn attack_limits() -> JobLimits {
    JobLimits {
        work_max: 1_000_000_000_000,
        cpu_ms_max: 100,
        wall_ms_max: 20_000,
        memory_bytes_max: 32 << 20,
        result_bytes_max: 1 << 20,
        result_depth_max: 64,
        console_lines_max: 100,
        console_bytes_max: 64 << 10,
        host_calls_max: 50,
        host_outstanding_max: 10,
        payload_bytes_max: 64 << 10,
    }
}

pub(crate) fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/attack/sandbox");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    cases.sort();
    cases
}

/// `key = value`, one on each line.
pub(crate) fn read_limits(path: &Path) -> JobLimits {
    let mut limits = attack_limits();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        let (key, value) = line.split_once(" = ").expect("key = value");
        let number: u64 = value.parse().expect("a number");
        let small = u32::try_from(number).unwrap_or(u32::MAX);
        match key {
            "work_max" => limits.work_max = number,
            "cpu_ms_max" => limits.cpu_ms_max = small,
            "wall_ms_max" => limits.wall_ms_max = small,
            "memory_bytes_max" => limits.memory_bytes_max = small,
            other => panic!("{}: unknown limit {other}", path.display()),
        }
    }
    limits
}

/// The end as `expect.txt` writes it.
pub(crate) fn code(ended: &Ended) -> String {
    match ended {
        Ended::Breached(breach) => format!("breached {}", breach_code(*breach)),
        Ended::Threw(thrown) => format!("threw {}", thrown.name),
        Ended::Value(_) | Ended::Undefined | Ended::Cancelled | Ended::Broken(_) => show(ended),
    }
}

fn breach_code(breach: Breach) -> &'static str {
    match breach {
        Breach::Work => "work",
        Breach::Cpu => "cpu",
        Breach::Wall => "wall",
        Breach::Memory => "memory",
        Breach::Stack => "stack",
        Breach::ResultBytes => "result_bytes",
        Breach::ResultDepth => "result_depth",
        Breach::ConsoleLines => "console_lines",
        Breach::ConsoleBytes => "console_bytes",
        Breach::HostCalls => "host_calls",
        Breach::HostOutstanding => "host_outstanding",
        Breach::PayloadBytes => "payload_bytes",
        Breach::Deadlock => "deadlock",
    }
}

#[test]
fn every_hostile_script_ends_by_name_and_in_time() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 60);
    for case in cases {
        let name = case
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let script = fs::read_to_string(case.join("script.js")).expect("script.js");
        let expected = fs::read_to_string(case.join("expect.txt")).expect("expect.txt");
        let limits = read_limits(&case.join("limits.txt"));
        let report = run(Job {
            limits: limits.clone(),
            ..job(&script)
        })
        .report;
        let found = code(&report.ended);
        if found != expected.trim_end() {
            wrong.push(format!(
                "{name}: expected {}, found {found}",
                expected.trim_end()
            ));
        }
        // 5 %, and on a busy machine a few ticks of the clock. The thread that keeps the
        // time may itself be kept waiting there; what is late by design is so each time.
        let cpu_us_max = (u64::from(limits.cpu_ms_max) * 105 / 100 + 5) * 1_000;
        let again = || {
            run(Job {
                limits: limits.clone(),
                ..job(&script)
            })
            .report
            .usage
            .cpu_us
        };
        let first = report.usage.cpu_us;
        if first > cpu_us_max && (0..9).all(|_| again() > cpu_us_max) {
            wrong.push(format!("{name}: took {first} us of processor time"));
        }
        if report.usage.memory_bytes > u64::from(limits.memory_bytes_max) {
            wrong.push(format!("{name}: took {} bytes", report.usage.memory_bytes));
        }
        let next = run(job(
            "return [typeof evil, [1, 2, 3].map((x) => x * 2), await probe.queued('echo', 4)]",
        ));
        if show(&next.report.ended) != r#"value ["undefined",[2,4,6],4]"# {
            wrong.push(format!(
                "{name}: the next call gave {}",
                show(&next.report.ended)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
