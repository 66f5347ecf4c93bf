//! The bytes of a session: counted, because the driver reads a message whole however long
//! the server says it is, and encrypted by our own TLS.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::sql::limit;

/// A stream that ends with an error when too much was read from it.
#[derive(Debug)]
pub(super) struct BoundedStream<S> {
    inner: S,
    bytes_left: usize,
}

impl<S> BoundedStream<S> {
    pub(super) fn new(inner: S) -> BoundedStream<S> {
        BoundedStream {
            inner,
            bytes_left: limit::POSTGRES_STREAM_BYTES_MAX,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &polled {
            let count = buffer.filled().len().saturating_sub(before);
            match self.bytes_left.checked_sub(count) {
                Some(left) => self.bytes_left = left,
                None => {
                    let message = "the database sends more than may be read";
                    return Poll::Ready(Err(io::Error::other(message)));
                }
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Our TLS, as the driver wants it.
#[derive(Clone)]
pub(super) struct DatabaseTls {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl std::fmt::Debug for DatabaseTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseTls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl DatabaseTls {
    pub(super) fn make(connector: TlsConnector, name: Option<ServerName<'static>>) -> DatabaseTls {
        DatabaseTls { connector, name }
    }
}

/// A stream inside TLS.
pub(super) struct Encrypted<S>(BoundedStream<tokio_rustls::client::TlsStream<S>>);

impl<S> TlsConnect<S> for DatabaseTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self
                .name
                .ok_or_else(|| io::Error::other("the host is no name for TLS"))?;
            let stream = self.connector.connect(name, stream).await?;
            Ok(Encrypted(BoundedStream::new(stream)))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
