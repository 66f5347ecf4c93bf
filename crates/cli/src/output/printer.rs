//! The one place that prints. Data goes to standard output, the rest to standard
//! error; colour only for a person, and never as the only sign of a meaning.
//!
//! Attack: a document, a file name, an argument or an answer that holds escape sequences
//! takes over the terminal. So no text is trusted: all of it is made visible on its way
//! out. Our own colours are marked with a random number that no text can contain, and
//! become sequences only behind it. Tidy refuses every other way out of this crate.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, OnceLock};

use mcp::auth::local::random;
use model::sync::lock;
use model::text::{json_line, one_line};
use serde::Serialize;

use crate::output::exit::Exit;
use crate::output::hint;
use crate::settings;

/// Output that is collected before it is written.
const COLLECTED_BYTES_MAX: usize = 64 * 1024;
/// Columns of a terminal that does not tell.
const COLUMNS_USUAL: usize = 80;
/// Lines that wait while a question is on the screen.
const HELD_LINES_MAX: usize = 1_000;

/// How a command wants its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Human,
    /// One JSON value on standard output.
    Json,
}

/// A style, named for its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A name.
    Bold,
    /// Less important.
    Dim,
    /// All is well.
    Good,
    /// Look twice.
    Caution,
    /// Something is wrong.
    Bad,
}

impl Style {
    const ALL: [Style; 5] = [
        Style::Bold,
        Style::Dim,
        Style::Good,
        Style::Caution,
        Style::Bad,
    ];

    fn sequence(self) -> &'static str {
        match self {
            Style::Bold => "\u{1b}[1m",
            Style::Dim => "\u{1b}[2m",
            Style::Good => "\u{1b}[32m",
            Style::Caution => "\u{1b}[33m",
            Style::Bad => "\u{1b}[1;31m",
        }
    }

    fn letter(self) -> char {
        match self {
            Style::Bold => 'b',
            Style::Dim => 'd',
            Style::Good => 'g',
            Style::Caution => 'c',
            Style::Bad => 'r',
        }
    }
}

const PLAIN_SEQUENCE: &str = "\u{1b}[0m";
const PLAIN_LETTER: char = 'p';
/// Around a mark; a character that no text may hold.
const MARK: char = '\u{fdd0}';

/// Where lines go, and whether colours are wanted there.
#[derive(Clone, Copy, Debug)]
struct Streams {
    out_colour: bool,
    error_colour: bool,
    /// Random, so that no text can contain it; without one there are no colours.
    secret: Option<u64>,
}

impl Streams {
    fn of_process() -> Streams {
        static STREAMS: OnceLock<Streams> = OnceLock::new();
        *STREAMS.get_or_init(|| {
            let plain = settings::variable(settings::NO_COLOR).is_some()
                || settings::variable(settings::TERM).as_deref() == Some("dumb");
            // Random and not fixed, because a text could spell out a known mark.
            let secret = random::<8>().ok().map(u64::from_le_bytes);
            let is_coloured = !plain && secret.is_some();
            Streams {
                out_colour: is_coloured && io::stdout().is_terminal(),
                error_colour: is_coloured && io::stderr().is_terminal(),
                secret,
            }
        })
    }

    fn mark(self, letter: char) -> String {
        match self.secret {
            Some(secret) => format!("{MARK}{secret:016x}{letter}{MARK}"),
            None => String::new(),
        }
    }
}

/// One line for a terminal: all of it visible, our own marks as colours or as nothing.
fn visible(line: &str, streams: Streams, is_coloured: bool) -> String {
    let Some(secret) = streams.secret else {
        return one_line(line);
    };
    let begin = format!("{MARK}{secret:016x}");
    let mut pieces = line.split(&begin);
    let mut shown = one_line(pieces.next().unwrap_or_default());
    for piece in pieces {
        let mut rest = piece.chars();
        let letter = rest.next();
        let end = rest.next();
        let style = Style::ALL
            .into_iter()
            .find(|style| Some(style.letter()) == letter);
        let sequence = match (style, letter) {
            // A mark that is not whole is dropped, and colours nothing.
            _ if end != Some(MARK) => "",
            (Some(style), _) => style.sequence(),
            (None, Some(PLAIN_LETTER)) => PLAIN_SEQUENCE,
            (None, _) => "",
        };
        if is_coloured {
            shown.push_str(sequence);
        }
        shown.push_str(&one_line(rest.as_str()));
    }
    shown
}

/// Standard error, which a question may have for itself.
#[derive(Debug, Default)]
struct Screen {
    is_asking: bool,
    /// Whether a line of [`progress`] is shown.
    is_drawn: bool,
    held: Vec<String>,
    dropped: usize,
}

static SCREEN: Mutex<Screen> = Mutex::new(Screen {
    is_asking: false,
    is_drawn: false,
    held: Vec::new(),
    dropped: 0,
});

impl Screen {
    /// Takes the line of progress back, so that what follows begins at the left edge.
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "{}", erasing());
        }
    }
}

/// What empties the line of the cursor. Where no sequences are wanted, spaces do.
fn erasing() -> String {
    match settings::variable(settings::NO_COLOR) {
        None => "\r\u{1b}[K".to_owned(),
        Some(_) => format!("\r{}\r", " ".repeat(columns().saturating_sub(1))),
    }
}

fn screen() -> MutexGuard<'static, Screen> {
    lock(&SCREEN)
}

/// Writes a line to standard error, from any thread. While a question is on the screen
/// it waits, so that nothing comes between the question and its answer.
pub(crate) fn note(line: &str) {
    let streams = Streams::of_process();
    let shown = visible(line.trim_end(), streams, streams.error_colour);
    let mut screen = screen();
    if !screen.is_asking {
        screen.erase();
        let _ = writeln!(io::stderr(), "{shown}");
    } else if screen.held.len() < HELD_LINES_MAX {
        // Bounded: a question may stay on the screen for hours.
        screen.held.push(shown);
    } else {
        screen.dropped += 1;
    }
}

/// As long as this lives, [`note`] waits.
#[derive(Debug)]
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn begin() -> Quiet {
        let mut screen = screen();
        screen.erase();
        screen.is_asking = true;
        Quiet(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.is_asking = false;
        for line in std::mem::take(&mut screen.held) {
            let _ = writeln!(io::stderr(), "{line}");
        }
        let dropped = std::mem::take(&mut screen.dropped);
        if dropped > 0 {
            let _ = writeln!(io::stderr(), "({dropped} more lines are not shown)");
        }
    }
}

/// Whether standard error is read by a person.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Whether standard output is read by a person.
pub(crate) fn is_output_watched() -> bool {
    io::stdout().is_terminal()
}

/// Whether a line of standard error can be replaced by another: a person reads it, at a
/// terminal that can.
pub(crate) fn can_redraw() -> bool {
    is_watched() && settings::variable(settings::TERM).as_deref() != Some("dumb")
}

/// Columns of the terminal at standard error.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { COLUMNS_USUAL } else { columns }
}

/// Shows progress, replacing the last such line. The words must fit into a line.
pub(crate) fn progress(words: &str) {
    let mut screen = screen();
    if can_redraw() && !screen.is_asking {
        screen.erase();
        let _ = write!(io::stderr(), "{}", one_line(words));
        screen.is_drawn = !words.is_empty();
    }
}

/// Removes the last [`progress`] line.
pub(crate) fn clear_progress() {
    screen().erase();
}

/// Collects standard output and writes it in one go.
#[derive(Debug)]
pub(crate) struct Printer {
    format: Format,
    streams: Streams,
    output: String,
}

impl Printer {
    /// A printer for this process's own terminal or pipe.
    pub(crate) fn for_terminal(format: Format) -> Printer {
        Printer {
            format,
            streams: Streams::of_process(),
            output: String::new(),
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Text in a style, where there is colour. It is for [`Printer::line`] and
    /// [`Printer::note`] alone.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.format == Format::Json || !(self.streams.out_colour || self.streams.error_colour) {
            return text.to_owned();
        }
        let begin = self.streams.mark(style.letter());
        let end = self.streams.mark(PLAIN_LETTER);
        format!("{begin}{text}{end}")
    }

    /// A line of data. Whatever would end it or do something else is shown instead.
    pub(crate) fn line(&mut self, line: &str) {
        let shown = visible(line, self.streams, self.streams.out_colour);
        self.put(shown.trim_end());
    }

    /// Lines of our own, in one text.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            let columns: Vec<_> = line.split('\t').map(one_line).collect();
            self.put(columns.join("\t").trim_end());
        }
    }

    /// A text of our own, or a JSON value that holds it.
    pub(crate) fn text(&mut self, text: &str) {
        match self.format {
            Format::Json => self.json(&serde_json::json!({ "text": text })),
            Format::Human => self.lines(text),
        }
    }

    /// One JSON value.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.put(&json_line(&text)),
            Err(error) => self.note(&format!("error: {error}")),
        }
    }

    /// JSON that is text already.
    pub(crate) fn json_text(&mut self, text: &str) {
        self.put(json_line(text).trim_end());
    }

    /// One JSON value on a line, where more follow as they come.
    pub(crate) fn json_record(&mut self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.put(&json_line(&text)),
            Err(error) => self.note(&format!("error: {error}")),
        }
    }

    fn put(&mut self, line: &str) {
        self.output.push_str(line);
        self.output.push('\n');
    }

    /// Empties the terminal, if there is one, before a picture that replaces the last.
    pub(crate) fn clear_screen(&mut self) {
        if self.streams.out_colour {
            self.output.push_str("\u{1b}[H\u{1b}[2J");
        }
    }

    /// Writes the collected output so far, where a person waits for the rest.
    pub(crate) fn emit(&mut self) {
        let _ = self.write_out();
    }

    /// The same, for those that write without end.
    pub(crate) fn emit_all(&mut self) -> io::Result<()> {
        self.write_out()
    }

    /// Writes the collected output once it is large, so that memory stays bounded.
    pub(crate) fn emit_much(&mut self) -> io::Result<()> {
        if self.output.len() < COLLECTED_BYTES_MAX {
            return Ok(());
        }
        self.write_out()
    }

    /// A line beside the data, to standard error.
    pub(crate) fn note(&mut self, line: &str) {
        let _ = self.write_out();
        note(line);
    }

    /// Lines of our own beside the data.
    pub(crate) fn notes(&mut self, text: &str) {
        text.lines().for_each(|line| self.note(line));
    }

    /// An error, its causes and what helps, to standard error.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let mut causes = error.chain();
        // Collected output comes before the error.
        if let Some(first) = causes.next() {
            for line in first.to_string().lines() {
                self.note(&format!("error: {line}"));
            }
        }
        for cause in causes {
            self.note(&format!("cause: {cause}"));
        }
        if let Some(hint) = hint::of(error) {
            self.note("");
            self.note(&format!("hint: {hint}"));
        }
    }

    /// Writes the collected output. A closed pipe is not an error; any other failure
    /// is.
    pub(crate) fn flush(mut self, exit: Exit) -> Exit {
        match self.write_out() {
            // `head` and `less` close a pipe early, which is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                note("error: could not write the output");
                note(&format!("cause: {error}"));
                Exit::CouldNot
            }
            Ok(()) | Err(_) => exit,
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        if !output.is_empty() {
            screen().erase();
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(output.as_bytes())?;
        stdout.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAMS: Streams = Streams {
        out_colour: true,
        error_colour: false,
        secret: Some(7),
    };

    fn printer() -> Printer {
        Printer {
            format: Format::Human,
            streams: STREAMS,
            output: String::new(),
        }
    }

    #[test]
    fn our_colours_are_the_only_sequences() {
        let mut printer = printer();
        let name = printer.styled(Style::Good, "a\u{1b}[31mb\u{9b}2J");
        printer.line(&format!("{name} \u{1b}]52;c;x\u{7} c\nd"));
        assert_eq!(
            printer.output,
            "\u{1b}[32ma\\u{1b}[31mb\\u{9b}2J\u{1b}[0m \\u{1b}]52;c;x\\u{7} c\\nd\n"
        );
    }

    #[test]
    fn forged_colour_marks_are_ignored() {
        let forged = ["\u{fdd0}g\u{fdd0}x", "\u{fdd0}0000000000000008g\u{fdd0}x"];
        for text in forged {
            assert!(!visible(text, STREAMS, true).contains('\u{1b}'), "{text:?}");
        }
        // Even ours is nothing with another letter, or without its end.
        let begin = "\u{fdd0}0000000000000007";
        assert_eq!(visible(&format!("a{begin}"), STREAMS, true), "a");
        assert_eq!(visible(&format!("a{begin}z\u{fdd0}b"), STREAMS, true), "ab");
        assert_eq!(visible(&format!("a{begin}gzb"), STREAMS, true), "ab");
    }

    #[test]
    fn without_colour_marks_are_nothing() {
        let styled = printer().styled(Style::Bad, "no");
        assert_eq!(visible(&styled, STREAMS, false), "no");
        let unknown = Streams {
            secret: None,
            ..STREAMS
        };
        assert_eq!(visible("a\u{1b}b", unknown, true), "a\\u{1b}b");
    }

    #[test]
    fn json_has_nothing_for_a_terminal() {
        let mut printer = printer();
        printer.json(&["a\u{9b}2J\u{202e}"]);
        printer.json_record(&["\u{7f}"]);
        printer.json_text("[\"\u{9b}\"]\n");
        assert_eq!(
            printer.output,
            "[\n  \"a\\u009b2J\\u202e\"\n]\n[\"\\u007f\"]\n[\"\\u009b\"]\n"
        );
    }

    #[test]
    fn texts_of_our_own_keep_their_lines_and_columns() {
        let mut printer = printer();
        printer.lines("a\tb\n\u{1b}c\n");
        assert_eq!(printer.output, "a\tb\n\\u{1b}c\n");
    }
}
