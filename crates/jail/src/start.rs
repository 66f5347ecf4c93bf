//! From an order to a running child: the higher rung first, the lower if the kernel refuses
//! and the settings allow it.
//!
//! All of this happens before the supervisor has a second thread, because each attempt
//! begins with a copy of it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitOptions};
use sandbox::walls::system;

use crate::ground::JailGround;
use crate::identity;
use crate::inside;
use crate::launcher;
use crate::limit;
use crate::line::{self, LineBuffer};
use crate::message::{JailOrder, JailReport};
use crate::seccomp;
use crate::settings::JailRung;
use crate::wall::Wall;

/// A child that runs.
pub(crate) struct Running {
    pub(crate) rung: JailRung,
    pub(crate) walls: Vec<Wall>,
    /// The child itself, or the first process of its namespaces.
    pub(crate) pid: Pid,
    /// To the first process of its namespaces.
    pub(crate) inside: Option<UnixStream>,
}

/// Starts the child on the highest rung there is. `Err` is the report of why there is none.
pub(crate) fn start(
    control: &UnixStream,
    ground: &mut JailGround<'_>,
) -> Result<Running, JailReport> {
    let refused = |reason: String| JailReport::Refused(reason);
    match start_inside(control, ground).map_err(|error| refused(early_end(&error)))? {
        Attempt::Running(running) => Ok(running),
        Attempt::Refused(reason) => Err(refused(reason)),
        Attempt::NoNamespaces(reason) => {
            if ground.order.require == JailRung::Namespaces {
                return Err(refused(format!(
                    "missing around the program: namespaces ({reason}); the settings require them: \
                     let this process make user namespaces, or require less"
                )));
            }
            ground.no_namespaces = reason;
            take_folders(ground).map_err(refused)?;
            match start_here(control, ground).map_err(|error| refused(early_end(&error)))? {
                Attempt::Running(running) => Ok(running),
                Attempt::Refused(reason) | Attempt::NoNamespaces(reason) => Err(refused(reason)),
            }
        }
    }
}

/// Without namespaces, owners are those on the disk: the child's folders become its user's.
fn take_folders(ground: &mut JailGround<'_>) -> Result<(), String> {
    let (Ok(identity), Some(home)) = (&mut ground.identity, ground.order.own.first()) else {
        return Ok(());
    };
    let Some(taken) = identity.take() else {
        return Ok(());
    };
    let taken = identity.insert(taken.of_folder(home));
    for folder in &ground.order.own {
        identity::hand(folder, taken.user)?;
    }
    Ok(())
}

/// How an attempt ended.
enum Attempt {
    Running(Running),
    Refused(String),
    NoNamespaces(String),
}

/// The higher rung: a copy makes the namespaces, and its copy is the first process in them.
fn start_inside(control: &UnixStream, ground: &JailGround<'_>) -> io::Result<Attempt> {
    let (report, its_report) = UnixStream::pair()?;
    let (lifeline, its_lifeline) = UnixStream::pair()?;
    let Some(outer) = system::fork()? else {
        let kept = ground.kept(&[its_report.as_raw_fd(), its_lifeline.as_raw_fd()]);
        if system::close_all_but(&kept).is_err() {
            system::exit_now(1);
        }
        inside::make_namespaces(ground, &its_report, its_lifeline)
    };
    drop((its_report, its_lifeline));
    let mut heard = Heard::new(control, &report);
    let first = match heard.next()? {
        Some(JailReport::Inside { pid }) => i32::try_from(pid).ok().and_then(Pid::from_raw),
        other => return failed(outer, other),
    };
    let first = first.ok_or_else(|| io::Error::other("no process number"))?;
    // Only now is the first process a child of this one, and can be told to die with it.
    wait_for(outer);
    line::send(&lifeline, &inside::GO)?;
    finish(&mut heard, first, Some(lifeline))
}

/// The lower rung: a copy becomes the child.
fn start_here(control: &UnixStream, ground: &JailGround<'_>) -> io::Result<Attempt> {
    let (report, its_report) = UnixStream::pair()?;
    let supervisor = std::process::id();
    let Some(pid) = system::fork()? else {
        let kept = ground.kept(&[its_report.as_raw_fd()]);
        if system::close_all_but(&kept).is_err() {
            system::exit_now(1);
        }
        launcher::launch_here(ground, &its_report, supervisor)
    };
    drop(its_report);
    finish(&mut Heard::new(control, &report), pid, None)
}

/// Hears the launcher out: its walls, then nothing more, because it has become the child.
fn finish(heard: &mut Heard<'_>, pid: Pid, inside: Option<UnixStream>) -> io::Result<Attempt> {
    let (rung, walls) = match heard.next()? {
        Some(JailReport::Walls { rung, walls }) => (rung, walls),
        other => return failed(pid, other),
    };
    match heard.next()? {
        None => Ok(Attempt::Running(Running {
            rung,
            walls,
            pid,
            inside,
        })),
        other => failed(pid, other),
    }
}

fn failed(pid: Pid, report: Option<JailReport>) -> io::Result<Attempt> {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    wait_for(pid);
    match report {
        Some(JailReport::NoNamespaces(reason)) => Ok(Attempt::NoNamespaces(reason)),
        Some(JailReport::Refused(reason)) => Ok(Attempt::Refused(reason)),
        Some(
            JailReport::Walls { .. }
            | JailReport::Inside { .. }
            | JailReport::Started { .. }
            | JailReport::Exited(_)
            | JailReport::Used(_),
        ) => Ok(Attempt::Refused("the launcher said nonsense".to_owned())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn early_end(error: &io::Error) -> String {
    format!(
        "the launcher ended before it could say why ({error}); \
         the machine may be out of memory or processes"
    )
}

fn wait_for(pid: Pid) {
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Whether the child's connections need the supervisor's answer.
pub(crate) fn needs_answers(running: &Running, order: &JailOrder) -> bool {
    seccomp::has_handed(order.network, running.rung)
}

/// What a launcher says, heard while the parent still holds its end.
struct Heard<'a> {
    control: &'a UnixStream,
    report: &'a UnixStream,
    buffer: LineBuffer,
}

impl<'a> Heard<'a> {
    fn new(control: &'a UnixStream, report: &'a UnixStream) -> Heard<'a> {
        Heard {
            control,
            report,
            buffer: LineBuffer::default(),
        }
    }

    /// The next report; `None` at the end. An error if the parent is gone or it takes too long.
    fn next(&mut self) -> io::Result<Option<JailReport>> {
        loop {
            if let Some(report) = self.buffer.next()? {
                return Ok(Some(report));
            }
            let limit = Duration::from_millis(limit::START_MS_MAX);
            let mut set = [
                PollFd::new(self.control, PollFlags::RDHUP),
                PollFd::new(self.report, PollFlags::IN),
            ];
            let ready = rustix::event::poll(&mut set, Timespec::try_from(limit).ok().as_ref());
            match ready {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => {}
            }
            let [control, _] = &set;
            if control
                .revents()
                .intersects(PollFlags::RDHUP | PollFlags::HUP)
            {
                return Err(io::Error::other("the parent is gone"));
            }
            if !self.buffer.read_from(self.report)? {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    use super::*;

    const WALLS: &str = r#"{"Walls":{"rung":"Landlock","walls":[]}}"#;

    /// A launcher that says `text` and goes on, and what the supervisor makes of it.
    fn heard(text: &[u8]) -> (io::Result<Attempt>, Child) {
        let (control, _parent) = UnixStream::pair().unwrap();
        let (report, mut launcher) = UnixStream::pair().unwrap();
        let child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let text = text.to_vec();
        let speaking = std::thread::spawn(move || {
            // The other side may stop listening.
            let _ = launcher.write_all(&text);
        });
        let attempt = finish(&mut Heard::new(&control, &report), pid, None);
        drop(report);
        speaking.join().unwrap();
        (attempt, child)
    }

    #[test]
    fn a_launcher_that_says_its_walls_and_no_more_has_become_the_child() {
        let (attempt, mut child) = heard(format!("{WALLS}\n").as_bytes());
        assert!(matches!(attempt, Ok(Attempt::Running(_))));
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_launcher_that_lies_is_killed() {
        for text in [
            r#"{"Started":{"pid":1}}"#.to_owned(),
            r#"{"Exited":{"Code":0}}"#.to_owned(),
            format!("{WALLS}\n{WALLS}"),
            format!("{WALLS}\n{{\"Inside\":{{\"pid\":1}}}}"),
        ] {
            let (attempt, mut child) = heard(format!("{text}\n").as_bytes());
            let is_refused = matches!(
                &attempt,
                Ok(Attempt::Refused(reason)) if reason == "the launcher said nonsense"
            );
            assert!(is_refused, "{text}");
            // Already reaped: its number means nothing any more.
            assert!(child.try_wait().is_err() || child.wait().unwrap().signal() == Some(9));
        }
    }

    #[test]
    fn a_launcher_that_babbles_is_not_heard_out() {
        let long = vec![b'x'; limit::REPORT_BYTES_MAX * 4];
        for text in [b"\xff{]\n".to_vec(), b"{}\n".to_vec(), long] {
            let (attempt, mut child) = heard(&text);
            assert!(attempt.is_err());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
