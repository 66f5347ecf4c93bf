//! The parent's side: starts a child through its supervisor, hears of its end,
//! and ends it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sandbox::pool::WorkerProgram;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time;

use crate::egress::{self, JailEgress};
use crate::fault::JailFault;
use crate::hand_over::{self, Ordered};
use crate::limit;
use crate::line::LineBuffer;
use crate::message::{JailExit, JailReport, JailUsage, TERMINATE};
use crate::settings::{JailNetwork, JailRung, JailSettings};
use crate::supervisor_process::{ReadySupervisor, Supervisor};
use crate::wall::{self, JailLayer, Wall};

/// Starts a child. It runs when this returns; if a wall is missing it never does, unless
/// the settings accept that. `program` is how to start this program again: its
/// `main` must begin with `jail_main`.
///
/// If the returned future is dropped, nothing of the child is left.
pub async fn spawn(
    settings: JailSettings,
    program: &WorkerProgram,
) -> Result<JailedChild, JailFault> {
    spawn_by(settings, program, None).await
}

/// Starts a child by a supervisor that is ready, or by a new one.
pub(crate) async fn spawn_by(
    settings: JailSettings,
    program: &WorkerProgram,
    ready: Option<ReadySupervisor>,
) -> Result<JailedChild, JailFault> {
    let settings = Arc::new(settings);
    let expected = ExpectedWalls::of(&settings);
    let (mut child, was_ready) = begin(&settings, program, ready).await?;
    let limit = Duration::from_millis(limit::START_MS_MAX);
    let deadline = time::Instant::now() + limit;
    let mut outcome = time::timeout_at(deadline, child.until_started(&expected)).await;
    if was_ready && matches!(outcome, Ok(Err(StartFault::Unread(_)))) {
        // It was killed from outside before it knew its order: nothing of the child has run.
        (child, _) = begin(&settings, program, None).await?;
        outcome = time::timeout_at(deadline, child.until_started(&expected)).await;
    }
    match outcome {
        Ok(Ok(())) => Ok(child),
        Ok(Err(StartFault::Unread(fault) | StartFault::Other(fault))) => Err(fault),
        Err(_) => Err(JailFault::Late {
            seconds: limit.as_secs(),
        }),
    }
}

/// Why a child has not started.
enum StartFault {
    /// Its supervisor ended and had not read all of its order.
    Unread(JailFault),
    Other(JailFault),
}

impl From<JailFault> for StartFault {
    fn from(fault: JailFault) -> StartFault {
        StartFault::Other(fault)
    }
}

/// Hands the order over; the child that comes of it, and whether its supervisor was ready.
async fn begin(
    settings: &Arc<JailSettings>,
    program: &WorkerProgram,
    ready: Option<ReadySupervisor>,
) -> Result<(JailedChild, bool), JailFault> {
    let (settings, program) = (Arc::clone(settings), program.clone());
    let handing = move || hand_over::hand_over(&settings, &program, ready);
    let Ok(ordered) = tokio::task::spawn_blocking(handing).await else {
        return Err(JailFault::Ended("the start was given up".to_owned()));
    };
    let Ordered {
        control,
        supervisor,
        streams,
        was_ready,
    } = ordered?;
    let attempt = "take over the pipes of the program";
    let child = JailedChild {
        stdin: Some(sender(streams.input).map_err(JailFault::setup(attempt))?),
        stdout: Some(receiver(streams.output).map_err(JailFault::setup(attempt))?),
        stderr: Some(receiver(streams.error).map_err(JailFault::setup(attempt))?),
        walls: Vec::new(),
        // The lower one until the supervisor has reported its walls.
        rung: JailRung::Landlock,
        egress: match streams.door.map(egress::open) {
            Some(opened) => Some(opened.map_err(JailFault::setup(attempt))?),
            None => None,
        },
        usage: None,
        pid: None,
        control: Some(UnixStream::from_std(control).map_err(JailFault::setup(attempt))?),
        heard: LineBuffer::default(),
        supervisor,
        exit: None,
        _counted: Counted::one(),
    };
    Ok((child, was_ready))
}

/// What a machine offers, found out with a child that does nothing.
#[derive(Clone, Debug)]
pub struct JailTrial {
    /// How far the fence goes.
    pub rung: JailRung,
    /// Its layers.
    pub walls: Vec<Wall>,
}

impl JailTrial {
    /// Why a child would not start here; nothing if it would.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        wall::refusal(&self.walls)
    }
}

/// Starts a child that does nothing, with `home` as its folder, and says what stood around
/// it. Nothing is refused for a missing wall.
pub async fn try_out(home: PathBuf, program: &WorkerProgram) -> Result<JailTrial, JailFault> {
    let mut settings = JailSettings::new(vec!["true".to_owned()], home);
    settings.network = JailNetwork::Proxy;
    settings.accept_missing = true;
    let mut child = spawn(settings, program).await?;
    child.wait().await;
    Ok(JailTrial {
        rung: child.rung,
        walls: std::mem::take(&mut child.walls),
    })
}

/// A child that runs, or has run. When it is dropped, the child and everything it
/// started is killed.
#[derive(Debug)]
pub struct JailedChild {
    /// The child's standard input. Take and drop it to close it.
    pub stdin: Option<pipe::Sender>,
    /// The child's standard output. The reader must bound it.
    pub stdout: Option<pipe::Receiver>,
    /// The child's standard error. The reader must bound it.
    pub stderr: Option<pipe::Receiver>,
    /// The walls around the child.
    pub walls: Vec<Wall>,
    /// How much of the fence the kernel let us build.
    pub rung: JailRung,
    /// The connections of a child whose network is `Proxy`. Unanswered, they wait; dropped,
    /// they are refused.
    pub egress: Option<JailEgress>,
    usage: Option<JailUsage>,
    pid: Option<u32>,
    /// The lifeline: when it closes, the supervisor kills everything and ends.
    control: Option<UnixStream>,
    heard: LineBuffer,
    supervisor: Supervisor,
    exit: Option<JailExit>,
    _counted: Counted,
}

/// How many children there are in this process.
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// How many children of this process run or have not been dropped yet.
pub fn running_count() -> u64 {
    RUNNING.load(Ordering::Relaxed)
}

/// One of them.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn one() -> Counted {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a child has to end at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JailGrace {
    /// After its standard input was closed.
    pub close: Duration,
    /// After SIGTERM to its process group.
    pub term: Duration,
}

impl JailGrace {
    /// Two seconds after closing, three after SIGTERM.
    pub fn standard() -> JailGrace {
        JailGrace {
            close: Duration::from_millis(limit::CLOSE_MS),
            term: Duration::from_millis(limit::TERM_MS),
        }
    }
}

impl JailedChild {
    /// The child's process, which leads its process group.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What the child and all it started have used, once `wait` has returned.
    pub fn usage(&self) -> Option<JailUsage> {
        self.usage
    }

    /// Waits until the child has ended and nothing it started is left. May be dropped and
    /// called again.
    pub async fn wait(&mut self) -> JailExit {
        while self.exit.is_none() {
            match self.next_report().await {
                Ok(Some(JailReport::Exited(exit))) => self.exit = Some(exit),
                Ok(Some(JailReport::Used(usage))) => self.usage = Some(usage),
                Ok(Some(_)) => self.exit = Some(unknown("the supervisor said nonsense")),
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                    self.exit = Some(unknown("the supervisor said nonsense"));
                }
                Ok(None) | Err(_) => {
                    let end = self.supervisor.reap().await;
                    self.kill_group();
                    self.exit = Some(unknown(&format!("the supervisor {end}")));
                }
            }
        }
        self.exit
            .clone()
            .unwrap_or_else(|| unknown("the program ended"))
    }

    /// Ends the child: closes its standard input, sends SIGTERM to its group, and kills
    /// everything it started; each step only if the one before was not enough.
    pub async fn terminate(mut self, grace: JailGrace) -> JailExit {
        self.stdin = None;
        if let Ok(exit) = time::timeout(grace.close, self.wait()).await {
            return exit;
        }
        if let Some(control) = &self.control {
            // A full socket is impossible: nothing else is ever written to it.
            let _ = control.try_write(&[TERMINATE]);
        }
        if let Ok(exit) = time::timeout(grace.term, self.wait()).await {
            return exit;
        }
        self.kill().await
    }

    /// Kills the child and everything it started, now.
    pub async fn kill(mut self) -> JailExit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        if let Some(control) = &self.control {
            // The supervisor sees the end of its lifeline; we still see its own end.
            let _ = rustix::net::shutdown(control, rustix::net::Shutdown::Write);
        }
        let limit = Duration::from_millis(limit::KILL_MS_MAX);
        if time::timeout(limit, self.until_closed()).await.is_err() {
            // Attack: a supervisor that was stopped, or does not do its work. The child dies
            // with it.
            self.supervisor.kill();
            self.kill_group();
        }
        self.supervisor.reap().await;
        JailExit::Signal(Signal::KILL.as_raw())
    }

    async fn until_closed(&mut self) {
        while let Ok(Some(_)) = self.next_report().await {}
    }

    async fn until_started(&mut self, expected: &ExpectedWalls) -> Result<(), StartFault> {
        let ended = |sentence: String| StartFault::Other(JailFault::Ended(sentence));
        let nonsense = || Err(ended("the program's supervisor said nonsense".to_owned()));
        let mut has_walls = false;
        loop {
            match self.next_report().await {
                Ok(Some(JailReport::Walls { rung, walls })) if !has_walls => {
                    // Attack: a supervisor that starts a child behind less than was asked for.
                    expected.check(rung, &walls)?;
                    has_walls = true;
                    self.rung = rung;
                    self.walls = walls;
                }
                Ok(Some(JailReport::Started { pid })) if has_walls => {
                    self.pid = self.supervisor.has_child(pid).then_some(pid);
                    return Ok(());
                }
                Ok(Some(JailReport::Walls { .. } | JailReport::Started { .. })) => {
                    return nonsense();
                }
                Ok(Some(JailReport::Refused(reason))) => {
                    return Err(JailFault::Refused(reason).into());
                }
                Ok(Some(JailReport::Exited(exit))) => {
                    return Err(ended(format!("the program {exit}")));
                }
                Ok(Some(JailReport::NoNamespaces(_) | JailReport::Used(_))) => return nonsense(),
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return nonsense(),
                // The kernel resets a connection whose end left something unread in it, and all
                // that was ever sent there is the order.
                Err(_) if !has_walls && self.heard.is_empty() => {
                    return Err(StartFault::Unread(self.early_end().await));
                }
                Ok(None) | Err(_) => return Err(self.early_end().await.into()),
            }
        }
    }

    async fn early_end(&mut self) -> JailFault {
        let end = self.supervisor.reap().await;
        JailFault::Ended(format!(
            "the program's supervisor {end} before the program started"
        ))
    }

    /// The supervisor's next report; `None` when it has ended. May be dropped and called again.
    async fn next_report(&mut self) -> io::Result<Option<JailReport>> {
        let Some(control) = &self.control else {
            return Ok(None);
        };
        loop {
            if let Some(report) = self.heard.next()? {
                return Ok(Some(report));
            }
            control.readable().await?;
            let mut chunk = [0; 4 << 10];
            match control.try_read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.heard.push(chunk.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// For a supervisor that was killed from outside: the child has died with it, and this
    /// takes what is left of its group.
    fn kill_group(&self) {
        let group = self.pid.and_then(|pid| i32::try_from(pid).ok());
        if let Some(group) = group.and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

fn unknown(reason: &str) -> JailExit {
    JailExit::Unknown(reason.to_owned())
}

/// What must stand around a child before it counts as started.
struct ExpectedWalls {
    require: JailRung,
    accept_missing: bool,
    network: JailNetwork,
}

impl ExpectedWalls {
    fn of(settings: &JailSettings) -> ExpectedWalls {
        ExpectedWalls {
            require: settings.require,
            accept_missing: settings.accept_missing,
            network: settings.network,
        }
    }

    fn check(&self, rung: JailRung, walls: &[Wall]) -> Result<(), JailFault> {
        if rung < self.require {
            let sentence = format!(
                "the program's supervisor has only the rung `{}`",
                rung.name()
            );
            return Err(JailFault::Ended(sentence));
        }
        if self.accept_missing {
            return Ok(());
        }
        // Where every address may be reached there is no such wall.
        let is_needed = |layer: JailLayer| {
            !layer.is_optional()
                && (layer != JailLayer::Network || self.network != JailNetwork::Open)
        };
        let is_up = |layer: JailLayer| {
            // A layer that is reported twice is up only if both reports say so.
            let mut named = walls.iter().filter(|wall| wall.layer == layer);
            named.next().is_some_and(Wall::is_up) && named.all(Wall::is_up)
        };
        let mut lacking = JailLayer::ALL
            .into_iter()
            .filter(|layer| is_needed(*layer) && !is_up(*layer));
        match lacking.next() {
            None => Ok(()),
            // A supervisor that is honest says why, before this.
            Some(layer) => match wall::refusal(walls) {
                Some(refusal) => Err(JailFault::Refused(refusal)),
                None => {
                    let sentence = format!("the program's supervisor did not report `{layer}`");
                    Err(JailFault::Ended(sentence))
                }
            },
        }
    }
}

fn sender(pipe: PipeWriter) -> io::Result<pipe::Sender> {
    pipe::Sender::from_owned_fd(OwnedFd::from(pipe))
}

fn receiver(pipe: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(OwnedFd::from(pipe))
}
