//! From an order to a running child: the higher rung first, the lower if the kernel refuses
//! and the settings allow it.
//!
//! All of this happens before the supervisor has a second thread, because each attempt
//! begins with a copy of it.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitOptions};
use sandbox::walls::system;

use crate::child_parts::ChildParts;
use crate::control_group::OpenGroup;
use crate::identity;
use crate::inside;
use crate::launcher;
use crate::limit;
use crate::line::{self, LineBuffer};
use crate::message::{JailOrder, JailReport};
use crate::place::RootPlan;
use crate::reaper::Ends;
use crate::seccomp;
use crate::settings::JailRung;
use crate::wall::{self, Wall};

/// A child that runs.
pub(crate) struct Running {
    pub(crate) rung: JailRung,
    pub(crate) walls: Vec<Wall>,
    /// The child itself, or the first process of its namespaces.
    pub(crate) pid: Pid,
    /// To the first process of its namespaces.
    pub(crate) inside: Option<UnixStream>,
    /// Its mounts and its network, which the kernel takes apart when this is dropped: after
    /// the parent knows of the end.
    pub(crate) _places: Vec<fs::File>,
}

impl Running {
    /// Where its end is heard of.
    pub(crate) fn ends(&self) -> io::Result<Ends> {
        match self.inside {
            Some(_) => Ends::of_namespace(self.pid),
            None => Ends::of_tree(self.pid),
        }
    }
}

/// Starts the child on the highest rung there is. `Err` is the report of why there is none.
pub(crate) fn start(
    control: &UnixStream,
    parts: &mut ChildParts<'_>,
) -> Result<Running, JailReport> {
    let refused = |reason: String| JailReport::Refused(reason);
    match start_inside(control, parts).map_err(|error| refused(early_end(&error)))? {
        Attempt::Running(running) => Ok(running),
        Attempt::Refused(reason) => Err(refused(reason)),
        Attempt::NoNamespaces(reason) => {
            if parts.order.require == JailRung::Namespaces {
                return Err(refused(format!(
                    "missing around the program: namespaces ({reason}); the settings require them: \
                     let this process make user namespaces, or require less"
                )));
            }
            parts.no_namespaces = reason;
            take_folders(parts).map_err(refused)?;
            match start_here(control, parts).map_err(|error| refused(early_end(&error)))? {
                Attempt::Running(running) => Ok(running),
                Attempt::Refused(reason) | Attempt::NoNamespaces(reason) => Err(refused(reason)),
            }
        }
    }
}

/// Without namespaces, owners are those on the disk: the child's folders become its user's. If
/// one of them, or one that it only reads, is a child's already, it is that child's user: a
/// workspace that was given away is read by no other.
fn take_folders(parts: &mut ChildParts<'_>) -> Result<(), String> {
    let Ok(identity) = &mut parts.identity else {
        return Ok(());
    };
    let Some(mut taken) = identity.take() else {
        return Ok(());
    };
    let declared = parts.order.declared.iter().map(|rule| &rule.path);
    let mut folders = parts.order.own.iter().chain(declared);
    if let Some(known) = folders.find(|folder| identity::is_of_child(folder)) {
        taken = taken.of_folder(known);
    }
    let taken = identity.insert(taken);
    for folder in &parts.order.own {
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

/// The higher rung: a copy in new namespaces is the first process in them.
fn start_inside(control: &UnixStream, parts: &ChildParts<'_>) -> io::Result<Attempt> {
    let plan = RootPlan::new(parts.order);
    let (identity, trees) = match inside::open_given(parts, &plan) {
        Ok(opened) => opened,
        Err(reason) => return Ok(Attempt::NoNamespaces(reason)),
    };
    let group = parts.open_group();
    let (report, its_report) = UnixStream::pair()?;
    let (lifeline, its_lifeline) = UnixStream::pair()?;
    let first = match inside::fork(parts, group.as_ref().ok()) {
        Ok((Some(first), _)) => first,
        Ok((None, has_joined)) => {
            let mut kept = parts.kept(&[its_report.as_raw_fd(), its_lifeline.as_raw_fd()]);
            kept.extend(trees.descriptors());
            kept.extend(group.iter().flat_map(OpenGroup::descriptors));
            if system::close_all_but(&kept).is_err() {
                system::exit_now(1);
            }
            let group = group.map(|group| (!has_joined).then_some(group));
            inside::begin(parts, &plan, trees, group, &its_report, its_lifeline)
        }
        // For want of processes or memory there is no lower rung either.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) => {
            return Err(error);
        }
        Err(error) => return Ok(Attempt::NoNamespaces(wall::namespaces_refusal(&error))),
    };
    // Our copies: the report ends when the launcher executes the child, and an open copy would
    // hide that end.
    drop((its_report, its_lifeline, trees, group));
    if let Some(Err(reason)) = identity.map(|identity| identity.map_in(first)) {
        return failed(first, Some(JailReport::NoNamespaces(reason)));
    }
    let places = hold_places(first, parts.order);
    line::send(&lifeline, &inside::GO)?;
    let mut heard = Heard::new(control, &report);
    Ok(match finish(&mut heard, first, Some(lifeline))? {
        Attempt::Running(running) => Attempt::Running(Running {
            _places: places,
            ..running
        }),
        attempt @ (Attempt::Refused(_) | Attempt::NoNamespaces(_)) => attempt,
    })
}

/// The mounts and the network of a process. With an overlay none: the next child could find the
/// folder of its changes in use.
fn hold_places(first: Pid, order: &JailOrder) -> Vec<fs::File> {
    let names: &[&str] = match order.overlays.is_empty() {
        true => &["mnt", "net"],
        false => &[],
    };
    let open = |name: &&str| fs::File::open(format!("/proc/{first}/ns/{name}")).ok();
    names.iter().filter_map(open).collect()
}

/// The lower rung: a copy becomes the child.
fn start_here(control: &UnixStream, parts: &ChildParts<'_>) -> io::Result<Attempt> {
    let (report, its_report) = UnixStream::pair()?;
    let supervisor = std::process::id();
    let Some(pid) = system::fork()? else {
        let kept = parts.kept(&[its_report.as_raw_fd()]);
        if system::close_all_but(&kept).is_err() {
            system::exit_now(1);
        }
        launcher::launch_here(parts, &its_report, supervisor)
    };
    drop(its_report);
    finish(&mut Heard::new(control, &report), pid, None)
}

/// Waits until the launcher has become the child: it reports its walls, then nothing more.
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
            _places: Vec::new(),
        })),
        other => failed(pid, other),
    }
}

fn failed(pid: Pid, report: Option<JailReport>) -> io::Result<Attempt> {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    // Before the lower rung is tried, so that two launchers never run at one time.
    wait_for(pid);
    match report {
        Some(JailReport::NoNamespaces(reason)) => Ok(Attempt::NoNamespaces(reason)),
        Some(JailReport::Refused(reason)) => Ok(Attempt::Refused(reason)),
        Some(
            JailReport::Walls { .. }
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

/// The reports of a launcher, read only while the parent still holds its end.
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
            // For each report by itself; the parent bounds the whole start (`child::spawn_by`).
            let limit = Duration::from_millis(limit::START_MS_MAX);
            let mut set = [
                // Only its end: what the parent sends is for the supervisor's loop, later.
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
            format!("{WALLS}\n{{\"Started\":{{\"pid\":1}}}}"),
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
