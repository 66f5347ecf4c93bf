//! Whom we believe on TLS: the system's roots and those an operator adds.
//!
//! Made once and shared, because reading the roots takes longer than a request.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The settings every TLS connection starts from.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    root_count: usize,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The operator's file is not PEM.
    #[error("the file of certificate authorities is not PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The operator's file holds nothing, or something that is no authority.
    #[error("the file of certificate authorities holds no usable certificate")]
    Authority(#[source] Option<rustls::Error>),
    /// The cryptography refuses its own defaults.
    #[error("could not set up TLS")]
    Setup(#[source] rustls::Error),
}

impl Tls {
    /// The system's roots and, if given, those in a PEM file. A system without
    /// roots is no error: every certificate will be refused, with reason `tls`.
    pub fn system(extra_pem: Option<&[u8]>) -> Result<Tls, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Tls::from_roots(roots, extra_pem)
    }

    /// Only the roots in a PEM file.
    pub fn only(pem: &[u8]) -> Result<Tls, TlsError> {
        Tls::from_roots(RootCertStore::empty(), Some(pem))
    }

    /// How many roots there are.
    #[must_use]
    pub fn root_count(&self) -> usize {
        self.root_count
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }

    fn from_roots(mut roots: RootCertStore, pem: Option<&[u8]>) -> Result<Tls, TlsError> {
        if let Some(pem) = pem {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(TlsError::Pem)?;
                let added = roots.add(certificate);
                added.map_err(|error| TlsError::Authority(Some(error)))?;
            }
            if roots.len() == before {
                return Err(TlsError::Authority(None));
            }
        }
        let root_count = roots.len();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls {
            config: Arc::new(config),
            root_count,
        })
    }
}
