//! One program in the jail, from its start to its end: what it may use, what it reads and
//! writes, and how it ended. Everything is bounded; when the future is dropped, the program
//! and all it started is killed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bridge::EgressDoor;
use host::egress::{Egress, EgressEvent, EgressSettings};
use jail::{
    JailExit, JailFault, JailLimits, JailNetwork, JailOverlay, JailSettings, JailStarter,
    JailedChild,
};
use model::config::ToolboxConfig;
use model::policy::grant::Grant;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::limit;
use crate::refusal::CallRefusal;
use crate::toolbox::{PROGRAM_PATH, required_rung};

mod authorities;
mod capture;

pub(crate) use capture::{Captured, OutputSink, OutputStream, ProgressLines};

/// What is the same for every program of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Jailer {
    /// What starts them, with a supervisor ready for the next.
    pub(crate) starter: JailStarter,
    /// Ringfence's own home, of which a program sees only what it is given.
    pub(crate) home: PathBuf,
    /// The home folder of the person, which no program sees.
    pub(crate) user_home: Option<PathBuf>,
}

/// One program to run.
#[derive(Debug)]
pub(crate) struct JailedCommand {
    /// The program by its absolute path, then its arguments.
    pub(crate) command: Vec<String>,
    /// Variables besides those that every program has.
    pub(crate) environment: BTreeMap<String, String>,
    /// What it reads from its standard input.
    pub(crate) stdin: Vec<u8>,
    /// A folder of its own, for `HOME` and temporary files.
    pub(crate) own_folder: PathBuf,
    /// The folder it works in.
    pub(crate) folder: WorkFolder,
    /// Where it starts: in that folder.
    pub(crate) start: PathBuf,
    /// How long it may take.
    pub(crate) time: Duration,
    /// What it may reach; nothing if absent.
    pub(crate) network: Option<JailedNetwork>,
    /// Ends it before its time, if anything does.
    pub(crate) stop: Option<CancellationToken>,
}

/// What a program may reach.
#[derive(Clone, Debug)]
pub(crate) struct JailedNetwork {
    pub(crate) grant: Grant,
    pub(crate) settings: EgressSettings,
    /// Certificate authorities besides the system's, for programs that do TLS themselves.
    pub(crate) authorities: Option<Vec<u8>>,
}

/// The folder a program works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkFolder {
    /// Ours: it may be changed.
    Workspace(PathBuf),
    /// It may only be read.
    ReadOnly(PathBuf),
    /// It may be read, and these files in it changed.
    Files {
        folder: PathBuf,
        files: Vec<PathBuf>,
    },
    /// The program sees it as writable; its changes go elsewhere.
    Overlay {
        folder: PathBuf,
        upper: PathBuf,
        work: PathBuf,
    },
}

impl WorkFolder {
    pub(crate) fn path(&self) -> &Path {
        match self {
            WorkFolder::Workspace(path) | WorkFolder::ReadOnly(path) => path,
            WorkFolder::Files { folder, .. } | WorkFolder::Overlay { folder, .. } => folder,
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// By itself.
    Exited(i32),
    /// By a signal.
    Signal(i32),
    /// Its time was over, and everything it started was killed.
    TimedOut,
    /// It was stopped from outside, and everything it started was killed.
    Stopped,
    /// It broke a bound, and everything it started was killed.
    Bound(String),
    /// It could not be told.
    Unknown(String),
}

impl ProcessEnd {
    /// The word in results and in the audit.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            ProcessEnd::Exited(_) => "exited",
            ProcessEnd::Signal(_) => "signal",
            ProcessEnd::TimedOut => "timed_out",
            ProcessEnd::Stopped => "stopped",
            ProcessEnd::Bound(_) => "bound",
            ProcessEnd::Unknown(_) => "unknown",
        }
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self {
            ProcessEnd::Exited(code) => Some(*code),
            ProcessEnd::Signal(_)
            | ProcessEnd::TimedOut
            | ProcessEnd::Stopped
            | ProcessEnd::Bound(_)
            | ProcessEnd::Unknown(_) => None,
        }
    }

    /// What is to be said besides the word.
    pub(crate) fn why(&self) -> Option<String> {
        match self {
            ProcessEnd::Exited(_) => None,
            ProcessEnd::Signal(signal) => Some(format!("ended by signal {signal}")),
            ProcessEnd::TimedOut => Some("its time was over".to_owned()),
            ProcessEnd::Stopped => Some("it was stopped".to_owned()),
            ProcessEnd::Bound(why) | ProcessEnd::Unknown(why) => Some(why.clone()),
        }
    }
}

/// A program that ran.
#[derive(Debug)]
pub(crate) struct JailedRun {
    pub(crate) end: ProcessEnd,
    pub(crate) wall: Duration,
    pub(crate) cpu_ms: Option<u64>,
    /// Which fence it ran behind.
    pub(crate) rung: &'static str,
    /// What was decided about its connections.
    pub(crate) egress: Vec<EgressEvent>,
}

impl JailedRun {
    /// What the record of the call says about it.
    pub(crate) fn event(&self, program: &str, bytes_out: u64, bytes_error: u64) -> Value {
        json!({
            "kind": "process",
            "backend": "jail",
            "rung": self.rung,
            "program": program,
            "ended": self.end.word(),
            "exitCode": self.end.exit_code(),
            "why": self.end.why(),
            "stdoutBytes": bytes_out,
            "stderrBytes": bytes_error,
            "cpuMs": self.cpu_ms,
            "ms": u64::try_from(self.wall.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl Jailer {
    /// The absolute path of a program that is installed here.
    pub(crate) fn find(&self, name: &str) -> Result<String, CallRefusal> {
        match jail::resolve_program(name, PROGRAM_PATH) {
            Ok(path) => Ok(path.display().to_string()),
            Err(_) => {
                let message = format!("`{name}` is not installed where Ringfence runs");
                Err(CallRefusal::new(CallError::new(
                    Reason::ProgramMissing,
                    message,
                )))
            }
        }
    }

    /// Runs a program to its end and hands what it writes to the sinks.
    pub(crate) async fn run(
        &self,
        command: JailedCommand,
        limits: &ToolboxConfig,
        stdout: &mut OutputSink<'_>,
        stderr: &mut OutputSink<'_>,
    ) -> Result<JailedRun, JailFault> {
        let time = command.time;
        let stdin = command.stdin.clone();
        let stop = command.stop.clone();
        let started = Instant::now();
        let network = command.network.clone();
        let mut settings = self.settings(command, limits);
        give_authorities(network.as_ref(), &mut settings)?;
        let mut child = self.starter.spawn(settings).await?;
        let rung = child.rung.name();
        let door = serve_egress(network, &mut child);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // A sink keeps a bounded part, but a program could write without end: beyond a bound it
        // is killed.
        let flood = Notify::new();
        let finish = {
            // All pipes and the end together: a program with a full pipe would never end.
            let work = async {
                let (input, output, error) = streams;
                let feeding = feed(input, &stdin);
                let reading = read(output, stdout, &flood);
                let reading_error = read(error, stderr, &flood);
                let (exit, (), (), ()) =
                    tokio::join!(child.wait(), feeding, reading, reading_error);
                exit
            };
            tokio::select! {
                exit = work => Finish::Exit(exit),
                () = flood.notified() => Finish::Flood,
                () = tokio::time::sleep(time) => Finish::TimedOut,
                () = wait_for_stop(stop) => Finish::Stopped,
            }
        };
        let cpu_ms = child.usage().map(|usage| usage.cpu_ms);
        let end = match finish {
            Finish::Exit(JailExit::Code(code)) => ProcessEnd::Exited(code),
            Finish::Exit(JailExit::Signal(signal)) => ProcessEnd::Signal(signal),
            Finish::Exit(JailExit::Bound(why)) => ProcessEnd::Bound(why),
            Finish::Exit(JailExit::Unknown(why)) => ProcessEnd::Unknown(why),
            Finish::TimedOut => {
                // Returns when nothing of it is left, so that no process changes the
                // folder after the call.
                child.kill().await;
                ProcessEnd::TimedOut
            }
            Finish::Stopped => {
                child.kill().await;
                ProcessEnd::Stopped
            }
            Finish::Flood => {
                child.kill().await;
                let most = limit::PROCESS_OUTPUT_BYTES_MAX >> 20;
                ProcessEnd::Bound(format!("it wrote more than {most} MiB"))
            }
        };
        let wall = started.elapsed();
        // Only now are the byte counts of its connections final.
        let egress = match door {
            Some(door) => door.egress().finish().await,
            None => Vec::new(),
        };
        Ok(JailedRun {
            end,
            wall,
            cpu_ms,
            egress,
            rung,
        })
    }

    fn settings(&self, command: JailedCommand, limits: &ToolboxConfig) -> JailSettings {
        let mut settings = JailSettings::new(command.command, command.own_folder);
        settings.environment = command.environment;
        // Set last: no variable of the command changes where programs are found.
        let fixed = [
            ("PATH", PROGRAM_PATH),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
        ];
        for (name, value) in fixed {
            settings
                .environment
                .insert(name.to_owned(), value.to_owned());
        }
        settings.folder = Some(command.start);
        settings.private = private_parts(&self.home, command.folder.path());
        match command.folder {
            WorkFolder::Workspace(path) => settings.workspaces.push(path),
            WorkFolder::ReadOnly(path) => settings.read.push(path),
            WorkFolder::Files { folder, files } => {
                settings.read.push(folder);
                settings.write.extend(files);
            }
            WorkFolder::Overlay {
                folder,
                upper,
                work,
            } => settings.overlays.push(JailOverlay {
                folder,
                upper,
                work,
            }),
        }
        settings.user_home = self.user_home.clone();
        settings.network = match command.network {
            Some(_) => JailNetwork::Proxy,
            None => JailNetwork::None,
        };
        settings.limits = JailLimits {
            // No process computes longer than the call may take.
            cpu_seconds: Some(command.time.as_secs().max(1)),
            memory_bytes: limits.memory_bytes_max,
            processes: limits.processes_max,
            file_bytes: limits.file_bytes_max,
            ..JailLimits::standard()
        };
        settings.require = required_rung(limits.jail);
        settings
    }
}

/// Certificate authorities for a program that does TLS itself: not by a route of ours.
fn give_authorities(
    network: Option<&JailedNetwork>,
    settings: &mut JailSettings,
) -> Result<(), JailFault> {
    let tunnel = network.filter(|one| !one.settings.routes_only);
    let Some(pem) = tunnel.and_then(|one| one.authorities.as_deref()) else {
        return Ok(());
    };
    let given = authorities::give(pem, &settings.home, &mut settings.environment);
    given.map_err(|error| JailFault::Settings(format!("could not write the authorities: {error}")))
}

enum Finish {
    Exit(JailExit),
    TimedOut,
    Stopped,
    Flood,
}

async fn wait_for_stop(stop: Option<CancellationToken>) {
    match stop {
        Some(stop) => stop.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Answers the connections of a child.
fn serve_egress(network: Option<JailedNetwork>, child: &mut JailedChild) -> Option<EgressDoor> {
    let JailedNetwork {
        grant, settings, ..
    } = network?;
    let egress = Egress::from_grant(&grant.network, &grant.bounds, settings);
    EgressDoor::open(egress, child)
}

/// What lies in Ringfence's home beside the folder of a call: no program is given any of it,
/// also where the home lies in a folder of the system.
fn private_parts(home: &Path, folder: &Path) -> Vec<PathBuf> {
    // Compared without links: the folder of a call has none.
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    if !folder.starts_with(&home) {
        return vec![home];
    }
    // A home that cannot be listed is private as a whole. The program cannot use its own
    // folder then, and the call fails.
    let Ok(entries) = std::fs::read_dir(&home).and_then(Iterator::collect::<Result<Vec<_>, _>>)
    else {
        return vec![home];
    };
    let paths = entries.iter().map(std::fs::DirEntry::path);
    paths.filter(|path| !folder.starts_with(path)).collect()
}

/// The refusal of a call whose program could not be started.
pub(crate) fn refuse(fault: &JailFault) -> CallRefusal {
    let (reason, message) = match fault {
        JailFault::Program(why) => (Reason::ProgramMissing, why.clone()),
        JailFault::Refused(_) => (
            Reason::JailUnavailable,
            "the fence that native tools need is not available here; `ringfence doctor` says why"
                .to_owned(),
        ),
        JailFault::Settings(_)
        | JailFault::Setup { .. }
        | JailFault::Ended(_)
        | JailFault::Late { .. } => (
            Reason::JailUnavailable,
            "the program could not be started in its jail; the operator can see why".to_owned(),
        ),
    };
    let refusal = CallRefusal::with_status(Status::Failed, CallError::new(reason, message));
    refusal.noted(crate::error::causes(fault))
}

/// Writes all of it and closes. A program that does not read loses nothing but its input.
async fn feed(input: Option<pipe::Sender>, bytes: &[u8]) {
    let Some(input) = input else { return };
    let mut rest = bytes;
    while !rest.is_empty() {
        if input.writable().await.is_err() {
            return;
        }
        match input.try_write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            // The pipe was reported ready and is not. The loop waits again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Reads to the end, or until it was more than anything reads.
async fn read(output: Option<pipe::Receiver>, sink: &mut OutputSink<'_>, flood: &Notify) {
    let Some(output) = output else { return };
    let mut chunk = vec![0; limit::PROCESS_CHUNK_BYTES];
    loop {
        if output.readable().await.is_err() {
            return;
        }
        match output.try_read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                sink.take(chunk.get(..count).unwrap_or_default());
                if sink.bytes() > limit::PROCESS_OUTPUT_BYTES_MAX {
                    flood.notify_one();
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
