//! Messages between a parent and a worker, as bytes and back.
//!
//! A frame is a length (four bytes, little-endian) and a body; a body is a tag and its
//! fields. There is one way to write each message and decoding accepts no other: a
//! decoded frame encodes to the same bytes. Whatever arrives, decoding returns; a
//! length claimed by the peer never makes us reserve more than has arrived. What a
//! message means, and whether it may come now, is for `pool` and `worker` to say.

mod read;
mod write;

#[cfg(test)]
mod tests;

use crate::job::{Down, Up};
use crate::walls::Walls;

use self::read::Fields;

/// The version of everything in this file. A worker of another version is refused.
pub const PROTOCOL_VERSION: u16 = 2;

/// No frame has a longer body, whatever a job's limits say.
pub const FRAME_BYTES_MAX: u32 = 32 << 20;

/// The overhead of a frame, generously.
pub const FRAME_OVERHEAD_BYTES: u32 = 4 << 10;

/// The name of a guest build, in a hello.
pub const GUEST_KEY_BYTES_MAX: usize = 128;

/// The length before each body.
pub const HEADER_BYTES: usize = 4;

/// Bytes that the frame buffer grows by, and keeps.
const ROOM_BYTES: usize = 64 << 10;

/// Opens every hello: bytes of some other program are told apart at once.
const HELLO_MAGIC: u32 = u32::from_le_bytes(*b"RFWK");

/// Why bytes are not a frame. After any of these the peer is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length above the bound in force.
    #[error("a frame of {0} bytes is longer than allowed")]
    TooLong(u64),
    /// A body that ends inside a field.
    #[error("a frame ends inside a field")]
    Truncated,
    /// A body with bytes after its last field.
    #[error("a frame has bytes after its last field")]
    Trailing,
    /// An unknown tag.
    #[error("unknown tag {0}")]
    UnknownTag(u8),
    /// Text that is not UTF-8.
    #[error("text in a frame is not utf-8")]
    NotText,
    /// A hello that is not one of ours.
    #[error("the peer is not a worker")]
    NotHello,
    /// A hello of another version.
    #[error("the peer speaks version {0} of the protocol")]
    Version(u16),
}

/// A worker's first message: its build, and its walls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Names the guest build, which must be the parent's own.
    pub guest_key: String,
    /// Which layers of the walls are up around this worker.
    pub walls: Walls,
}

/// Appends `down` to `out` as one frame. On error `out` is as it was.
pub fn encode_down(down: &Down, out: &mut Vec<u8>) -> Result<(), FrameError> {
    write::frame(out, |out| write::down(down, out))
}

/// Appends `up` to `out` as one frame. On error `out` is as it was.
pub fn encode_up(up: &Up, out: &mut Vec<u8>) -> Result<(), FrameError> {
    write::frame(out, |out| write::up(up, out))
}

/// Appends `hello` to `out` as one frame. On error `out` is as it was.
pub fn encode_hello(hello: &Hello, out: &mut Vec<u8>) -> Result<(), FrameError> {
    write::frame(out, |out| write::hello(hello, out))
}

/// Reads the body of one frame that came from a parent.
pub fn decode_down(body: &[u8]) -> Result<Down, FrameError> {
    let mut fields = Fields::new(body);
    let down = read::down(&mut fields)?;
    fields.end()?;
    Ok(down)
}

/// Reads the body of one frame that came from a worker, after its hello.
pub fn decode_up(body: &[u8]) -> Result<Up, FrameError> {
    let mut fields = Fields::new(body);
    let up = read::up(&mut fields)?;
    fields.end()?;
    Ok(up)
}

/// Reads the body of a worker's first frame.
pub fn decode_hello(body: &[u8]) -> Result<Hello, FrameError> {
    let mut fields = Fields::new(body);
    let hello = read::hello(&mut fields)?;
    fields.end()?;
    Ok(hello)
}

/// Collects bytes as they arrive and cuts them into bodies.
///
/// It holds at most one unfinished frame and what came with it: never more than
/// twice what has arrived, nor more than the bound and some room.
#[derive(Debug)]
pub struct FrameBuffer {
    /// `bytes[taken..filled]` has arrived and was not yet handed out.
    bytes: Vec<u8>,
    taken: usize,
    filled: usize,
    body_bytes_max: u32,
}

impl FrameBuffer {
    /// A buffer that refuses bodies longer than `body_bytes_max`.
    pub fn new(body_bytes_max: u32) -> FrameBuffer {
        FrameBuffer {
            bytes: Vec::new(),
            taken: 0,
            filled: 0,
            body_bytes_max: body_bytes_max.min(FRAME_BYTES_MAX),
        }
    }

    /// Raises the bound. It is never lowered: a frame may be half here.
    pub fn allow(&mut self, body_bytes_max: u32) {
        self.body_bytes_max = self.body_bytes_max.max(body_bytes_max.min(FRAME_BYTES_MAX));
    }

    /// Where the next bytes go; tell [`FrameBuffer::advance`] how many did.
    /// Call it after [`FrameBuffer::next_body`] said that nothing is whole.
    pub fn room(&mut self) -> &mut [u8] {
        if self.taken == self.filled {
            self.taken = 0;
            self.filled = 0;
            // One large frame must not keep its memory forever.
            if self.bytes.len() > 4 * ROOM_BYTES {
                self.bytes = Vec::new();
            }
        } else if self.taken > 0 {
            self.bytes.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.bytes.len() - self.filled < ROOM_BYTES / 4 {
            // Grows with the bytes that arrived, not with the claimed length.
            let grown = (self.filled * 2).max(ROOM_BYTES);
            self.bytes.resize(grown, 0);
        }
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// `count` bytes were written into [`FrameBuffer::room`].
    pub fn advance(&mut self, count: usize) {
        // A caller that counts wrong must not make later slices panic.
        self.filled = self.filled.saturating_add(count).min(self.bytes.len());
    }

    /// Copies `bytes` in, for callers that have them already.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(target) = room.get_mut(..count) {
                target.copy_from_slice(now);
            }
            self.advance(count);
            bytes = later;
        }
    }

    /// Bytes that are here but not yet handed out.
    pub fn pending_bytes(&self) -> usize {
        self.filled - self.taken
    }

    /// The next whole body, or nothing if more must arrive first.
    pub fn next_body(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let arrived = self.bytes.get(self.taken..self.filled).unwrap_or_default();
        let Some((header, rest)) = arrived.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*header);
        // Before anything is waited for: a length that is not allowed
        // ends the peer at once.
        if length > self.body_bytes_max {
            return Err(FrameError::TooLong(u64::from(length)));
        }
        // Fits: this crate is for machines with pointers of 64 bits.
        let length = length as usize;
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.taken + HEADER_BYTES;
        self.taken = start + length;
        Ok(self.bytes.get(start..self.taken))
    }
}

/// Reads `data` as frames in every direction. Panics on a broken promise: a decoded
/// frame must encode to the same bytes. For fuzzing and its seeds.
#[doc(hidden)]
#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
pub fn fuzz(data: &[u8]) {
    fn same(body: &[u8], encode: impl FnOnce(&mut Vec<u8>) -> Result<(), FrameError>) {
        let mut again = Vec::new();
        let encoded = encode(&mut again);
        if encoded.is_err() || again.get(HEADER_BYTES..) != Some(body) {
            panic!("a frame decoded but did not encode to itself: {body:?}");
        }
    }
    let Some((&chunk, stream)) = data.split_first() else {
        return;
    };
    let mut buffer = FrameBuffer::new(1 << 16);
    for piece in stream.chunks(usize::from(chunk) + 1) {
        buffer.push(piece);
        loop {
            let body = match buffer.next_body() {
                Ok(Some(body)) => body.to_vec(),
                Ok(None) => break,
                Err(_) => return,
            };
            if let Ok(down) = decode_down(&body) {
                same(&body, |out| encode_down(&down, out));
            }
            if let Ok(up) = decode_up(&body) {
                same(&body, |out| encode_up(&up, out));
            }
            if let Ok(hello) = decode_hello(&body) {
                same(&body, |out| encode_hello(&hello, out));
            }
        }
    }
}
