//! Counts the attributes of the tag the parser is in.
//!
//! Attack: attribute-flood. For each attribute html5ever looks through those the
//! tag already has, so a million of them in one tag would take hours; and it
//! shows nothing of a tag before the tag ends. So we read along: the same states
//! as the standard's tokenizer, but nothing kept except a number.
//!
//! The code that feeds the parser cuts the text before each `<` and behind each `>`,
//! and says when the tree changed. Only a whole tag or plain text changes it, so
//! at such a moment the parser is outside of any tag, and so are we: what we may
//! have misread before, say in a script, is then forgotten.

use crate::parser::ParseError;

/// How many comparisons of attribute names one text may cost. One tag alone can
/// have about fourteen thousand attributes.
const COMPARISONS_MAX: usize = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outside,
    /// Behind `<`.
    Open,
    /// A comment, a declaration: without attributes.
    Aside,
    Name,
    BeforeAttribute,
    Attribute,
    AfterAttribute,
    BeforeValue,
    Quoted(u8),
    Bare,
}

/// The count, and where in a tag we are.
#[derive(Debug)]
pub(super) struct Flood {
    state: State,
    attributes_count: usize,
    comparisons_count: usize,
}

impl Flood {
    pub(super) fn new() -> Flood {
        Flood {
            state: State::Outside,
            attributes_count: 0,
            comparisons_count: 0,
        }
    }

    /// The tree changed.
    pub(super) fn resume(&mut self) {
        self.state = State::Outside;
    }

    /// Reads a piece, before the parser does.
    pub(super) fn foresee(&mut self, piece: &str) -> Result<(), ParseError> {
        for byte in piece.bytes() {
            self.step(byte);
        }
        match self.comparisons_count > COMPARISONS_MAX {
            true => Err(ParseError::TooLarge(
                "comparisons of attributes",
                COMPARISONS_MAX,
            )),
            false => Ok(()),
        }
    }

    fn step(&mut self, byte: u8) {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
        self.state = match (self.state, byte) {
            (State::Outside, b'<') => State::Open,
            (State::Outside, _) => State::Outside,
            (State::Open, b'/') => State::Open,
            // Until `resume`: a comment or a declaration may hold `>` and quotes, and only the
            // parser knows where it ends.
            (State::Open, b'!' | b'?') => State::Aside,
            (State::Open, byte) if byte.is_ascii_alphabetic() => {
                self.attributes_count = 0;
                State::Name
            }
            (State::Open, b'<') => State::Open,
            (State::Open, _) => State::Outside,
            (State::Aside, _) => State::Aside,
            (State::Quoted(mark), byte) if mark == byte => State::BeforeAttribute,
            (State::Quoted(mark), _) => State::Quoted(mark),
            (State::BeforeValue, _) if is_space => State::BeforeValue,
            (State::BeforeValue, b'"' | b'\'') => State::Quoted(byte),
            (_, b'>') => State::Outside,
            (State::BeforeValue | State::Bare, _) if !is_space => State::Bare,
            (State::Bare, _) => State::BeforeAttribute,
            (State::Name, b'/') => State::BeforeAttribute,
            (State::Name, _) if is_space => State::BeforeAttribute,
            (State::Name, _) => State::Name,
            (State::Attribute | State::AfterAttribute, b'=') => State::BeforeValue,
            (State::Attribute | State::AfterAttribute, _) if is_space => State::AfterAttribute,
            (State::Attribute, byte) if byte != b'/' => State::Attribute,
            (_, b'/') => State::BeforeAttribute,
            (_, _) if is_space => State::BeforeAttribute,
            (_, _) => {
                self.attributes_count += 1;
                self.comparisons_count += self.attributes_count;
                State::Attribute
            }
        };
    }
}
