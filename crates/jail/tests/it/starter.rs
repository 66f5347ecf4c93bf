//! A supervisor that is ready is used once, dies with its parent, and never decides whether a
//! child starts.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use jail::{JailExit, JailFault, JailSettings, JailStarter, JailedChild, WorkerProgram};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::help::{PROGRAM, Scratch, User, everywhere, start, this_program};

/// How long a test waits for what must come.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// How long a start may take in any case, and a little more: ten seconds.
const START_MAX: Duration = Duration::from_secs(12);

fn settings(scratch: &Scratch) -> JailSettings {
    scratch.settings(&["/bin/cat"])
}

/// A child of `starter` that runs, and the supervisor that is ready after it.
async fn spawn(starter: &JailStarter, scratch: &Scratch) -> (JailedChild, u32) {
    let child = starter.spawn(settings(scratch)).await.unwrap();
    (child, until_ready(starter).await)
}

async fn until_ready(starter: &JailStarter) -> u32 {
    let begun = Instant::now();
    loop {
        if let Some(ready) = starter.ready_pid() {
            return ready;
        }
        assert!(begun.elapsed() < WAIT_MAX);
        tokio::task::yield_now().await;
    }
}

async fn end(mut child: JailedChild) {
    child.stdin = None;
    assert_eq!(child.wait().await, JailExit::Code(0));
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// A line of a process's status; `None` if it is gone.
fn status(process: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

#[track_caller]
fn wait_until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < WAIT_MAX);
        std::thread::yield_now();
    }
}

fn is_there(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[tokio::test]
async fn a_ready_supervisor_is_used_once() {
    let scratch = Scratch::new(User::Same);
    let starter = JailStarter::new(this_program());
    // Nothing is ready before there was a child.
    assert_eq!(starter.ready_pid(), None);
    let (child, mut ready) = spawn(&starter, &scratch).await;
    end(child).await;
    for _ in 0..3 {
        let (child, next) = spawn(&starter, &scratch).await;
        let parent = status(child.pid().unwrap(), "PPid:").unwrap();
        assert_eq!(parent, ready.to_string());
        assert_ne!(next, ready);
        end(child).await;
        ready = next;
    }
}

#[test]
fn a_ready_supervisor_holds_nothing() {
    let scratch = Scratch::new(User::Same);
    // What a shell opens stays open in what it starts.
    let opened = format!("exec 7</etc/hostname 99</etc/hostname; exec '{PROGRAM}' wait");
    let mut parent = User::Same.command("/bin/bash");
    let (mut parent, ready) = waiting(&scratch, parent.args(["-c", &opened]));
    // The last it does before it waits is to leave its folder.
    let folder = || fs::read_link(format!("/proc/{ready}/cwd")).unwrap();
    wait_until(|| folder() == Path::new("/") && descriptors(ready).len() == 4);
    let mut held = descriptors(ready);
    assert!(held.pop().unwrap().starts_with("socket:"), "{held:?}");
    assert_eq!(held, ["/dev/null"; 3]);
    assert!(descriptors(parent.0.id()).contains(&"/etc/hostname".to_owned()));
    assert_eq!(fs::read(format!("/proc/{ready}/environ")).unwrap(), b"");
    parent.kill();
}

/// What the descriptors of a process are.
fn descriptors(process: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = entries.flatten().map(|entry| fs::read_link(entry.path()));
    let mut all: Vec<String> = links
        .map(|link| link.unwrap_or_default().display().to_string())
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn with_its_last_starter_a_ready_supervisor_ends() {
    let scratch = Scratch::new(User::Same);
    let starter = JailStarter::new(this_program());
    let (child, ready) = spawn(&starter, &scratch).await;
    let copy = starter.clone();
    drop(starter);
    assert_eq!(copy.ready_pid(), Some(ready));
    drop(copy);
    // A zombie would still be there.
    wait_until(|| !is_there(ready));
    // The child is not the starter's.
    end(child).await;
}

#[test]
fn a_ready_supervisor_ends_with_a_parent_that_is_killed() {
    for user in User::all() {
        let scratch = Scratch::new(user);
        let mut parent = user.command(PROGRAM);
        let (mut parent, ready) = waiting(&scratch, parent.arg("wait"));
        parent.kill();
        wait_until(|| status(ready, "State:").is_none_or(|state| state.starts_with('Z')));
    }
}

#[tokio::test]
async fn a_child_starts_although_the_ready_supervisor_was_killed_or_stopped() {
    for (signal, state) in [(Signal::KILL, "Z"), (Signal::STOP, "T")] {
        let scratch = Scratch::new(User::Same);
        let starter = JailStarter::new(this_program());
        let (child, ready) = spawn(&starter, &scratch).await;
        end(child).await;
        rustix::process::kill_process(pid(ready), signal).unwrap();
        wait_until(|| status(ready, "State:").is_some_and(|now| now.starts_with(state)));
        let begun = Instant::now();
        let (child, _) = spawn(&starter, &scratch).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{signal:?}");
        let parent = status(child.pid().unwrap(), "PPid:").unwrap();
        assert_ne!(parent, ready.to_string());
        end(child).await;
        wait_until(|| !is_there(ready));
    }
}

/// A program whose second supervisor, which is ready when its order comes, ends or stops then;
/// `how` says what it does before. With `always` so does every later one, with `first` every one.
fn dying(scratch: &Scratch, how: &str) -> WorkerProgram {
    let path = scratch.path("dying.py");
    let marks = scratch.text("project/tried");
    let text = format!(
        "#!/usr/bin/python3\n\
         import os, select, signal, socket, sys\n\
         real = [{PROGRAM:?}] + sys.argv[1:3]\n\
         with open({marks:?}, 'a') as marks: marks.write('x')\n\
         tried = os.path.getsize({marks:?})\n\
         if tried == 1 and '{how}' != 'first': os.execv({PROGRAM:?}, real)\n\
         if tried > 2 and '{how}' != 'always': os.execv({PROGRAM:?}, real)\n\
         control = socket.socket(fileno=0)\n\
         select.select([control], [], [])\n\
         if '{how}' == 'part': control.recv(10)\n\
         if '{how}' == 'whole':\n\
         \x20 text = b''\n\
         \x20 while not text.endswith(b'\\n'): text += control.recv(65536)\n\
         if '{how}' == 'stop': os.kill(os.getpid(), signal.SIGSTOP)\n\
         if '{how}' == 'word': control.sendall(b'x')\n\
         os.kill(os.getpid(), signal.SIGKILL)\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    WorkerProgram::Other(path, Vec::new())
}

/// The second child of a starter whose ready supervisor dies while it has its order, and how
/// many supervisors there were in all.
async fn second(how: &str) -> (Result<JailedChild, JailFault>, u64, Scratch) {
    let scratch = Scratch::new(User::Same);
    let starter = JailStarter::new(dying(&scratch, how));
    let (child, ready) = spawn(&starter, &scratch).await;
    end(child).await;
    // Until it reads its order, and is no supervisor yet.
    wait_until(|| status(ready, "State:").is_some_and(|state| state.starts_with('S')));
    let marks = scratch.path("project/tried");
    wait_until(|| fs::metadata(&marks).is_ok_and(|marks| marks.len() == 2));
    let spawned = tokio::time::timeout(START_MAX, starter.spawn(settings(&scratch))).await;
    let tried = fs::metadata(&marks).unwrap().len();
    // Nothing stays behind, not even of one that was stopped.
    wait_until(|| !is_there(ready));
    (spawned.unwrap(), tried, scratch)
}

#[tokio::test]
async fn a_supervisor_that_dies_before_it_read_its_order_is_replaced_once() {
    for how in ["none", "part"] {
        let (spawned, _, _scratch) = second(how).await;
        end(spawned.unwrap()).await;
    }
    let (spawned, tried, _scratch) = second("always").await;
    let fault = spawned.unwrap_err().to_string();
    assert!(fault.contains("was ended by signal 9 before"), "{fault}");
    assert_eq!(tried, 3);
    // One that was not ready is not replaced.
    let scratch = Scratch::new(User::Same);
    let starter = JailStarter::new(dying(&scratch, "first"));
    let fault = starter.spawn(settings(&scratch)).await.unwrap_err();
    assert!(
        fault.to_string().contains("was ended by signal 9"),
        "{fault}"
    );
    assert_eq!(fs::read(scratch.path("project/tried")).unwrap(), b"x");
}

#[tokio::test]
async fn a_supervisor_that_dies_with_its_order_or_said_a_word_is_not_replaced() {
    // Something of the child may have run.
    for how in ["whole", "word"] {
        let (spawned, tried, _scratch) = second(how).await;
        let fault = spawned.unwrap_err().to_string();
        assert!(
            fault.contains("was ended by signal 9 before"),
            "{how}: {fault}"
        );
        assert_eq!(tried, 2, "{how}");
    }
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_with_its_order_ends_the_start_in_time() {
    let scratch = Scratch::new(User::Same);
    let other = JailStarter::new(this_program());
    let (child, ready) = spawn(&other, &scratch).await;
    end(child).await;
    let (spawned, tried, _scratch) = second("stop").await;
    assert!(
        matches!(spawned, Err(JailFault::Late { seconds: 10 })),
        "{spawned:?}"
    );
    assert_eq!(tried, 2);
    // One that waits meanwhile goes on waiting, beyond the time in which a child must start.
    assert_eq!(other.ready_pid(), Some(ready));
    let (child, _) = spawn(&other, &scratch).await;
    let parent = status(child.pid().unwrap(), "PPid:").unwrap();
    assert_eq!(parent, ready.to_string());
    end(child).await;
}

#[test]
fn fifty_starts_leave_no_process_and_no_descriptor() {
    let scratch = Scratch::new(User::Same);
    let request = scratch.request(&["/bin/true"]);
    let mut parent = start(&request, User::Same.command(PROGRAM).arg("many"));
    let mut said = String::new();
    let mut stdout = BufReader::new(parent.stdout.take().unwrap());
    stdout.read_line(&mut said).unwrap();
    assert!(parent.wait().unwrap().success());
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        said["descriptors_before"], said["descriptors_after"],
        "{said}"
    );
    // The one that is ready, and without its starter none: a zombie is a child, too.
    assert_eq!(said["children"], json!([1, 0]), "{said}");
}

#[test]
fn attacks_come_to_the_same_behind_a_ready_supervisor() {
    let own = "import os, sys\nsys.argv.append(str(os.getppid()))\n";
    let process = format!("{own}{}", include_str!("attack/process.py"));
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let (canary, other) = (scratch.text("home/canary"), scratch.text("other"));
        let socket = scratch.text("project/socket");
        for (script, arguments) in [
            (process.as_str(), vec![]),
            (include_str!("attack/kernel.py"), vec![]),
            (
                include_str!("attack/files.py"),
                vec![canary.as_str(), &other],
            ),
            (
                include_str!("attack/network.py"),
                vec!["9", "9", &socket, "ringfence-none", &socket],
            ),
        ] {
            let request = scratch.attack(script, &arguments);
            let new = scratch.run(&request);
            let mut role = scratch.role().to_vec();
            role[0] = "ready";
            let ready = scratch.run_with(&request, &role);
            assert_eq!(ready.done(), new.done(), "{user:?} {rung:?}");
            assert_eq!(ready.walls, new.walls, "{user:?} {rung:?}");
        }
    }
}

#[test]
fn a_ready_supervisor_is_out_of_reach() {
    for (user, rung) in everywhere() {
        let scratch = Scratch::on(user, rung);
        let mut parent = user.command(PROGRAM);
        let (mut parent, ready) = waiting(&scratch, parent.arg("wait"));
        let target = ready.to_string();
        let ran = scratch.run(&scratch.attack(include_str!("attack/process.py"), &[&target]));
        parent.kill();
        let mut outcomes = ran.done().lines();
        assert!(outcomes.all(|line| line.ends_with(" refused")), "{ran:?}");
        assert!(ran.stdout.lines().count() > 5);
    }
}

/// A parent that waits to be killed.
struct WaitingParent(Child);

impl WaitingParent {
    fn kill(&mut self) {
        // It may have been killed.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for WaitingParent {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A parent, and the supervisor that is ready in it.
fn waiting(scratch: &Scratch, parent: &mut Command) -> (WaitingParent, u32) {
    let request = scratch.request(&["/bin/true"]);
    let mut parent = WaitingParent(start(&request, parent));
    let mut said = String::new();
    let mut stdout = BufReader::new(parent.0.stdout.take().unwrap());
    stdout.read_line(&mut said).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    let ready = said.get("ready").and_then(Value::as_u64).unwrap();
    let ready = u32::try_from(ready).unwrap();
    assert!(is_there(ready));
    (parent, ready)
}
