//! What a program writes: its beginning and its end are kept, the middle of a long output
//! is left out and counted. Lines are told as progress while they come.

use std::collections::VecDeque;

use crate::limit;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

impl OutputStream {
    pub(crate) fn word(self) -> &'static str {
        match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        }
    }
}

/// Takes what a program writes.
pub(crate) struct OutputSink<'a> {
    capture: Capture,
    /// Gets each piece as it comes.
    watch: &'a mut (dyn FnMut(&[u8]) + Send),
}

impl<'a> OutputSink<'a> {
    /// Keeps at most so many bytes, and tells each piece.
    pub(crate) fn watched(
        bytes_max: u64,
        watch: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> OutputSink<'a> {
        OutputSink {
            capture: Capture::new(bytes_max),
            watch,
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.capture.take(bytes);
        (self.watch)(bytes);
    }

    /// How many bytes came in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.capture.bytes
    }

    pub(crate) fn finish(self) -> Captured {
        self.capture.finish()
    }
}

/// The beginning and the end of an output.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    bytes: u64,
}

/// What was kept of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// As text, with a line that says what was left out.
    pub(crate) text: String,
    /// How many bytes there were.
    pub(crate) bytes: u64,
    /// Whether some were left out.
    pub(crate) is_cut: bool,
}

impl Capture {
    pub(crate) fn new(bytes_max: u64) -> Capture {
        Capture {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: usize::try_from(bytes_max / 2).unwrap_or(usize::MAX).max(1),
            bytes: 0,
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        // Of a piece longer than what is kept only its end counts.
        let skipped = rest.len().saturating_sub(self.half);
        let rest = rest.get(skipped..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(rest);
    }

    pub(crate) fn finish(self) -> Captured {
        let Capture {
            head, tail, bytes, ..
        } = self;
        let tail: Vec<u8> = tail.into();
        let kept = u64::try_from(head.len() + tail.len()).unwrap_or(u64::MAX);
        let left_out = bytes.saturating_sub(kept);
        if left_out == 0 {
            let mut whole = head;
            whole.extend_from_slice(&tail);
            return Captured {
                text: String::from_utf8_lossy(&whole).into_owned(),
                bytes,
                is_cut: false,
            };
        }
        let text = format!(
            "{}\n[… {left_out} bytes left out …]\n{}",
            String::from_utf8_lossy(&head),
            String::from_utf8_lossy(&tail)
        );
        Captured {
            text,
            bytes,
            is_cut: true,
        }
    }
}

/// Splits what comes into lines for progress: so many, so long, and no more.
#[derive(Debug, Default)]
pub(crate) struct ProgressLines {
    rest: Vec<u8>,
    told: usize,
}

impl ProgressLines {
    /// The whole lines that a piece completes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = limit::PROGRESS_LINE_BYTES_MAX.saturating_sub(self.rest.len());
            let whole = piece.strip_suffix(b"\n");
            let shown = whole.unwrap_or(piece);
            self.rest
                .extend_from_slice(shown.get(..room.min(shown.len())).unwrap_or_default());
            if whole.is_some() {
                let line = std::mem::take(&mut self.rest);
                self.told += 1;
                if self.told <= limit::PROGRESS_LINES_MAX {
                    lines.push(String::from_utf8_lossy(&line).into_owned());
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(bytes_max: u64, pieces: &[&str]) -> Captured {
        let mut capture = Capture::new(bytes_max);
        pieces
            .iter()
            .for_each(|piece| capture.take(piece.as_bytes()));
        capture.finish()
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        let all = captured(10, &["ab", "cde", "", "fghij"]);
        assert_eq!(
            (all.text.as_str(), all.bytes, all.is_cut),
            ("abcdefghij", 10, false)
        );
    }

    #[test]
    fn of_a_long_output_both_ends_are_kept_and_the_middle_is_counted() {
        for pieces in [
            vec!["abcdefghijklmnop"],
            vec!["abc", "defghijklm", "no", "p"],
            vec![
                "abcd", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
            ],
        ] {
            let all = captured(8, &pieces);
            assert_eq!(all.text, "abcd\n[… 8 bytes left out …]\nmnop", "{pieces:?}");
            assert_eq!((all.bytes, all.is_cut), (16, true));
        }
    }

    #[test]
    fn lines_of_progress_are_bounded() {
        let mut lines = ProgressLines::default();
        assert_eq!(lines.push(b"a"), Vec::<String>::new());
        assert_eq!(lines.push(b"b\nc\nd"), ["ab", "c"]);
        let long = vec![b'x'; 10 * limit::PROGRESS_LINE_BYTES_MAX];
        lines.push(&long);
        let told = lines.push(b"\n");
        assert_eq!(told[0].len(), limit::PROGRESS_LINE_BYTES_MAX);
        let many = b"y\n".repeat(2 * limit::PROGRESS_LINES_MAX);
        assert_eq!(lines.push(&many).len(), limit::PROGRESS_LINES_MAX - 3);
    }
}
