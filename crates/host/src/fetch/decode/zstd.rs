//! Zstandard in pieces.
//!
//! The decoder takes whole blocks, and a block of four bytes may stand for
//! 128 KiB. So frames are taken apart here and given to it one block at a time,
//! each drained before the next.

use std::io::{self, Write as _};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::Sink;

/// What RFC 9659 lets a window be in HTTP; it is also all we hold back.
const WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;
const MAGIC: u32 = 0xFD2F_B528;
const MAGIC_SKIPPABLE: u32 = 0x184D_2A50;
const BLOCK_HEADER_BYTES: usize = 3;
const CHECKSUM_BYTES: usize = 4;

/// Takes a body in pieces.
pub(crate) struct ZstdDecoder {
    sink: Sink,
    frame: FrameDecoder,
    pending: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    BetweenFrames,
    Skipping(usize),
    InFrame { has_checksum: bool },
}

/// What one look at the pending bytes comes to.
enum Step {
    Took(usize),
    NeedsMore,
}

impl ZstdDecoder {
    pub(crate) fn new(sink: Sink) -> ZstdDecoder {
        ZstdDecoder {
            sink,
            frame: FrameDecoder::new(),
            pending: Vec::new(),
            state: State::BetweenFrames,
        }
    }

    pub(crate) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(piece);
        let mut taken = 0;
        while let Some(rest) = pending.get(taken..).filter(|rest| !rest.is_empty()) {
            let step = match self.state {
                State::BetweenFrames => self.start(rest)?,
                State::Skipping(count) => self.skip(rest, count),
                State::InFrame { has_checksum } => self.block(rest, has_checksum)?,
            };
            match step {
                Step::Took(count) => taken += count,
                Step::NeedsMore => break,
            }
        }
        pending.drain(..taken.min(pending.len()));
        self.pending = pending;
        Ok(())
    }

    /// Whether the body ended where a frame ends.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.state {
            State::BetweenFrames if self.pending.is_empty() => Ok(()),
            State::BetweenFrames | State::Skipping(_) | State::InFrame { .. } => Err(corrupt()),
        }
    }

    fn start(&mut self, rest: &[u8]) -> io::Result<Step> {
        let Some((magic, after)) = rest.split_first_chunk::<4>() else {
            return Ok(Step::NeedsMore);
        };
        let magic = u32::from_le_bytes(*magic);
        if magic & 0xFFFF_FFF0 == MAGIC_SKIPPABLE {
            let Some((size, _)) = after.split_first_chunk::<4>() else {
                return Ok(Step::NeedsMore);
            };
            // Counted, not kept: a skippable frame may claim four gigabytes.
            let size = usize::try_from(u32::from_le_bytes(*size)).map_err(|_| corrupt())?;
            self.state = State::Skipping(size);
            return Ok(Step::Took(8));
        }
        if magic != MAGIC {
            return Err(corrupt());
        }
        let Some(descriptor) = after.first().copied() else {
            return Ok(Step::NeedsMore);
        };
        let is_single = descriptor & 0x20 != 0;
        let window = usize::from(!is_single);
        let dictionary = match descriptor & 3 {
            3 => 4,
            count => usize::from(count),
        };
        let content = match descriptor >> 6 {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let count = 5 + window + dictionary + content;
        let Some(header) = rest.get(..count) else {
            return Ok(Step::NeedsMore);
        };
        let field = header.get(5 + window + dictionary..).unwrap_or_default();
        let size = match (is_single, header.get(5)) {
            (true, _) => content_size(field),
            (false, window) => window_size(window.copied().unwrap_or(u8::MAX)),
        };
        if size > WINDOW_BYTES_MAX {
            // A single segment is its own window: the frame says how long it is,
            // and it is too long for us in any case.
            // So that it is reported as too large, not as damaged.
            self.sink.is_over |= is_single;
            return Err(corrupt());
        }
        self.frame.reset(header).map_err(|_| corrupt())?;
        self.state = State::InFrame {
            has_checksum: descriptor & 4 != 0,
        };
        Ok(Step::Took(count))
    }

    fn skip(&mut self, rest: &[u8], count: usize) -> Step {
        let taken = count.min(rest.len());
        self.state = match count - taken {
            0 => State::BetweenFrames,
            left => State::Skipping(left),
        };
        Step::Took(taken)
    }

    fn block(&mut self, rest: &[u8], has_checksum: bool) -> io::Result<Step> {
        let Some([a, b, c]) = rest.first_chunk::<3>() else {
            return Ok(Step::NeedsMore);
        };
        let header = u32::from_le_bytes([*a, *b, *c, 0]);
        let is_last = header & 1 != 0;
        // A block of kind 1 repeats one byte: its length is that of the result,
        // not of what follows.
        let content = match (header >> 1) & 3 {
            1 => 1,
            _ => usize::try_from(header >> 3).map_err(|_| corrupt())?,
        };
        let checksum = if is_last && has_checksum {
            CHECKSUM_BYTES
        } else {
            0
        };
        let count = BLOCK_HEADER_BYTES + content + checksum;
        let Some(block) = rest.get(..count) else {
            return Ok(Step::NeedsMore);
        };
        // One at a time, and drained at once: the sink stops before the next block swells.
        self.frame
            .decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1))
            .map_err(|_| corrupt())?;
        if let Some(decoded) = self.frame.collect() {
            self.sink.write_all(&decoded)?;
        }
        if is_last {
            self.state = State::BetweenFrames;
        }
        Ok(Step::Took(count))
    }
}

fn window_size(descriptor: u8) -> u64 {
    let base = 1_u64 << (10 + (descriptor >> 3));
    base + (base / 8) * u64::from(descriptor & 7)
}

fn content_size(field: &[u8]) -> u64 {
    let number = field
        .iter()
        .rev()
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    if field.len() == 2 {
        number + 256
    } else {
        number
    }
}

fn corrupt() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}
