//! The progress bar: there for a person at a terminal, gone when the work is done, and
//! nowhere else.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use model::record::audit::{Act, Notice};
use rustix::process::{Pid, Signal, kill_process};
use store::{Store, StoreSettings};

use crate::ringfence;
use crate::run::scratch;
use crate::screen::{emulated, rows};
use crate::terminal::{Terminal, USUAL};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringfence");

/// Tests tools that take a while together, with these variables.
fn tested(name: &str, variables: &str, size: (u16, u16)) -> (Vec<u8>, f64) {
    let folder = scratch(name);
    let tools = folder.join("ring/tools");
    std::fs::create_dir_all(&tools).unwrap();
    for number in 0..20 {
        let tool = serde_json::json!({
            "name": format!("slow{number}"),
            "description": "Takes its time.",
            "code": "const end = Date.now() + 80; while (Date.now() < end); return 1;",
            "codeType": "Javascript",
        });
        let file = tools.join(format!("slow{number}.json"));
        std::fs::write(file, tool.to_string()).unwrap();
    }
    let line = format!("{variables} {PROGRAM} test --offline --home ring");
    let begun = Instant::now();
    let bytes = Terminal::sized(&line, &folder, size).ended();
    (bytes, begun.elapsed().as_secs_f64())
}

#[test]
fn a_bar_is_shown_and_leaves_nothing() {
    let (bytes, elapsed) = tested("progress", "TERM=xterm", USUAL);
    let text = String::from_utf8_lossy(&bytes);
    let frames = text.matches(" %  ").count();
    assert!(frames > 0, "{text}");
    assert!(text.contains("[#"), "{text}");
    // About ten a second, and one more.
    assert!(
        frames as f64 <= elapsed * 10.0 + 1.0,
        "{frames} in {elapsed} s"
    );
    let parser = emulated(&bytes, USUAL);
    assert!(
        parser.callbacks().0.is_empty(),
        "{:?}",
        parser.callbacks().0
    );
    let rows = rows(&parser, USUAL.0);
    assert!(
        !rows
            .iter()
            .any(|row| row.contains("[#") || row.contains(" %  ")),
        "{rows:#?}"
    );
    assert!(
        rows.iter().any(|row| row.ends_with("not tried")),
        "{rows:#?}"
    );
    // Every line of results begins at the left edge.
    let odd = rows
        .iter()
        .find(|row| row.contains(" ms") && !row.starts_with("pass"));
    assert_eq!(odd, None, "{rows:#?}");
}

#[test]
fn a_narrow_terminal_never_wraps_the_bar() {
    let narrow = (20, 24);
    let (bytes, _) = tested("progress-narrow", "TERM=xterm", narrow);
    let text = String::from_utf8_lossy(&bytes);
    let frames = text.split("\r\u{1b}[K").skip(1);
    for frame in frames {
        let shown = frame.split(['\r', '\n', '\u{1b}']).next().unwrap();
        let is_bar = shown.contains(" %");
        assert!(!is_bar || shown.chars().count() < 20, "{shown:?}");
    }
    assert!(text.contains(" %"), "{text}");
}

#[test]
fn no_sequences_where_none_are_wanted() {
    let (bytes, _) = tested("progress-plain", "NO_COLOR=1 TERM=xterm", USUAL);
    assert!(!bytes.contains(&0x1b));
    assert!(String::from_utf8_lossy(&bytes).contains("[#"));
    let rows = rows(&emulated(&bytes, USUAL), USUAL.0);
    assert!(!rows.iter().any(|row| row.contains("[#")), "{rows:#?}");
    let (bytes, _) = tested("progress-dumb", "TERM=dumb", USUAL);
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    assert!(
        !text.contains(['\u{1b}', '\r']) && !text.contains("[#"),
        "{text}"
    );
}

#[test]
fn a_pipe_and_json_have_no_bar() {
    let folder = scratch("progress-pipe");
    let run = ringfence(&["test", "--offline", "--home", "ring"]).within(&folder);
    let output = run.output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!output.stdout.contains(&b'\r') && !output.stdout.contains(&0x1b));
    let line = format!("TERM=xterm {PROGRAM} test --offline --json --home ring >out.json");
    let bytes = Terminal::start(&line, &folder).ended();
    assert_eq!(String::from_utf8_lossy(&bytes), "");
}

/// Adds so many records of about 36 KiB to the audit of a home.
fn grow(home: &Path, count: usize) {
    let store = Store::open(home, StoreSettings::standard()).unwrap();
    let filler = "x".repeat(350);
    for _ in 0..count {
        let mut notice = Notice::new(Act::ToolConsented, "owner", "cli", "long");
        for number in 0..100 {
            notice = notice.detail(&format!("detail {number}"), &filler);
        }
        store.audit().notice(notice).unwrap();
    }
}

/// What a terminal showed while the audit was read, by a process that runs for moments only:
/// a fast machine reads any log at once, and then there is no bar.
fn reading(name: &str, command: &str, words: &str) -> Vec<u8> {
    let folder = scratch(name);
    let mut shown = Vec::new();
    for more in [200, 400, 800] {
        grow(&folder.join("ring"), more);
        // The shell around it stays: `script` would stop together with its own child.
        let line =
            format!("TERM=xterm sh -c 'echo $$ >pid; exec {PROGRAM} {command} --home ring'; true");
        let mut terminal = Terminal::start(&line, &folder);
        interrupt(&mut terminal, &folder.join("pid"));
        shown = terminal.ended();
        if String::from_utf8_lossy(&shown).contains(words) {
            break;
        }
    }
    shown
}

/// Stops a process again and again, for twenty times as long as it runs, until it has ended.
fn interrupt(terminal: &mut Terminal, pid_file: &Path) {
    while terminal.is_running() {
        let pid = std::fs::read_to_string(pid_file).unwrap_or_default();
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended.
            let _ = kill_process(pid, Signal::STOP);
            // Sleeps: for so long the process stands still.
            std::thread::sleep(Duration::from_millis(40));
            let _ = kill_process(pid, Signal::CONT);
        }
        // Sleeps: for so long it runs.
        std::thread::sleep(Duration::from_millis(2));
    }
    std::fs::remove_file(pid_file).unwrap();
}

/// The bar says how far it is, and nothing of it is left.
#[track_caller]
fn check_gone(bytes: &[u8], words: &str) {
    let text = String::from_utf8_lossy(bytes);
    let is_bar = |frame: &&str| frame.contains(words);
    let frame = text.split("\r\u{1b}[K").find(is_bar).unwrap_or_default();
    assert!(frame.contains(" %  "), "{text}");
    let rows = rows(&emulated(bytes, USUAL), USUAL.0);
    let left = rows
        .iter()
        .find(|row| row.contains(words) || row.contains(" %  "));
    assert_eq!(left, None, "{rows:#?}");
}

#[test]
fn verifying_shows_a_bar() {
    let words = "verify the audit";
    let bytes = reading("progress-verify", "audit verify", words);
    check_gone(&bytes, words);
    let rows = rows(&emulated(&bytes, USUAL), USUAL.0);
    assert!(
        rows.iter().any(|row| row.starts_with("whole  records:")),
        "{rows:#?}"
    );
}

#[test]
fn exporting_shows_a_bar_and_keeps_it_out_of_the_file() {
    let words = "export the audit";
    let bytes = reading("progress-export", "audit export >out.jsonl", words);
    check_gone(&bytes, words);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run/progress-export");
    let text = std::fs::read_to_string(folder.join("out.jsonl")).unwrap();
    assert!(text.lines().count() >= 200);
    for line in text.lines() {
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
    }
}

/// A document that comes slowly: the bar is there while nothing has come, and gone after.
#[test]
fn importing_shows_a_bar() {
    let folder = scratch("progress-import");
    let made = Command::new("mkfifo").arg(folder.join("in")).status();
    assert!(made.unwrap().success());
    let line = format!("TERM=xterm {PROGRAM} import --home ring - <in");
    let terminal = Terminal::start(&line, &folder);
    let mut document = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.join("in"))
        .unwrap();
    terminal.until(" %  ", 1);
    let tool = serde_json::json!({
        "name": "late", "description": "Comes late.", "code": "return 1", "codeType": "Javascript",
    });
    document.write_all(tool.to_string().as_bytes()).unwrap();
    drop(document);
    let bytes = terminal.ended();
    check_gone(&bytes, "import -");
    let rows = rows(&emulated(&bytes, USUAL), USUAL.0);
    assert!(rows.iter().any(|row| row.starts_with("late")), "{rows:#?}");
}
