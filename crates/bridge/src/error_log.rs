//! What a process writes on its standard error: the last of it, for the owner.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use model::record::mask::Masker;
use model::sync::lock;
use model::text;
use tokio::io::{AsyncRead, AsyncReadExt as _};

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
}

impl ErrorLog {
    /// Reads until the process closes its standard error. What cannot be shown at a
    /// terminal is escaped, and secrets are masked.
    pub(crate) async fn follow(self, mut from: impl AsyncRead + Unpin, masker: Arc<Masker>) {
        let mut line: Vec<u8> = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let count = match from.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
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
    }

    fn push(&self, raw_line: &[u8], masker: &Masker) {
        let raw_line = String::from_utf8_lossy(raw_line);
        let masked = masker.cut_text(raw_line.trim_end()).into_inner();
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

#[cfg(test)]
mod tests {
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
}
