//! Encryption of connections to the shared database. The certificate must be for the host's
//! name and come from an authority of the system, or from one in the operator's file.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::limit;

/// The certificate authorities that the connection to the shared store trusts.
#[derive(Clone)]
pub(super) struct SharedTls {
    connector: TlsConnector,
}

impl SharedTls {
    /// The system's authorities and those in a PEM file. An error is a sentence.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<SharedTls, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca_file {
            let fail = |why: String| format!("cannot use `{}`: {why}", path.display());
            let mut pem = Vec::new();
            let bytes_max = limit::CA_FILE_BYTES_MAX;
            let file = File::open(path).map_err(|error| fail(error.to_string()))?;
            let read = file.take(bytes_max).read_to_end(&mut pem);
            read.map_err(|error| fail(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| fail(error.to_string()))?;
                let added = roots.add(certificate);
                added.map_err(|error| fail(error.to_string()))?;
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(SharedTls {
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    pub(super) fn to(&self, host: &str) -> SharedHandshake {
        SharedHandshake {
            connector: self.connector.clone(),
            name: ServerName::try_from(host.to_owned()).ok(),
        }
    }
}

/// A handshake with one host, as the driver wants it.
pub(super) struct SharedHandshake {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl TlsConnect<TcpStream> for SharedHandshake {
    type Stream = SharedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<SharedStream>> + Send>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move {
            let no_name = || io::Error::other("the host is no name for TLS");
            let name = self.name.ok_or_else(no_name)?;
            let stream = self.connector.connect(name, stream).await?;
            Ok(SharedStream(stream))
        })
    }
}

/// A stream inside TLS.
pub(super) struct SharedStream(tokio_rustls::client::TlsStream<TcpStream>);

impl AsyncRead for SharedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for SharedStream {
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

impl TlsStream for SharedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
