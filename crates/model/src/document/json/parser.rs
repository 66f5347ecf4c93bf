//! The parser: one pass, bounded depth, every refusal with its place.

use std::collections::HashSet;

use super::{JsonKind, Member, Node, Span};
use crate::limits;

/// Why a text is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// Where, in bytes.
    pub span: Span,
    /// Where, as a pointer into what was read so far.
    pub pointer: String,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do about it, if there is one thing.
    pub fix: Option<String>,
}

/// Parses a text. A key given twice does not stop the reading: such faults come
/// back beside the value, all of them, and the first of the two values is kept.
pub fn parse(text: &str) -> Result<(Node, Vec<JsonFault>), JsonFault> {
    let mut parser = Parser {
        text,
        offset: 0,
        path: Vec::new(),
        repeated: Vec::new(),
    };
    if text.starts_with('\u{feff}') {
        return Err(parser.fault(
            "the file starts with a byte order mark",
            Some("save it as UTF-8 without one"),
        ));
    }
    parser.skip_space();
    if parser.offset == text.len() {
        return Err(parser.fault("the file is empty", None));
    }
    let root = parser.value()?;
    parser.skip_space();
    if parser.offset < text.len() {
        return Err(parser.fault("there is more text after the end of the JSON value", None));
    }
    Ok((root, parser.repeated))
}

/// Members an object may have before keys are looked up by hash.
const MEMBERS_FEW: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Where the key starts; only a fault reads it again.
    Key(usize),
    Index(usize),
}

struct Parser<'a> {
    text: &'a str,
    offset: usize,
    path: Vec<Step>,
    repeated: Vec<JsonFault>,
}

impl Parser<'_> {
    fn value(&mut self) -> Result<Node, JsonFault> {
        let start = self.offset;
        let kind = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", JsonKind::Bool(true))?,
            Some(b'f') => self.word("false", JsonKind::Bool(false))?,
            Some(b'n') => self.word("null", JsonKind::Null)?,
            Some(b'\'') => {
                return Err(self.fault(
                    "a string starts with `'`",
                    Some("write `\"` around strings"),
                ));
            }
            Some(b'/') => return Err(self.comment()),
            Some(_) => return Err(self.fault("expected a value", None)),
            None => return Err(self.fault("the text ends where a value should start", None)),
        };
        Ok(Node {
            span: Span {
                start,
                end: self.offset,
            },
            kind,
        })
    }

    fn object(&mut self) -> Result<JsonKind, JsonFault> {
        self.enter()?;
        let mut members: Vec<Member> = Vec::new();
        let mut many = HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(JsonKind::Object(members));
        }
        loop {
            let member = self.member()?;
            if is_new(&member.key, &members, &mut many) {
                members.push(member);
            } else {
                self.path.push(Step::Key(member.key_span.start));
                let message = format!(
                    "the key `{}` is given twice",
                    crate::text::elided(&member.key, 60)
                );
                self.repeated.push(JsonFault {
                    span: member.key_span,
                    pointer: self.pointer(),
                    message,
                    fix: Some("keep one of the two".to_owned()),
                });
                self.path.pop();
            }
            self.skip_space();
            let comma = self.offset;
            if self.take(b',') {
                self.skip_space();
                if self.peek() == Some(b'}') {
                    self.offset = comma;
                    return Err(self.fault("there is a comma before `}`", Some("remove the comma")));
                }
            } else if self.take(b'}') {
                // The trees of a whole folder stay in memory.
                members.shrink_to_fit();
                return Ok(JsonKind::Object(members));
            } else {
                return Err(self.fault("expected `,` or `}` after a value in an object", None));
            }
        }
    }

    fn member(&mut self) -> Result<Member, JsonFault> {
        let start = self.offset;
        match self.peek() {
            Some(b'"') => {}
            Some(b'/') => return Err(self.comment()),
            _ => return Err(self.fault("expected a key in double quotes", None)),
        }
        let key = self.string()?;
        let key_span = Span {
            start,
            end: self.offset,
        };
        self.skip_space();
        if !self.take(b':') {
            return Err(self.fault("expected `:` after a key", None));
        }
        self.skip_space();
        self.path.push(Step::Key(start));
        let value = self.value()?;
        self.path.pop();
        Ok(Member {
            key,
            key_span,
            value,
        })
    }

    fn array(&mut self) -> Result<JsonKind, JsonFault> {
        self.enter()?;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(JsonKind::Array(items));
        }
        loop {
            self.path.push(Step::Index(items.len()));
            items.push(self.value()?);
            self.path.pop();
            self.skip_space();
            let comma = self.offset;
            if self.take(b',') {
                self.skip_space();
                if self.peek() == Some(b']') {
                    // Back to the comma, which is what is wrong.
                    self.offset = comma;
                    return Err(self.fault("there is a comma before `]`", Some("remove the comma")));
                }
            } else if self.take(b']') {
                items.shrink_to_fit();
                return Ok(JsonKind::Array(items));
            } else {
                return Err(self.fault("expected `,` or `]` after a value in an array", None));
            }
        }
    }

    /// Steps over the opening bracket. The path is as long as the nesting, so it
    /// is the depth, and recursion stays bounded by it.
    fn enter(&mut self) -> Result<(), JsonFault> {
        if self.path.len() >= limits::DOCUMENT_DEPTH_MAX {
            let message = format!(
                "values are nested more than {} deep",
                limits::DOCUMENT_DEPTH_MAX
            );
            let mut fault = self.fault(&message, None);
            fault.pointer = String::new();
            return Err(fault);
        }
        self.offset += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let opened = self.offset;
        self.offset += 1;
        let mut value = String::new();
        loop {
            let rest = self.text.get(self.offset..).unwrap_or("");
            let plain = rest
                .bytes()
                .position(|b| b == b'"' || b == b'\\' || b < 0x20);
            let Some(plain) = plain else {
                // The opening quote is the place to look at, not the end of the text.
                self.offset = opened;
                return Err(self.fault("this string is never closed", Some("add the closing `\"`")));
            };
            value.push_str(rest.get(..plain).unwrap_or(""));
            self.offset += plain;
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(value);
                }
                Some(b'\\') => value.push(self.escape()?),
                Some(b'\n' | b'\r') => {
                    return Err(self.fault("a string contains a line break", Some("write `\\n`")));
                }
                Some(byte) => {
                    let message = format!("a string contains a control character, code {byte}");
                    return Err(self.fault(&message, Some(&format!("write `\\u{byte:04x}`"))));
                }
                None => return Err(self.fault("this string is never closed", None)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let start = self.offset;
        self.offset += 1;
        let Some(byte) = self.peek() else {
            return Err(self.fault("the text ends inside an escape", None));
        };
        self.offset += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(start),
            _ => {
                self.offset = start;
                return Err(self.fault(
                    "JSON has no such escape",
                    Some("write `\\\\` for a backslash"),
                ));
            }
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonFault> {
        let first = self.four_digits(start)?;
        let code = match first {
            0xd800..=0xdbff
                if self
                    .text
                    .get(self.offset..)
                    .is_some_and(|rest| rest.starts_with("\\u")) =>
            {
                self.offset += 2;
                match self.four_digits(start)? {
                    second @ 0xdc00..=0xdfff => {
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    // No pair. The check below refuses the half.
                    _ => first,
                }
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| {
            self.offset = start;
            self.fault(
                "a surrogate is missing its other half",
                Some("write both halves, or the character itself"),
            )
        })
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, JsonFault> {
        let digits = self
            .text
            .get(self.offset..self.offset + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                self.offset += 4;
                Ok(code)
            }
            None => {
                self.offset = start;
                Err(self.fault("`\\u` needs four hexadecimal digits", None))
            }
        }
    }

    fn number(&mut self) -> Result<JsonKind, JsonFault> {
        let start = self.offset;
        self.take(b'-');
        if self.take(b'0') {
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.offset = start;
                return Err(self.fault("a number has a leading 0", Some("remove the 0")));
            }
        } else {
            self.digits(start)?;
        }
        if self.take(b'.') {
            self.digits(start)?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits(start)?;
        }
        let digits = self.text.get(start..self.offset).unwrap_or("");
        // A number no reader can hold is refused here, as `serde_json` does.
        if digits.parse::<f64>().is_ok_and(f64::is_finite) {
            Ok(JsonKind::Number(digits.to_owned()))
        } else {
            self.offset = start;
            Err(self.fault("this number is too large", None))
        }
    }

    fn digits(&mut self, start: usize) -> Result<(), JsonFault> {
        let rest = self.text.get(self.offset..).unwrap_or("");
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            self.offset = start;
            return Err(self.fault("this is not a number: a digit is missing", None));
        }
        self.offset += count;
        Ok(())
    }

    fn word(&mut self, word: &str, kind: JsonKind) -> Result<JsonKind, JsonFault> {
        if self
            .text
            .get(self.offset..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.offset += word.len();
            return Ok(kind);
        }
        Err(self.fault(
            "expected a value",
            Some(&format!("if `{word}` was meant, write it like this")),
        ))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.offset += 1;
        }
        found
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.offset += 1;
        }
    }

    fn comment(&self) -> JsonFault {
        self.fault("JSON has no comments", Some("remove the comment"))
    }

    fn fault(&self, message: &str, fix: Option<&str>) -> JsonFault {
        let here = self
            .text
            .get(self.offset..)
            .and_then(|rest| rest.chars().next());
        JsonFault {
            span: Span {
                start: self.offset,
                end: self.offset + here.map_or(0, char::len_utf8),
            },
            pointer: self.pointer(),
            message: message.to_owned(),
            fix: fix.map(str::to_owned),
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Key(start) => {
                    if !pointer.is_empty() {
                        pointer.push('.');
                    }
                    pointer.push_str(&self.key_at(*start));
                }
                Step::Index(index) => pointer.push_str(&format!("[{index}]")),
            }
        }
        pointer
    }

    /// A key that was read before.
    fn key_at(&self, offset: usize) -> String {
        // Read again, for faults only: a path of copies would cost every document.
        let mut again = Parser {
            text: self.text,
            offset,
            path: Vec::new(),
            repeated: Vec::new(),
        };
        again.string().unwrap_or_default()
    }
}

/// Whether a key is new. `many` is used once there are many members.
fn is_new(key: &str, before: &[Member], many: &mut HashSet<String>) -> bool {
    // Few keys are compared one by one. Attack: with many, that would take quadratic
    // time.
    if before.len() < MEMBERS_FEW {
        return before.iter().all(|member| member.key != key);
    }
    if many.is_empty() {
        many.extend(before.iter().map(|member| member.key.clone()));
    }
    many.insert(key.to_owned())
}
