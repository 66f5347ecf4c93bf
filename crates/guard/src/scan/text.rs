//! Text inside a script: strings, templates, comments, regular expressions, lines,
//! and invisible characters.

use model::unseen::{Unseen, unseen};

use super::{Before, INVISIBLE_IN_TEXT_MAX, Opener, Scanner, unicode};
use crate::code::IssueCode;
use crate::preset::RegexMode;
use crate::redos;

impl Scanner<'_> {
    pub(super) fn string(&mut self, quote: u8) {
        self.settle(false);
        self.note_ending();
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                b'\n' | b'\r' => {
                    self.stop(
                        IssueCode::ParseError,
                        start,
                        "this string does not end on its line",
                    );
                    return;
                }
                // A null byte within the text is another thing, and is refused below.
                0 if self.at >= self.bytes.len() => {
                    self.stop(IssueCode::ParseError, start, "this string never ends");
                    return;
                }
                b'\\' => {
                    self.octal_escape();
                    self.escape_in_text();
                }
                byte if byte == quote => break,
                _ => self.text_byte(),
            }
        }
        self.at += 1;
        self.before = Before::Value;
        self.measure_string(start + 1, self.at - 1);
    }

    pub(super) fn template(&mut self) {
        self.settle(true);
        if self.before == Before::Value {
            self.deepen_expression(1);
        }
        self.push(Opener::Template, 1);
        self.template_text();
    }

    /// The text of a template up to its end or its next hole.
    pub(super) fn template_text(&mut self) {
        let start = self.at;
        loop {
            match self.peek(0) {
                0 if self.at >= self.bytes.len() => return,
                b'\n' => self.newline(),
                b'\r' => self.carriage_return(),
                b'\\' => self.escape_in_text(),
                b'`' => {
                    self.measure_string(start, self.at);
                    self.pop();
                    self.at += 1;
                    self.before = Before::Value;
                    self.may_end = false;
                    return;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.measure_string(start, self.at);
                    self.push(Opener::Hole, 2);
                    return;
                }
                _ => self.text_byte(),
            }
        }
    }

    pub(super) fn escape_in_text(&mut self) {
        self.at += 1;
        match self.peek(0) {
            b'\r' => self.carriage_return(),
            b'\n' => self.newline(),
            0x80.. => self.text_byte(),
            0 => {}
            _ => self.at += 1,
        }
    }

    /// `'\1'`, which strict code refuses; `'\0'` alone is a null character.
    fn octal_escape(&mut self) {
        let is_octal = match self.peek(1) {
            b'1'..=b'9' => true,
            b'0' => self.peek(2).is_ascii_digit(),
            _ => false,
        };
        if is_octal {
            self.marks.error(IssueCode::ParseError, self.at, || {
                String::from(
                    "a backslash before a digit is an old octal escape; write `\\x01` or `\\u0001`",
                )
            });
        }
    }

    /// One character of a string, a template or a comment.
    pub(super) fn text_byte(&mut self) {
        let byte = self.peek(0);
        if byte == 0 {
            self.null_byte();
            return;
        }
        if byte < 0x80 {
            if (byte < 0x20 && byte != b'\t') || byte == 0x7f {
                self.report_hidden(char::from(byte), true);
            }
            self.at += 1;
            self.skip(is_plain);
            return;
        }
        if let Some(character) = self.character() {
            self.report_hidden(character, true);
            self.at += character.len_utf8();
        } else {
            self.at += 1;
        }
    }

    pub(super) fn measure_string(&mut self, start: usize, end: usize) {
        let (most, most_together) = (self.limits.string_chars_max, self.limits.strings_chars_max);
        let bytes = end.saturating_sub(start);
        if bytes > most
            && self
                .text
                .get(start..end)
                .is_some_and(|text| text.chars().count() > most)
        {
            self.marks.error(IssueCode::ScanStringTooLong, start, || {
                format!("a string is longer than {most} characters; hand long text over as data")
            });
        }
        let had = self.strings_chars;
        self.strings_chars += bytes;
        if had <= most_together && self.strings_chars > most_together {
            self.marks.error(IssueCode::ScanStringTotal, start, || {
                format!("all strings together are longer than {most_together} characters")
            });
        }
    }

    pub(super) fn line_comment(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => return,
                b'\r' => return self.carriage_return(),
                0x80.. if self.separator() => return,
                _ => self.text_byte(),
            }
        }
    }

    pub(super) fn block_comment(&mut self) {
        let start = self.at;
        self.at += 2;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'*' if self.peek(1) == b'/' => {
                    self.at += 2;
                    return;
                }
                b'\n' => self.newline(),
                b'\r' => self.carriage_return(),
                0x80.. if self.separator() => {}
                _ => self.text_byte(),
            }
        }
        self.stop(IssueCode::ParseError, start, "this comment never ends");
    }

    pub(super) fn regex(&mut self) {
        self.settle(false);
        let start = self.at;
        self.at += 1;
        let mut is_class = false;
        loop {
            match self.peek(0) {
                b'\n' | b'\r' => break,
                0 if self.at >= self.bytes.len() => break,
                0x80.. if self.separator() => break,
                b'\\' => {
                    self.at += 1;
                    if !matches!(self.peek(0), b'\n' | b'\r') && self.at < self.bytes.len() {
                        self.text_byte();
                    }
                }
                b'[' => {
                    is_class = true;
                    self.at += 1;
                }
                b']' => {
                    is_class = false;
                    self.at += 1;
                }
                b'/' if !is_class => {
                    let pattern = self.text.get(start + 1..self.at).unwrap_or("");
                    self.at += 1;
                    // Flags belong to the literal, so they are not read as a name.
                    let flags = self.at;
                    while self.peek(0).is_ascii_alphanumeric() {
                        self.at += 1;
                    }
                    let flags = self.text.get(flags..self.at).unwrap_or("");
                    self.before = Before::Value;
                    self.may_end = false;
                    self.judge_regex(start, pattern, flags.contains('i'));
                    return;
                }
                _ => self.text_byte(),
            }
        }
        self.stop(
            IssueCode::ParseError,
            start,
            "this regular expression does not end on its line",
        );
    }

    pub(super) fn judge_regex(&mut self, start: usize, pattern: &str, ignores_case: bool) {
        let (most, count_most) = (self.limits.regex_chars_max, self.limits.regex_count_max);
        if self.preset.regex == RegexMode::Block {
            self.marks.error(IssueCode::ScanRegexBlocked, start, || {
                String::from("regular expressions are not allowed here; use `includes`, `startsWith` or `split` with text")
            });
            return;
        }
        self.regex_count += 1;
        if self.regex_count == count_most + 1 {
            self.marks.error(IssueCode::ScanRegexCount, start, || {
                format!("more than {count_most} regular expressions")
            });
        }
        if pattern.chars().count() > most {
            self.marks.error(IssueCode::ScanRegexTooLong, start, || {
                format!("a regular expression is longer than {most} characters")
            });
            return;
        }
        let is_analysed = match self.preset.regex {
            RegexMode::Exponential | RegexMode::Polynomial => true,
            RegexMode::Block | RegexMode::Allow => false,
        };
        let judged = is_analysed.then(|| redos::judge(pattern, ignores_case));
        if judged == Some(redos::Verdict::Exponential) {
            self.marks.error(IssueCode::ScanRedos, start, || {
                String::from(
                    "this pattern can run practically forever; do not repeat a part that already repeats",
                )
            });
        }
    }

    // Lines and single characters.

    pub(super) fn newline(&mut self) {
        self.end_line(self.at);
        self.at += 1;
        self.line_start = self.at;
        self.lines += 1;
        self.has_newline = true;
        self.is_line_empty = true;
        let most = self.limits.lines_max;
        if self.lines == most + 1 {
            let at = self.at;
            self.marks.error(IssueCode::ScanTooManyLines, at, || {
                format!("the script has more than {most} lines")
            });
            self.is_fatal = true;
        }
    }

    /// `\r` of `\r\n`, or one that ends a line alone.
    ///
    /// Attack: an editor that does not break a line there shows what follows a
    /// comment as part of the comment, and the engine runs it.
    pub(super) fn carriage_return(&mut self) {
        let is_last = self.at + 1 == self.bytes.len();
        // At the very end it ends no line that could hide something.
        if self.peek(1) != b'\n' && !is_last {
            self.line_end('\r');
        }
        self.at += 1;
        self.has_newline = true;
        self.is_line_empty = true;
    }

    /// Goes over U+2028 or U+2029, which end a line like a carriage return alone, and
    /// says whether one was there. In strings and templates they are text.
    pub(super) fn separator(&mut self) -> bool {
        let character = self.character();
        let Some(found) = character.filter(|found| matches!(found, '\u{2028}' | '\u{2029}')) else {
            return false;
        };
        self.line_end(found);
        self.at += found.len_utf8();
        self.has_newline = true;
        self.is_line_empty = true;
        true
    }

    fn line_end(&mut self, character: char) {
        self.marks.error(IssueCode::ScanLineEnd, self.at, || {
            format!(
                "the character U+{:04X} ends a line where few editors show it; use a plain line break",
                u32::from(character)
            )
        });
    }

    pub(super) fn end_line(&mut self, end: usize) {
        let most = self.limits.line_chars_max;
        let start = self.line_start;
        if end - start <= most {
            return;
        }
        if self
            .text
            .get(start..end)
            .is_some_and(|line| line.chars().count() > most)
        {
            self.marks.error(IssueCode::ScanLineTooLong, start, || {
                format!("this line is longer than {most} characters; break it")
            });
        }
    }

    pub(super) fn null_byte(&mut self) {
        let at = self.at;
        self.stop(IssueCode::ScanNullByte, at, "a null byte; a script is text");
        self.at += 1;
    }

    /// A character that may be invisible. In text some belong to the character before
    /// them, and a few are a warning; in code none is allowed.
    pub(super) fn report_hidden(&mut self, character: char, is_text: bool) {
        let at = self.at;
        let unseen = match is_text {
            true => {
                let before = self.text.get(..at).unwrap_or("");
                let after = self.text.get(at + character.len_utf8()..).unwrap_or("");
                unseen(before, character, after)
            }
            false if unicode::is_direction(character) => Some(Unseen::Direction),
            false => {
                let is_hidden = unicode::is_invisible(character) || unicode::is_joiner(character);
                is_hidden.then_some(Unseen::Invisible)
            }
        };
        let invisible = || {
            format!(
                "the character U+{:04X} cannot be seen; remove it",
                u32::from(character)
            )
        };
        match unseen {
            None => {}
            Some(Unseen::Direction) if self.preset.unicode.bidi => {
                self.marks.error(IssueCode::ScanBidi, at, || {
                    format!("the character U+{:04X} changes the direction of text; write `\\u{:04x}` if it is meant",
                        u32::from(character), u32::from(character))
                });
            }
            // In a string it ends nothing.
            Some(Unseen::LineEnd) if self.preset.unicode.invisible => {
                self.marks.warning(IssueCode::ScanUnicode, at, || {
                    format!(
                        "the character U+{:04X} cannot be seen; write `\\u{:04x}` if it is meant",
                        u32::from(character),
                        u32::from(character)
                    )
                });
            }
            Some(Unseen::Invisible) if self.preset.unicode.invisible => {
                self.invisible_in_text += 1;
                if is_text && self.invisible_in_text <= INVISIBLE_IN_TEXT_MAX {
                    self.marks.warning(IssueCode::ScanUnicode, at, invisible);
                } else {
                    self.marks.error(IssueCode::ScanUnicode, at, invisible);
                }
            }
            Some(Unseen::Direction | Unseen::LineEnd | Unseen::Invisible) => {}
        }
    }
}

/// Whether a byte is plain text everywhere text is allowed: in strings, templates,
/// comments and regular expressions.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b',' | b'.' | b':' | b';' | b'-' | b'_')
}
