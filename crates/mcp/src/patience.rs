//! A stream that does not wait for ever for the other side to read.
//!
//! What cannot be written waits, in our memory and with a place among the connections.
//! Whoever does not take it in time is hung up on. The time begins anew whenever all
//! that was to be written is gone or a good piece of it, so it bounds how slowly
//! somebody may read, and not how long a stream may last.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::limit;

/// A stream with a bound on how long a write may wait.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Runs while something waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since it began to run.
    taken: usize,
    /// Whether it ran out.
    over: CancellationToken,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient {
            stream,
            patience,
            waiting: None,
            taken: 0,
            over: CancellationToken::new(),
        }
    }

    /// Is cancelled when the other side was waited for too long.
    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    fn went(&mut self, written: &io::Result<usize>) {
        self.taken = self.taken.saturating_add(*written.as_ref().unwrap_or(&0));
        if self.taken >= limit::WRITE_PIECE_BYTES {
            self.rests();
        }
    }

    fn rests(&mut self) {
        self.waiting = None;
        self.taken = 0;
    }

    /// What comes of a write that is not done.
    fn waits<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.over.cancel();
                let why = "the other side does not read";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Pending => self.waits(context),
            Poll::Ready(written) => {
                self.went(&written);
                Poll::Ready(written)
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(context, parts) {
            Poll::Pending => self.waits(context),
            Poll::Ready(written) => {
                self.went(&written);
                Poll::Ready(written)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Comes after the last byte was taken.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.waits(context),
            done @ Poll::Ready(_) => {
                self.rests();
                done
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending => self.waits(context),
            done @ Poll::Ready(_) => done,
        }
    }
}
