//! A worker that does what its plan says, in order.
//!
//! A plan is a list of steps with `;` between them. `hello`, `start`, `host`,
//! `answered` and `ended` are what an honest worker does or waits for; the rest
//! is what it would never do. `once PATH` makes the plan happen only in the
//! first worker that gets there: later ones behave, so that a test can see the
//! pool heal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use sandbox::frame::{self, FRAME_BYTES_MAX, FrameBuffer, Hello};
use sandbox::job::{
    Breach, CallId, ConsoleLevel, Down, Ended, GuestLine, HostCallId, HostCallKind, HostRequest,
    Payload, RunReport, RunUsage, Up,
};
use sandbox::walls::Walls;

struct Liar {
    pipe: UnixStream,
    incoming: FrameBuffer,
    call: CallId,
    last: Vec<u8>,
}

/// Ends the plan: the parent has closed the pipe.
struct Gone;

pub(crate) fn act(plan: &str) -> ExitCode {
    let Ok(fd) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut liar = Liar {
        pipe: UnixStream::from(fd),
        incoming: FrameBuffer::new(FRAME_BYTES_MAX),
        call: CallId(0),
        last: Vec::new(),
    };
    let mut behaves = false;
    for step in plan.split(';').map(str::trim) {
        if let Some(path) = step.strip_prefix("once ") {
            behaves = File::create_new(path).is_err();
        } else if behaves {
            let _ = liar.behave();
            return ExitCode::SUCCESS;
        } else if let Err(Gone) = liar.step(step) {
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

impl Liar {
    fn step(&mut self, step: &str) -> Result<(), Gone> {
        let (name, rest) = step.split_once(' ').unwrap_or((step, ""));
        let number: u64 = rest.parse().unwrap_or(0);
        match name {
            "hello" => self.hello(),
            "start" => self.wait_for(|down| matches!(down, Down::Start(..))),
            "answered" => self.wait_for(|down| matches!(down, Down::Answer(..))),
            "cancelled" => self.wait_for(|down| matches!(down, Down::Cancel(_))),
            "host" => self.say(&self.host(u32::try_from(number.max(1)).unwrap_or(1))),
            "console" => self.say(&self.console("x")),
            "ended" => self.end(Ended::Value("1".to_owned())),
            "not-json" => self.end(Ended::Value("{oops".to_owned())),
            "deep" => self.end(Ended::Value("[".repeat(5_000) + &"]".repeat(5_000))),
            "long" => self.end(Ended::Value(format!("\"{}\"", "x".repeat(2 << 20)))),
            "cancelled-unasked" => self.end(Ended::Cancelled),
            "broken" => self.end(Ended::Broken("x".repeat(9_000))),
            "breached" => self.end(Ended::Breached(Breach::Work)),
            "other-call" => {
                let call = CallId(self.call.0 + 7);
                self.say(&Up::Ended(call, report(Ended::Undefined)))
            }
            "replay" => self.send(&self.last.clone()),
            "hosts" => (0..number)
                .try_for_each(|n| self.say(&self.host(u32::try_from(n + 1).unwrap_or(u32::MAX)))),
            "consoles" => (0..number).try_for_each(|_| self.say(&self.console("x"))),
            "long-console" => self.say(&self.console(&"x".repeat(300_000))),
            "long-host" => {
                let Up::Host(call, mut request) = self.host(1) else {
                    return Ok(());
                };
                request.payload.bytes = vec![0; 900_000];
                self.say(&Up::Host(call, request))
            }
            "long-operation" => {
                let Up::Host(call, mut request) = self.host(1) else {
                    return Ok(());
                };
                request.operation = "x".repeat(1_000);
                self.say(&Up::Host(call, request))
            }
            "half" => {
                self.send(&[200, 0, 0, 0, 1, 2, 3])?;
                Err(Gone)
            }
            "half-hang" => {
                self.send(&[200, 0, 0, 0, 1, 2, 3])?;
                self.hang()
            }
            "oversize" => self.send(&[0xff; 64]),
            "empty" => self.send(&[0; 8]),
            "noise" => self.noise(number),
            "flood-noise" => (number..).try_for_each(|seed| self.noise(seed)),
            "flood-console" => loop {
                self.say(&self.console("flood"))?;
            },
            "flood-ended" => loop {
                self.end(Ended::Undefined)?;
            },
            "wrong-version" => {
                self.send(&[11, 0, 0, 0, 0, b'R', b'F', b'W', b'K', 9, 0, 0, 0, 0, 0])
            }
            "wrong-magic" => self.send(&[7, 0, 0, 0, 0, b'H', b'T', b'T', b'P', 1, 0]),
            "deaf" => self.hang(),
            "hang" => self.hang(),
            "die" => std::process::abort(),
            "exit" => Err(Gone),
            _ => {
                // A plan with a typing error must not pass for a polite worker.
                std::process::exit(99)
            }
        }
    }

    /// What an honest worker does, endlessly.
    fn behave(&mut self) -> Result<(), Gone> {
        self.hello()?;
        loop {
            self.wait_for(|down| matches!(down, Down::Start(..)))?;
            self.end(Ended::Value("\"healed\"".to_owned()))?;
        }
    }

    fn hello(&mut self) -> Result<(), Gone> {
        let hello = Hello {
            guest_key: "hostile".to_owned(),
            walls: Walls::default(),
        };
        let mut bytes = Vec::new();
        frame::encode_hello(&hello, &mut bytes).map_err(|_| Gone)?;
        self.send(&bytes)
    }

    fn wait_for(&mut self, wanted: impl Fn(&Down) -> bool) -> Result<(), Gone> {
        loop {
            while let Ok(Some(body)) = self.incoming.next_body() {
                let down = frame::decode_down(body).map_err(|_| Gone)?;
                if let Down::Start(id, _) = &down {
                    self.call = *id;
                }
                if wanted(&down) {
                    return Ok(());
                }
            }
            match self.pipe.read(self.incoming.room()) {
                Ok(0) | Err(_) => return Err(Gone),
                Ok(count) => self.incoming.advance(count),
            }
        }
    }

    fn say(&mut self, up: &Up) -> Result<(), Gone> {
        let mut bytes = Vec::new();
        frame::encode_up(up, &mut bytes).map_err(|_| Gone)?;
        self.send(&bytes)?;
        self.last = bytes;
        Ok(())
    }

    fn end(&mut self, ended: Ended) -> Result<(), Gone> {
        self.say(&Up::Ended(self.call, report(ended)))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.pipe.write_all(bytes).map_err(|_| Gone)
    }

    fn host(&self, id: u32) -> Up {
        let request = HostRequest {
            id: HostCallId(id),
            kind: HostCallKind::Queued,
            operation: "echo".to_owned(),
            payload: Payload {
                json: "1".to_owned(),
                bytes: Vec::new(),
            },
        };
        Up::Host(self.call, request)
    }

    fn console(&self, text: &str) -> Up {
        let line = GuestLine {
            level: ConsoleLevel::Log,
            text: text.to_owned(),
        };
        Up::Console(self.call, line)
    }

    /// Frames of every kind with bytes changed, added and left out.
    fn noise(&mut self, seed: u64) -> Result<(), Gone> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % (below.max(1) as u64)).unwrap_or(0)
        };
        let mut bytes = Vec::new();
        for _ in 0..=random(4) {
            let up = match random(5) {
                0 => self.console("noise"),
                1 => self.host(u32::try_from(random(4)).unwrap_or(0)),
                2 => Up::Ended(
                    self.call,
                    report(Ended::Value("[1,2,{\"a\":null}]".to_owned())),
                ),
                3 => Up::Ended(CallId(random(5) as u64), report(Ended::Undefined)),
                _ => Up::Ended(self.call, report(Ended::Threw(Default::default()))),
            };
            frame::encode_up(&up, &mut bytes).map_err(|_| Gone)?;
        }
        for _ in 0..random(6) {
            let place = random(bytes.len());
            match (random(3), bytes.get_mut(place)) {
                (0, Some(byte)) => *byte ^= 1 << random(8),
                (1, Some(_)) => {
                    bytes.remove(place);
                }
                _ => bytes.insert(place, u8::try_from(random(256)).unwrap_or(0)),
            }
        }
        self.send(&bytes)
    }

    fn hang(&mut self) -> Result<(), Gone> {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

fn report(ended: Ended) -> Box<RunReport> {
    let usage = RunUsage {
        cpu_us: u64::MAX,
        wall_us: u64::MAX,
        host_calls: 9_999,
        ..RunUsage::default()
    };
    Box::new(RunReport {
        usage,
        ..RunReport::new(ended)
    })
}
