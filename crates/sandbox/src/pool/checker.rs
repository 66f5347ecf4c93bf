//! Checks every message of a worker about one call against the limits of the job.
//!
//! The worker is taken to be hostile: it runs other people's code. Its own
//! bounds keep honest workers well inside these, so one step outside them is
//! proof of a broken sandbox and ends the worker.

use std::time::Instant;

use crate::frame::{self, FrameBuffer};
use crate::job::{
    Ended, GuestLine, HostRequest, JobLimits, NOTES_BYTES_MAX, REJECTIONS_BYTES_MAX,
    REJECTIONS_TOLD_MAX, RunReport, Thrown, Up,
};

use super::FinishedRun;
use super::error::Violation;
use super::json::{self, Refused};

/// The longest name of an operation.
pub(super) const OPERATION_BYTES_MAX: usize = 256;

/// The longest error text, beside what an answer of the host brought in.
pub(super) const THROWN_BYTES_MAX: u32 = 64 << 10;

/// The most a report has beside its end: notes and rejections.
#[expect(
    clippy::cast_possible_truncation,
    reason = "both are small, and known here"
)]
pub(super) const REPORT_BYTES_MAX: u32 = (NOTES_BYTES_MAX + REJECTIONS_BYTES_MAX) as u32;

/// The longest text about a broken sandbox that is kept.
const BROKEN_CHARS_MAX: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct CallChecker {
    limits: JobLimits,
    started: Instant,
    console: Vec<GuestLine>,
    console_bytes: u64,
    host_calls: u32,
    host_call_last: u32,
    outstanding: u32,
    cancelled: bool,
}

/// The report, once it is checked.
#[derive(Debug)]
pub(super) enum Verdict {
    Ended(FinishedRun),
    Broken(String),
}

impl CallChecker {
    pub(super) fn new(limits: JobLimits, started: Instant) -> CallChecker {
        CallChecker {
            limits,
            started,
            console: Vec::new(),
            console_bytes: 0,
            host_calls: 0,
            host_call_last: 0,
            outstanding: 0,
            cancelled: false,
        }
    }

    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(super) fn count_answer(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    pub(super) fn console(&mut self, line: GuestLine) -> Result<(), Violation> {
        // Counted before the comparison, so that the line that breaks the
        // bound is not kept.
        self.console_bytes = self.console_bytes.saturating_add(line.text.len() as u64);
        if self.console.len() >= self.limits.console_lines_max as usize
            || self.console_bytes > u64::from(self.limits.console_bytes_max)
        {
            return Err(Violation::Console);
        }
        self.console.push(line);
        Ok(())
    }

    /// Every line so far. They are kept to count them.
    pub(super) fn said(&self) -> &[GuestLine] {
        &self.console
    }

    pub(super) fn host(&mut self, request: &HostRequest) -> Result<(), Violation> {
        // Counted by the guest from 1, so a repeated or replayed one shows.
        if request.id.0 <= self.host_call_last {
            return Err(Violation::HostCallOrder);
        }
        self.host_call_last = request.id.0;
        self.host_calls = self.host_calls.saturating_add(1);
        self.outstanding = self.outstanding.saturating_add(1);
        if self.host_calls > self.limits.host_calls_max
            || self.outstanding > self.limits.host_outstanding_max
        {
            return Err(Violation::HostCallCount);
        }
        let payload = request
            .payload
            .json
            .len()
            .saturating_add(request.payload.bytes.len());
        if request.operation.len() > OPERATION_BYTES_MAX
            || payload > self.limits.payload_bytes_max as usize
        {
            return Err(Violation::HostCallLength);
        }
        Ok(())
    }

    pub(super) fn check_end(&mut self, mut report: RunReport) -> Result<Verdict, Violation> {
        match &report.ended {
            Ended::Value(json) => self.check_value(json)?,
            Ended::Threw(thrown) => self.check_thrown(thrown)?,
            // A worker may not end a run early under the name of a cancellation that the
            // parent did not send.
            Ended::Cancelled if !self.cancelled => return Err(Violation::NotCancelled),
            Ended::Cancelled | Ended::Undefined | Ended::Breached(_) => {}
            Ended::Broken(detail) => {
                // Cut here, because the text is the worker's own and goes into the
                // operator's log.
                return Ok(Verdict::Broken(
                    detail.chars().take(BROKEN_CHARS_MAX).collect(),
                ));
            }
        }
        // The worker cuts notes itself, so longer ones are not an accident.
        if report.notes.len() > NOTES_BYTES_MAX {
            return Err(Violation::ResultSize);
        }
        check_rejections(&report.rejections.told)?;
        // The parent uses its own values where it has them, not the worker's.
        report.usage.host_calls = self.host_calls;
        let wall_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        report.usage.wall_us = report.usage.wall_us.min(wall_us);
        report.usage.cpu_us = report.usage.cpu_us.min(wall_us);
        report.usage.memory_bytes = report
            .usage
            .memory_bytes
            .min(u64::from(self.limits.memory_bytes_max));
        Ok(Verdict::Ended(FinishedRun {
            report,
            console: std::mem::take(&mut self.console),
        }))
    }

    fn check_value(&self, json: &str) -> Result<(), Violation> {
        if json.len() > self.limits.result_bytes_max as usize {
            return Err(Violation::ResultSize);
        }
        json::check(json, self.limits.result_depth_max).map_err(|refused| match refused {
            Refused::NotJson => Violation::ResultNotJson,
            Refused::TooDeep => Violation::ResultSize,
        })
    }

    fn check_thrown(&self, thrown: &Thrown) -> Result<(), Violation> {
        let helper = thrown.helper.as_deref().unwrap_or_default();
        let length = thrown.name.len() + thrown.message.len() + helper.len();
        // An error of a power travels through the script and back. So its text may be as
        // long as an answer, on top of an error of the script itself.
        let most = u64::from(THROWN_BYTES_MAX) + u64::from(self.limits.payload_bytes_max);
        if length as u64 > most {
            return Err(Violation::ThrownLength);
        }
        // The engine reads this text as JSON; a text that is none must not get that far.
        if thrown.helper.is_some() && json::check(helper, json::RESULT_DEPTH_MAX).is_err() {
            return Err(Violation::ResultNotJson);
        }
        Ok(())
    }
}

fn check_rejections(told: &[Thrown]) -> Result<(), Violation> {
    let length = |thrown: &Thrown| {
        thrown.name.len() + thrown.message.len() + thrown.helper.as_deref().map_or(0, str::len)
    };
    if told.len() > REJECTIONS_TOLD_MAX
        // All together and not each: a worker may not send eight errors of the full length.
        || told.iter().map(length).sum::<usize>() > REJECTIONS_BYTES_MAX
    {
        return Err(Violation::ThrownLength);
    }
    let helpers = told.iter().filter_map(|thrown| thrown.helper.as_deref());
    for helper in helpers {
        json::check(helper, json::RESULT_DEPTH_MAX).map_err(|_| Violation::ResultNotJson)?;
    }
    Ok(())
}

/// Reads any bytes as a worker's messages about one call. Panics if an accepted message
/// is outside the job's limits. For fuzzing and its seeds.
#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
pub(super) fn fuzz(data: &[u8]) {
    let limits = JobLimits {
        work_max: 1,
        cpu_ms_max: 1,
        wall_ms_max: 1,
        memory_bytes_max: 1 << 20,
        result_bytes_max: 40,
        result_depth_max: 3,
        console_lines_max: 3,
        console_bytes_max: 20,
        host_calls_max: 3,
        host_outstanding_max: 2,
        payload_bytes_max: 20,
    };
    let mut checker = CallChecker::new(limits.clone(), Instant::now());
    let mut buffer = FrameBuffer::new(1 << 16);
    buffer.push(data);
    let mut asked = 0;
    while let Ok(Some(body)) = buffer.next_body() {
        let Ok(up) = frame::decode_up(body) else {
            return;
        };
        let heard = match up {
            Up::Console(_, line) => checker.console(line),
            Up::Host(_, request) => checker.host(&request).map(|()| asked += 1),
            Up::Ended(_, report) => match checker.check_end(*report) {
                Ok(verdict) => return check_believed(&verdict, &limits, asked),
                Err(_) => return,
            },
        };
        if heard.is_err() {
            return;
        }
    }
    if asked > limits.host_calls_max {
        panic!("{asked} host calls were believed");
    }
}

#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
fn check_believed(verdict: &Verdict, limits: &JobLimits, asked: u32) {
    let Verdict::Ended(run) = verdict else {
        return;
    };
    let said: usize = run.console.iter().map(|line| line.text.len()).sum();
    let usage = &run.report.usage;
    let within = run.console.len() <= limits.console_lines_max as usize
        && said <= limits.console_bytes_max as usize
        && asked <= limits.host_calls_max
        && usage.host_calls == asked
        && usage.memory_bytes <= u64::from(limits.memory_bytes_max);
    if !within {
        panic!("a run out of bounds was believed: {run:?}");
    }
    if let Ended::Value(json) = &run.report.ended
        && (json.len() > limits.result_bytes_max as usize
            || serde_json::from_str::<serde_json::Value>(json).is_err())
    {
        panic!("an unreadable result was accepted: {json}");
    }
}
