//! Where the shared database is and who we are there, from the settings of a home. The
//! password is never in the settings: it is a secret with a name, and the program says how
//! secrets are read. Over a network the connection is encrypted and the certificate checked,
//! unless the address says `sslmode=disable`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::OnceLock;
use std::time::Duration;

use model::config::StoreConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::error::{StoreError, causes};
use crate::home::settings;
use crate::limit;
use crate::postgres::tls::SharedTls;

/// Reads a secret of a home by its name. An error is a sentence for the operator.
pub type SecretReader = fn(&Path, &str) -> Result<Option<String>, String>;

static SECRETS: OnceLock<SecretReader> = OnceLock::new();

/// Says how secrets of a home are read. The first one counts.
pub fn set_secret_reader(reader: SecretReader) {
    let _ = SECRETS.set(reader);
}

/// Where the database is, and who we are there.
#[derive(Clone)]
pub(crate) struct Address {
    url: String,
    config: Config,
    ca_file: Option<PathBuf>,
    tls: Option<SharedTls>,
    connections: u64,
    is_strict: bool,
}

impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        let same = |address: &Address| (address.connections, address.is_strict);
        self.url == other.url
            && self.config == other.config
            && self.ca_file == other.ca_file
            && same(self) == same(other)
    }
}

// Without the password.
impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl Address {
    /// What the settings of a home name; nothing if its store is its own.
    pub(crate) fn of(home: &Path) -> Result<Option<Address>, StoreError> {
        let Some(text) = settings::read(home)? else {
            return Ok(None);
        };
        let fail = |why: String| StoreError::Address { why };
        let read = StoreConfig::read(&text).map_err(|fault| fail(fault.to_string()))?;
        let Some(url) = &read.url else {
            return Ok(None);
        };
        let password = SECRETS
            .get()
            .map(|read_secret| read_secret(home, &read.password));
        let password = password.transpose().map_err(fail)?.flatten();
        let ca_file = read.ca_file.as_ref().map(|file| home.join(file));
        let mut address = Address::new(url, password.as_deref(), ca_file)?;
        (address.connections, address.is_strict) = (read.connections, read.strict);
        Ok(Some(address))
    }

    /// A database by its address, its password and who may vouch for its certificate.
    pub(crate) fn new(
        url: &str,
        password: Option<&str>,
        ca_file: Option<PathBuf>,
    ) -> Result<Address, StoreError> {
        let fail = |why: String| StoreError::Address { why };
        let mut config = Config::from_str(url).map_err(|error| fail(causes(&error)))?;
        if let Some(password) = password {
            config.password(password);
        }
        config.application_name("ringfence");
        let is_local = matches!(config.get_hosts().first(), Some(Host::Unix(_)));
        let tls = if is_local || config.get_ssl_mode() == SslMode::Disable {
            config.ssl_mode(SslMode::Disable);
            None
        } else {
            config.ssl_mode(SslMode::Require);
            Some(SharedTls::new(ca_file.as_deref()).map_err(fail)?)
        };
        Ok(Address {
            url: url.to_owned(),
            config,
            ca_file,
            tls,
            connections: 1,
            is_strict: false,
        })
    }

    /// How people see it.
    pub(crate) fn shown(&self) -> String {
        self.url.clone()
    }

    pub(super) fn connections(&self) -> usize {
        usize::try_from(self.connections).unwrap_or(1)
    }

    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// A connection that a task of this runtime drives.
    pub(crate) async fn connect(&self, runtime: &Handle) -> Result<(Client, AbortHandle), String> {
        self.connect_and_listen(runtime, |_| {}).await
    }

    /// The same, with a listener for what the database says unasked.
    pub(super) async fn connect_and_listen(
        &self,
        runtime: &Handle,
        heard: impl Fn(AsyncMessage) + Send + 'static,
    ) -> Result<(Client, AbortHandle), String> {
        let wait = Duration::from_millis(limit::SHARED_CONNECT_MS_MAX);
        let connecting = self.dial(runtime, heard);
        match tokio::time::timeout(wait, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("no connection within {} ms", wait.as_millis())),
        }
    }

    async fn dial(
        &self,
        runtime: &Handle,
        heard: impl Fn(AsyncMessage) + Send + 'static,
    ) -> Result<(Client, AbortHandle), String> {
        let host = self.config.get_hosts().first();
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let (client, driver) = match (host, &self.tls) {
            (Some(Host::Unix(folder)), _) => {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(path).await.map_err(|e| causes(&e))?;
                let connected = self.config.connect_raw(stream, NoTls).await;
                let (client, connection) = connected.map_err(|error| refusal(&error))?;
                (client, runtime.spawn(drive(connection, heard)))
            }
            (Some(Host::Tcp(name)), tls) => {
                // `hostaddr` says where a host is, and the certificate is still for its name.
                let dialed = match self.config.get_hostaddrs().first() {
                    Some(address) => TcpStream::connect((*address, port)).await,
                    None => TcpStream::connect((name.as_str(), port)).await,
                };
                let stream = dialed.map_err(|error| causes(&error))?;
                stream.set_nodelay(true).map_err(|error| causes(&error))?;
                match tls {
                    None => {
                        let connected = self.config.connect_raw(stream, NoTls).await;
                        let (client, connection) = connected.map_err(|error| refusal(&error))?;
                        (client, runtime.spawn(drive(connection, heard)))
                    }
                    Some(tls) => {
                        let connected = self.config.connect_raw(stream, tls.to(name)).await;
                        let (client, connection) = connected.map_err(|error| refusal(&error))?;
                        (client, runtime.spawn(drive(connection, heard)))
                    }
                }
            }
            (None, _) => return Err("the address names no host".to_owned()),
        };
        let driver = driver.abort_handle();
        let prepared = client.batch_execute(&session_settings()).await;
        match prepared {
            Ok(()) => Ok((client, driver)),
            Err(error) => {
                driver.abort();
                Err(causes(&error))
            }
        }
    }
}

/// Why the database refuses us, and what to do about it.
fn refusal(error: &tokio_postgres::Error) -> String {
    let why = causes(error);
    let is_password = error.code() == Some(&SqlState::INVALID_PASSWORD);
    let remedy = match () {
        () if is_password || why.contains("password missing") => {
            "; `store.password` names the secret with the password, by default \
             `RINGFENCE_STORE_PASSWORD`"
        }
        () if why.contains("does not support TLS") => {
            "; set up TLS there, or add `?sslmode=disable` to `store.url` for a database on the \
             same machine"
        }
        () => "",
    };
    format!("{why}{remedy}")
}

/// What holds in every session. The database gives up by itself, too.
fn session_settings() -> String {
    let wait = limit::SHARED_WAIT_MS_MAX;
    format!(
        "SET statement_timeout = {wait}; SET lock_timeout = {wait}; \
         SET idle_in_transaction_session_timeout = {}; \
         SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on",
        2 * wait
    )
}

/// Drives a connection until it ends.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, heard: impl Fn(AsyncMessage))
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(Ok(message)) =
        std::future::poll_fn(|context| connection.poll_message(context)).await
    {
        heard(message);
    }
}
