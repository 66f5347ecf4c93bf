//! A stream with a write timeout: peers that read too slowly are dropped.
//!
//! Unwritten bytes wait in our memory and keep their connection's place. The timer
//! starts again whenever everything was written, or a good piece of it, so it bounds
//! how slowly a peer may read, and not how long a stream may last.

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
pub(crate) struct WriteTimeout<S> {
    stream: S,
    time_max: Duration,
    /// Runs while something waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since it began to run.
    taken: usize,
    /// Whether it ran out.
    timed_out: CancellationToken,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, time_max: Duration) -> WriteTimeout<S> {
        WriteTimeout {
            stream,
            time_max,
            waiting: None,
            taken: 0,
            timed_out: CancellationToken::new(),
        }
    }

    /// Is cancelled when the other side was waited for too long.
    pub(crate) fn timed_out(&self) -> CancellationToken {
        self.timed_out.clone()
    }

    /// Counts written bytes.
    fn count(&mut self, written: &io::Result<usize>) {
        self.taken = self.taken.saturating_add(*written.as_ref().unwrap_or(&0));
        // Attack: a peer that takes a byte now and then. That must not stop the timer.
        if self.taken >= limit::WRITE_PIECE_BYTES {
            self.stop_timer();
        }
    }

    fn stop_timer(&mut self) {
        self.waiting = None;
        self.taken = 0;
    }

    /// Lets the timer run while a write is not done.
    fn poll_timer<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let time_max = self.time_max;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(time_max)));
        match waiting.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.timed_out.cancel();
                let why = "the other side does not read";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // The stream first: what the peer takes now counts, even if the timer ran out.
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Pending => self.poll_timer(context),
            Poll::Ready(written) => {
                self.count(&written);
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
            Poll::Pending => self.poll_timer(context),
            Poll::Ready(written) => {
                self.count(&written);
                Poll::Ready(written)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Nothing is left to write once this is done.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.poll_timer(context),
            done @ Poll::Ready(_) => {
                self.stop_timer();
                done
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending => self.poll_timer(context),
            done @ Poll::Ready(_) => done,
        }
    }
}
