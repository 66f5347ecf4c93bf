//! What the tests share: scratch folders, the program that plays the parent, and looking at
//! the processes there are.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jail::{JailSettings, WorkerProgram};
use serde_json::{Value, json};

/// The program that plays the parent, the supervisor and the launcher.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_jail-test-program");

/// How long a test waits for what must come.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The user `nobody` on every Linux.
const NOBODY: u32 = 65534;

pub(crate) fn this_program() -> WorkerProgram {
    WorkerProgram::Other(PROGRAM.into(), Vec::new())
}

/// As whom a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Same,
    Nobody,
}

impl User {
    /// Both, if this process may become the other.
    pub(crate) fn all() -> Vec<User> {
        match rustix::process::geteuid().is_root() {
            true => vec![User::Same, User::Nobody],
            false => vec![User::Same],
        }
    }

    fn id(self) -> Option<u32> {
        match self {
            User::Same => None,
            User::Nobody => Some(NOBODY),
        }
    }

    /// A command that runs as this user, in a process group of its own.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.process_group(0);
        if let Some(id) = self.id() {
            command.uid(id).gid(id);
        }
        command
    }
}

/// On which rung a child runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    Namespaces,
    /// Under a filter that refuses namespaces, as in a default container.
    Landlock,
}

/// Whether these tests run in a container of an engine, where there are no namespaces and the
/// engine's own filter refuses many calls: set by `packaging/try.sh`.
pub(crate) fn is_in_container() -> bool {
    std::env::var_os("RINGFENCE_JAIL_CONTAINER").is_some()
}

/// As whom and on which rung: every combination this process can play.
pub(crate) fn everywhere() -> Vec<(User, Rung)> {
    let rungs: &[Rung] = match is_in_container() {
        true => &[Rung::Landlock],
        false => &[Rung::Namespaces, Rung::Landlock],
    };
    let users = User::all().into_iter();
    users
        .flat_map(|user| rungs.iter().map(move |rung| (user, *rung)))
        .collect()
}

/// A home with secrets, Ringfence's folder in it, and the child's own folder in that.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) root: PathBuf,
    pub(crate) user: User,
    pub(crate) rung: Rung,
}

impl Scratch {
    pub(crate) fn new(user: User) -> Scratch {
        let highest = match is_in_container() {
            true => Rung::Landlock,
            false => Rung::Namespaces,
        };
        Scratch::on(user, highest)
    }

    pub(crate) fn on(user: User, rung: Rung) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-jail-{}-{number}", std::process::id());
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        let scratch = Scratch { root, user, rung };
        for folder in [
            "",
            "home",
            "home/.ringfence",
            "home/.ringfence/own",
            "project",
            "other",
        ] {
            fs::create_dir(scratch.root.join(folder)).unwrap();
            scratch.give(folder);
        }
        for file in [
            "home/canary",
            "home/.ringfence/key",
            "project/file",
            "other/file",
        ] {
            fs::write(scratch.root.join(file), "canary").unwrap();
            scratch.give(file);
        }
        if rung == Rung::Landlock && user == User::Same {
            // Without namespaces a child of root is one of the others.
            scratch.open_to_all("project", 0o777);
            scratch.open_to_all("project/file", 0o666);
        }
        scratch
    }

    pub(crate) fn open_to_all(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes a file of the user's own.
    pub(crate) fn give(&self, name: &str) {
        let path = self.root.join(name);
        std::os::unix::fs::lchown(path, self.user.id(), self.user.id()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Settings for a child in this process.
    pub(crate) fn settings(&self, command: &[&str]) -> JailSettings {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let mut settings = JailSettings::new(command, self.path("home/.ringfence/own"));
        settings.private = vec![self.path("home/.ringfence")];
        settings.user_home = Some(self.path("home"));
        settings
    }

    /// What to ask of the program that plays the parent.
    pub(crate) fn request(&self, command: &[&str]) -> Value {
        json!({
            "command": command,
            "home": self.path("home/.ringfence/own"),
            "environment": {},
            "folder": null,
            "read": [],
            "write": [],
            "workspaces": [],
            "overlays": [],
            "private": [self.path("home/.ringfence")],
            "user_home": self.path("home"),
            "network": "None",
            "limits": {
                "cpu_seconds": null, "memory_bytes": 4_u64 << 30, "processes": 512,
                "open_files": 4096, "file_bytes": 1_u64 << 30,
                "temporary_bytes": 64_u64 << 20, "disk_bytes": 4_u64 << 30,
            },
            "require": "Landlock",
            "accept_missing": false,
            "input": "",
        })
    }

    /// A request for a script of `attack/`, with `arguments`.
    pub(crate) fn attack(&self, script: &str, arguments: &[&str]) -> Value {
        let mut command = vec!["/usr/bin/python3", "-c", script];
        command.extend(arguments);
        self.request(&command)
    }

    /// Runs a request behind the fence and says what came of it.
    pub(crate) fn run(&self, request: &Value) -> Ran {
        let rung = match self.rung {
            Rung::Namespaces => "namespaces",
            Rung::Landlock => "landlock",
        };
        let ran = self.run_with(request, self.role());
        assert!(ran.rung == rung || !ran.fault.is_empty(), "{ran:?}");
        ran
    }

    /// The arguments of the program that plays the parent on this rung.
    pub(crate) fn role(&self) -> &'static [&'static str] {
        match self.rung {
            Rung::Namespaces => &["run"],
            // The container is what takes them away.
            Rung::Landlock if is_in_container() => &["run"],
            Rung::Landlock => &["run", "without-namespaces"],
        }
    }

    pub(crate) fn run_with(&self, request: &Value, arguments: &[&str]) -> Ran {
        let mut command = self.user.command(PROGRAM);
        command.args(arguments);
        self.run_by(request, command)
    }

    pub(crate) fn run_by(&self, request: &Value, mut command: Command) -> Ran {
        let mut child = start(request, &mut command);
        let mut said = String::new();
        std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        child.wait().unwrap();
        Ran::parse(&said)
    }

    /// Runs a script without a fence: what it prints.
    pub(crate) fn run_bare(&self, script: &str, arguments: &[&str]) -> String {
        let output = self
            .user
            .command("/usr/bin/python3")
            .args(["-c", script])
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the control failed: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Starts the program that plays the parent and gives it the request.
pub(crate) fn start(request: &Value, command: &mut Command) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(request.to_string().as_bytes()).unwrap();
    child
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) walls: BTreeMap<String, Option<String>>,
    pub(crate) rung: String,
    pub(crate) fault: String,
    pub(crate) exit: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn parse(said: &str) -> Ran {
        let mut ran = Ran::default();
        for line in said.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(value.get("broken").is_none(), "{value}");
            let text = |name: &str| {
                value
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            if let Some(walls) = value.get("walls") {
                ran.walls = serde_json::from_value(walls.clone()).unwrap();
                ran.rung = text("rung");
            } else {
                ran.fault.push_str(&text("fault"));
                ran.exit.push_str(&text("exit"));
                ran.stdout.push_str(&text("stdout"));
                ran.stderr.push_str(&text("stderr"));
            }
        }
        ran
    }

    /// What the child wrote, if it ended well.
    #[track_caller]
    pub(crate) fn done(&self) -> &str {
        assert_eq!(self.exit, "Code(0)", "{self:?}");
        &self.stdout
    }
}

/// A word that only the processes of one test carry on their command line: a number of
/// seconds that `sleep` takes.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("600.{}{number:03}", std::process::id())
}

/// The processes that carry `marker` and have not ended.
pub(crate) fn marked(marker: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            // Of a process that has ended and is not yet waited for, nothing is left to read.
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| {
                let words = line.split(|byte| *byte == 0);
                words.into_iter().any(|word| word == marker.as_bytes())
            })
        })
        .count()
}

/// Waits until `marker` is carried by as many processes as `is_enough` asks for.
#[track_caller]
pub(crate) fn wait_for(marker: &str, is_enough: impl Fn(usize) -> bool) {
    let started = Instant::now();
    loop {
        let count = marked(marker);
        if is_enough(count) {
            return;
        }
        assert!(started.elapsed() < WAIT_MAX, "{count} processes are there");
        std::thread::yield_now();
    }
}

/// Whether a path is for its owner only.
pub(crate) fn is_closed(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}
