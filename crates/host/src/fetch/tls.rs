//! Whom we believe on TLS: the system's roots and those an operator adds.
//!
//! Made once and shared, because reading the roots takes longer than a request.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// An operator's file of authorities, in bytes.
const CA_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Sessions remembered within one call.
const SESSIONS_MAX: usize = 32;

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
    /// The operator's file cannot be had.
    #[error("could not read the file of certificate authorities `{path}`")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The cryptography refuses its own defaults.
    #[error("could not set up TLS")]
    Setup(#[source] rustls::Error),
}

/// The trusted certificate authorities, read when first asked for and then kept: reading
/// the system's roots takes milliseconds, and most tools never reach the network. Clones share
/// what was read.
#[derive(Clone, Debug, Default)]
pub struct TlsTrust {
    ca_file: Option<PathBuf>,
    read: Arc<OnceLock<Tls>>,
}

impl TlsTrust {
    /// The system's roots and, if given, those in an operator's PEM file.
    #[must_use]
    pub fn system(ca_file: Option<PathBuf>) -> TlsTrust {
        TlsTrust {
            ca_file,
            read: Arc::default(),
        }
    }

    /// Exactly these settings.
    #[must_use]
    pub fn fixed(tls: Tls) -> TlsTrust {
        TlsTrust {
            ca_file: None,
            read: Arc::new(OnceLock::from(tls)),
        }
    }

    /// The settings. A file that cannot be used is an error each time, so that it
    /// can be mended without a restart.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        if let Some(tls) = self.read.get() {
            return Ok(tls.clone());
        }
        let pem = self.ca_file.as_deref().map(bounded).transpose()?;
        let tls = Tls::system(pem.as_deref())?;
        Ok(self.read.get_or_init(|| tls).clone())
    }

    /// The operator's own file, for programs that do TLS themselves; nothing if there is none.
    pub fn operator_pem(&self) -> Result<Option<Vec<u8>>, TlsError> {
        self.ca_file.as_deref().map(bounded).transpose()
    }
}

fn bounded(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read {
        path: path.display().to_string(),
        source,
    };
    let mut pem = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // One more than the bound, so that a file that is too long is told from
    // one that just fits.
    let read = file.take(CA_FILE_BYTES_MAX + 1).read_to_end(&mut pem);
    let count = read.map_err(failed)?;
    match u64::try_from(count) {
        Ok(count) if count <= CA_FILE_BYTES_MAX => Ok(pem),
        _ => Err(failed(io::ErrorKind::FileTooLarge.into())),
    }
}

impl Tls {
    /// The system's roots and, if given, those in a PEM file. A system without
    /// roots is no error: every certificate will be refused, with reason `tls`.
    pub fn system(extra_pem: Option<&[u8]>) -> Result<Tls, TlsError> {
        let mut roots = RootCertStore::empty();
        // A root that cannot be read is left out: one odd certificate must not end all TLS.
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

    /// The same settings without the memory of earlier sessions. Attack: a server
    /// that is shown the ticket of another caller knows who came before, and so
    /// can join what we keep apart.
    pub(crate) fn without_memory(&self) -> Tls {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Tls {
            config: Arc::new(config),
            root_count: self.root_count,
        }
    }

    /// The same settings for connections that carry HTTP/1.1 only.
    pub(crate) fn http1_only(&self) -> Tls {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Tls {
            config: Arc::new(config),
            root_count: self.root_count,
        }
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }

    /// For a database: without memory, and without the protocols of the web, which a
    /// server of another protocol refuses.
    pub(crate) fn for_database(&self) -> TlsConnector {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        TlsConnector::from(Arc::new(config))
    }

    fn from_roots(mut roots: RootCertStore, pem: Option<&[u8]>) -> Result<Tls, TlsError> {
        if let Some(pem) = pem {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(TlsError::Pem)?;
                let added = roots.add(certificate);
                // Here it is an error: the operator named this file and
                // expects it to count.
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
