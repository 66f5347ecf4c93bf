//! The log of a server as JSON, one object in a line of standard error: warnings, and how
//! each call ended. It has ids, names, verdicts and times; never arguments, results or
//! secrets.
//!
//! A thread of its own writes. If standard error does not take lines fast enough, lines
//! are dropped and counted; no call waits for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use engine::Alarm;
use engine::report::{CallReport, Reporter};
use model::sync::lock;
use model::trace::TraceParent;
use serde_json::{Value, json};

use crate::output::printer;

/// Lines that may wait to be written.
const LINES_MAX: usize = 4_096;

/// Writes the log.
#[derive(Debug)]
pub(crate) struct JsonLog {
    lines: Mutex<Option<SyncSender<Value>>>,
    dropped: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl JsonLog {
    /// Starts the log.
    pub(crate) fn start() -> Arc<JsonLog> {
        JsonLog::to(|line| printer::note(&line))
    }

    fn to(write: impl Fn(String) + Send + 'static) -> Arc<JsonLog> {
        // Bounded: standard error may be a pipe that its reader has stopped reading.
        let (lines, waiting) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&dropped);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let writer = thread.spawn(move || run(&waiting, &missing, &write));
        Arc::new(JsonLog {
            lines: Mutex::new(Some(lines)),
            dropped,
            // Without a thread lines are dropped and counted; the server runs all the same.
            writer: Mutex::new(writer.ok()),
        })
    }

    /// Warnings become lines of the log.
    pub(crate) fn alarm(self: &Arc<JsonLog>) -> Alarm {
        let log = Arc::clone(self);
        Alarm::new(move |sentence| {
            log.add(json!({"at": now(), "level": "warning", "message": sentence}));
        })
    }

    /// Writes what waits.
    pub(crate) fn end(&self) {
        drop(lock(&self.lines).take());
        if let Some(writer) = lock(&self.writer).take() {
            let _ = writer.join();
        }
    }

    fn add(&self, line: Value) {
        let is_taken = match &*lock(&self.lines) {
            // Never waits, because this runs in the path of a call.
            Some(lines) => lines.try_send(line).is_ok(),
            None => false,
        };
        if !is_taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Reporter for JsonLog {
    fn report(&self, report: &CallReport) {
        self.add(json!({
            "at": shown(report.ended_at_ms),
            "level": "info",
            "message": "call",
            "callId": report.call_id,
            "tool": report.tool,
            "caller": report.caller,
            "door": report.origin.word(),
            "status": report.status.word(),
            "code": report.code,
            "risk": report.risk,
            "totalUs": report.total_us,
            "runUs": report.run_us,
            "cpuUs": report.cpu_us,
            "traceparent": report.trace.as_ref().filter(|it| TraceParent::parse(it).is_some()),
        }));
    }
}

fn run(waiting: &Receiver<Value>, dropped: &AtomicU64, write: &dyn Fn(String)) {
    for line in waiting {
        write(ascii(&line));
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let message = format!("{missing} lines of the log were dropped");
            let line = json!({"at": now(), "level": "warning", "message": message});
            write(ascii(&line));
        }
    }
}

/// JSON without any character that a terminal or a reader of lines could take amiss.
fn ascii(line: &Value) -> String {
    let mut out = String::new();
    for letter in line.to_string().chars() {
        match letter.is_ascii() {
            true => out.push(letter),
            false => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

fn now() -> String {
    shown(engine::Clock::system().now_ms())
}

/// A moment by RFC 3339, with milliseconds.
fn shown(at_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(at_ms);
    moment.map_or_else(
        |_| "-".to_owned(),
        |moment| moment.strftime("%FT%T.%3fZ").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use model::caller::Origin;
    use model::record::audit::Status;

    use super::*;

    fn report(number: usize) -> CallReport {
        CallReport {
            call_id: format!("id-{number}"),
            tool: Some("add".to_owned()),
            caller: "ann".to_owned(),
            origin: Origin::Mcp,
            status: Status::Refused,
            code: Some("rule.denied".to_owned()),
            risk: Some("L1".to_owned()),
            gates: Vec::new(),
            ended_at_ms: 1_785_597_907_123,
            total_us: 700,
            run_us: 0,
            cpu_us: 40,
            trace: None,
            steps: Vec::new(),
        }
    }

    #[test]
    fn calls_and_warnings_are_lines() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&written);
        let log = JsonLog::to(move |line| lock(&into).push(line));
        log.report(&report(1));
        log.alarm().raise("the disk\nis full \u{1f4a5}\u{202e}");
        log.end();
        // After the end, nothing is written and nothing waits.
        log.report(&report(2));
        let lines: Vec<Value> = lock(&written)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0]["callId"], "id-1");
        assert_eq!(lines[0]["code"], "rule.denied");
        assert_eq!(lines[0]["at"], "2026-08-01T15:25:07.123Z");
        assert_eq!(lines[1]["message"], "the disk\nis full \u{1f4a5}\u{202e}");
        assert!(lock(&written).iter().all(|line| line.is_ascii()));
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nothing_up() {
        let (open, gate) = sync_channel::<()>(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&written);
        let gate = Mutex::new(gate);
        let log = JsonLog::to(move |line| {
            let _ = lock(&gate).recv();
            lock(&into).push(line);
        });
        for number in 0..LINES_MAX + 10 {
            log.report(&report(number));
        }
        drop(open);
        log.end();
        let written = lock(&written);
        let said = written.iter().any(|line| line.contains("were dropped"));
        assert!(said, "{:?}", written.last());
    }
}
