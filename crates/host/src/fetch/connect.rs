//! From a checked address to a stream, behind a trait so that no test has to
//! send a packet to find out where one would have gone.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// The TCP connection it is, if it is nothing more: the kernel can move its bytes.
    fn as_tcp(&self) -> Option<&TcpStream>;
}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {
    fn as_tcp(&self) -> Option<&TcpStream> {
        let this: &dyn Any = self;
        this.downcast_ref()
    }
}

/// What connecting gives, in time.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Opens connections. It gets an address that was checked and opens
/// exactly that one.
pub trait Connector: fmt::Debug + Send + Sync {
    /// Opens a connection.
    fn connect(&self, address: SocketAddr) -> Connecting<'_>;
}

/// Plain TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector;

impl Connector for TcpConnector {
    fn connect(&self, address: SocketAddr) -> Connecting<'_> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Requests are written at once, so waiting to fill a packet
            // would only add delay.
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok(stream)
        })
    }
}
