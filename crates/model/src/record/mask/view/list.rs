//! Bytes written as numbers, `[115, 101, 99]` or `{"0":115,"1":101}`: how
//! an array of bytes is printed or returned.

use super::{View, Wanted};

/// The bytes of every list of numbers.
pub(super) fn unlist(source: &[u8], wanted: &Wanted, mut view: View) -> Option<View> {
    let mut at = 0;
    while let Some(comma) = next_comma(source, at) {
        at = comma + 1;
        let head = source.get(..comma).unwrap_or_default();
        let digits = head.iter().rev().take_while(|byte| is_digit(**byte));
        // A byte has three digits. A fourth says that it is none.
        let digits = digits.take(4).count();
        let Some(first) = item(source, comma - digits) else {
            continue;
        };
        if first.end != comma {
            continue;
        }
        let mut items = vec![first];
        let mut end = comma;
        while source.get(end) == Some(&b',') {
            let Some(next) = item(source, end + 1) else {
                break;
            };
            end = next.end + spaces(source, next.end);
            items.push(next);
        }
        at = end.max(at);
        keep(&mut view, wanted, &items);
    }
    view.is_decoded.then_some(view)
}

fn keep(view: &mut View, wanted: &Wanted, items: &[Item]) {
    for stretch in items.split(|item| !wanted.has(item.byte)) {
        if stretch.len() >= wanted.bytes_min {
            view.apart();
            for item in stretch {
                view.whole(&[item.byte], (item.start, item.end));
            }
        }
    }
}

/// One number.
struct Item {
    byte: u8,
    start: usize,
    end: usize,
}

/// A number at a place, after spaces and perhaps its key.
fn item(source: &[u8], from: usize) -> Option<Item> {
    let mut start = from + spaces(source, from);
    if source.get(start) == Some(&b'"') {
        let key = number(source, start + 1)?.1;
        if source.get(key) != Some(&b'"') || source.get(key + 1) != Some(&b':') {
            return None;
        }
        start = key + 2 + spaces(source, key + 2);
    }
    let (value, end) = number(source, start)?;
    let is_whole = !matches!(source.get(end), Some(b'.' | b'e' | b'E' | b'"'));
    let byte = u8::try_from(value).ok().filter(|_| is_whole)?;
    Some(Item { byte, start, end })
}

/// A whole number of up to six digits, and where it ends.
fn number(source: &[u8], start: usize) -> Option<(u32, usize)> {
    let rest = source.get(start..)?;
    let digits = rest.iter().take_while(|byte| is_digit(**byte)).take(7);
    let mut count = 0;
    let value = digits.fold(0, |value: u32, digit| {
        count += 1;
        value * 10 + u32::from(digit - b'0')
    });
    (1..7).contains(&count).then_some((value, start + count))
}

fn spaces(source: &[u8], from: usize) -> usize {
    let rest = source.get(from..).unwrap_or_default();
    let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    spaces.count()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// The next comma with a digit before it. In blocks, as for the marks of escapes.
fn next_comma(source: &[u8], from: usize) -> Option<usize> {
    const BLOCK: usize = 32;
    let mut at = from;
    while let Some(block) = source.get(at..at + BLOCK) {
        let commas = block.iter().fold(false, |any, byte| any | (*byte == b','));
        let is_numbered = commas && {
            let before = source.get(at.saturating_sub(1)..at + BLOCK);
            let pairs = before.unwrap_or_default().windows(2);
            let mut pairs = pairs.filter(|pair| matches!(pair, [b'0'..=b'9', b',']));
            pairs.next().is_some()
        };
        if is_numbered {
            break;
        }
        at += BLOCK;
    }
    let start = at.max(1);
    let rest = source.get(start - 1..)?;
    let mut pairs = rest.windows(2);
    let found = pairs.position(|pair| matches!(pair, [b'0'..=b'9', b',']));
    found.map(|index| start + index)
}
