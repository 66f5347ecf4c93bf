//! A guest whose script is a list of commands, one on each line.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sandbox::cell::CellStep;
use sandbox::job::{
    Breach, CallId, ConsoleLevel, Ended, GuestLine, HostAnswer, HostCallId, HostCallKind,
    HostRequest, Job, Payload, RunReport, Up,
};
use sandbox::walls::attempt;
use sandbox::worker::Guest;

/// How long a busy guest runs before it lets others.
const SLICE: Duration = Duration::from_millis(5);

pub(crate) struct Guests;

impl sandbox::worker::Guests for Guests {
    type Guest = StandIn;

    fn key(&self) -> &str {
        "stand-in"
    }

    fn wall_one(&self) -> Result<(), String> {
        Err("a stand-in has none".to_owned())
    }

    fn start_threads(&self) -> Result<(), String> {
        Ok(())
    }

    fn start(&self, id: CallId, job: Job) -> StandIn {
        StandIn {
            id,
            lines: job.body.lines().map(str::to_owned).collect(),
            deadline: Instant::now() + Duration::from_millis(job.limits.wall_ms_max.into()),
            host_calls: 0,
            outstanding: 0,
            answer: "null".to_owned(),
            cancelled: false,
        }
    }
}

pub(crate) struct StandIn {
    id: CallId,
    lines: VecDeque<String>,
    deadline: Instant,
    host_calls: u32,
    outstanding: u32,
    answer: String,
    cancelled: bool,
}

impl Guest for StandIn {
    fn step(&mut self, out: &mut Vec<Up>) -> CellStep {
        if self.cancelled {
            return ended(Ended::Cancelled);
        }
        loop {
            if Instant::now() >= self.deadline {
                return ended(Ended::Breached(Breach::Wall));
            }
            if self.outstanding > 0 {
                return CellStep::Waiting;
            }
            let Some(line) = self.lines.pop_front() else {
                return ended(Ended::Undefined);
            };
            let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match command {
                "value" => return ended(Ended::Value(rest.to_owned())),
                "answer" => return ended(Ended::Value(self.answer.clone())),
                "log" => {
                    let line = GuestLine {
                        level: ConsoleLevel::Log,
                        text: rest.to_owned(),
                    };
                    out.push(Up::Console(self.id, line));
                }
                "host" => self.ask(HostCallKind::Queued, rest, out),
                "direct" => self.ask(HostCallKind::Direct, rest, out),
                "hosts" => {
                    let (count, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    for _ in 0..count.parse().unwrap_or(0) {
                        self.ask(HostCallKind::Queued, rest, out);
                    }
                }
                // Uses its slices to the end of its time, like an endless loop.
                "spin" => {
                    self.lines.push_front(line.clone());
                    let slice = Instant::now() + SLICE;
                    while Instant::now() < slice.min(self.deadline) {
                        std::hint::spin_loop();
                    }
                    return CellStep::Ready;
                }
                "park" => {
                    self.lines.push_front(line.clone());
                    return CellStep::Waiting;
                }
                // Keeps the whole worker from ever going on.
                "stall" => loop {
                    std::thread::sleep(Duration::from_secs(60));
                },
                "leak" => {
                    let bytes = rest.parse().unwrap_or(0);
                    std::mem::forget(vec![1_u8; bytes]);
                }
                "broken" => return ended(Ended::Broken(rest.to_owned())),
                "attempt" => {
                    let outcome = match attempt::make(rest) {
                        Ok(()) => "\"went through\"".to_owned(),
                        Err(error) => format!("\"refused {}\"", error.raw_os_error().unwrap_or(0)),
                    };
                    return ended(Ended::Value(outcome));
                }
                other => return ended(Ended::Broken(format!("no command `{other}`"))),
            }
        }
    }

    fn answer(&mut self, _: HostCallId, answer: HostAnswer) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.answer = match answer {
            HostAnswer::Value(payload) => payload.json,
            HostAnswer::Error(error) => error,
        };
    }

    fn cancel(&mut self) {
        self.cancelled = true;
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl StandIn {
    fn ask(&mut self, kind: HostCallKind, rest: &str, out: &mut Vec<Up>) {
        let (operation, json) = rest.split_once(' ').unwrap_or((rest, "null"));
        self.host_calls += 1;
        self.outstanding += 1;
        let request = HostRequest {
            id: HostCallId(self.host_calls),
            kind,
            operation: operation.to_owned(),
            payload: Payload {
                json: json.to_owned(),
                bytes: Vec::new(),
            },
        };
        out.push(Up::Host(self.id, request));
    }
}

fn ended(ended: Ended) -> CellStep {
    CellStep::Ended(Box::new(RunReport::new(ended)))
}
