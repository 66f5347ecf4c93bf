//! Decodes base64 and base32 parts of a text.
//!
//! Most runs of letters are no base64, and most starts are the wrong ones; what comes
//! out of them is noise. Only stretches that could hold a secret or something to
//! decode again are kept, so noise costs the decoding and no more.

use super::super::forms::is_base64;
use super::{Kind, Piece, View, Wanted};
use crate::limits;

/// Letters up to which a run is decoded from each of its first letters: where it
/// begins is not known when a `/` or `-` stands before it.
const SHIFTED_LETTERS_MAX: usize = 4 * 1024;

/// The decoded base64 or base32 parts. Lines that are folded are also unfolded, for a
/// secret may itself look like base64.
pub(super) fn unbase(source: &[u8], wanted: &Wanted, mut view: View) -> Option<View> {
    let mut at = 0;
    while let Some((start, end)) = letters(source, at, wanted.letters_min) {
        at = end;
        let run = source.get(start..end).unwrap_or_default();
        if run.iter().all(|byte| is_base64(*byte)) {
            for shift in 0..shifts(run, 4) {
                decode::<SIX>(&mut view, wanted, run, start, Start::at(shift));
            }
            unbase32(&mut view, wanted, run, start);
            continue;
        }
        let unfolded: Vec<u8> = run
            .iter()
            .copied()
            .filter(|byte| is_base64(*byte))
            .collect();
        let place = (start, end);
        view.apart();
        view.whole(&unfolded, place);
        decode::<SIX>(&mut view, wanted, &unfolded, start, Start::folded(place));
    }
    view.is_decoded.then_some(view)
}

fn shifts(run: &[u8], all: usize) -> usize {
    match run.len() <= SHIFTED_LETTERS_MAX {
        true => all,
        false => 1,
    }
}

/// The stretches of base32 in a run of letters, in one case each.
fn unbase32(view: &mut View, wanted: &Wanted, run: &[u8], start: usize) {
    let mut at = 0;
    while let Some(first) = run.get(at) {
        let is_letter: fn(&u8) -> bool = match first {
            b'A'..=b'Z' => |byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'),
            b'a'..=b'z' => |byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'),
            b'2'..=b'7' => |byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'),
            _ => {
                at += 1;
                continue;
            }
        };
        let rest = run.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_letter(byte)).count();
        let stretch = rest.get(..length).unwrap_or_default();
        if length >= wanted.letters_min {
            for shift in 0..shifts(stretch, 8) {
                decode::<FIVE>(view, wanted, stretch, start + at, Start::at(shift));
            }
        }
        at += length.max(1);
    }
}

/// The letters of base64 and of base32, by the bits of each.
const SIX: usize = 6;
const FIVE: usize = 5;

/// How a run is decoded.
#[derive(Clone, Copy)]
struct Start {
    /// Letters to leave out at its beginning.
    shift: usize,
    /// The place all of it stands for, where its letters do not follow each other.
    folded: Option<(usize, usize)>,
}

impl Start {
    fn piece(self, out: usize, place: usize, length: usize, width: usize, skipped: usize) -> Piece {
        match self.folded {
            Some((start, end)) => Piece {
                out,
                start,
                end,
                kind: Kind::Whole,
            },
            None => Piece {
                out,
                start: place + self.shift,
                end: place + length,
                kind: Kind::Bits { width, skipped },
            },
        }
    }

    fn at(shift: usize) -> Start {
        Start {
            shift,
            folded: None,
        }
    }

    fn folded(place: (usize, usize)) -> Start {
        Start {
            shift: 0,
            folded: Some(place),
        }
    }
}

/// Letters as bytes, in stretches that may hold something; what is left over at the
/// end is dropped. A stretch holds one of every so many bytes, and where that one is
/// not wanted no other is looked at.
fn decode<const WIDTH: usize>(
    view: &mut View,
    wanted: &Wanted,
    run: &[u8],
    place: usize,
    start: Start,
) {
    let letters = Letters::<WIDTH>(run.get(start.shift..).unwrap_or_default());
    let count = letters.0.len() * WIDTH / 8;
    let mut from = 0;
    while from < count {
        // The run may have been cut, and a secret with it: its end is always looked at.
        let probe = (from + wanted.bytes_min - 1).min(count - 1);
        if !wanted.has(letters.byte(probe)) {
            from = probe + 1;
            continue;
        }
        let mut first = probe;
        while first > from && wanted.has(letters.byte(first - 1)) {
            first -= 1;
        }
        let before = view.bytes.len();
        view.apart();
        let out = view.bytes.len();
        let rest = (first..count).map(|index| letters.byte(index));
        view.bytes.extend(rest.take_while(|byte| wanted.has(*byte)));
        let length = view.bytes.len() - out;
        // At the end of the run a secret may be cut, so less of it is enough.
        let length_min = match first + length == count {
            true => limits::SECRET_CHARS_MIN.min(wanted.bytes_min),
            false => wanted.bytes_min,
        };
        if length < length_min {
            view.bytes.truncate(before);
        } else {
            view.is_decoded = true;
            view.maps(|_| start.piece(out, place, run.len(), WIDTH, first));
        }
        from = first + length + 1;
    }
}

/// Letters of some bits each.
struct Letters<'a, const WIDTH: usize>(&'a [u8]);

impl<const WIDTH: usize> Letters<'_, WIDTH> {
    /// The byte with this number.
    fn byte(&self, index: usize) -> u8 {
        let (letter, bit) = (index * 8 / WIDTH, index * 8 % WIDTH);
        let value = |letter: usize| {
            let letter = self.0.get(letter).copied().unwrap_or_default();
            u32::from(if WIDTH == SIX {
                six_bits(letter)
            } else {
                five_bits(letter)
            })
        };
        // With five bits a letter, a byte may lie in three letters.
        let bits = value(letter) << (2 * WIDTH) | value(letter + 1) << WIDTH | value(letter + 2);
        u8::try_from(bits >> (3 * WIDTH - bit - 8) & 0xff).unwrap_or_default()
    }
}

/// The next run of letters that may be base64, its folded lines included. Looks at
/// the last letter a run would have first, so that words are skipped.
fn letters(source: &[u8], from: usize, letters_min: usize) -> Option<(usize, usize)> {
    let is_letter = |at: usize| source.get(at).is_some_and(|byte| is_base64(*byte));
    let mut start = from;
    loop {
        let last = start + letters_min - 1;
        if last >= source.len() {
            return None;
        }
        match (start..=last).rev().find(|at| !is_letter(*at)) {
            Some(other) => start = other + 1,
            None => break,
        }
    }
    let mut end = start + letters_min;
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
        // A shorter line is the last of a folded text.
        if end - line < letters_min || !is_letter(next) {
            return Some((start, end));
        }
        line = next;
        end = next;
    }
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

fn five_bits(letter: u8) -> u8 {
    match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a',
        _ => letter.saturating_sub(b'2') + 26,
    }
}

/// Some letters of base64 as bytes, all of them.
pub(in crate::record::mask) fn unbased(letters: &[u8]) -> Vec<u8> {
    let (mut bits, mut count) = (0u32, 0u32);
    let mut bytes = Vec::with_capacity(letters.len());
    for letter in letters {
        bits = bits << 6 | u32::from(six_bits(*letter));
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    bytes
}
