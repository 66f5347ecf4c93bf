//! A question as lines of a terminal. Pure: [`crate::output::console`] shows it and
//! reads the answer.
//!
//! Attack: text that a caller or an author chose scrolls the real question away, or
//! shows another one in its place. So every line of foreign text begins with a bar, and
//! we wrap lines ourselves; only we write at the left edge. Long text is cut to what
//! fits, saying how much is missing, and all of it can be paged through before an
//! answer. The subject of the answer is repeated beside the choice.

use model::text::{count, elided, folded, one_line};
use unicode_width::UnicodeWidthChar as _;

/// Before text of others.
const BAR: &str = "| ";
/// Before our own remarks on it.
const ASIDE: &str = "+ ";
/// Before the further lines of a choice.
const INDENT: &str = "      ";
/// Columns a terminal has at least; a narrower one breaks lines itself.
const COLUMNS_MIN: usize = 20;
/// Columns that are used; longer lines are hard to read.
const COLUMNS_MAX: usize = 120;
/// Rows one part may take before it is cut, on the tallest terminal.
const PART_ROWS_MAX: usize = 12;
/// Rows one part may take on the lowest: its beginning and its end.
const PART_ROWS_MIN: usize = 2;
/// Characters of a name beside the choice.
const NAME_CHARS_MAX: usize = 60;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// The size used if the terminal does not report one.
    pub(crate) const USUAL: Size = Size {
        columns: 80,
        rows: 24,
    };

    fn columns(self) -> usize {
        self.columns.clamp(COLUMNS_MIN, COLUMNS_MAX)
    }

    /// Rows of a page, with one for the words below it.
    fn page_rows(self) -> usize {
        self.rows.saturating_sub(2).max(1)
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// Our words: what would happen. Names in it went through [`name`].
    pub(crate) head: String,
    /// What others say.
    pub(crate) parts: Vec<SheetPart>,
    /// The subject of the answer, in a few words of ours. It is repeated beside the
    /// choice and after the answer.
    pub(crate) about: String,
    /// Keys and what they mean. Anything else is the last.
    pub(crate) choices: Vec<(String, String)>,
    /// The meaning of any other key.
    pub(crate) otherwise: String,
}

/// A text of others, under a word of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SheetPart {
    word: String,
    text: PartText,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PartText {
    /// Wrapped as one line, however long.
    Line(String),
    /// Lines that stay what they are; their indentation is read.
    Lines(Vec<String>),
}

impl SheetPart {
    /// A text that is shown as one line.
    pub(crate) fn line(word: &str, text: &str) -> SheetPart {
        SheetPart {
            word: word.to_owned(),
            text: PartText::Line(text.to_owned()),
        }
    }

    /// Lines of a patch, as [`model::govern::approval::shown_patch_line`] made them: long runs
    /// of spaces are folded there.
    pub(crate) fn lines(word: &str, lines: &[String]) -> SheetPart {
        SheetPart {
            word: word.to_owned(),
            text: PartText::Lines(lines.to_vec()),
        }
    }

    /// Every line of it behind a bar.
    fn rows(&self, size: Size) -> Vec<String> {
        match &self.text {
            PartText::Line(text) => theirs(&folded(&one_line(text)), size),
            PartText::Lines(lines) => {
                let lines = lines.iter();
                lines
                    .flat_map(|line| theirs(&one_line(line), size))
                    .collect()
            }
        }
    }
}

/// A name in our words: short, quoted, nothing hidden, and no end of the quote in it.
pub(crate) fn name(text: &str) -> String {
    let shown = folded(&elided(text, NAME_CHARS_MAX));
    // A quote inside a name would end it, and the rest would read as our words.
    format!("`{}`", shown.replace('`', "'"))
}

impl Sheet {
    /// The question itself, without its choices, as it fits a terminal.
    pub(crate) fn lines(&self, size: Size) -> Vec<String> {
        self.lines_with(self.part_rows(size), size)
    }

    /// As many rows for each part as leave all of the question on the screen.
    fn part_rows(&self, size: Size) -> usize {
        let choice = self.choice_with("v", size).len();
        let fits = |rows: &usize| {
            let lines = self.lines_with(*rows, size).len();
            lines + choice < size.rows
        };
        let mut from_most = (PART_ROWS_MIN..=PART_ROWS_MAX).rev();
        // Even if it does not fit: the choice comes last and stays on the screen.
        from_most.find(fits).unwrap_or(PART_ROWS_MIN)
    }

    fn lines_with(&self, rows_max: usize, size: Size) -> Vec<String> {
        let mut lines = ours(&self.head, BAR, size);
        for part in &self.parts {
            lines.extend(ours(&format!("{}:", part.word), BAR, size));
            let whole = part.rows(size);
            if whole.len() <= rows_max {
                lines.extend(whole);
                continue;
            }
            // Beginning and end: what matters may stand at either.
            let tail = rows_max / 2;
            let head = rows_max - tail;
            let hidden = whole.len() - rows_max;
            let missing = whole.iter().skip(head).take(hidden);
            let missing: usize = missing.map(|line| line.chars().count() - BAR.len()).sum();
            lines.extend(whole.iter().take(head).cloned());
            let missing = count(missing, "character");
            lines.extend(aside(&format!("{missing} left out; v shows all"), size));
            lines.extend(whole.iter().skip(head + hidden).cloned());
        }
        lines
    }

    /// Whether something of it is not shown by [`Sheet::lines`].
    pub(crate) fn is_cut(&self, size: Size) -> bool {
        let rows_max = self.part_rows(size);
        let is_long = |part: &SheetPart| part.rows(size).len() > rows_max;
        self.parts.iter().any(is_long)
    }

    /// All of it, in pages.
    pub(crate) fn pages(&self, size: Size) -> Vec<Vec<String>> {
        let mut lines = ours(&self.head, BAR, size);
        for part in &self.parts {
            lines.extend(ours(&format!("{}:", part.word), BAR, size));
            lines.extend(part.rows(size));
        }
        let pages = lines.chunks(size.page_rows());
        pages.map(<[String]>::to_vec).collect()
    }

    /// The choice, with what it is for.
    pub(crate) fn choice(&self, size: Size) -> Vec<String> {
        let all = if self.is_cut(size) { "v" } else { "" };
        self.choice_with(all, size)
    }

    fn choice_with(&self, all: &str, size: Size) -> Vec<String> {
        let mut lines = ours(&format!("answer for {}:", self.about), BAR, size);
        let mut choices = self.choices.clone();
        if !all.is_empty() {
            choices.push((all.to_owned(), "show all of it first".to_owned()));
        }
        let said = choices
            .iter()
            .map(|(key, words)| format!("{key} = {words}"));
        let otherwise = format!("anything else = {}", self.otherwise);
        for words in said.chain([otherwise]) {
            lines.extend(ours(&format!("  {words}"), INDENT, size));
        }
        lines
    }
}

/// Our own words at the left edge. Further lines are indented: names in them are not
/// ours, and may be long.
fn ours(words: &str, lead: &str, size: Size) -> Vec<String> {
    let room = size.columns() - lead.len();
    let mut lines = broken(&one_line(words), size.columns(), room, Break::Words);
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, lead);
    }
    lines
}

/// Our remarks between lines of others.
fn aside(words: &str, size: Size) -> Vec<String> {
    let room = size.columns() - ASIDE.len();
    let lines = broken(words, room, room, Break::Words).into_iter();
    lines.map(|line| format!("{ASIDE}{line}")).collect()
}

/// A line of others, on as many rows as it takes: each behind a bar.
fn theirs(text: &str, size: Size) -> Vec<String> {
    let room = size.columns() - BAR.len();
    let lines = broken(text, room, room, Break::Anywhere).into_iter();
    lines.map(|line| format!("{BAR}{line}")).collect()
}

/// Where a line may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Break {
    /// After any character: nothing is moved or lost.
    Anywhere,
    /// Between words, where one is near.
    Words,
}

/// The text in lines of at most so many columns, the first and the others.
fn broken(text: &str, first: usize, others: usize, at: Break) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut left) = (String::new(), first);
    for character in text.chars() {
        let columns = columns(character);
        if columns > left {
            let space = line.rfind(' ').filter(|space| *space > line.len() / 2);
            let rest = match (at, space) {
                (Break::Words, Some(space)) => line.split_off(space).trim_start().to_owned(),
                (Break::Anywhere, _) | (_, None) => String::new(),
            };
            lines.push(std::mem::replace(&mut line, rest));
            left = others.saturating_sub(line.chars().map(self::columns).sum());
        }
        left = left.saturating_sub(columns);
        line.push(character);
    }
    lines.push(line);
    lines
}

/// Columns a character may take at most, on any terminal. They disagree about many that
/// are not ASCII, and a line that is longer than we think would continue at the left
/// edge.
fn columns(character: char) -> usize {
    match character {
        ascii if ascii.is_ascii() => 1,
        other => other.width_cjk().unwrap_or(2).max(2),
    }
}

#[cfg(test)]
mod tests;
