//! One record as one line of the log, readable by people and by other programs:
//! `sequence kind process previous hash body`, with one space between them. The
//! body is JSON and has no line feed of its own.

use model::record::audit::chain::{ChainHash, Head, Record, RecordKind};

/// Written where no process is named.
const NO_PROCESS: &str = "-";

/// A record as the log holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) record: Record,
    /// The process that wrote an open record; other records name none.
    pub(crate) process: Option<String>,
}

impl Line {
    pub(crate) fn head(&self) -> Head {
        Head {
            sequence: self.record.sequence,
            hash: self.record.hash,
        }
    }
}

/// Begins the line of a record, up to its body. Returns where [`end`] must put the
/// hash, which is computed from the body.
pub(crate) fn begin(
    out: &mut Vec<u8>,
    sequence: u64,
    kind: RecordKind,
    process: Option<&str>,
    previous: &ChainHash,
) -> usize {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = write!(out, "{sequence} ");
    out.extend_from_slice(kind.word().as_bytes());
    out.push(b' ');
    out.extend_from_slice(process.unwrap_or(NO_PROCESS).as_bytes());
    out.push(b' ');
    out.extend_from_slice(&previous.hex_bytes());
    out.push(b' ');
    let hash_at = out.len();
    // A placeholder of the same length: the hash is computed over the
    // body, which follows it.
    out.extend_from_slice(&ChainHash::ZERO.hex_bytes());
    out.push(b' ');
    hash_at
}

/// Ends a line after its body was appended.
pub(crate) fn end(out: &mut Vec<u8>, hash_at: usize, hash: &ChainHash) {
    let hex = hash.hex_bytes();
    if let Some(place) = out.get_mut(hash_at..hash_at + hex.len()) {
        place.copy_from_slice(&hex);
    }
    out.push(b'\n');
}

/// Appends a line exactly as it was read.
pub(crate) fn write_again(out: &mut Vec<u8>, line: &Line) {
    let Line { record, process } = line;
    let (sequence, process) = (record.sequence, process.as_deref());
    let hash_at = begin(out, sequence, record.kind, process, &record.previous);
    out.extend_from_slice(record.body.as_bytes());
    end(out, hash_at, &record.hash);
}

/// Reads a line without its line feed; nothing if it is malformed.
pub(crate) fn read(bytes: &[u8]) -> Option<Line> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = text.splitn(6, ' ');
    let sequence = fields.next()?;
    let kind = RecordKind::of_word(fields.next()?)?;
    let process = fields.next()?;
    let previous = fields.next()?.parse().ok()?;
    let hash = fields.next()?.parse().ok()?;
    let body = fields.next()?;
    // `parse` would take `+7` as well. One record must have one spelling, or its line could
    // be changed unnoticed.
    let is_number = sequence.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || process.is_empty() {
        return None;
    }
    Some(Line {
        record: Record {
            sequence: sequence.parse().ok()?,
            kind,
            previous,
            hash,
            body: body.to_owned(),
        },
        process: (process != NO_PROCESS).then(|| process.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for process in [None, Some("0b7c")] {
            let record = Record {
                sequence: 7,
                kind: RecordKind::Close,
                previous: ChainHash::from_bytes([1; 32]),
                hash: ChainHash::from_bytes([0xab; 32]),
                body: r#"{"a b":"c  d"}"#.to_owned(),
            };
            let process = process.map(str::to_owned);
            let line = Line { record, process };
            let mut bytes = Vec::new();
            write_again(&mut bytes, &line);
            let (last, text) = bytes.split_last().expect("not empty");
            assert_eq!(*last, b'\n');
            assert_eq!(read(text), Some(line));
        }
    }

    #[test]
    fn malformed_lines_are_not_read() {
        let zeros = "0".repeat(64);
        let good = format!("1 open p {zeros} {zeros} {{}}");
        assert!(read(good.as_bytes()).is_some());
        for bad in [
            String::new(),
            "\0\0\0".to_owned(),
            good.replacen('1', "-1", 1),
            good.replacen('1', "+1", 1),
            good.replacen('1', "", 1),
            good.replacen('1', "99999999999999999999", 1),
            good.replacen("open", "opened", 1),
            good.replacen(" p ", "  ", 1),
            good.replacen(&zeros, "00", 1),
            good.trim_end_matches(" {}").to_owned(),
        ] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(read(b"1 open p \xff"), None);
    }
}
