//! The parent's side: starts a child through its supervisor, hears of its end,
//! and ends it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sandbox::pool::WorkerProgram;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time;

use crate::egress::{self, JailEgress};
use crate::environment;
use crate::fault::JailFault;
use crate::file_rules;
use crate::limit;
use crate::line::{self, LineBuffer};
use crate::message::{JailExit, JailOrder, JailReport, JailUsage, TERMINATE};
use crate::process_tree;
use crate::program;
use crate::role;
use crate::settings::{JailNetwork, JailRung, JailSettings};
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
    let program = program.clone();
    let expected = ExpectedWalls::of(&settings);
    let prepared = tokio::task::spawn_blocking(move || start(&settings, &program)).await;
    let Ok(started) = prepared else {
        return Err(JailFault::Ended("the start was given up".to_owned()));
    };
    let Started {
        supervisor,
        control,
        input,
        output,
        error,
        door,
    } = started?;
    let attempt = "take over the pipes of the program";
    let mut child = JailedChild {
        stdin: Some(sender(input).map_err(JailFault::setup(attempt))?),
        stdout: Some(receiver(output).map_err(JailFault::setup(attempt))?),
        stderr: Some(receiver(error).map_err(JailFault::setup(attempt))?),
        walls: Vec::new(),
        rung: JailRung::Landlock,
        egress: match door.map(egress::open) {
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
    let limit = Duration::from_millis(limit::START_MS_MAX);
    match time::timeout(limit, child.until_started(&expected)).await {
        Ok(outcome) => outcome.map(|()| child),
        Err(_) => Err(JailFault::Late {
            seconds: limit.as_secs(),
        }),
    }
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
    /// Where the child reads. Taking and dropping it closes it.
    pub stdin: Option<pipe::Sender>,
    /// What the child writes. Bounding it is the reader's work.
    pub stdout: Option<pipe::Receiver>,
    /// What the child complains of. Bounding it is the reader's work.
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

    async fn until_started(&mut self, expected: &ExpectedWalls) -> Result<(), JailFault> {
        let nonsense = || {
            let sentence = "the program's supervisor said nonsense";
            Err(JailFault::Ended(sentence.to_owned()))
        };
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
                Ok(Some(JailReport::Refused(reason))) => return Err(JailFault::Refused(reason)),
                Ok(Some(JailReport::Exited(exit))) => {
                    return Err(JailFault::Ended(format!("the program {exit}")));
                }
                Ok(Some(JailReport::NoNamespaces(_) | JailReport::Used(_))) => return nonsense(),
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return nonsense(),
                Ok(None) | Err(_) => {
                    let end = self.supervisor.reap().await;
                    return Err(JailFault::Ended(format!(
                        "the program's supervisor {end} before the program started"
                    )));
                }
            }
        }
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

/// The supervisor's process, which must be waited for.
#[derive(Debug)]
struct Supervisor {
    process: Option<Child>,
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

impl Supervisor {
    /// Whether a process is a child of the supervisor's. Attack: the number of another
    /// process, whose group would be killed in the end.
    fn has_child(&self, pid: u32) -> bool {
        let to_pid = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
        let supervisor = self.process.as_ref().map(Child::id).and_then(to_pid);
        supervisor.is_some() && to_pid(pid).and_then(process_tree::parent) == supervisor
    }

    fn kill(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended.
            let _ = process.kill();
        }
    }

    /// Waits for its end, once it has closed its socket; how it ended.
    async fn reap(&mut self) -> String {
        let Some(process) = self.process.take() else {
            return "has ended".to_owned();
        };
        // A thread of its own, so that dropping this leaves no zombie either.
        match tokio::task::spawn_blocking(move || wait_or_kill(process)).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(_)) | Err(_) => "has ended".to_owned(),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take()
            && !matches!(process.try_wait(), Ok(Some(_)))
        {
            // Its lifeline has been dropped or is about to be; it ends when all is killed,
            // and is not to stay as a zombie, nor at all if it was stopped.
            let _ = thread::Builder::new()
                .name("jail-wait".to_owned())
                .spawn(move || wait_or_kill(process));
        }
    }
}

/// Waits for the end of a supervisor that has been told to end, and makes it end if it
/// does not.
fn wait_or_kill(mut process: Child) -> io::Result<ExitStatus> {
    if !ends_within(process.id(), Duration::from_millis(limit::KILL_MS_MAX)) {
        process.kill()?;
    }
    process.wait()
}

fn ends_within(pid: u32, time: Duration) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(|pid| {
        let flags = rustix::process::PidfdFlags::empty();
        rustix::process::pidfd_open(pid, flags).ok()
    });
    let Some(handle) = handle else {
        return false;
    };
    let mut set = [rustix::event::PollFd::new(
        &handle,
        rustix::event::PollFlags::IN,
    )];
    let time = rustix::event::Timespec::try_from(time).ok();
    matches!(rustix::event::poll(&mut set, time.as_ref()), Ok(1..))
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "has ended".to_owned(),
    }
}

/// What exists once the supervisor has its order.
struct Started {
    // First, so that the lifeline ends before the supervisor is waited for.
    control: StdStream,
    supervisor: Supervisor,
    input: PipeWriter,
    output: PipeReader,
    error: PipeReader,
    door: Option<StdStream>,
}

fn start(settings: &JailSettings, program: &WorkerProgram) -> Result<Started, JailFault> {
    let order = order(settings)?;
    let attempt = "make the pipes of the program";
    let (child_input, input) = io::pipe().map_err(JailFault::setup(attempt))?;
    let (output, child_output) = io::pipe().map_err(JailFault::setup(attempt))?;
    let (error, child_error) = io::pipe().map_err(JailFault::setup(attempt))?;
    let (control, theirs) = StdStream::pair().map_err(JailFault::setup(attempt))?;
    let (door, their_door) = match settings.network {
        JailNetwork::Proxy => {
            let (ours, theirs) = StdStream::pair().map_err(JailFault::setup(attempt))?;
            (Some(ours), Some(theirs))
        }
        JailNetwork::None | JailNetwork::Open => (None, None),
    };
    let mut descriptors = vec![
        child_input.as_fd(),
        child_output.as_fd(),
        child_error.as_fd(),
    ];
    descriptors.extend(their_door.as_ref().map(|door| door.as_fd()));
    // Before there is a supervisor, so that it finds its order when it begins.
    let rest = line::begin_order(&control, &order, &descriptors)
        .map_err(JailFault::setup("write the order of the program"))?;
    let process = role::start_supervisor(program, OwnedFd::from(theirs))
        .map_err(JailFault::setup("start the program's supervisor"))?;
    let mut started = Started {
        control,
        supervisor: Supervisor {
            process: Some(process),
        },
        input,
        output,
        error,
        door,
    };
    let limit = Duration::from_millis(limit::START_MS_MAX);
    let sent = started
        .control
        .set_write_timeout(Some(limit))
        .and_then(|()| io::Write::write_all(&mut &started.control, &rest))
        .and_then(|()| started.control.set_nonblocking(true));
    match sent {
        Ok(()) => Ok(started),
        Err(error) => {
            let end = started.supervisor.process.take().and_then(|mut process| {
                // It may hang as well as have ended.
                let _ = process.kill();
                process.wait().ok()
            });
            let end = end.map_or_else(|| "has ended".to_owned(), describe);
            Err(JailFault::Ended(format!(
                "the program's supervisor took no order ({error}); it {end}"
            )))
        }
    }
}

fn order(settings: &JailSettings) -> Result<JailOrder, JailFault> {
    check_command(&settings.command)?;
    let own = file_rules::make_own_folders(&settings.home)?;
    let environment = environment::build(
        &settings.environment,
        std::env::vars_os(),
        &own.home,
        &own.temporary,
        settings.network,
    )?;
    let search = environment.get("PATH").map_or("", String::as_str);
    let name = settings.command.first().map_or("", String::as_str);
    let path = program::resolve_program(name, search)?;
    let user_home = settings.user_home.as_deref();
    let user_home = user_home.and_then(|home| home.canonicalize().ok());
    let needs = program::needs(&path, search, user_home.as_deref());
    let given = file_rules::given(settings, &own.home, &needs)?;
    let mut command = settings.command.clone();
    if let (Some(first), Some(path)) = (command.first_mut(), path.to_str()) {
        path.clone_into(first);
    }
    Ok(JailOrder {
        command,
        environment,
        folder: settings.folder.clone().unwrap_or(own.home),
        rules: given.rules,
        installation: given.installation,
        own: given.own,
        declared: given.declared,
        overlays: given.overlays,
        private: given.private,
        network: settings.network,
        limits: settings.limits,
        require: settings.require,
        accept_missing: settings.accept_missing,
    })
}

fn check_command(command: &[String]) -> Result<(), JailFault> {
    let bytes: usize = command.iter().map(|word| word.len() + 1).sum();
    let sentence = if command.len() > limit::ARGUMENTS_MAX || bytes > limit::COMMAND_BYTES_MAX {
        format!(
            "the command has {} words and {bytes} bytes; at most {} and {} are allowed",
            command.len(),
            limit::ARGUMENTS_MAX,
            limit::COMMAND_BYTES_MAX
        )
    } else if command.iter().any(|word| word.contains('\0')) {
        "the command holds a NUL character; take it out".to_owned()
    } else {
        return Ok(());
    };
    Err(JailFault::Settings(sentence))
}

fn sender(pipe: PipeWriter) -> io::Result<pipe::Sender> {
    pipe::Sender::from_owned_fd(OwnedFd::from(pipe))
}

fn receiver(pipe: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(OwnedFd::from(pipe))
}
