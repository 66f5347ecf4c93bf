//! What a server writes on its standard output, before rmcp reads it.
//!
//! Some of it is no message, such as a greeting or a log. A little is passed over; a server
//! that does not stop loses its connection. Half a character in a message is overwritten,
//! because the whole message would be dropped for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use model::text::surrogate;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use crate::fault::ServerFault;
use crate::limit;

/// What was wrong with the lines of a connection. rmcp passes over a line that is too long,
/// and tells of no reason for an end, so those who wait learn it here.
#[derive(Clone, Debug)]
pub(crate) struct LineFaults(Arc<watch::Sender<FoundFaults>>);

#[derive(Clone, Copy, Debug, Default)]
struct FoundFaults {
    /// Messages that were too long, and are lost.
    lost: u64,
    /// Why the connection ended.
    end: Option<&'static str>,
}

impl LineFaults {
    pub(crate) fn new() -> LineFaults {
        LineFaults(Arc::new(watch::Sender::new(FoundFaults::default())))
    }

    /// Tells of every message that is lost from now on.
    pub(crate) fn losses(&self) -> Losses {
        let receiver = self.0.subscribe();
        let seen = receiver.borrow().lost;
        Losses { receiver, seen }
    }

    /// A fault of a closed connection with its reason, if the lines gave one.
    pub(crate) fn explain(&self, fault: ServerFault) -> ServerFault {
        match (fault, self.0.borrow().end) {
            (ServerFault::Closed(_), Some(why)) => ServerFault::Closed(why.to_owned()),
            (fault, _) => fault,
        }
    }
}

/// The losses of a connection.
#[derive(Debug)]
pub(crate) struct Losses {
    receiver: watch::Receiver<FoundFaults>,
    seen: u64,
}

impl Losses {
    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let Losses { receiver, seen } = self;
        if let Ok(found) = receiver.wait_for(|found| found.lost != *seen).await {
            *seen = found.lost;
            return;
        }
        // Nobody reads the lines any more, so nothing is lost.
        std::future::pending::<()>().await;
    }
}

/// A stream of lines that ends with an error after too many that are no objects.
#[derive(Debug)]
pub(crate) struct MessageLines<R> {
    inner: R,
    faults: LineFaults,
    is_line_start: bool,
    /// Bytes of the line so far.
    line_bytes: usize,
    noise_count: usize,
    /// The beginning of an escape whose end is still to come.
    held: Vec<u8>,
}

impl<R> MessageLines<R> {
    pub(crate) fn new(inner: R, faults: LineFaults) -> MessageLines<R> {
        MessageLines {
            inner,
            faults,
            is_line_start: true,
            line_bytes: 0,
            noise_count: 0,
            held: Vec::new(),
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
                self.faults.0.send_modify(|found| found.end = Some(why));
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            // Spaces before a message are none of it; everything else goes with its line.
            let end = match self.is_line_start {
                true => Some(0),
                false => rest.iter().position(|byte| *byte == b'\n'),
            };
            self.measure(end.unwrap_or(rest.len()));
            let Some(end) = end else {
                return Ok(());
            };
            self.line_bytes = 0;
            self.is_line_start = true;
            rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
        }
        Ok(())
    }

    /// Counts a piece of a line. Tells once that the line is too long: it will be lost.
    fn measure(&mut self, bytes: usize) {
        // With its end, as rmcp counts.
        let most = limit::SERVER_LINE_BYTES_MAX - 1;
        let was_long = self.line_bytes > most;
        self.line_bytes = self.line_bytes.saturating_add(bytes);
        if self.line_bytes > most && !was_long {
            self.faults.0.send_modify(|found| found.lost += 1);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MessageLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            let room = buffer.remaining();
            if room <= this.held.len() {
                // The buffer of rmcp has thousands of bytes. In one of a few, nothing could
                // come after what is held, so it goes as it is.
                let held: Vec<u8> = this.held.drain(..room).collect();
                buffer.put_slice(&held);
                break;
            }
            buffer.put_slice(&this.held);
            let held_to = buffer.filled().len();
            let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
            if !matches!(polled, Poll::Ready(Ok(()))) {
                // It is put in again when there is something to read.
                buffer.set_filled(before);
                return polled;
            }
            this.held.clear();
            // At the end nothing follows that could complete an escape.
            if buffer.filled().len() == held_to {
                break;
            }
            let new = buffer.filled_mut().get_mut(before..).unwrap_or_default();
            let done = surrogate::mend_piece(new);
            this.held.extend(new.get(done..).unwrap_or_default());
            buffer.set_filled(before + done);
            // Nothing at all would read as the end of the stream.
            if done > 0 {
                break;
            }
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        // An error ends the connection, because rmcp would go on reading lines without end.
        Poll::Ready(this.look_at(new))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;

    fn lines<R>(inner: R) -> MessageLines<R> {
        MessageLines::new(inner, LineFaults::new())
    }

    fn noise(pieces: &[&str]) -> usize {
        let mut lines = lines(io::empty());
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

    /// Reads through buffers and from pieces of every size.
    #[tokio::test]
    async fn half_a_character_is_overwritten_however_it_is_cut() {
        let sent = r#"{"a":"\\\ud83d\\ud83d","b":"\ud83d\ude00\ude00\\"}"#;
        let expected = r#"{"a":"\\\ufffd\\ud83d","b":"\ud83d\ude00\ufffd\\"}"#;
        let sent = format!("noise \\\n{sent}\n{sent}\n");
        let expected = format!("noise \\\n{expected}\n{expected}\n");
        for size in 1..=sent.len() {
            let (mut there, here) = tokio::io::duplex(size);
            let pieces = sent.clone();
            let writing = tokio::spawn(async move { there.write_all(pieces.as_bytes()).await });
            let mut lines = BufReader::with_capacity(32, lines(here));
            let mut read = String::new();
            lines.read_to_string(&mut read).await.expect("a text");
            writing.await.expect("a task").expect("it writes");
            assert_eq!(read, expected, "{size}");
        }
    }

    /// What the end of the stream cuts is given as it is.
    #[tokio::test]
    async fn an_escape_that_the_end_cuts_is_not_lost() {
        for sent in ["{\"a\":\"\\ud83d", "\\", "x\\u"] {
            let mut read = String::new();
            let mut lines = lines(sent.as_bytes());
            lines.read_to_string(&mut read).await.expect("a text");
            assert_eq!(read, sent);
        }
    }

    #[test]
    fn too_much_noise_ends_the_stream_and_says_so() {
        let faults = LineFaults::new();
        let mut lines = MessageLines::new(io::empty(), faults.clone());
        let most = "x\n".repeat(limit::SERVER_NOISE_LINES_MAX);
        assert!(lines.look_at(most.as_bytes()).is_ok());
        let closed = || faults.explain(ServerFault::Closed("it closed".to_owned()));
        assert_eq!(closed(), ServerFault::Closed("it closed".to_owned()));
        assert!(lines.look_at(b"x\n").is_err());
        let why = "it writes what is no message";
        assert_eq!(closed(), ServerFault::Closed(why.to_owned()));
        let other = ServerFault::Forgotten;
        assert_eq!(faults.explain(other.clone()), other);
    }

    #[test]
    fn a_line_that_will_be_lost_is_told_once() {
        let faults = LineFaults::new();
        let mut lines = MessageLines::new(io::empty(), faults.clone());
        let lost = || faults.0.borrow().lost;
        let half = format!("{{{}", "x".repeat(limit::SERVER_LINE_BYTES_MAX / 2 - 1));
        let mut add = |text: &str| lines.look_at(text.as_bytes()).expect("no noise");
        add(&half);
        add("\n");
        add(&half);
        assert_eq!(lost(), 0);
        add(&half);
        add(&half);
        assert_eq!(lost(), 1);
        add("\n{}\n");
        assert_eq!(lost(), 1);
    }
}
