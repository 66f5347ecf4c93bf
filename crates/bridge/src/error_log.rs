//! What a process writes on its standard error: the last of it, for the owner. It is also
//! kept in a file while the process runs, so that another command can show it.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use model::record::mask::Masker;
use model::sync::lock;
use model::text;
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};

use crate::limit;

/// The last lines of a process. Each is cut before it is kept, so that a process that
/// never ends a line cannot fill the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorLog(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    bytes: usize,
    dropped: u64,
    /// Where they are kept for other processes. Locked as long as the server is ours.
    file: Option<File>,
}

/// The last lines of one process of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLog {
    /// Its file, which names the process of ours that started it.
    pub file: String,
    /// Whether that process still has it.
    pub is_running: bool,
    /// When something was last written.
    pub changed: SystemTime,
    /// The lines, oldest first.
    pub lines: Vec<String>,
}

/// The logs in a folder, the newest last.
///
/// # Errors
/// The folder cannot be read.
pub fn kept_logs(folder: &Path) -> io::Result<Vec<KeptLog>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut logs = Vec::new();
    for entry in entries.take(limit::SERVER_LOG_FILES_MAX * 4) {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            // Another process tidied up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let changed = file.metadata()?.modified()?;
        // The process of ours that owns the server holds the lock as long as it lives.
        let is_running = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        let mut bytes = Vec::new();
        let most = u64::try_from(limit::SERVER_LOG_BYTES_MAX * 2).unwrap_or(u64::MAX);
        io::Read::read_to_end(&mut io::Read::take(file, most), &mut bytes)?;
        let words = String::from_utf8_lossy(&bytes);
        logs.push(KeptLog {
            file: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            is_running,
            changed,
            lines: words.lines().map(text::one_line).collect(),
        });
    }
    logs.sort_by_key(|log| log.changed);
    Ok(logs)
}

impl ErrorLog {
    /// A log that is also kept in a folder. Logs of servers that ended are removed but for
    /// the newest ones.
    pub(crate) fn kept_in(folder: &Path) -> io::Result<ErrorLog> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        tidy(folder)?;
        let file = new_file(folder)?;
        // Before anything is written: a file without a lock counts as that
        // of a dead process.
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let log = ErrorLog::default();
        lock(&log.0).file = Some(file);
        Ok(log)
    }

    /// Reads until the process closes its standard error. What cannot be shown at a
    /// terminal is escaped, and secrets are masked.
    pub(crate) async fn follow(self, mut from: impl AsyncRead + Unpin, masker: Arc<Masker>) {
        let mut line: Vec<u8> = Vec::new();
        let mut piece = [0; 4096];
        // Attack: a process that writes without end would keep the disk busy.
        let pause = Duration::from_millis(limit::SERVER_LOG_PAUSE_MS);
        let mut unwritten = Unwritten {
            log: self.clone(),
            write_at: None,
        };
        // The first lines at once: a process that is used for one call ends before the pause.
        let mut wait = Duration::ZERO;
        loop {
            let due = unwritten.write_at.unwrap_or_else(Instant::now);
            let count = tokio::select! {
                read = from.read(&mut piece) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(count) => count,
                },
                () = sleep_until(due), if unwritten.write_at.is_some() => {
                    self.write();
                    unwritten.write_at = None;
                    continue;
                }
            };
            // The first byte after a write starts the clock, so a busy process is written
            // at fixed intervals.
            if unwritten.write_at.is_none() {
                unwritten.write_at = Some(Instant::now() + wait);
                wait = pause;
            }
            for byte in piece.iter().take(count) {
                if *byte == b'\n' {
                    self.push(&line, &masker);
                    line.clear();
                } else if line.len() < limit::SERVER_LOG_LINE_BYTES_MAX {
                    line.push(*byte);
                }
            }
        }
        if !line.is_empty() {
            self.push(&line, &masker);
        }
        unwritten.write_at = None;
        self.write();
    }

    /// Writes all lines to the file. They are for a person to look at, so a disk that does
    /// not take them stops nothing.
    fn write(&self) {
        let mut lines = lock(&self.0);
        let Lines { kept, file, .. } = &mut *lines;
        let Some(file) = file else { return };
        let mut text = String::new();
        for line in kept.iter() {
            text.push_str(line);
            text.push('\n');
        }
        let length = u64::try_from(text.len()).unwrap_or_default();
        let written = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            // After writing, so that a reader never sees an empty file in between.
            .and_then(|()| file.set_len(length));
        drop(written);
    }

    fn push(&self, raw_line: &[u8], masker: &Masker) {
        let raw_line = String::from_utf8_lossy(raw_line);
        // `cut_text`, because a cut line may end inside a secret.
        let masked = masker.cut_text(raw_line.trim_end()).into_inner();
        // After masking: escaping first would hide a secret from the mask.
        let line = text::one_line(&masked);
        let mut lines = lock(&self.0);
        lines.bytes += line.len();
        lines.kept.push_back(line);
        while lines.bytes > limit::SERVER_LOG_BYTES_MAX {
            let Some(first) = lines.kept.pop_front() else {
                break;
            };
            lines.bytes -= first.len();
            lines.dropped += 1;
        }
    }

    /// The lines that are kept, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        lock(&self.0).kept.iter().cloned().collect()
    }

    /// The last line with something in it.
    pub(crate) fn last(&self) -> Option<String> {
        let lines = lock(&self.0);
        let mut kept = lines.kept.iter().rev();
        kept.find(|line| !line.trim().is_empty()).cloned()
    }
}

/// Writes what waits for its time, also where the reader is given up because our own process
/// ends.
#[derive(Debug)]
struct Unwritten {
    log: ErrorLog,
    write_at: Option<Instant>,
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if self.write_at.is_some() {
            self.log.write();
        }
    }
}

/// A file that no other process has: the first free number of ours.
fn new_file(folder: &Path) -> io::Result<File> {
    let process = std::process::id();
    for number in 0..limit::SERVER_LOG_FILES_MAX {
        let path: PathBuf = folder.join(format!("{process}-{number}.log"));
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the logs of servers that ended, but for the newest ones. Those without a line go
/// first: they would push out the one that says why a server failed.
fn tidy(folder: &Path) -> io::Result<()> {
    let fresh = Duration::from_millis(limit::SERVER_LOG_FRESH_MS);
    let logs = kept_logs(folder)?;
    // A file that another process made a moment ago is not locked yet.
    let is_fresh = |log: &KeptLog| log.changed.elapsed().is_ok_and(|age| age < fresh);
    let ended = logs.iter().filter(|log| !log.is_running);
    let (empty, said): (Vec<_>, Vec<_>) = ended.partition(|log| log.lines.is_empty());
    let surplus = said.len().saturating_sub(limit::SERVER_LOG_FILES_KEPT);
    let said = said.into_iter().take(surplus);
    let empty = empty.into_iter().filter(|log| !is_fresh(log));
    for log in said.chain(empty) {
        match std::fs::remove_file(folder.join(&log.file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_masked_and_escaped() {
        let masker = Arc::new(Masker::new(["hunter2-hunter2"]).expect("a masker"));
        let log = ErrorLog::default();
        let mut text = "x".repeat(10_000);
        text.push_str("\nkey hunter2-hunter2 \u{1b}[31m\n");
        for index in 0..20_000 {
            text.push_str(&format!("line {index}\n"));
        }
        text.push_str("no newline at the end");
        log.clone()
            .follow(text.as_bytes(), Arc::clone(&masker))
            .await;
        let lines = log.lines();
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!(bytes <= limit::SERVER_LOG_BYTES_MAX, "{bytes}");
        assert_eq!(log.last().as_deref(), Some("no newline at the end"));
        let short = ErrorLog::default();
        let text = "a\nkey hunter2-hunter2 \u{1b}[31m\n";
        short.clone().follow(text.as_bytes(), masker).await;
        let shown = short.lines().join("|");
        assert!(
            !shown.contains("hunter2") && !shown.contains('\u{1b}'),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn a_file_has_the_lines_while_the_server_runs_and_a_few_after() {
        let folder = std::env::temp_dir().join(format!("ringfence-log-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let masker = Arc::new(Masker::new(["hunter2-hunter2"]).expect("a masker"));
        for round in 0..10 {
            let log = ErrorLog::kept_in(&folder).expect("a log");
            let text = format!("round {round}\nkey hunter2-hunter2\n");
            log.clone()
                .follow(text.as_bytes(), Arc::clone(&masker))
                .await;
            let kept = kept_logs(&folder).expect("logs");
            let running: Vec<_> = kept.iter().filter(|log| log.is_running).collect();
            assert_eq!(running.len(), 1, "{kept:?}");
            let lines = &running[0].lines;
            assert_eq!(lines, &[format!("round {round}"), "key ***".to_owned()]);
        }
        let kept = kept_logs(&folder).expect("logs");
        assert!(kept.iter().all(|log| !log.is_running), "{kept:?}");
        assert!(kept.len() <= limit::SERVER_LOG_FILES_KEPT + 1, "{kept:?}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// A server that is used for one call, in a process of ours that ends with it.
    #[tokio::test]
    async fn what_is_read_is_written_even_if_the_reader_is_given_up() {
        let folder = std::env::temp_dir().join(format!("ringfence-short-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let log = ErrorLog::kept_in(&folder).expect("a log");
        let (mut there, here) = tokio::io::duplex(1_000);
        let masker = Arc::new(Masker::none());
        let following = tokio::spawn(log.clone().follow(here, masker));
        let lines = || kept_logs(&folder).expect("logs")[0].lines.clone();
        // The first lines are there at once.
        there.write_all(b"one\n").await.expect("written");
        while lines().is_empty() {
            tokio::task::yield_now().await;
        }
        there.write_all(b"two\n").await.expect("written");
        while log.lines().len() < 2 {
            tokio::task::yield_now().await;
        }
        following.abort();
        assert!(following.await.is_err_and(|end| end.is_cancelled()));
        assert_eq!(lines(), ["one", "two"]);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_log_without_a_line_pushes_out_none() {
        let folder = std::env::temp_dir().join(format!("ringfence-empty-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let old = SystemTime::now() - Duration::from_secs(3_600);
        let make = |name: &str, text: &str, changed: SystemTime| {
            let file = File::create(folder.join(name)).expect("a file");
            (&file).write_all(text.as_bytes()).expect("written");
            file.set_modified(changed).expect("its time");
        };
        make("1-0.log", "the disk is on fire\n", old);
        for number in 0..10_u64 {
            make(
                &format!("2-{number}.log"),
                "",
                old + Duration::from_secs(number),
            );
        }
        make("3-0.log", "", SystemTime::now());
        tidy(&folder).expect("tidied");
        let kept = kept_logs(&folder).expect("logs");
        let kept: Vec<_> = kept.iter().map(|log| log.file.as_str()).collect();
        // The last may be one whose process has not locked it yet.
        assert_eq!(kept, ["1-0.log", "3-0.log"]);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
