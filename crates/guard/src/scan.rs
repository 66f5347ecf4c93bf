//! Layer 0: the raw text, before any parser sees it, in one pass.
//!
//! It knows strings, comments, templates and regular expressions, so that text in any
//! language is fine where text belongs. It refuses text that would hurt a parser (size,
//! depth), a person (hidden characters) or the engine (patterns without end).
//!
//! Attack: a parser recurses. The pass therefore bounds not only brackets but
//! everything that can make the tree deeper: operators, prefixes, chained calls,
//! statements without braces. Where a `/` could be read in two ways the script is
//! refused, because a pass that reads it differently from the parser bounds nothing.

mod text;
pub(crate) mod unicode;
mod word;

use crate::code::IssueCode;
use crate::preset::{Preset, PresetLimits};
use crate::report::Marks;

use word::ScanWord;

/// How deep a tree the parser may be asked to build, counted in brackets,
/// operators and statements without braces that are open at one time.
pub const TREE_DEPTH_MAX: usize = 400;

/// Invisible characters in strings and comments: fewer are a warning.
const INVISIBLE_IN_TEXT_MAX: usize = 3;

/// The result of the pass.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The parser must not see this text.
    pub(crate) is_fatal: bool,
    /// Bytes looked at.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what tests hold against the size of the text")
    )]
    pub(crate) bytes_read: usize,
}

/// Reads the text once.
pub(crate) fn scan(text: &str, preset: &Preset, marks: &mut Marks) -> Scan {
    let limits = preset.limits.capped();
    // The size first: a hundred megabytes of blanks are not read to find them empty.
    if text.len() > limits.input_bytes_max || text.trim().is_empty() {
        let (length, most) = (text.len(), limits.input_bytes_max);
        marks.error(IssueCode::ScanInputTooLarge, 0, || match length > most {
            true => format!("the script has {length} bytes; at most {most} are allowed"),
            false => String::from(
                "the script is empty; write at least what it gives back, such as `return 1`",
            ),
        });
        return Scan {
            is_fatal: true,
            bytes_read: 0,
        };
    }
    let mut scanner = Scanner::new(text, preset, limits, marks);
    scanner.run();
    Scan {
        is_fatal: scanner.is_fatal,
        bytes_read: scanner.at,
    }
}

/// An open bracket or template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opener {
    /// The whole text.
    Top,
    /// `(` after `if`, `for`, `while`, `with`, `switch`, `catch`.
    Header,
    /// `(` after the `while` that ends a `do`.
    DoHeader,
    /// Any other `(`.
    Paren,
    /// `[`
    Bracket,
    /// `{`
    Brace,
    /// A template; its text is being read.
    Template,
    /// `${` inside a template.
    Hole,
}

/// One open bracket, and the depth of its content.
#[derive(Clone, Copy, Debug)]
struct BracketLevel {
    opener: Opener,
    at: usize,
    /// Operators, prefixes and links of a chain since the expression began.
    expression: usize,
    /// Statements that wait for their body.
    statement: usize,
    /// Those among them that wait for their `while`.
    dos: usize,
    /// The statement may have ended; the next word decides.
    ending: Ending,
}

impl BracketLevel {
    fn new(opener: Opener, at: usize) -> BracketLevel {
        BracketLevel {
            opener,
            at,
            expression: 0,
            statement: 0,
            dos: 0,
            ending: Ending::No,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// After `;`: ended, unless `else` follows.
    Surely,
    /// After `}` or a line: ended if the next token cannot continue it.
    Perhaps,
}

/// The kind of the last token, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing, an operator, an opening bracket, `;`: a value is expected.
    Operator,
    /// `,`: a value is expected, or a name to declare.
    Comma,
    /// A name, a literal, a closing bracket: an operator is expected.
    Value,
    /// `.`: a name is expected, whatever it spells.
    Dot,
    /// `)` of a header: a statement is expected.
    HeaderClose,
    /// `}`: either.
    BraceClose,
    /// A word that wants a value after it.
    Keyword,
    /// `break`, `continue`, `return`, `debugger`: a value or the end of a line.
    Ender,
    /// A word before a header.
    HeaderWord,
    /// The `while` that ends a `do`.
    DoWord,
    /// A word that is a name in one place and a keyword in another.
    EitherWord,
    /// `++` or `--` before its value.
    Step,
}

struct Scanner<'s> {
    text: &'s str,
    bytes: &'s [u8],
    limits: PresetLimits,
    preset: &'s Preset,
    marks: &'s mut Marks,
    at: usize,
    line_start: usize,
    lines: usize,
    level: BracketLevel,
    outer: Vec<BracketLevel>,
    /// Brackets open, and everything that makes the tree deeper.
    nesting: usize,
    depth: usize,
    before: Before,
    /// The last token is a name or literal that may end a statement before a `/`
    /// on the next line, as in `let a` or `break a`.
    may_end: bool,
    /// A line ended since the last token.
    has_newline: bool,
    /// Nothing but blanks and comments on this line so far.
    is_line_empty: bool,
    strings_chars: usize,
    regex_count: usize,
    invisible_in_text: usize,
    is_fatal: bool,
}

impl<'s> Scanner<'s> {
    fn new(
        text: &'s str,
        preset: &'s Preset,
        limits: PresetLimits,
        marks: &'s mut Marks,
    ) -> Scanner<'s> {
        Scanner {
            text,
            bytes: text.as_bytes(),
            limits,
            preset,
            marks,
            // A byte order mark at the start is free.
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            line_start: 0,
            lines: 1,
            level: BracketLevel::new(Opener::Top, 0),
            outer: Vec::new(),
            nesting: 0,
            depth: 0,
            before: Before::Operator,
            may_end: false,
            has_newline: false,
            is_line_empty: true,
            strings_chars: 0,
            regex_count: 0,
            invisible_in_text: 0,
            is_fatal: false,
        }
    }

    fn run(&mut self) {
        if self.text.starts_with("#!") {
            self.stop(
                IssueCode::ParseError,
                0,
                "a script has no `#!` line; remove it",
            );
        }
        if let Some(at) = fence(self.text) {
            let message =
                "the script stands in a markdown fence; send only what is between the two fences";
            self.stop(IssueCode::ParseError, at, message);
        }
        while self.at < self.bytes.len() && !self.is_fatal {
            self.step();
        }
        if self.is_fatal {
            return;
        }
        self.end_line(self.bytes.len());
        if self.level.opener != Opener::Top {
            let at = self.level.at;
            self.stop(IssueCode::ParseError, at, "this is never closed");
        }
    }

    /// The byte so far ahead; 0 at the end, where no text has one.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips bytes of one kind.
    fn skip(&mut self, is_so: impl Fn(u8) -> bool) {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let run = rest.iter().position(|byte| !is_so(*byte));
        self.at += run.unwrap_or(rest.len());
    }

    /// One token, blank or comment. One match for all of them: the next token is hard
    /// to predict, so a second match would cost as much as the first.
    fn step(&mut self) {
        let byte = self.peek(0);
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'\\' | b'#' => self.name(),
            b' ' | b'\t' | 0x0b | 0x0c => {
                self.at += 1;
                self.skip(|byte| byte == b' ');
                return;
            }
            b'\n' => return self.newline(),
            b'\r' => return self.carriage_return(),
            b'/' => match self.peek(1) {
                b'/' => return self.line_comment(),
                b'*' => return self.block_comment(),
                _ => self.slash(),
            },
            0 => return self.null_byte(),
            b'0'..=b'9' => self.number(),
            b'"' | b'\'' => self.string(byte),
            b'`' => self.template(),
            b'(' => self.open_paren(),
            b'[' => self.open(Opener::Bracket, 1),
            b'{' => self.open_brace(),
            b')' | b']' | b'}' => self.close(byte),
            b';' => self.semicolon(),
            b',' => self.comma(),
            b'.' => self.dot(),
            b'+' | b'-' | b'*' | b'%' | b'=' | b'<' | b'>' | b'!' | b'&' | b'|' | b'^' | b'~'
            | b'?' | b':' => self.operators(),
            0x80.. if self.blank() => return,
            0x80.. => self.beyond_ascii(),
            _ => self.at += 1,
        }
        self.is_line_empty = false;
        self.has_newline = false;
        // Most tokens have one blank after them.
        if self.peek(0) == b' ' {
            self.at += 1;
        }
    }

    // Depth.

    /// Decides whether the statement before this token has ended. `goes_on` is a
    /// token that could continue an expression.
    fn settle(&mut self, goes_on: bool) {
        // Inside a line and a statement, as most tokens are.
        if self.level.ending == Ending::No && !self.has_newline {
            return;
        }
        let is_line_end = self.has_newline
            && matches!(
                // Any other token expects something, so a line break ends nothing.
                self.before,
                Before::Value | Before::BraceClose | Before::Ender
            );
        let level = &mut self.level;
        let ended = match level.ending {
            Ending::Surely => true,
            Ending::Perhaps => !goes_on,
            Ending::No => is_line_end && !goes_on,
        };
        level.ending = Ending::No;
        if ended {
            let spent = level.expression + level.statement;
            level.expression = 0;
            level.statement = 0;
            level.dos = 0;
            self.depth -= spent;
        }
    }

    /// `else` keeps the statement it belongs to open; its expressions are over.
    fn settle_else(&mut self) {
        let level = &mut self.level;
        level.ending = Ending::No;
        let spent = std::mem::take(&mut level.expression);
        self.depth -= spent;
    }

    fn deepen_expression(&mut self, by: usize) {
        self.level.expression += by;
        self.deepen(by);
    }

    fn deepen_statement(&mut self) {
        self.level.statement += 1;
        self.deepen(1);
    }

    fn deepen(&mut self, by: usize) {
        self.depth += by;
        if self.depth > TREE_DEPTH_MAX {
            self.overflow();
        }
    }

    fn overflow(&mut self) {
        let at = self.at;
        self.stop(
            IssueCode::ScanNestingOverflow,
            at,
            "this nests too deeply; take parts out into variables of their own",
        );
    }

    fn open_paren(&mut self) {
        match self.before {
            Before::HeaderWord => self.open(Opener::Header, 1),
            Before::DoWord => self.open(Opener::DoHeader, 1),
            _ => self.open(Opener::Paren, 1),
        }
    }

    fn open_brace(&mut self) {
        // Attack: `{` after a line may be the body of a function inside a long
        // expression, so it ends nothing by itself.
        self.settle(true);
        self.push(Opener::Brace, 1);
    }

    fn open(&mut self, opener: Opener, width: usize) {
        self.settle(true);
        // A call or an index is one more link of a chain.
        if self.before == Before::Value || self.before == Before::BraceClose {
            self.deepen_expression(1);
        }
        self.push(opener, width);
    }

    fn push(&mut self, opener: Opener, width: usize) {
        self.outer.push(self.level);
        self.level = BracketLevel::new(opener, self.at);
        self.before = Before::Operator;
        if opener != Opener::Template {
            self.nesting += 1;
            self.depth += 1;
        }
        if self.nesting > self.limits.nesting_max || self.depth > TREE_DEPTH_MAX {
            self.overflow();
        }
        self.at += width;
    }

    fn close(&mut self, byte: u8) {
        let opener = self.level.opener;
        let after = match (byte, opener) {
            (b')', Opener::Header) => Before::HeaderClose,
            (b')', Opener::Paren) | (b']', Opener::Bracket) => Before::Value,
            // After a block or a finished `do` a new statement may begin.
            (b'}', Opener::Brace) | (b')', Opener::DoHeader) => Before::BraceClose,
            (b'}', Opener::Hole) => Before::Operator,
            _ => {
                let at = self.at;
                self.stop(IssueCode::ParseError, at, "this closes no open bracket");
                return;
            }
        };
        self.pop();
        self.at += 1;
        self.before = after;
        self.may_end = false;
        match opener {
            Opener::Hole => self.template_text(),
            Opener::Brace | Opener::DoHeader => self.level.ending = Ending::Perhaps,
            _ => {}
        }
    }

    fn pop(&mut self) {
        let Some(outer) = self.outer.pop() else {
            return;
        };
        let closed = std::mem::replace(&mut self.level, outer);
        // All that its content added goes with it, whatever ended it.
        self.depth -= closed.expression + closed.statement;
        if closed.opener != Opener::Template {
            self.nesting -= 1;
            self.depth -= 1;
        }
    }

    // Tokens.

    fn semicolon(&mut self) {
        self.settle(false);
        self.level.ending = Ending::Surely;
        self.before = Before::Operator;
        self.at += 1;
    }

    fn comma(&mut self) {
        self.settle(true);
        let spent = std::mem::take(&mut self.level.expression);
        self.depth -= spent;
        self.before = Before::Comma;
        self.at += 1;
    }

    fn dot(&mut self) {
        if self.peek(1).is_ascii_digit() && self.before != Before::Value {
            self.number();
            return;
        }
        self.settle(true);
        if self.peek(1) == b'.' && self.peek(2) == b'.' {
            self.at += 3;
            self.before = Before::Operator;
            return;
        }
        self.deepen_expression(1);
        self.before = Before::Dot;
        self.at += 1;
    }

    fn number(&mut self) {
        self.settle(false);
        self.note_ending();
        let is_other_base = self.peek(0) == b'0' && self.peek(1).is_ascii_alphabetic();
        if self.peek(0) == b'0' && self.peek(1).is_ascii_digit() {
            self.marks.error(IssueCode::ParseError, self.at, || {
                String::from(
                    "a number does not start with 0; leave the 0 out, or write `0o17` for octal",
                )
            });
        }
        self.digits(is_other_base);
        if !is_other_base {
            if self.peek(0) == b'.' {
                self.at += 1;
                self.digits(false);
            }
            if matches!(self.peek(0), b'e' | b'E') {
                self.at += if matches!(self.peek(1), b'+' | b'-') {
                    2
                } else {
                    1
                };
                self.digits(false);
            }
            if self.peek(0) == b'n' {
                self.at += 1;
            }
        }
        self.before = Before::Value;
    }

    fn digits(&mut self, with_letters: bool) {
        loop {
            match self.peek(0) {
                b'0'..=b'9' | b'_' => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' if with_letters => self.at += 1,
                _ => return,
            }
        }
    }

    fn operators(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        if rest.starts_with(b"<!--") || (self.is_line_empty && rest.starts_with(b"-->")) {
            let at = self.at;
            let message = "some engines read this as a comment; put a space between the marks";
            self.stop(IssueCode::ScanAmbiguousSlash, at, message);
            return;
        }
        self.settle(true);
        let start = self.at;
        let mut prefixes = 0;
        let mut has_newline = self.has_newline;
        loop {
            let (byte, next) = (self.peek(0), self.peek(1));
            match byte {
                b'+' | b'-' if byte == next => {
                    let is_postfix = self.before == Before::Value && !has_newline;
                    self.before = if is_postfix {
                        Before::Value
                    } else {
                        Before::Step
                    };
                    self.at += 2;
                    prefixes += 1;
                }
                b'+' | b'-' | b'!' | b'~' => {
                    self.before = Before::Operator;
                    self.at += 1;
                    prefixes += 1;
                }
                b'*' | b'%' | b'=' | b'<' | b'>' | b'&' | b'|' | b'^' | b'?' | b':' => {
                    self.before = Before::Operator;
                    self.at += 1;
                }
                _ => break,
            }
            has_newline = false;
        }
        self.deepen_expression(prefixes.max(1));
        let most = self.limits.operator_run_max;
        if self.at - start > most {
            self.marks.error(IssueCode::ScanOperatorSpam, start, || {
                format!("more than {most} operators in a row; use spaces or parentheses")
            });
        }
    }

    fn slash(&mut self) {
        let is_division = match self.before {
            // Attack: after `let a` or `break a` a line ends the statement, and an
            // apparent division starts a regular expression.
            Before::Value if self.has_newline && self.may_end => None,
            Before::Value => Some(true),
            Before::Operator
            | Before::Comma
            | Before::Keyword
            | Before::HeaderClose
            | Before::Ender => Some(false),
            Before::BraceClose
            | Before::EitherWord
            | Before::Step
            | Before::Dot
            | Before::HeaderWord
            | Before::DoWord => None,
        };
        match is_division {
            Some(true) => {
                self.settle(true);
                self.deepen_expression(1);
                self.before = Before::Operator;
                self.at += 1;
            }
            Some(false) => self.regex(),
            None => {
                let at = self.at;
                let message = "this `/` can be read in two ways; put the expression in parentheses";
                self.stop(IssueCode::ScanAmbiguousSlash, at, message);
            }
        }
    }

    /// Notes the token before a name or a literal.
    fn note_ending(&mut self) {
        self.may_end = matches!(
            self.before,
            Before::Value
                | Before::Comma
                | Before::Keyword
                | Before::Ender
                | Before::EitherWord
                | Before::BraceClose
        );
    }

    fn name(&mut self) {
        self.note_ending();
        let start = self.at;
        let mut is_ascii = true;
        loop {
            self.skip(is_plain_in_name);
            match self.peek(0) {
                b'\\' => self.escape_in_name(),
                0x80.. => {
                    let Some(character) = self.character() else {
                        break;
                    };
                    // Attack: a mark after `if` makes it a name. Whatever is not
                    // a blank belongs to the name, or the parser stops at it.
                    if character.is_whitespace()
                        || unicode::is_direction(character)
                        || unicode::is_invisible(character)
                    {
                        break;
                    }
                    if unicode::is_joiner(character) {
                        self.report_hidden(character, false);
                    }
                    is_ascii = false;
                    self.at += character.len_utf8();
                }
                _ => break,
            }
        }
        let name = self.text.get(start..self.at).unwrap_or("");
        if !is_ascii && self.preset.unicode.homographs && unicode::is_homograph(name) {
            self.marks.error(IssueCode::ScanHomograph, start, || {
                format!("`{name}` has letters of other scripts that look like Latin ones; type them again")
            });
        }
        let word = match self.before {
            Before::Dot => ScanWord::Name,
            _ => word::word(name),
        };
        self.word(word);
    }

    fn word(&mut self, word: ScanWord) {
        // As most words are.
        if word == ScanWord::Name {
            self.settle(false);
            self.before = Before::Value;
            return;
        }
        // Attack: `if (a) do x; while (1) else if (a) do x; while (1) else …` nests,
        // and so does `do while (a) do while (a) …`. A `while` ends a `do` only where
        // the statement between them has ended.
        let has_ended = self.level.ending != Ending::No
            || (self.has_newline
                && matches!(
                    self.before,
                    Before::Value | Before::BraceClose | Before::Ender
                ));
        let ends_do = word == ScanWord::While && self.level.dos > 0 && has_ended;
        match word {
            ScanWord::Else => self.settle_else(),
            ScanWord::While if ends_do => {
                self.level.dos -= 1;
                self.settle_else();
            }
            ScanWord::Infix => self.settle(true),
            _ => self.settle(false),
        }
        self.before = match word {
            ScanWord::Name => Before::Value,
            ScanWord::Else => Before::Keyword,
            ScanWord::While if ends_do => Before::DoWord,
            ScanWord::Header | ScanWord::While => {
                self.deepen_statement();
                Before::HeaderWord
            }
            ScanWord::Do => {
                self.level.dos += 1;
                self.deepen_statement();
                Before::Keyword
            }
            ScanWord::Prefix | ScanWord::Infix => {
                self.deepen_expression(1);
                // `for await (`
                match self.before {
                    Before::HeaderWord => Before::HeaderWord,
                    _ => Before::Keyword,
                }
            }
            ScanWord::Either => {
                self.deepen_expression(1);
                Before::EitherWord
            }
            ScanWord::Ender => Before::Ender,
            ScanWord::Plain => Before::Keyword,
        };
    }

    /// `\u0061` or `\u{61}` in a name.
    fn escape_in_name(&mut self) {
        self.at += 1;
        if self.peek(0) == b'u' && self.peek(1) == b'{' {
            self.at += 2;
            while self.peek(0).is_ascii_hexdigit() {
                self.at += 1;
            }
            if self.peek(0) == b'}' {
                self.at += 1;
            }
        }
    }

    /// Skips a blank that is not ASCII, and says whether there was one.
    fn blank(&mut self) -> bool {
        let Some(character) = self
            .character()
            .filter(|character| character.is_whitespace() && !unicode::is_invisible(*character))
        else {
            return false;
        };
        if !self.separator() {
            self.at += character.len_utf8();
        }
        true
    }

    fn beyond_ascii(&mut self) {
        match self.character() {
            Some(character)
                if unicode::is_direction(character) || unicode::is_invisible(character) =>
            {
                self.report_hidden(character, false);
                self.at += character.len_utf8();
            }
            _ => self.name(),
        }
    }

    fn character(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn stop(&mut self, code: IssueCode, at: usize, message: &str) {
        self.marks.error(code, at, || String::from(message));
        self.is_fatal = true;
    }
}

/// Where a markdown fence opens, if the text begins with one. No script does: three
/// grave accents are an empty text, called like a function.
fn fence(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    (rest.starts_with("```") || rest.starts_with("~~~")).then_some(start)
}

/// Whether a byte can only continue a name. Without shortcuts: they would be guessed
/// wrong at every other letter.
fn is_plain_in_name(byte: u8) -> bool {
    let is_mark = (byte == b'_') | (byte == b'$') | (byte == b'#');
    byte.is_ascii_alphabetic() | byte.is_ascii_digit() | is_mark
}

#[cfg(test)]
mod tests;
