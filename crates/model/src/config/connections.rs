//! `[connections.NAME]`: databases, git servers and web services that tools reach by a
//! name. Address, user and credential are the operator's; a call only says the name.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Host;

use super::{Faults, is_server_name};
use crate::caller::{Caller, CallerKind, folded};
use crate::document::placeholder;
use crate::govern::pattern::NamePattern;
use crate::limits;
use crate::network::host_pattern::{HostPattern, Shape};
use crate::text::elided;

/// A service that tools reach by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Its name in calls.
    pub name: String,
    /// The kind of service.
    pub kind: ConnectionKind,
    /// Its host: a name or an address, never a pattern.
    pub host: Host<String>,
    /// Its port.
    pub port: u16,
    /// The database; only for `postgres`.
    pub database: String,
    /// The user; `postgres` always has one.
    pub user: Option<String>,
    /// The variable that holds the password or token.
    pub credential: Option<String>,
    /// Who may use it beside the owner. Only the owner if both lists are empty.
    pub callers: Vec<NamePattern>,
    /// The groups that may use it, in lower case.
    pub groups: Vec<String>,
    /// Whether the host may be, or lead to, a private address.
    pub private: bool,
    /// Whether the channel is encrypted.
    pub tls: ConnectionTls,
    /// Whether statements, pushes and requests that change something may go there.
    pub write: bool,
    /// Whether a role with rights beyond data is accepted; only for `postgres`.
    pub trusted: bool,
    /// The schema that names without one are looked up in; only for `postgres`.
    pub schema: String,
}

crate::words! {
    /// The kind of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ConnectionKind {
        /// A PostgreSQL database.
        Postgres = "postgres",
        /// Repositories over HTTPS.
        Git = "git",
        /// A web service.
        Http = "http",
    }
}

crate::words! {
    /// Whether the channel of a connection is encrypted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ConnectionTls {
        /// Always, with a certificate that is checked.
        Required = "required",
        /// Never; only for hosts of a private network.
        Off = "off",
    }
}

impl ConnectionKind {
    /// The port if the operator names none.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            ConnectionKind::Postgres => 5432,
            ConnectionKind::Git | ConnectionKind::Http => 443,
        }
    }
}

impl ConnectionConfig {
    /// Its host and port, as lists of hosts have them.
    #[must_use]
    pub fn pattern(&self) -> Option<HostPattern> {
        HostPattern::parse(&format!("{}:{}", self.host, self.port)).ok()
    }

    /// Whether a caller who is in some groups may use it. For every other caller it
    /// does not exist.
    #[must_use]
    pub fn serves(&self, caller: &Caller, groups: &[String]) -> bool {
        match caller.kind {
            CallerKind::Owner => true,
            CallerKind::Named => {
                let name = folded(&caller.name);
                let mut callers = self.callers.iter();
                callers.any(|pattern| pattern.matches_caller(&name))
                    || groups.iter().any(|group| self.groups.contains(group))
            }
        }
    }
}

/// A connection as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionFile {
    kind: toml::Spanned<String>,
    host: toml::Spanned<String>,
    port: Option<toml::Spanned<u64>>,
    database: Option<toml::Spanned<String>>,
    user: Option<toml::Spanned<String>>,
    credential: Option<toml::Spanned<String>>,
    #[serde(default)]
    callers: Vec<toml::Spanned<String>>,
    private: Option<bool>,
    tls: Option<toml::Spanned<String>>,
    write: Option<bool>,
    trusted: Option<toml::Spanned<bool>>,
    schema: Option<toml::Spanned<String>>,
}

/// The schema a database has from the start.
const SCHEMA_DEFAULT: &str = "public";

impl Faults<'_> {
    /// Every connection, in the order of the names.
    pub(super) fn connections(
        &mut self,
        files: BTreeMap<toml::Spanned<String>, ConnectionFile>,
        groups: &[&str],
    ) -> Vec<ConnectionConfig> {
        if let Some(over) = files.keys().nth(limits::CONNECTIONS_MAX) {
            let most = limits::CONNECTIONS_MAX;
            self.say(
                over,
                format!("there are more than {most} connections"),
                None,
            );
        }
        let mut connections = Vec::new();
        for (name, file) in files {
            connections.extend(self.connection(&name, file, groups));
        }
        connections.sort_by(|one, other| one.name.cmp(&other.name));
        connections
    }

    fn connection(
        &mut self,
        name: &toml::Spanned<String>,
        file: ConnectionFile,
        groups: &[&str],
    ) -> Option<ConnectionConfig> {
        if !is_server_name(name.get_ref()) {
            let shown = elided(name.get_ref(), 40);
            let fix = format!(
                "use a small letter, then small letters, digits and `-`, at most {} in all",
                limits::SERVER_NAME_CHARS_MAX
            );
            let message = format!("`{shown}` cannot be the name of a connection");
            self.say(name, message, Some(fix));
        }
        let kind = self.read_word::<ConnectionKind>("kind", Some(&file.kind));
        self.check_postgres(name, kind, &file);
        let host = self.connection_host(&file.host);
        let port = self.read_number("port", file.port, 1..=u64::from(u16::MAX));
        let mut tls = ConnectionTls::Required;
        let private = file.private.unwrap_or_default();
        if let Some(word) = &file.tls {
            tls = self.read_word("tls", Some(word)).unwrap_or(tls);
            if tls == ConnectionTls::Off && !private {
                let message =
                    "without TLS, anyone on the network path can read the credential".to_owned();
                let fix =
                    "remove the line, or set `private = true` if the host is on a private network";
                self.say(word, message, Some(fix.to_owned()));
            }
        }
        // Only now: the settings above were read, so that their faults are told, too.
        let (kind, host) = (kind?, host?);
        if let Some(credential) = &file.credential {
            self.secret_name(credential);
        }
        let (callers, groups) = self.callers(&file.callers, groups);
        let text = |text: Option<toml::Spanned<String>>| text.map(toml::Spanned::into_inner);
        Some(ConnectionConfig {
            name: name.get_ref().clone(),
            kind,
            host,
            port: port
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(kind.port()),
            database: text(file.database).unwrap_or_default(),
            user: text(file.user),
            credential: text(file.credential),
            callers,
            groups,
            private,
            tls,
            write: file.write.unwrap_or_default(),
            trusted: file.trusted.is_some_and(toml::Spanned::into_inner),
            schema: text(file.schema).unwrap_or_else(|| SCHEMA_DEFAULT.to_owned()),
        })
    }

    /// One place, and one that a certificate can be for.
    fn connection_host(&mut self, raw_host: &toml::Spanned<String>) -> Option<Host<String>> {
        let refused = match HostPattern::parse(raw_host.get_ref()) {
            Ok(pattern) => match (pattern.shape(), pattern.port()) {
                (Shape::Exact(host), None) => return Some(host.clone()),
                (Shape::Exact(_), Some(_)) => {
                    ("`host` has a port; write it as `port`".to_owned(), None)
                }
                (Shape::Any | Shape::Below(_), _) => (
                    "`host` is a pattern; a connection leads to one host".to_owned(),
                    None,
                ),
            },
            Err(fault) => {
                let fix = fault.suggestion.as_ref();
                (fault.to_string(), fix.map(|host| format!("write `{host}`")))
            }
        };
        self.say(raw_host, refused.0, refused.1);
        None
    }

    /// Checks the settings that only a database has or needs.
    fn check_postgres(
        &mut self,
        name: &toml::Spanned<String>,
        kind: Option<ConnectionKind>,
        file: &ConnectionFile,
    ) {
        if kind.is_some_and(|kind| kind != ConnectionKind::Postgres) {
            for text in [&file.database, &file.schema].into_iter().flatten() {
                let message = "`database` and `schema` are for `kind = \"postgres\"`".to_owned();
                self.say(text, message, None);
            }
            if let Some(trusted) = &file.trusted {
                let message = "`trusted` is for `kind = \"postgres\"`".to_owned();
                self.say(trusted, message, None);
            }
            return;
        }
        for (setting, text) in [("database", &file.database), ("user", &file.user)] {
            if text.as_ref().is_none_or(|text| text.get_ref().is_empty()) {
                let message = format!("a connection to a database needs a `{setting}`");
                self.say(name, message, None);
            }
        }
        let texts = [&file.database, &file.user, &file.schema];
        for text in texts.into_iter().flatten() {
            let is_long = text.get_ref().len() > limits::CONNECTION_TEXT_BYTES_MAX;
            if is_long || text.get_ref().contains('\0') {
                let most = limits::CONNECTION_TEXT_BYTES_MAX;
                self.say(text, format!("a name has at most {most} bytes"), None);
            }
        }
    }

    /// The name of a variable, never its value: a password in the file of settings would
    /// be shown by every command that shows settings.
    fn secret_name(&mut self, name: &toml::Spanned<String>) {
        let template = format!("${{{}}}", name.get_ref());
        let is_name =
            placeholder::names(&template).collect::<Vec<_>>() == [name.get_ref().as_str()];
        if !is_name {
            let message = "`credential` is not the name of a variable".to_owned();
            let fix = "write a name such as `REPORTS_PASSWORD`, and set its value with the secrets";
            self.say(name, message, Some(fix.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
