//! A command at a terminal of its own, and a test that types there. Every
//! wait is bounded: a command that hangs fails its test.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a test waits for what it expects. Long, because machines are slow; it is
/// only ever waited for in full when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    child: Child,
    input: Option<ChildStdin>,
    screen: Arc<Screen>,
}

/// What was written, and whether more can come.
#[derive(Default)]
struct Screen {
    shown: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
}

/// Columns and rows of a terminal with its default size.
pub(crate) const USUAL: (u16, u16) = (80, 24);

impl Terminal {
    /// Runs a line of shell with nothing from this machine's environment.
    pub(crate) fn start(line: &str, folder: &Path) -> Terminal {
        Terminal::sized(line, folder, USUAL)
    }

    /// The same at a terminal of so many columns and rows, which knows colours.
    pub(crate) fn sized(line: &str, folder: &Path, (columns, rows): (u16, u16)) -> Terminal {
        let line = format!("stty cols {columns} rows {rows}; {line}");
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut output = child.stdout.take().unwrap();
        let screen = Arc::new(Screen::default());
        let fills = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let count = output.read(&mut bytes).unwrap_or(0);
                let mut shown = fills.shown.lock().unwrap();
                shown.0.extend(bytes.get(..count).unwrap());
                shown.1 = count == 0;
                fills.changed.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Terminal {
            child,
            input,
            screen,
        }
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the text was shown so many times.
    pub(crate) fn until(&self, text: &str, times: usize) {
        self.wait(text, |shown| shown.matches(text).count() >= times);
    }

    /// Waits until the first text was shown, or the second so many times; whether it
    /// was the first.
    pub(crate) fn either(&self, first: &str, second: &str, times: usize) -> bool {
        let shown = self.wait(first, |shown| {
            shown.contains(first) || shown.matches(second).count() >= times
        });
        shown.contains(first)
    }

    fn wait(&self, wanted: &str, is_there: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().unwrap();
        while !is_there(&text(&shown.0)) {
            let left = until.saturating_duration_since(Instant::now());
            let can_come = !shown.1 && !left.is_zero();
            assert!(can_come, "{wanted:?} was not shown: {}", text(&shown.0));
            shown = self.screen.changed.wait_timeout(shown, left).unwrap().0;
        }
        text(&shown.0)
    }

    /// All bytes that were written so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.screen.shown.lock().unwrap().0.clone()
    }

    /// Answers the question that is shown for the `time`th time, once a person could
    /// have read it.
    pub(crate) fn answer(&mut self, keys: &str, time: usize) {
        self.until("\n> ", time);
        // Sleeps: a faster answer counts as an accident.
        std::thread::sleep(Duration::from_millis(200));
        self.type_in(keys);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// All bytes that were written until the command ended.
    pub(crate) fn ended(self) -> Vec<u8> {
        let screen = Arc::clone(&self.screen);
        self.end();
        screen.shown.lock().unwrap().0.clone()
    }

    /// How the command ended, and all it showed. It must end without another key.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let until = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().unwrap();
        while !shown.1 {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it does not end: {}", text(&shown.0));
            shown = self.screen.changed.wait_timeout(shown, left).unwrap().0;
        }
        let shown = text(&shown.0);
        (self.child.wait().unwrap(), shown)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Drop for Terminal {
    /// A terminal that closes takes its command along.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
