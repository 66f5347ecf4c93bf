//! What a program writes: its beginning and its end are kept, the middle of a long output
//! is left out and counted. Lines are told as progress while they come.
//!
//! A secret may stand where an output is cut. So that no half of it leaves, a little more is
//! kept than is shown, and what is shown is masked here.

use std::collections::VecDeque;

use model::record::mask::{Masked, Masker};

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
    capture: Capture<'a>,
    /// Gets each piece as it comes.
    watch: &'a mut (dyn FnMut(&[u8]) + Send),
}

impl<'a> OutputSink<'a> {
    /// Keeps at most so many bytes, and tells each piece.
    pub(crate) fn watched(
        bytes_max: u64,
        masker: &'a Masker,
        watch: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> OutputSink<'a> {
        OutputSink {
            capture: Capture::new(bytes_max, masker),
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
pub(crate) struct Capture<'a> {
    masker: &'a Masker,
    /// The first bytes of all, as many as `room`.
    head: Vec<u8>,
    /// The last bytes of all, as many as `room`.
    tail: VecDeque<u8>,
    /// Bytes that are shown of either end.
    half: usize,
    /// Those, and what it takes to know a secret at the cut.
    room: usize,
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

impl<'a> Capture<'a> {
    pub(crate) fn new(bytes_max: u64, masker: &'a Masker) -> Capture<'a> {
        let half = usize::try_from(bytes_max / 2).unwrap_or(usize::MAX).max(1);
        Capture {
            masker,
            head: Vec::new(),
            tail: VecDeque::new(),
            half,
            room: half.saturating_add(masker.reach()),
            bytes: 0,
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let free = self.room.saturating_sub(self.head.len()).min(bytes.len());
        self.head
            .extend_from_slice(bytes.get(..free).unwrap_or_default());
        // Of a piece longer than what is kept only its end counts.
        let skipped = bytes.len().saturating_sub(self.room);
        let rest = bytes.get(skipped..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(self.room);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(rest);
    }

    pub(crate) fn finish(self) -> Captured {
        let Capture {
            masker,
            head,
            tail,
            half,
            bytes,
            ..
        } = self;
        let tail: Vec<u8> = tail.into();
        let shown = u64::try_from(half.saturating_mul(2)).unwrap_or(u64::MAX);
        let left_out = bytes.saturating_sub(shown);
        if left_out == 0 {
            // Both ends overlap: the tail has all that the first half has not.
            let first = head.get(..half.min(head.len())).unwrap_or_default();
            let rest = usize::try_from(bytes).unwrap_or(usize::MAX);
            let rest = tail.len().saturating_sub(rest.saturating_sub(first.len()));
            let mut whole = first.to_vec();
            whole.extend_from_slice(tail.get(rest..).unwrap_or_default());
            return Captured {
                text: String::from_utf8_lossy(&whole).into_owned(),
                bytes,
                is_cut: false,
            };
        }
        let text = format!(
            "{}\n[… {left_out} bytes left out …]\n{}",
            masker.part(&head, 0..half).get(),
            masker.part(&tail, tail.len() - half..tail.len()).get(),
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
    /// Whether the line is longer than what is kept of it.
    is_cut: bool,
    told: usize,
}

impl ProgressLines {
    /// The whole lines that a piece completes, masked.
    pub(crate) fn push(&mut self, bytes: &[u8], masker: &Masker) -> Vec<Masked<String>> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = limit::PROGRESS_LINE_BYTES_MAX.saturating_sub(self.rest.len());
            let whole = piece.strip_suffix(b"\n");
            let shown = whole.unwrap_or(piece);
            self.is_cut |= shown.len() > room;
            self.rest
                .extend_from_slice(shown.get(..room.min(shown.len())).unwrap_or_default());
            if whole.is_some() {
                let line = std::mem::take(&mut self.rest);
                let is_cut = std::mem::take(&mut self.is_cut);
                self.told += 1;
                if self.told <= limit::PROGRESS_LINES_MAX {
                    let line = String::from_utf8_lossy(&line);
                    lines.push(match is_cut {
                        true => masker.cut_text(&line),
                        false => masker.text(&line),
                    });
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use model::record::mask::Masker;

    use super::*;

    fn captured(bytes_max: u64, pieces: &[&str]) -> Captured {
        let masker = Masker::none();
        let mut capture = Capture::new(bytes_max, &masker);
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

    /// Attack: a secret where the output is cut would leave in part, because half a secret is
    /// none to a masker.
    #[test]
    fn a_secret_at_the_cut_does_not_leave_in_part() {
        let secret = "Tr0ub4dor&3-horse";
        let encoded = "%54r0ub4dor%263-horse";
        let masker = Masker::new([secret]).unwrap();
        for spelt in [secret, encoded] {
            for before in 0..64 {
                let text = format!("{}{spelt}{}", "a".repeat(before), "z".repeat(64 - before));
                let mut capture = Capture::new(64, &masker);
                capture.take(text.as_bytes());
                let shown = masker.text(&capture.finish().text).into_inner();
                for part in [
                    "Tr0", "r0ub", "b4do", "dor&", "dor%2", "3-ho", "horse", "rse",
                ] {
                    assert!(!shown.contains(part), "{before}: {shown}");
                }
            }
        }
    }

    #[test]
    fn a_secret_where_a_line_of_progress_is_cut_does_not_leave_in_part() {
        let secret = "Tr0ub4dor&3-horse";
        let masker = Masker::new([secret]).unwrap();
        let most = limit::PROGRESS_LINE_BYTES_MAX;
        for before in most - secret.len()..most - 4 {
            let mut lines = ProgressLines::default();
            let text = format!("{}{secret}\n", "a".repeat(before));
            let shown = lines.push(text.as_bytes(), &masker).pop().unwrap();
            let shown = shown.into_inner();
            assert!(!shown.contains("Tr0u"), "{before}: {shown}");
        }
    }

    #[test]
    fn lines_of_progress_are_bounded() {
        let mut lines = ProgressLines::default();
        let mut push = |bytes: &[u8]| -> Vec<String> {
            let told = lines.push(bytes, &Masker::none()).into_iter();
            told.map(Masked::into_inner).collect()
        };
        assert_eq!(push(b"a"), Vec::<String>::new());
        assert_eq!(push(b"b\nc\nd"), ["ab", "c"]);
        push(&vec![b'x'; 10 * limit::PROGRESS_LINE_BYTES_MAX]);
        let told = push(b"\n");
        assert_eq!(told[0].len(), limit::PROGRESS_LINE_BYTES_MAX);
        let many = b"y\n".repeat(2 * limit::PROGRESS_LINES_MAX);
        assert_eq!(push(&many).len(), limit::PROGRESS_LINES_MAX - 3);
    }
}
