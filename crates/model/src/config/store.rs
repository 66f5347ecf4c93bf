//! Where decisions are kept: in the home, or in a Postgres that several homes share.

use serde::Deserialize;

use super::{ConfigFault, Faults, from_toml};
use crate::limits;

/// The secret that holds the password unless the operator names another.
pub const STORE_PASSWORD: &str = "RINGFENCE_STORE_PASSWORD";

/// Where decisions are kept.
///
/// Defaults: in the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The address of a Postgres that several homes share.
    pub url: Option<String>,
    /// The name of the secret that is its password.
    pub password: String,
    /// More authorities for its certificate, as a PEM file; a relative one is under the
    /// home folder.
    pub ca_file: Option<String>,
    /// Connections at one time.
    pub connections: u64,
    /// Whether every call asks what other nodes changed; else that is known within a
    /// second.
    pub strict: bool,
}

impl StoreConfig {
    pub(super) fn standard() -> StoreConfig {
        StoreConfig {
            url: None,
            password: STORE_PASSWORD.to_owned(),
            ca_file: None,
            connections: limits::STORE_CONNECTIONS_DEFAULT,
            strict: false,
        }
    }

    /// Only this part of the operator's file: the store must be known before the rest of
    /// the file can be judged.
    pub fn read(text: &str) -> Result<StoreConfig, ConfigFault> {
        let file: OnlyStore = toml::from_str(text).map_err(|error| from_toml(text, &error))?;
        let mut faults = Faults {
            text,
            faults: Vec::new(),
        };
        let config = faults.store(file.store);
        match faults.faults.into_iter().next() {
            None => Ok(config),
            Some(fault) => Err(fault),
        }
    }
}

/// The operator's file as far as the store goes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OnlyStore {
    store: StoreFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoreFile {
    url: Option<toml::Spanned<String>>,
    password: Option<String>,
    ca_file: Option<String>,
    connections: Option<toml::Spanned<u64>>,
    strict: Option<bool>,
}

impl Faults<'_> {
    pub(super) fn store(&mut self, file: StoreFile) -> StoreConfig {
        let standard = StoreConfig::standard();
        if let Some(url) = &file.url {
            self.store_address(url);
        }
        let most = limits::STORE_CONNECTIONS_MAX;
        let connections = self.read_number("connections", file.connections, 1..=most);
        StoreConfig {
            url: file.url.map(toml::Spanned::into_inner),
            password: file.password.unwrap_or(standard.password),
            ca_file: file.ca_file,
            connections: connections.unwrap_or(standard.connections),
            strict: file.strict.unwrap_or(standard.strict),
        }
    }

    /// An address of Postgres without a password: settings are shown to people.
    fn store_address(&mut self, text: &toml::Spanned<String>) {
        let parsed = url::Url::parse(text.get_ref());
        let known = parsed
            .as_ref()
            .is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql"));
        if !known {
            let message = "`url` begins with `postgres://` and names a host and a database";
            self.say(text, message.to_owned(), None);
        }
        let has_password = parsed.is_ok_and(|url| {
            url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password")
        });
        if has_password {
            let message = "a password does not belong into the settings".to_owned();
            let fix = format!("put it into `secrets.env` as {STORE_PASSWORD}=…");
            self.say(text, message, Some(fix));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StoreConfig;

    #[test]
    fn only_the_store_is_read() {
        let text = "[nonsense]\na = 1\n[store]\nurl = \"postgres://ring@db/rf\"\nstrict = true\n";
        let read = StoreConfig::read(text).unwrap();
        assert_eq!(read.url.as_deref(), Some("postgres://ring@db/rf"));
        assert!(read.strict);
        assert_eq!(StoreConfig::read("").unwrap().url, None);
    }

    #[test]
    fn a_password_or_another_database_is_refused() {
        let wrong = [
            "postgres://ring:secret@db/rf",
            "postgres://ring@db/rf?password=secret",
            "mysql://db/rf",
            "db",
        ];
        for url in wrong {
            let fault = StoreConfig::read(&format!("[store]\nurl = \"{url}\"\n")).unwrap_err();
            assert_eq!(fault.line, 2, "{url}: {fault}");
        }
        assert!(StoreConfig::read("[store]\nurls = \"x\"\n").is_err());
        assert!(StoreConfig::read("[store]\nconnections = 0\n").is_err());
    }
}
