//! The terminal of a person: one question at a time, and only answers that were typed
//! after the question was shown.
//!
//! Attack: two questions at once, and the approval goes to the wrong one. So a question
//! has the terminal for itself, from its first line to its answer, among all threads of
//! this process and all our processes at the same terminal; other output waits. Keys
//! pressed before the question was shown are dropped.
//!
//! Attack: a narrower window wraps long lines again, and the rest of foreign text starts
//! at the left edge, where only we write. So the question is shown again.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize, ttyname};

use crate::output::printer::Quiet;
use crate::output::sheet::{Sheet, SheetPart, Size};

/// A faster answer was meant for something else.
const READING_MIN: Duration = Duration::from_millis(150);
/// How often a waiting question checks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the end of a command waits for its terminal.
const SETTLE_MAX: Duration = Duration::from_secs(1);
/// Bytes of an answer; a terminal gives no longer line.
const ANSWER_BYTES_MAX: usize = 4_096;

/// Whether there is a terminal to ask at.
pub(crate) fn is_here() -> bool {
    // Both: a question that is not seen, or cannot be answered, is none.
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// One of its keys.
    Key(String),
    /// Anything else.
    Otherwise,
    /// Nothing more can be typed here.
    Ended,
    /// The question was withdrawn before there was an answer.
    Withdrawn,
    /// There is no terminal.
    Nowhere,
}

/// Whether a question is still wanted. Any thread can withdraw it.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    is_over: AtomicBool,
}

impl Wanted {
    pub(crate) fn withdraw(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// Asks at the terminal of this process, and prints the question the answer was for.
/// Blocks until there is one.
pub(crate) fn ask(sheet: &Sheet, wanted: &Wanted) -> Typed {
    let Some(mut terminal) = Terminal::open() else {
        return Typed::Nowhere;
    };
    // Two locks: among the threads of this process, then among the processes at this
    // terminal.
    let Some(_turn) = Turn::wait(wanted) else {
        return Typed::Withdrawn;
    };
    let Some(_alone) = terminal.alone(wanted) else {
        return Typed::Withdrawn;
    };
    if wanted.is_over() {
        return Typed::Withdrawn;
    }
    let _quiet = Quiet::begin();
    // A terminal that fails is no answer, and so never a yes.
    let typed = terminal.ask(sheet, wanted).unwrap_or(Typed::Ended);
    let said = match &typed {
        Typed::Key(key) => {
            let chosen = sheet.choices.iter().find(|(known, _)| known == key);
            chosen.map_or("", |(_, words)| words)
        }
        Typed::Otherwise => &sheet.otherwise,
        Typed::Ended => "no answer",
        Typed::Withdrawn => "no answer is needed any more",
        Typed::Nowhere => "",
    };
    // Only a confirmation: the answer counts even if the terminal is gone by now.
    let _ = terminal.show(&[format!("{said}: {}", sheet.about)]);
    typed
}

/// A yes or a no of the person at the terminal about what their own command would do.
/// `head` and `about` are our words, with names made by [`crate::output::sheet::name`]; the
/// text of each part may come from anywhere. Nothing if there is no terminal.
pub(crate) fn agreed(head: &str, parts: &[(&str, &str)], about: &str) -> Option<bool> {
    let owned = |(word, text): &(&str, &str)| SheetPart::line(word, text);
    let sheet = Sheet {
        head: head.to_owned(),
        parts: parts.iter().map(owned).collect(),
        about: about.to_owned(),
        choices: vec![("y".to_owned(), "yes".to_owned())],
        otherwise: "no".to_owned(),
    };
    match ask(&sheet, &Wanted::default()) {
        Typed::Key(_) => Some(true),
        Typed::Otherwise | Typed::Ended => Some(false),
        Typed::Withdrawn | Typed::Nowhere => None,
    }
}

/// The result of waiting for a line.
enum Read {
    Line(String),
    /// Nothing more can be typed here.
    Ended,
    /// It is not wanted any more.
    Over,
    /// The terminal has another size than the question was made for.
    Resized,
}

/// The controlling terminal, whatever standard input and output are.
struct Terminal {
    file: File,
}

impl Terminal {
    fn open() -> Option<Terminal> {
        // Not standard input: it may be a pipe, whose content no person typed.
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
        file.ok().map(|file| Terminal { file })
    }

    fn size(&self) -> Size {
        let Ok(size) = tcgetwinsize(&self.file) else {
            return Size::USUAL;
        };
        let or = |given: u16, usual: usize| match given {
            0 => usual,
            given => usize::from(given),
        };
        Size {
            columns: or(size.ws_col, Size::USUAL.columns),
            rows: or(size.ws_row, Size::USUAL.rows),
        }
    }

    fn ask(&mut self, sheet: &Sheet, wanted: &Wanted) -> io::Result<Typed> {
        loop {
            let size = self.size();
            self.show(&sheet.lines(size))?;
            self.show(&sheet.choice(size))?;
            let line = match self.answer(wanted, size)? {
                Read::Line(line) => line,
                Read::Over => return Ok(Typed::Withdrawn),
                Read::Ended => return Ok(Typed::Ended),
                // The terminal has broken the lines again, and knows no bar.
                Read::Resized => continue,
            };
            let line = line.trim();
            // Only where something is cut, so that `v` is an ordinary
            // wrong answer elsewhere.
            if line.eq_ignore_ascii_case("v") && sheet.is_cut(size) {
                self.page(sheet, size, wanted)?;
                continue;
            }
            let line = if line.eq_ignore_ascii_case("yes") {
                "y"
            } else {
                line
            };
            let mut keys = sheet.choices.iter().map(|(key, _)| key);
            let chosen = keys.find(|key| key.eq_ignore_ascii_case(line));
            return Ok(match chosen {
                Some(key) => Typed::Key(key.clone()),
                None => Typed::Otherwise,
            });
        }
    }

    /// A line that was typed after the question was shown.
    fn answer(&mut self, wanted: &Wanted, size: Size) -> io::Result<Read> {
        loop {
            // Attack: a key pressed for something else must not answer a question that
            // appears at that moment.
            if self.drop_typed()? {
                self.show(&["input typed before the question is ignored"])?;
            }
            self.file.write_all(b"> ")?;
            let shown = Instant::now();
            let read = self.read(wanted, size)?;
            if !matches!(read, Read::Line(_)) {
                self.file.write_all(b"\n")?;
                return Ok(read);
            }
            // The same for a key that was on its way while the question was drawn.
            if shown.elapsed() >= READING_MIN {
                return Ok(read);
            }
            self.show(&["that was too fast to have been read; answer again:"])?;
        }
    }

    /// Shows all of it, page by page.
    fn page(&mut self, sheet: &Sheet, size: Size, wanted: &Wanted) -> io::Result<()> {
        let pages = sheet.pages(size);
        for (index, page) in pages.iter().enumerate() {
            self.show(page)?;
            let words = format!(
                "page {} of {}; Enter = next, q = back to the question ",
                index + 1,
                pages.len()
            );
            self.file.write_all(words.as_bytes())?;
            match self.read(wanted, size)? {
                Read::Line(line) if line.trim().is_empty() => {}
                Read::Line(_) | Read::Over | Read::Ended | Read::Resized => return Ok(()),
            }
        }
        Ok(())
    }

    /// Lines that were made visible before.
    fn show(&mut self, lines: &[impl AsRef<str>]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            // Once more: a name that was cut or folded must not have become something else.
            text.push_str(&model::text::one_line(line.as_ref()));
            text.push('\n');
        }
        self.file.write_all(text.as_bytes())
    }

    /// One line, typed at a terminal of this size.
    fn read(&mut self, wanted: &Wanted, size: Size) -> io::Result<Read> {
        let mut line = Vec::new();
        // Bounded, because a pseudo-terminal can send without end.
        while !line.ends_with(b"\n") && line.len() < ANSWER_BYTES_MAX {
            if wanted.is_over() {
                // Half an answer must not go to the next question.
                self.drop_typed()?;
                return Ok(Read::Over);
            }
            if self.size() != size {
                return Ok(Read::Resized);
            }
            if !self.is_readable()? {
                continue;
            }
            let mut bytes = [0; ANSWER_BYTES_MAX];
            let count = self.file.read(&mut bytes)?;
            if count == 0 {
                return Ok(Read::Ended);
            }
            line.extend(bytes.iter().take(count));
        }
        Ok(Read::Line(String::from_utf8_lossy(&line).into_owned()))
    }

    fn is_readable(&self) -> io::Result<bool> {
        let mut wait = [PollFd::new(&self.file, PollFlags::IN)];
        let look = Timespec::try_from(LOOK_EVERY).map_err(io::Error::other)?;
        match poll(&mut wait, Some(&look)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Drops unread input of the terminal. Returns whether there was any. A clock alone
    /// cannot tell: on a busy machine an old key is read late.
    fn drop_typed(&self) -> io::Result<bool> {
        let had_any = rustix::io::ioctl_fionread(&self.file)? > 0;
        tcflush(&self.file, QueueSelector::IFlush)?;
        Ok(had_any)
    }

    /// Waits until no other process of ours asks at the same terminal. One that cannot
    /// be locked is asked at all the same: within this process the turn holds.
    fn alone(&self, wanted: &Wanted) -> Option<Option<File>> {
        let named = [
            name_of(io::stdin()),
            name_of(io::stderr()),
            name_of(io::stdout()),
        ];
        let Some(file) = named.into_iter().flatten().next() else {
            return Some(None);
        };
        loop {
            if wanted.is_over() {
                return None;
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(Some(file)),
                // Polled, because a blocking lock could not notice that the question
                // was withdrawn.
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOOK_EVERY),
                // File systems without locks. The turn within this process still holds.
                Err(_) => return Some(None),
            }
        }
    }
}

/// The terminal behind a stream, opened by its own name: all processes there lock the
/// same file.
fn name_of(stream: impl AsFd) -> Option<File> {
    let name = ttyname(stream, Vec::new()).ok()?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(NO_CONTROL);
    options.open(path).ok()
}

/// Opening a terminal does not make it ours.
const NO_CONTROL: i32 = rustix::fs::OFlags::NOCTTY.bits().cast_signed();

/// The turn of one question in this process.
struct Turn(());

static TAKEN: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

impl Turn {
    fn wait(wanted: &Wanted) -> Option<Turn> {
        let mut taken = lock(&TAKEN);
        while *taken {
            if wanted.is_over() {
                return None;
            }
            let waited = FREE.wait_timeout(taken, LOOK_EVERY);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = true;
        Some(Turn(()))
    }
}

/// Waits a moment for a withdrawn question to leave the terminal, so that later output
/// starts on a line of its own.
pub(crate) fn settle() {
    let taken = lock(&TAKEN);
    drop(FREE.wait_timeout_while(taken, SETTLE_MAX, |taken| *taken));
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&TAKEN) = false;
        FREE.notify_all();
    }
}
