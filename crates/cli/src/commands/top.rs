//! `ringfence top`: the activity of a home, in a terminal: calls per second, slow tools,
//! refusals, questions that wait. It reads the audit, so it sees every process of the
//! home.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::record::audit::Status;
use model::text::{elided, one_line};
use serde_json::json;
use store::clock::now_ms;
use store::{AuditEntry, AuditItem, Filter, Rows, Store, StoreSettings};

use crate::arguments::TopArguments;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

/// How far back a picture looks.
const WINDOW_MS: i64 = 60_000;
/// How often it is made.
const EVERY: Duration = Duration::from_secs(1);
/// Calls it is made from.
const CALLS_MAX: usize = 10_000;
/// Rows of each list.
const ROWS_MAX: usize = 10;

pub(crate) fn run(top: &TopArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&top.home)?;
    let store = Store::open(&home, StoreSettings::standard())?;
    let mut window = Window::default();
    let since = Filter {
        rows: Rows::Calls,
        since_ms: Some(now_ms().saturating_sub(WINDOW_MS)),
        limit: Some(CALLS_MAX),
        ..Filter::default()
    };
    let mut from = store.audit().head()?.sequence;
    let mut past = store.audit().list(&since)?;
    past.reverse();
    past.iter().for_each(|entry| window.add(entry));
    loop {
        let now_ms = now_ms();
        window.forget(now_ms);
        let waiting = store.approvals().count_pending(now_ms)?;
        let mut picture = window.picture(waiting);
        picture.is_shared = store.is_shared();
        match printer.format() {
            Format::Json if top.once => printer.json(&picture.json()),
            Format::Json => printer.json_record(&picture.json()),
            Format::Human => {
                if !top.once {
                    printer.clear_screen();
                }
                picture.show(printer);
            }
        }
        printer.emit();
        if top.once {
            return Ok(Exit::Done);
        }
        std::thread::sleep(EVERY);
        for item in store.audit().after(from, CALLS_MAX)? {
            from = item.last_sequence();
            if let AuditItem::Call(entry) = &item {
                window.add(entry);
            }
        }
    }
}

/// The calls of the last minute.
#[derive(Debug, Default)]
struct Window(VecDeque<EndedCall>);

#[derive(Debug)]
struct EndedCall {
    at_ms: i64,
    tool: String,
    status: Status,
    code: Option<String>,
    total_us: u64,
}

impl Window {
    fn add(&mut self, entry: &AuditEntry) {
        let Some(closing) = &entry.closing else {
            return;
        };
        if self.0.len() >= CALLS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(EndedCall {
            at_ms: closing.at_ms,
            tool: entry.opening.tool.clone(),
            status: closing.status,
            code: closing.error.as_ref().map(|error| error.code.clone()),
            total_us: closing.timing.map_or(0, |timing| timing.total_us),
        });
    }

    /// Drops calls that ended before the window.
    fn forget(&mut self, now_ms: i64) {
        let oldest = now_ms.saturating_sub(WINDOW_MS);
        self.0.retain(|call| call.at_ms >= oldest);
    }

    fn picture(&self, waiting: u64) -> Picture {
        let mut by_status: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
        for call in &self.0 {
            *by_status.entry(call.status.word()).or_default() += 1;
            times.entry(&call.tool).or_default().push(call.total_us);
            if let Some(code) = &call.code {
                *codes.entry(code).or_default() += 1;
            }
        }
        let mut slow: Vec<SlowTool> = times
            .into_iter()
            .map(|(tool, times)| SlowTool::of(tool, times))
            .collect();
        slow.sort_by_key(|tool| std::cmp::Reverse(tool.p95_us));
        slow.truncate(ROWS_MAX);
        let mut refusals: Vec<(String, u64)> = codes
            .into_iter()
            .map(|(code, count)| (code.to_owned(), count))
            .collect();
        refusals.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        refusals.truncate(ROWS_MAX);
        Picture {
            calls: self.0.len(),
            by_status,
            slow,
            refusals,
            waiting,
            is_shared: false,
        }
    }
}

/// A tool and how long its calls took.
#[derive(Debug, PartialEq, Eq)]
struct SlowTool {
    tool: String,
    calls: usize,
    p95_us: u64,
}

impl SlowTool {
    fn of(tool: &str, mut times: Vec<u64>) -> SlowTool {
        times.sort_unstable();
        let place = (times.len() * 95).div_ceil(100).saturating_sub(1);
        SlowTool {
            tool: tool.to_owned(),
            calls: times.len(),
            p95_us: times.get(place).copied().unwrap_or(0),
        }
    }
}

/// The numbers of one picture.
#[derive(Debug)]
struct Picture {
    calls: usize,
    by_status: BTreeMap<&'static str, u64>,
    slow: Vec<SlowTool>,
    refusals: Vec<(String, u64)>,
    waiting: u64,
    /// Other nodes share the questions; the calls are those of this node.
    is_shared: bool,
}

impl Picture {
    /// Calls per second, in tenths.
    fn tenths_per_second(&self) -> usize {
        let window_seconds = usize::try_from(WINDOW_MS / 1_000).unwrap_or(1);
        self.calls * 10 / window_seconds
    }

    fn count(&self, status: Status) -> u64 {
        self.by_status.get(status.word()).copied().unwrap_or(0)
    }

    fn json(&self) -> serde_json::Value {
        let slow = self
            .slow
            .iter()
            .map(|slow| json!({"tool": slow.tool, "calls": slow.calls, "p95Us": slow.p95_us}));
        let refusals = self
            .refusals
            .iter()
            .map(|(code, count)| json!({"code": code, "count": count}));
        json!({
            "seconds": WINDOW_MS / 1_000,
            "calls": self.calls,
            "byStatus": self.by_status,
            "slow": slow.collect::<Vec<_>>(),
            "errors": refusals.collect::<Vec<_>>(),
            "waiting": self.waiting,
            "callsOf": if self.is_shared { "node" } else { "home" },
            "waitingOf": if self.is_shared { "cluster" } else { "home" },
        })
    }

    fn show(&self, printer: &mut Printer) {
        let tenths = self.tenths_per_second();
        let others = self.count(Status::Cancelled) + self.count(Status::Crashed);
        let others = match others {
            0 => String::new(),
            others => format!(", {others} others"),
        };
        let here = if self.is_shared {
            "; this node only"
        } else {
            ""
        };
        printer.line(&format!(
            "{}.{} calls per second, {} of the last {} seconds: {} done, {} refused, {} failed{others}{here}",
            tenths / 10,
            tenths % 10,
            self.calls,
            WINDOW_MS / 1_000,
            self.count(Status::Done),
            self.count(Status::Refused),
            self.count(Status::Failed),
        ));
        let everywhere = if self.is_shared { " on all nodes" } else { "" };
        let waiting = printer.styled(Style::Bold, "waiting");
        let noun = if self.waiting == 1 {
            "question"
        } else {
            "questions"
        };
        printer.line(&format!("{waiting}  {} {noun}{everywhere}", self.waiting));
        for slow in &self.slow {
            let word = printer.styled(Style::Bold, "slow");
            let tool = elided(&one_line(&slow.tool), 60);
            let (ms, rest) = (slow.p95_us / 1_000, slow.p95_us % 1_000 / 100);
            printer.line(&format!(
                "{word}  {ms}.{rest} ms  {tool}  {} calls",
                slow.calls
            ));
        }
        for (code, count) in &self.refusals {
            let word = printer.styled(Style::Bold, "error");
            printer.line(&format!("{word}  {count}  {}", one_line(code)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at_ms: i64, tool: &str, status: Status, total_us: u64) -> EndedCall {
        EndedCall {
            at_ms,
            tool: tool.to_owned(),
            status,
            code: (status == Status::Refused).then(|| "rule.denied".to_owned()),
            total_us,
        }
    }

    #[test]
    fn a_picture_shows_the_last_minute() {
        let mut window = Window::default();
        window.0.push_back(call(0, "old", Status::Done, 1));
        for number in 1..=20_u32 {
            let at_ms = 30_000 + i64::from(number);
            let slow = u64::from(number) * 1_000;
            window.0.push_back(call(at_ms, "slow", Status::Done, slow));
        }
        window
            .0
            .push_back(call(50_000, "fast", Status::Refused, 10));
        window.forget(61_000);
        let picture = window.picture(3);
        assert_eq!(picture.calls, 21);
        assert_eq!(picture.tenths_per_second(), 3);
        assert_eq!(picture.count(Status::Done), 20);
        let slow: Vec<_> = picture
            .slow
            .iter()
            .map(|it| (it.tool.as_str(), it.p95_us))
            .collect();
        assert_eq!(slow, [("slow", 19_000), ("fast", 10)]);
        assert_eq!(picture.refusals, [("rule.denied".to_owned(), 1)]);
        assert_eq!(picture.json()["waiting"], 3);
    }

    #[test]
    fn nothing_is_a_picture_too() {
        let picture = Window::default().picture(0);
        assert_eq!((picture.calls, picture.tenths_per_second()), (0, 0));
        assert!(picture.slow.is_empty());
    }
}
