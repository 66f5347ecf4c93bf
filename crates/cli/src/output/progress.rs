//! A progress bar for work that takes long, on standard error. It is for a person: there
//! is none in a pipe, with `--json` or at a dumb terminal, none for work that is done at
//! once, and nothing is left of it afterwards.
//!
//! The line goes through [`printer::progress`], which keeps it apart from other output and
//! from questions.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use model::text;

use crate::output::printer::{self, Format};

/// Work that is done sooner shows nothing.
const FIRST_AFTER: Duration = Duration::from_millis(300);
/// Between two updates of the line.
const EVERY: Duration = Duration::from_millis(100);
/// Characters of the bar itself.
const BAR_CHARS: usize = 20;
/// Columns of the name of the work.
const WORDS_CHARS_MAX: usize = 40;

/// How far the work is: so much of so much, if that is known.
type Gauge = fn() -> Option<(u64, u64)>;

/// A bar. Dropping it removes the line.
#[derive(Debug)]
pub(crate) struct Bar {
    state: Arc<Mutex<Work>>,
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Work {
    words: String,
    part: Option<(u64, u64)>,
    gauge: Option<Gauge>,
}

impl Bar {
    /// Begins to show that something takes long.
    pub(crate) fn begin(words: &str, format: Format) -> Bar {
        Bar::new(words, None, format)
    }

    /// The same for work that counts by itself.
    pub(crate) fn measured(words: &str, gauge: Gauge, format: Format) -> Bar {
        Bar::new(words, Some(gauge), format)
    }

    fn new(words: &str, gauge: Option<Gauge>, format: Format) -> Bar {
        let state = Arc::new(Mutex::new(Work {
            words: words.to_owned(),
            part: None,
            gauge,
        }));
        let drawn = Arc::clone(&state);
        let is_shown = format == Format::Human && printer::can_redraw();
        // Without a thread there is no bar; the work continues.
        let drawing = is_shown.then(|| {
            let (stop, stopped) = mpsc::channel::<()>();
            let thread = thread::Builder::new().name("progress".to_owned());
            let thread = thread.spawn(move || {
                let begun = Instant::now();
                let mut wait = FIRST_AFTER;
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    let work = drawn.lock().unwrap_or_else(PoisonError::into_inner);
                    printer::progress(&work.line(begun.elapsed(), printer::columns()));
                    wait = EVERY;
                }
                printer::clear_progress();
            });
            thread.ok().map(|thread| (stop, thread))
        });
        Bar {
            state,
            drawing: drawing.flatten(),
        }
    }

    /// How far it is, and with what.
    pub(crate) fn set(&self, words: &str, done: usize, total: usize) {
        let to_u64 = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut work = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        work.words = words.to_owned();
        work.part = Some((to_u64(done), to_u64(total)));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawing.take() {
            // Closing the channel ends the thread, which then clears its line. Joined,
            // so that no output follows on the same line.
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Work {
    /// The line, short enough to stay one: a wrapped line cannot be taken back.
    fn line(&self, elapsed: Duration, columns: usize) -> String {
        let words = text::elided(&text::one_line(&self.words), WORDS_CHARS_MAX);
        let seconds = elapsed.as_secs();
        let part = self.gauge.map_or(self.part, |gauge| gauge());
        let candidates = match part.filter(|(_, total)| *total > 0) {
            None => vec![format!("{words}  {seconds} s"), words],
            Some((done, total)) => {
                let done = done.min(total);
                let percent = done.saturating_mul(100) / total;
                let chars = u64::try_from(BAR_CHARS).unwrap_or(0);
                let full = usize::try_from(done.saturating_mul(chars) / total).unwrap_or(0);
                let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR_CHARS - full));
                vec![
                    format!("[{bar}] {percent:>3} %  {seconds} s  {words}"),
                    format!("{percent:>3} %  {words}"),
                    format!("{percent:>3} %"),
                ]
            }
        };
        let fits = |line: &String| unicode_width::UnicodeWidthStr::width(line.as_str()) < columns;
        candidates.into_iter().find(fits).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(part: Option<(u64, u64)>, columns: usize) -> String {
        let work = Work {
            words: "verify \u{1b}[2J the audit".to_owned(),
            part,
            gauge: None,
        };
        work.line(Duration::from_secs(3), columns)
    }

    #[test]
    fn a_line_says_how_far_and_fits() {
        assert_eq!(
            line(Some((1, 4)), 80),
            "[#####...............]  25 %  3 s  verify \\u{1b}[2J the audit"
        );
        assert_eq!(line(Some((9, 4)), 40), "100 %  verify \\u{1b}[2J the audit");
        assert_eq!(line(Some((1, 4)), 10), " 25 %");
        assert_eq!(line(Some((1, 0)), 80), "verify \\u{1b}[2J the audit  3 s");
        assert_eq!(line(None, 80), "verify \\u{1b}[2J the audit  3 s");
        for columns in 0..90 {
            assert!(line(Some((1, 4)), columns).chars().count() < columns.max(1));
        }
    }
}
