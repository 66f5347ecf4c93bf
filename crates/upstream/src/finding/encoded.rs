//! Encoded text: Base64, hexadecimal digits, escapes.
//!
//! A reader skips such a piece and a model decodes it. One that becomes a command is
//! held; one that becomes another readable text is shown.

use super::{FindingCode, Findings};

/// Shorter pieces decode to nothing worth a finding.
const CODED_CHARS_MIN: usize = 16;
/// Escapes in a row that are more than a letter in an example.
const ESCAPES_MIN: usize = 6;
/// How often a decoded text is decoded again.
const LAYERS_MAX: usize = 3;

/// Phrases of command lines, in lower case, that a decoded text is searched for.
const COMMANDS: &[&str] = &[
    "$(",
    "&& ",
    "/bin/",
    "/etc/passwd",
    "base64 -d",
    "bash ",
    "cat ~",
    "chmod ",
    "cmd.exe",
    "curl ",
    "curl -",
    "eval(",
    "exec(",
    "iex(",
    "invoke-webrequest",
    "nc -",
    "node -e",
    "os.system",
    "perl -e",
    "powershell",
    "python -c",
    "python3 -c",
    "rm -rf",
    "scp ",
    "sh -c",
    "subprocess",
    "sudo ",
    "wget ",
    "| bash",
    "| sh",
    "|bash",
    "|sh",
    "~/.ssh",
];

/// Every coded piece of a text that decodes.
pub(super) fn check(findings: &mut Findings, field: &str, text: &str) {
    for (start, piece) in pieces(text) {
        let span = start..start + piece.len();
        match decode(piece, LAYERS_MAX) {
            Some(Decoded::Command) => {
                let message = "an encoded piece decodes to a command";
                findings.add(FindingCode::EncodedCommand, field, text, span, message);
            }
            Some(Decoded::Text) => {
                let message = "an encoded piece decodes to a text";
                findings.add(FindingCode::EncodedText, field, text, span, message);
            }
            None => {}
        }
    }
}

enum Decoded {
    Command,
    Text,
}

/// Pieces without a space that are long enough, with their places.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=_-\\%&#;".contains(c);
    let mut pieces = Vec::new();
    let mut start = 0;
    let ends = text
        .char_indices()
        .filter(|(_, c)| !is_part(*c))
        .map(|(at, c)| (at, c.len_utf8()));
    for (end, width) in ends.chain([(text.len(), 0)]) {
        let piece = text.get(start..end).unwrap_or("");
        if piece.len() >= CODED_CHARS_MIN {
            pieces.push((start, piece));
        }
        start = end + width;
    }
    pieces
}

fn decode(piece: &str, layers: usize) -> Option<Decoded> {
    // All readings: digits that are hexadecimal are Base64 as well.
    let readings = [base64(piece), hexadecimal(piece), escapes(piece)];
    let mut best = None;
    for bytes in readings.into_iter().flatten() {
        let Some(text) = readable(&bytes) else {
            continue;
        };
        let lower = text.to_lowercase();
        if COMMANDS.iter().any(|command| lower.contains(command)) {
            return Some(Decoded::Command);
        }
        let inner = match layers {
            0 => None,
            layers => pieces(&text)
                .into_iter()
                .find_map(|(_, piece)| decode(piece, layers - 1)),
        };
        match inner {
            Some(Decoded::Command) => return Some(Decoded::Command),
            Some(Decoded::Text) => best = Some(Decoded::Text),
            // Two words decode by chance; three or more are a sentence for the model.
            None if text.split_whitespace().count() >= 3 => best = Some(Decoded::Text),
            None => {}
        }
    }
    best
}

/// The text of bytes that are text.
fn readable(bytes: &[u8]) -> Option<String> {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    // Short or binary results are what random text decodes to.
    let is_readable = bytes.len() >= 6 && bytes.iter().all(is_text);
    is_readable.then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// Base64 of either alphabet, padded or not.
fn base64(piece: &str) -> Option<Vec<u8>> {
    // Padding is optional, and `=` before a value belongs to an assignment.
    let piece = piece.trim_end_matches('=').trim_start_matches('=');
    // No number of bytes encodes to a length of 1 modulo 4.
    if piece.len() < CODED_CHARS_MIN || piece.len() % 4 == 1 {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut bytes = Vec::with_capacity(piece.len());
    for byte in piece.bytes() {
        // The mask keeps the unread bits only, so the shift cannot overflow.
        bits = ((bits << 6) | u32::from(digit(byte)?)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from((bits >> count) & 0xff));
        }
    }
    Some(bytes)
}

fn hexadecimal(piece: &str) -> Option<Vec<u8>> {
    let piece = piece.trim_start_matches("0x");
    if piece.len() < CODED_CHARS_MIN || piece.len() % 2 == 1 || !piece.is_ascii() {
        return None;
    }
    let pairs = piece
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok());
    pairs
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect()
}

/// `\x63`, `%63`, `\u0063` and `&#x63;`, several in a row.
fn escapes(piece: &str) -> Option<Vec<u8>> {
    for (open, close) in [("\\x", ""), ("%", ""), ("\\u00", ""), ("&#x", ";")] {
        if piece.matches(open).count() < ESCAPES_MIN {
            continue;
        }
        let mut bytes = Vec::new();
        let mut rest = piece;
        while let Some((before, after)) = rest.split_once(open) {
            bytes.extend_from_slice(before.trim_start_matches(close).as_bytes());
            let byte = after
                .get(..2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok());
            bytes.push(byte?);
            rest = after.get(2..)?;
        }
        bytes.extend_from_slice(rest.trim_start_matches(close).as_bytes());
        return Some(bytes);
    }
    None
}
