//! One message a line, over a pair of pipes.
//!
//! rmcp drops a line that is too long or is no message, and a client that waits for its
//! answer waits without end. Here such a line is answered with an error, and the
//! operator is told. Answers that are not taken are counted, and nothing further is read
//! while there are too many of them.

use std::io;
use std::sync::Arc;

use engine::Engine;
use model::text::surrogate;
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use crate::auth::CALLER;
use crate::jsonrpc::{self, BadMessage, INVALID, PARSE};
use crate::unsent::Unsent;

/// Bytes kept of the beginning and of the end of a line that is too long, to tell whose
/// answer it waits for.
const ENDS_BYTES: usize = 256;

/// Until when messages are read.
#[derive(Clone, Debug)]
pub(super) struct ReadUntil {
    /// Nothing new is read from here on.
    pub(super) soft: CancellationToken,
    /// Running calls have ended.
    pub(super) over: CancellationToken,
}

pub(super) struct LineTransport<R, W> {
    read: BufReader<R>,
    line: Line,
    until: ReadUntil,
    engine: Arc<Engine>,
    out: Out<W>,
}

/// The writing end.
struct Out<W> {
    write: Arc<Mutex<Option<W>>>,
    unsent: Unsent,
    /// Told whenever something was written.
    sent: Arc<Notify>,
}

impl<W> Clone for Out<W> {
    fn clone(&self) -> Out<W> {
        Out {
            write: Arc::clone(&self.write),
            unsent: self.unsent.clone(),
            sent: Arc::clone(&self.sent),
        }
    }
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(
        (read, write): (R, W),
        line_bytes_max: usize,
        until: ReadUntil,
        engine: Arc<Engine>,
        unsent: Unsent,
    ) -> LineTransport<R, W> {
        LineTransport {
            read: BufReader::new(read),
            line: Line::new(line_bytes_max),
            until,
            engine,
            out: Out {
                write: Arc::new(Mutex::new(Some(write))),
                unsent,
                sent: Arc::default(),
            },
        }
    }

    /// The next line, or that it is too long. What was read of it is kept if the caller
    /// stops waiting.
    async fn next_line(&mut self) -> Option<Result<Vec<u8>, TooLong>> {
        // A client that does not read its answers is not read from either.
        self.out.wait_for_room().await;
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let (taken, line) = self.line.take(available);
            self.read.consume(taken);
            if line.is_some() {
                return line;
            }
        }
    }

    /// Answers a line that is no message.
    fn refuse(&self, code: i64, sentence: &str, id: &Value) {
        self.engine
            .alarm(&format!("a line of standard input is dropped: {sentence}"));
        let answer = jsonrpc::error(code, sentence, id);
        let writing = self.out.line(answer.to_string().into_bytes());
        // A task of its own: rmcp may stop waiting for the next message.
        tokio::spawn(writing);
    }

    /// The message of a line, if it is one.
    fn message(&self, mut line: Vec<u8>) -> Option<RxJsonRpcMessage<RoleServer>> {
        // Clients in JavaScript cut texts in the middle of a character.
        surrogate::mend(&mut line);
        let line = line.trim_ascii();
        // Some Windows clients send a byte order mark first.
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(message) => Some(message),
            Err(_) => {
                let mut bad = BadMessage::of(line);
                // Without its id the client would not know what this answers, and wait.
                if bad.code == PARSE {
                    bad.id = id_of_line(line).unwrap_or_default();
                }
                // A notification is never answered.
                if !bad.is_notification {
                    self.refuse(bad.code, bad.sentence, &bad.id);
                }
                None
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let line = serde_json::to_vec(&item).map_err(io::Error::other);
        let out = self.out.clone();
        async move { out.line(line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let until = self.until.clone();
        loop {
            let line = tokio::select! {
                // Biased: once asked to end, no line is read that is already there.
                biased;
                () = until.soft.cancelled() => {
                    // What runs may still answer.
                    until.over.cancelled().await;
                    return None;
                }
                line = self.next_line() => line?,
            };
            match line {
                Ok(line) => {
                    if let Some(message) = self.message(line) {
                        return Some(message);
                    }
                }
                Err(TooLong { id, bytes_max }) => {
                    let sentence = format!("it is longer than {bytes_max} bytes");
                    self.refuse(INVALID, &sentence, &id);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        drop(self.out.write.lock().await.take());
        Ok(())
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Out<W> {
    /// Writes a line. It is counted from now on, whenever its turn comes.
    fn line(&self, mut line: Vec<u8>) -> impl Future<Output = Result<(), io::Error>> + 'static {
        line.push(b'\n');
        let mut share = self.unsent.empty(CALLER);
        share.set(line.len());
        let (write, sent) = (Arc::clone(&self.write), Arc::clone(&self.sent));
        async move {
            let mut write = write.lock().await;
            let written = match write.as_mut() {
                None => Err(io::ErrorKind::NotConnected.into()),
                Some(write) => match write.write_all(&line).await {
                    Ok(()) => write.flush().await,
                    fault => fault,
                },
            };
            // Before the wake-up: the reader looks for the room at once.
            drop(share);
            sent.notify_waiters();
            written
        }
    }

    /// Waits until the client has read enough of its answers.
    async fn wait_for_room(&self) {
        loop {
            let sent = self.sent.notified();
            if self.unsent.has_room(CALLER) {
                return;
            }
            sent.await;
        }
    }
}

/// A line that was too long.
#[derive(Debug, PartialEq)]
struct TooLong {
    /// Whose answer it waits for, where that can be told.
    id: Value,
    bytes_max: usize,
}

/// The part of a line read so far, within a bound.
#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The beginning and the end of one that is too long already.
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Line {
    fn new(bytes_max: usize) -> Line {
        Line {
            bytes: Vec::new(),
            bytes_max,
            ends: None,
        }
    }

    /// Takes from what is there, up to the end of the line: how much, and the line.
    fn take(&mut self, available: &[u8]) -> (usize, Option<Result<Vec<u8>, TooLong>>) {
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = end.map_or(available, |end| available.get(..end).unwrap_or_default());
        let taken = end.map_or(available.len(), |end| end + 1);
        self.add(piece);
        if end.is_none() {
            return (taken, None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        let line = match self.ends.take() {
            None => Ok(bytes),
            Some((head, tail)) => Err(TooLong {
                id: id_of(&head, &tail).unwrap_or_default(),
                bytes_max: self.bytes_max,
            }),
        };
        (taken, Some(line))
    }

    fn add(&mut self, piece: &[u8]) {
        match &mut self.ends {
            None if self.bytes.len().saturating_add(piece.len()) <= self.bytes_max => {
                self.bytes.extend_from_slice(piece);
            }
            None => {
                let bytes = std::mem::take(&mut self.bytes);
                let head = bytes.iter().chain(piece).take(ENDS_BYTES).copied();
                let head = head.collect();
                let mut tail = bytes;
                tail.extend_from_slice(piece);
                keep_end(&mut tail);
                // The line may have had megabytes.
                tail.shrink_to_fit();
                self.ends = Some((head, tail));
            }
            Some((_, tail)) => {
                tail.extend_from_slice(piece);
                keep_end(tail);
            }
        }
    }
}

fn keep_end(tail: &mut Vec<u8>) {
    let surplus = tail.len().saturating_sub(ENDS_BYTES);
    tail.drain(..surplus);
}

/// The id of a request in a line that cannot be read.
fn id_of_line(line: &[u8]) -> Option<Value> {
    let end = line.len().saturating_sub(ENDS_BYTES);
    let head = line.get(..ENDS_BYTES).unwrap_or(line);
    id_of(head, line.get(end..)?)
}

/// The id of a request of which only the beginning and the end are known. Clients write
/// it before the method or as the last member; both places are members of the message
/// itself and of nothing inside it.
fn id_of(head: &[u8], tail: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(head);
    // An answer of the client's has an id of ours.
    let has_method = head.contains("\"method\"");
    let last = || {
        let tail = String::from_utf8_lossy(tail);
        let tail = tail.trim_end().strip_suffix('}')?;
        let (_, id) = tail.rsplit_once("\"id\"")?;
        number_or_word(id.trim_start().strip_prefix(':')?)
    };
    let first = || {
        let (before, after) = head.split_once("\"id\"")?;
        let is_first = before.chars().filter(|char| *char == '{').count() == 1;
        let after = after.trim_start().strip_prefix(':')?;
        let (id, _) = after.split_once(',')?;
        number_or_word(id).filter(|_| is_first)
    };
    has_method.then(|| first().or_else(last))?
}

/// An id as clients write them: digits, or a word without anything to escape.
fn number_or_word(text: &str) -> Option<Value> {
    let id: Value = serde_json::from_str(text.trim()).ok()?;
    (id.is_string() || id.is_u64()).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(bytes_max: usize, pieces: &[&str]) -> Vec<Result<String, Value>> {
        let mut line = Line::new(bytes_max);
        let mut lines = Vec::new();
        for piece in pieces {
            let mut rest = piece.as_bytes();
            while !rest.is_empty() {
                let (taken, found) = line.take(rest);
                rest = &rest[taken..];
                let found = found.map(|found| match found {
                    Ok(bytes) => Ok(String::from_utf8(bytes).expect("text")),
                    Err(too_long) => Err(too_long.id),
                });
                lines.extend(found);
            }
            let kept = line.bytes.len();
            assert!(kept <= bytes_max, "{kept}");
        }
        lines
    }

    #[test]
    fn lines_come_in_pieces_and_are_bounded() {
        let long = "x".repeat(1_000);
        let said = lines(10, &["ab", "c\n", "\n0123456789\n", &long, &long, "\nd\n"]);
        let expected = [
            Ok("abc".to_owned()),
            Ok(String::new()),
            Ok("0123456789".to_owned()),
            Err(Value::Null),
            Ok("d".to_owned()),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_request_that_is_too_long_is_known_by_its_id() {
        let long = "x".repeat(600);
        let cases = [
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"a":"{long}"}}}}"#
                ),
                json!(7),
            ),
            (
                format!(
                    r#"{{"method":"tools/call","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":"q-1"}}"#
                ),
                json!("q-1"),
            ),
            (
                format!(r#"{{"method":"tools/call","params":{{"a":"{long}","id":9}}}}"#),
                Value::Null,
            ),
            (
                format!(r#"{{"method":"tools/call","params":{{"id":9,"a":"{long}"}}}}"#),
                Value::Null,
            ),
            // An answer to a question of ours.
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":"{long}"}}}}"#),
                Value::Null,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":{{}},"method":"{long}"}}"#),
                Value::Null,
            ),
            (long, Value::Null),
        ];
        for (line, id) in cases {
            let (first, second) = line.split_at(line.len() / 2);
            let said = lines(100, &[first, second, "\n"]);
            assert_eq!(said, [Err(id)], "{line}");
        }
    }

    #[test]
    fn a_request_that_cannot_be_read_is_known_by_its_id() {
        for (line, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1e999}}"#,
                Some(json!(7)),
            ),
            (
                r#"{"method":"tools/call","params":{"a":"\x"},"id":"q-1"}"#,
                Some(json!("q-1")),
            ),
            (r#"{"id":7,"result":{"a":"\x"}}"#, None),
            ("this is no message", None),
            ("", None),
        ] {
            assert_eq!(id_of_line(line.as_bytes()), id, "{line}");
        }
    }
}
