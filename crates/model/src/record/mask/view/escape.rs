//! Decodes one escape: of URLs, of JSON, JavaScript, Python and C, of HTML.

/// The kinds of escapes to look for, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Kinds = Kinds(0);
    pub(super) const ALL: Kinds = Kinds(7);
    pub(super) const EACH: [Kinds; 3] = [Kinds::PERCENT, Kinds::BACKSLASH, Kinds::ENTITY];
    const PERCENT: Kinds = Kinds(1);
    const BACKSLASH: Kinds = Kinds(2);
    const ENTITY: Kinds = Kinds(4);

    /// The kind a byte may begin.
    pub(super) fn of(byte: u8) -> Kinds {
        match byte {
            b'%' => Kinds::PERCENT,
            b'\\' => Kinds::BACKSLASH,
            b'&' => Kinds::ENTITY,
            _ => Kinds::NONE,
        }
    }

    pub(super) fn has(self, kinds: Kinds) -> bool {
        self.0 & kinds.0 != 0
    }

    pub(super) fn and(self, kinds: Kinds) -> Kinds {
        Kinds(self.0 | kinds.0)
    }

    pub(super) fn are_several(self) -> bool {
        self.0.count_ones() > 1
    }
}

/// The longest escape, in bytes: two halves of a character, `\ud83d\ude42`.
pub(in crate::record::mask) const ESCAPE_BYTES_MAX: usize = 12;

/// Whether a byte may begin an escape.
pub(in crate::record::mask) fn is_mark(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// The next byte that may begin an escape of some kinds. In blocks, which the compiler
/// turns into a few instructions each.
pub(super) fn next_mark(source: &[u8], from: usize, kinds: Kinds) -> Option<usize> {
    match kinds {
        Kinds::PERCENT => next(source, from, |byte| byte == b'%'),
        Kinds::BACKSLASH => next(source, from, |byte| byte == b'\\'),
        Kinds::ENTITY => next(source, from, |byte| byte == b'&'),
        Kinds(_) => next(source, from, is_mark),
    }
}

#[inline]
fn next(source: &[u8], from: usize, is_mark: impl Fn(u8) -> bool) -> Option<usize> {
    const BLOCK: usize = 16;
    let rest = source.get(from..)?;
    let (blocks, last) = rest.as_chunks::<BLOCK>();
    // Looks at all bytes of the block: without an early end there is no branch.
    let has_mark = |block: &[u8; BLOCK]| block.iter().fold(false, |any, byte| any | is_mark(*byte));
    let block = blocks.iter().position(has_mark);
    let at = block.unwrap_or(blocks.len()) * BLOCK;
    let rest = match block {
        Some(_) => rest.get(at..at + BLOCK).unwrap_or_default(),
        None => last,
    };
    let index = rest.iter().position(|byte| is_mark(*byte))?;
    Some(from + at + index)
}

/// Up to four bytes.
pub(super) struct Decoded {
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

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

/// The character of an escape at the start of a text, and its length.
pub(super) fn escape(text: &[u8], kinds: Kinds) -> Option<(Decoded, usize)> {
    match text {
        [b'%', b'u', ..] if kinds.has(Kinds::PERCENT) => units(text, b"%u"),
        [b'%', high, low, ..] if kinds.has(Kinds::PERCENT) => {
            Some((Decoded::byte(hex(*high)? << 4 | hex(*low)?), 3))
        }
        [b'\\', ..] if kinds.has(Kinds::BACKSLASH) => backslash(text),
        [b'&', ..] if kinds.has(Kinds::ENTITY) => entity(text),
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
            // JavaScript means the character by it, not the byte.
            let number = hex(*high)? << 4 | hex(*low)?;
            Some((Decoded::character(char::from(number)), 4))
        }
        [_, b'u', b'{', rest @ ..] => {
            let (number, digits) = number(rest, 16)?;
            let is_closed = rest.get(digits) == Some(&b'}');
            let character = char::from_u32(number).filter(|_| is_closed)?;
            Some((Decoded::character(character), digits + 4))
        }
        [_, b'u', ..] => units(text, b"\\u"),
        // Python writes eight digits.
        [_, b'U', rest @ ..] => {
            let (number, digits) = number(rest.get(..8)?, 16)?;
            let character = char::from_u32(number).filter(|_| digits == 8)?;
            Some((Decoded::character(character), 10))
        }
        // C and git write bytes in octal.
        [
            _,
            high @ b'0'..=b'3',
            middle @ b'0'..=b'7',
            low @ b'0'..=b'7',
            ..,
        ] => {
            let number = (high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0');
            Some((Decoded::byte(number), 4))
        }
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

/// The names of punctuation. Letters have names too; programs that write them are
/// rare, and a secret with such letters rarer.
fn named(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        b"nbsp" => '\u{a0}',
        b"sol" => '/',
        b"NewLine" => '\n',
        b"Tab" => '\t',
        b"ast" => '*',
        b"bsol" => '\\',
        b"colon" => ':',
        b"comma" => ',',
        b"commat" => '@',
        b"dollar" => '$',
        b"equals" => '=',
        b"excl" => '!',
        b"grave" => '`',
        b"Hat" => '^',
        b"lbrace" | b"lcub" => '{',
        b"lbrack" | b"lsqb" => '[',
        b"lowbar" => '_',
        b"lpar" => '(',
        b"num" => '#',
        b"percnt" => '%',
        b"period" => '.',
        b"plus" => '+',
        b"quest" => '?',
        b"rbrace" | b"rcub" => '}',
        b"rbrack" | b"rsqb" => ']',
        b"rpar" => ')',
        b"semi" => ';',
        b"vert" => '|',
        _ => return None,
    })
}

fn entity(text: &[u8]) -> Option<(Decoded, usize)> {
    let numbered = |rest: &[u8], base: u32, mark: usize| {
        let (number, digits) = number(rest, base)?;
        // Browsers do without the semicolon.
        let is_closed = rest.get(digits) == Some(&b';');
        Some((
            char::from_u32(number)?,
            mark + digits + usize::from(is_closed),
        ))
    };
    let (character, length) = match text {
        [_, b'#', b'x' | b'X', rest @ ..] => numbered(rest, 16, 3)?,
        [_, b'#', rest @ ..] => numbered(rest, 10, 2)?,
        [_, rest @ ..] => {
            let end = rest.iter().take(8).position(|byte| *byte == b';')?;
            (named(rest.get(..end)?)?, end + 2)
        }
        [] => return None,
    };
    Some((Decoded::character(character), length))
}

/// A number of one to nine digits, and how many there are.
fn number(text: &[u8], base: u32) -> Option<(u32, usize)> {
    let digits = text.iter().take(9);
    let mut digits = digits.map_while(|digit| char::from(*digit).to_digit(base));
    let mut count = 0;
    let number = digits.try_fold(0u32, |number, digit| {
        count += 1;
        number.checked_mul(base)?.checked_add(digit)
    })?;
    (count > 0).then_some((number, count))
}

pub(in crate::record::mask) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
