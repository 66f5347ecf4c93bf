//! `deflate` in pieces, with or without a zlib header.
//!
//! The writers of the library take a stream that was cut short for a whole one,
//! so its inner decoder is driven here.

use std::io::{self, Write as _};

use flate2::{Decompress, FlushDecompress, Status};

use super::Sink;

const BUFFER_BYTES: usize = 16 * 1024;

/// Takes a body in pieces.
pub(crate) struct Inflater {
    sink: Sink,
    state: Decompress,
    buffer: Vec<u8>,
    is_done: bool,
}

impl Inflater {
    pub(crate) fn new(sink: Sink, has_header: bool) -> Inflater {
        Inflater {
            sink,
            state: Decompress::new(has_header),
            buffer: vec![0; BUFFER_BYTES],
            is_done: false,
        }
    }

    pub(crate) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// What follows the end of the stream is ignored.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !self.is_done {
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self
                .state
                .decompress(piece, &mut self.buffer, FlushDecompress::None)
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let read = usize::try_from(self.state.total_in() - read).unwrap_or(usize::MAX);
            let written = usize::try_from(self.state.total_out() - written).unwrap_or(usize::MAX);
            self.sink
                .write_all(self.buffer.get(..written).unwrap_or_default())?;
            piece = piece.get(read..).unwrap_or_default();
            self.is_done = matches!(status, Status::StreamEnd);
            if read == 0 && written == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Whether the body ended where the stream ends.
    pub(crate) fn finish(&self) -> io::Result<()> {
        if self.is_done {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        }
    }
}
