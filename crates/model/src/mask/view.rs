//! A text as it reads when it is decoded, with the way back to its own places.
//!
//! Escapes of URLs (`%2F`), of JSON and JavaScript (`\u0026`, `\"`) and of HTML
//! (`&amp;`) are decoded together, again and again, and base64 by itself, so that
//! one inside the other comes out too. Where a text has several kinds of escapes
//! each is also decoded alone: the backslash of `C:\new` is not the start of an
//! escape because a `%20` follows.
//!
//! Only what stands near something decoded is kept: a text without escapes costs a
//! look at each byte. All is bounded: the depth, the number of readings, their bytes.

use super::forms::is_base64;

/// How deep encodings are undone, one inside the other.
const DEPTH_MAX: usize = 4;
/// Readings of one text.
const VIEWS_MAX: usize = 16;
/// Bytes of all readings of a text, for each of its own.
const VIEW_BYTES_RATIO_MAX: usize = 8;
/// Bytes of all readings that any text may have.
const VIEW_BYTES_FREE: usize = 64 * 1024;
/// Letters in a row that may be base64.
const BASE64_LETTERS_MIN: usize = 16;
/// Letters up to which base64 is decoded from each of its first four letters: where
/// it begins is not known when a `/` or `-` stands before it.
const BASE64_SHIFTED_LETTERS_MAX: usize = 4 * 1024;
/// The longest escape, in bytes: two halves of a character, `\ud83d\ude42`.
pub(super) const ESCAPE_BYTES_MAX: usize = 12;
/// Between pieces that do not belong together. No secret holds it.
const GAP: u8 = 0;

/// One decoded reading.
#[derive(Debug, Default)]
pub(super) struct View {
    bytes: Vec<u8>,
    /// Where the bytes come from, in order.
    pieces: Vec<Piece>,
    /// The reading it was made from; the text itself if there is none.
    from: Option<usize>,
    depth: usize,
}

/// Some bytes of a reading and the place they come from.
#[derive(Clone, Copy, Debug)]
struct Piece {
    out: usize,
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Byte for byte.
    Same,
    /// Each byte stands for the whole place.
    Whole,
    /// Base64 without line breaks.
    Base64,
}

/// Kinds of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds {
    percent: bool,
    backslash: bool,
    entity: bool,
}

const ALL_KINDS: Kinds = Kinds {
    percent: true,
    backslash: true,
    entity: true,
};
const EACH_KIND: [Kinds; 3] = [
    Kinds {
        backslash: false,
        entity: false,
        ..ALL_KINDS
    },
    Kinds {
        percent: false,
        entity: false,
        ..ALL_KINDS
    },
    Kinds {
        percent: false,
        backslash: false,
        ..ALL_KINDS
    },
];

impl View {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Every decoded reading of a text. `near` is how far around something decoded the
/// text is kept.
pub(super) fn of(text: &[u8], near: usize) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    let mut left = text
        .len()
        .saturating_mul(VIEW_BYTES_RATIO_MAX)
        .max(VIEW_BYTES_FREE);
    let mut next: Option<usize> = None;
    loop {
        let (bytes, depth) = match next {
            None => (text, 0),
            Some(index) => match views.get(index) {
                Some(view) => (view.bytes.as_slice(), view.depth),
                None => return views,
            },
        };
        let mut made = Vec::new();
        if depth < DEPTH_MAX {
            let (together, kinds) = unescape(bytes, ALL_KINDS, near);
            let several = depth == 0 && EACH_KIND.iter().all(|kind| *kind != kinds);
            let several = several && together.is_some();
            let alone = EACH_KIND.iter().filter(|_| several);
            let below = |view: View| (view, depth + 1);
            made.extend(together.map(below));
            made.extend(unbase(bytes).map(below));
            // Nothing is looked for below these.
            let alone = alone.filter_map(|kind| unescape(bytes, *kind, near).0);
            made.extend(alone.map(|view| (view, DEPTH_MAX)));
        }
        for (view, depth) in made {
            let size = view.bytes.len();
            if views.len() == VIEWS_MAX || size > left {
                return views;
            }
            left -= size;
            let from = next;
            views.push(View {
                from,
                depth,
                ..view
            });
        }
        next = Some(next.map_or(0, |index| index + 1));
    }
}

/// Where a place of a reading stands in the text.
pub(super) fn in_text(views: &[View], index: usize, place: (usize, usize)) -> (usize, usize) {
    let (mut place, mut next) = (place, Some(index));
    while let Some(view) = next.and_then(|index| views.get(index)) {
        place = view.in_source(place);
        next = view.from;
    }
    place
}

/// A text with its escapes decoded once, if it has any.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let (view, _) = unescape(text.as_bytes(), ALL_KINDS, text.len());
    view.map(|view| String::from_utf8_lossy(&view.bytes).into_owned())
}

/// Whether a byte may begin an escape.
pub(super) fn is_mark(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

impl View {
    fn in_source(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let piece = |at: usize| {
            let after = self.pieces.partition_point(|piece| piece.out <= at);
            self.pieces.get(after.saturating_sub(1)).copied()
        };
        let last = end.saturating_sub(1);
        match (piece(start), piece(last)) {
            (Some(first), Some(final_piece)) => (first.first(start), final_piece.last(last)),
            (_, _) => (0, 0),
        }
    }

    fn same(&mut self, source: &[u8], start: usize, end: usize) {
        let bytes = source.get(start..end).unwrap_or_default();
        if !bytes.is_empty() {
            self.pieces.push(Piece {
                out: self.bytes.len(),
                start,
                end,
                kind: Kind::Same,
            });
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn whole(&mut self, bytes: &[u8], start: usize, end: usize, kind: Kind) {
        self.pieces.push(Piece {
            out: self.bytes.len(),
            start,
            end,
            kind,
        });
        self.bytes.extend_from_slice(bytes);
    }
}

impl Piece {
    /// Where the first bit of a byte stands.
    fn first(self, at: usize) -> usize {
        let byte = at.saturating_sub(self.out);
        let start = match self.kind {
            Kind::Same => self.start + byte,
            Kind::Whole => self.start,
            Kind::Base64 => self.start + byte * 8 / 6,
        };
        start.min(self.end)
    }

    /// Where its last bit ends.
    fn last(self, at: usize) -> usize {
        let byte = at.saturating_sub(self.out);
        let end = match self.kind {
            Kind::Same => self.start + byte + 1,
            Kind::Whole => self.end,
            Kind::Base64 => self.start + (byte * 8 + 7) / 6 + 1,
        };
        end.min(self.end)
    }
}

/// The text around its escapes, decoded; and which kinds there were.
fn unescape(source: &[u8], kinds: Kinds, near: usize) -> (Option<View>, Kinds) {
    let mut seen = Kinds {
        percent: false,
        backslash: false,
        entity: false,
    };
    let mut view = View::default();
    let (mut kept, mut at) = (0, 0);
    while let Some(start) = next_mark(source, at) {
        let rest = source.get(start..).unwrap_or_default();
        let Some((decoded, length)) = escape(rest, kinds) else {
            at = start + 1;
            continue;
        };
        seen.percent |= rest.first() == Some(&b'%');
        seen.backslash |= rest.first() == Some(&b'\\');
        seen.entity |= rest.first() == Some(&b'&');
        let is_first = view.pieces.is_empty();
        if start - kept > near.saturating_mul(if is_first { 1 } else { 2 }) {
            if !is_first {
                view.same(source, kept, kept + near);
                view.bytes.push(GAP);
            }
            view.same(source, start.saturating_sub(near), start);
        } else {
            view.same(source, kept, start);
        }
        kept = start + length;
        view.whole(decoded.bytes(), start, kept, Kind::Whole);
        at = kept;
    }
    if view.pieces.is_empty() {
        return (None, seen);
    }
    view.same(source, kept, kept.saturating_add(near).min(source.len()));
    (Some(view), seen)
}

/// The next byte that may begin an escape. In blocks, which the compiler turns into
/// a few instructions each.
fn next_mark(source: &[u8], from: usize) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut at = from;
    while let Some(block) = source.get(at..at + BLOCK) {
        if block.iter().fold(false, |any, byte| any | is_mark(*byte)) {
            break;
        }
        at += BLOCK;
    }
    let rest = source.get(at..)?;
    rest.iter()
        .position(|byte| is_mark(*byte))
        .map(|index| at + index)
}

/// Up to four bytes.
struct Decoded {
    bytes: [u8; 4],
    count: usize,
}

impl Decoded {
    fn byte(byte: u8) -> Decoded {
        Decoded {
            bytes: [byte, 0, 0, 0],
            count: 1,
        }
    }

    fn character(character: char) -> Decoded {
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len();
        Decoded { bytes, count }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

/// What an escape at the start of some text stands for, and its length.
fn escape(text: &[u8], kinds: Kinds) -> Option<(Decoded, usize)> {
    match text {
        [b'%', b'u', ..] if kinds.percent => units(text, b"%u"),
        [b'%', high, low, ..] if kinds.percent => {
            Some((Decoded::byte(hex(*high)? << 4 | hex(*low)?), 3))
        }
        [b'\\', ..] if kinds.backslash => backslash(text),
        [b'&', ..] if kinds.entity => entity(text),
        _ => None,
    }
}

fn backslash(text: &[u8]) -> Option<(Decoded, usize)> {
    let control = |byte: u8| Some((Decoded::byte(byte), 2));
    match text {
        [_, b'n', ..] => control(b'\n'),
        [_, b'r', ..] => control(b'\r'),
        [_, b't', ..] => control(b'\t'),
        [_, b'b', ..] => control(8),
        [_, b'f', ..] => control(12),
        [_, b'v', ..] => control(11),
        [_, b'x', high, low, ..] => {
            let number = hex(*high)? << 4 | hex(*low)?;
            Some((Decoded::character(char::from(number)), 4))
        }
        [_, b'u', b'{', rest @ ..] => {
            let (number, digits) = number(rest, 16, b'}')?;
            Some((Decoded::character(char::from_u32(number)?), digits + 4))
        }
        [_, b'u', ..] => units(text, b"\\u"),
        [_, other, ..] if other.is_ascii_punctuation() || *other == b' ' => control(*other),
        _ => None,
    }
}

/// Four hexadecimal digits behind a mark, or two such halves of one character.
fn units(text: &[u8], mark: &[u8]) -> Option<(Decoded, usize)> {
    let unit = |text: &[u8]| -> Option<u16> {
        let digits = text.strip_prefix(mark)?.get(..4)?;
        digits.iter().try_fold(0u16, |unit, digit| {
            Some(unit << 4 | u16::from(hex(*digit)?))
        })
    };
    let length = mark.len() + 4;
    let first = unit(text)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((Decoded::character(character), length));
    }
    let second = unit(text.get(length..)?)?;
    let character = char::decode_utf16([first, second]).next()?.ok()?;
    Some((Decoded::character(character), 2 * length))
}

const ENTITIES: [(&[u8], char); 7] = [
    (b"amp;", '&'),
    (b"apos;", '\''),
    (b"gt;", '>'),
    (b"lt;", '<'),
    (b"nbsp;", '\u{a0}'),
    (b"quot;", '"'),
    (b"sol;", '/'),
];

fn entity(text: &[u8]) -> Option<(Decoded, usize)> {
    let found = match text {
        [_, b'#', b'x' | b'X', rest @ ..] => {
            let (number, digits) = number(rest, 16, b';')?;
            (char::from_u32(number)?, digits + 4)
        }
        [_, b'#', rest @ ..] => {
            let (number, digits) = number(rest, 10, b';')?;
            (char::from_u32(number)?, digits + 3)
        }
        [_, rest @ ..] => {
            let named = |(name, _): &&(&[u8], char)| rest.starts_with(name);
            let (name, character) = ENTITIES.iter().find(named)?;
            (*character, name.len() + 1)
        }
        [] => return None,
    };
    Some((Decoded::character(found.0), found.1))
}

/// A number of one to seven digits up to an end, and how many digits it has.
fn number(text: &[u8], base: u32, end: u8) -> Option<(u32, usize)> {
    let digits = text.iter().take(8).position(|byte| *byte == end)?;
    let written = text.get(..digits).filter(|written| !written.is_empty())?;
    let number = written.iter().try_fold(0u32, |number, digit| {
        let digit = char::from(*digit).to_digit(base)?;
        number.checked_mul(base)?.checked_add(digit)
    })?;
    Some((number, digits))
}

fn hex(digit: u8) -> Option<u8> {
    let digit = char::from(digit).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// What stands in base64, decoded, and nothing else. Lines that are folded are also
/// unfolded, for a secret may itself look like base64.
fn unbase(source: &[u8]) -> Option<View> {
    let mut view = View::default();
    let mut at = 0;
    while let Some((start, end)) = letters(source, at) {
        at = end;
        let run = source.get(start..end).unwrap_or_default();
        let is_folded = !run.iter().all(|byte| is_base64(*byte));
        if is_folded {
            let unfolded: Vec<u8> = run
                .iter()
                .copied()
                .filter(|byte| is_base64(*byte))
                .collect();
            view.whole(&unfolded, start, end, Kind::Whole);
            view.bytes.push(GAP);
            view.whole(&decoded(&unfolded), start, end, Kind::Whole);
            view.bytes.push(GAP);
            continue;
        }
        let shifts = match run.len() <= BASE64_SHIFTED_LETTERS_MAX {
            true => 4,
            false => 1,
        };
        for shift in 0..shifts {
            let bytes = decoded(run.get(shift..).unwrap_or_default());
            view.whole(&bytes, start + shift, end, Kind::Base64);
            view.bytes.push(GAP);
        }
    }
    (!view.pieces.is_empty()).then_some(view)
}

/// The next run of letters that may be base64, its folded lines included. Looks at
/// the last letter a run would have first, so that words are skipped.
fn letters(source: &[u8], from: usize) -> Option<(usize, usize)> {
    let is_letter = |at: usize| source.get(at).is_some_and(|byte| is_base64(*byte));
    let mut start = from;
    loop {
        let last = start + BASE64_LETTERS_MIN - 1;
        if last >= source.len() {
            return None;
        }
        match (start..=last).rev().find(|at| !is_letter(*at)) {
            Some(other) => start = other + 1,
            None => break,
        }
    }
    let mut end = start + BASE64_LETTERS_MIN;
    let mut line = start;
    loop {
        while is_letter(end) {
            end += 1;
        }
        let rest = source.get(end..).unwrap_or_default();
        let next = match rest {
            [b'\r', b'\n', ..] => end + 2,
            [b'\n', ..] => end + 1,
            _ => return Some((start, end)),
        };
        if end - line < BASE64_LETTERS_MIN || !is_letter(next) {
            return Some((start, end));
        }
        line = next;
        end = next;
    }
}

/// Letters as bytes; what is left over at the end is dropped.
fn decoded(letters: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0u32);
    for letter in letters {
        bits = bits << 6 | u32::from(six_bits(*letter));
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = bits >> count & 0xff;
            bytes.push(u8::try_from(byte).unwrap_or_default());
        }
    }
    bytes
}

fn six_bits(letter: u8) -> u8 {
    match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    }
}
