//! What a server writes on its standard output that is no message, such as a greeting or a
//! log. Some of it is passed over; one that does not stop loses its connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::limit;

/// A stream of lines that ends with an error after too many that are no objects.
#[derive(Debug)]
pub(crate) struct MessageLines<R> {
    inner: R,
    is_line_start: bool,
    noise_count: usize,
}

impl<R> MessageLines<R> {
    pub(crate) fn new(inner: R) -> MessageLines<R> {
        MessageLines {
            inner,
            is_line_start: true,
            noise_count: 0,
        }
    }

    fn look_at(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if self.is_line_start && !first.is_ascii_whitespace() {
                self.is_line_start = false;
                // Every message is an object, so the first character of a line is enough.
                self.noise_count += usize::from(*first != b'{');
            }
            if self.noise_count > limit::SERVER_NOISE_LINES_MAX {
                let why = "it writes what is no message";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            // Spaces before a message are none of it; everything else goes with its line.
            let end = match self.is_line_start {
                true => Some(0),
                false => rest.iter().position(|byte| *byte == b'\n'),
            };
            let Some(end) = end else {
                return Ok(());
            };
            self.is_line_start = true;
            rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MessageLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        // An error ends the connection, because rmcp would go on reading lines without end.
        Poll::Ready(self.look_at(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(pieces: &[&str]) -> usize {
        let mut lines = MessageLines::new(io::empty());
        for piece in pieces {
            lines.look_at(piece.as_bytes()).expect("within its bound");
        }
        lines.noise_count
    }

    #[test]
    fn messages_are_no_noise_however_they_are_cut() {
        assert_eq!(
            noise(&["{\"a\":1}\n", "  {\"b\"", ":2}\n{", "}\n\n\r\n"]),
            0
        );
        assert_eq!(noise(&["hello\n{}\nwor", "ld\n"]), 2);
        assert_eq!(noise(&["hel", "lo", "\n"]), 1);
        assert_eq!(noise(&["{ not JSON, which the parser finds\n"]), 0);
    }

    #[test]
    fn too_much_noise_ends_the_stream() {
        let mut lines = MessageLines::new(io::empty());
        let most = "x\n".repeat(limit::SERVER_NOISE_LINES_MAX);
        assert!(lines.look_at(most.as_bytes()).is_ok());
        assert!(lines.look_at(b"x\n").is_err());
    }
}
