//! How a server is started or reached: what is suspicious in it, and how it is shown
//! without its secrets.

use std::collections::{BTreeMap, BTreeSet};

use model::config::{ServerConfig, ServerTransport};
use model::document::placeholder;
use model::text::{elided, one_line};
use model::word::Word as _;
use serde_json::{Value, json};
use upstream::finding::{self, FindingCode, LaunchSpec, UpstreamFinding};

/// Stands where a secret was.
const HIDDEN: &str = "…";
/// A command that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 300;

/// How a server is started or reached, in our settings or in a client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLaunch {
    /// The program and its arguments; empty for a server at an address.
    pub command: Vec<String>,
    /// The address, if it is reached at one.
    pub url: Option<String>,
    /// The variables of a program, or the headers of an address.
    pub values: BTreeMap<String, String>,
}

impl ServerLaunch {
    /// As the settings have it.
    #[must_use]
    pub fn of(config: &ServerConfig) -> ServerLaunch {
        match &config.transport {
            ServerTransport::Command(command) => ServerLaunch {
                command: command.command.clone(),
                url: None,
                values: command.environment.clone(),
            },
            ServerTransport::Url(url) => ServerLaunch {
                command: Vec::new(),
                url: Some(url.url.clone()),
                values: url.headers.clone(),
            },
        }
    }

    /// What is suspicious in it.
    #[must_use]
    pub fn findings(&self) -> Vec<UpstreamFinding> {
        // A value with a placeholder has its secret elsewhere.
        let is_plain = |value: &str| placeholder::names(value).next().is_none();
        let plain = self.values.iter().filter(|(_, value)| is_plain(value));
        let plain: Vec<(String, String)> = plain
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let (env, headers): (&[_], &[_]) = match self.url {
            None => (&plain, &[]),
            Some(_) => (&[], &plain),
        };
        finding::of_launch(&LaunchSpec {
            command: &self.command,
            env,
            url: self.url.as_deref(),
            headers,
        })
    }

    /// The variables or headers whose values are secrets in plain text.
    #[must_use]
    pub fn plain_secrets(&self) -> BTreeSet<String> {
        let findings = self.findings();
        let fields = findings
            .iter()
            .filter(|finding| finding.code == FindingCode::PlainSecret);
        let names = fields.filter_map(|finding| {
            let field = finding.field.as_str();
            let name = field.strip_prefix("env.");
            name.or_else(|| field.strip_prefix("headers."))
        });
        let names: BTreeSet<&str> = names.collect();
        // Findings are shown on one line; a name is what it is.
        let own = self.values.keys();
        own.filter(|name| names.contains(one_line(name).as_str()))
            .cloned()
            .collect()
    }

    /// How it is started or reached, on one line and without secrets.
    #[must_use]
    pub fn shown(&self) -> String {
        let findings = self.findings();
        let is_secret = |field: &str| {
            let mut all = findings.iter();
            all.any(|found| found.code == FindingCode::PlainSecret && found.field == field)
        };
        // A shell's line is one argument, and what stands in it is not looked through.
        let has_shell = findings
            .iter()
            .any(|found| found.code == FindingCode::Shell);
        if let Some(url) = &self.url {
            // A query often holds a key.
            let end = url.find(['?', '#']).unwrap_or(url.len());
            let shown = match is_secret("url") {
                true => host(url),
                false => url.get(..end).unwrap_or_default().to_owned(),
            };
            return elided(&shown, SHOWN_CHARS_MAX);
        }
        let mut words: Vec<&str> = Vec::new();
        for (index, word) in self.command.iter().enumerate() {
            let field = index
                .checked_sub(1)
                .map(|index| format!("arguments[{index}]"));
            let is_hidden = field.is_some_and(|field| is_secret(&field));
            let is_line = has_shell && index > 0 && word.contains(char::is_whitespace);
            words.push(if is_hidden || is_line { HIDDEN } else { word });
        }
        elided(&words.join(" "), SHOWN_CHARS_MAX)
    }
}

/// Where an address leads, and nothing else of it.
fn host(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/{HIDDEN}")
}

/// A finding in one line. What a shell reads is not repeated: it may hold a secret.
#[must_use]
pub fn finding_line(finding: &UpstreamFinding) -> String {
    let field = one_line(&finding.field);
    let head = format!("{}  {}: {}", finding.code.word(), field, finding.message);
    match finding.code {
        FindingCode::Shell => head,
        _ if finding.excerpt.is_empty() => head,
        _ => format!("{head}: {}", one_line(&finding.excerpt)),
    }
}

/// The same as a value.
#[must_use]
pub fn finding_value(finding: &UpstreamFinding) -> Value {
    json!({
        "code": finding.code.word(),
        "weight": finding.weight().word(),
        "field": finding.field,
        "message": finding.message,
        "excerpt": (finding.code != FindingCode::Shell).then_some(&finding.excerpt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(words: &[&str]) -> ServerLaunch {
        ServerLaunch {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            ..ServerLaunch::default()
        }
    }

    fn address(url: &str) -> ServerLaunch {
        ServerLaunch {
            url: Some(url.to_owned()),
            ..ServerLaunch::default()
        }
    }

    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    #[test]
    fn secrets_are_never_shown() {
        let plain = launch(&["npx", "-y", "pkg@1.0.0", "--token", SECRET]);
        assert_eq!(plain.shown(), "npx -y pkg@1.0.0 --token …");
        let shell = launch(&["sh", "-c", &format!("TOKEN={SECRET} npx pkg")]);
        assert_eq!(shell.shown(), "sh -c …");
        let query = address(&format!("https://mcp.example.com/x?key={SECRET}"));
        assert_eq!(query.shown(), "https://mcp.example.com/…");
        let user = address(&format!("https://ada:{SECRET}@mcp.example.com/x"));
        assert!(!user.shown().contains(SECRET));
        for one in [plain, shell, query, user] {
            for finding in one.findings() {
                assert!(!finding_line(&finding).contains(SECRET), "{finding:?}");
                let value = finding_value(&finding).to_string();
                assert!(!value.contains(SECRET), "{value}");
            }
        }
    }

    #[test]
    fn plain_secrets_are_found_and_placeholders_are_none() {
        let mut one = launch(&["server"]);
        for (name, value) in [
            ("GITHUB_TOKEN", SECRET),
            ("OTHER_TOKEN", "${OTHER_TOKEN}"),
            ("LEVEL", "debug"),
        ] {
            one.values.insert(name.to_owned(), value.to_owned());
        }
        let found: Vec<_> = one.plain_secrets().into_iter().collect();
        assert_eq!(found, ["GITHUB_TOKEN"]);
        let mut header = address("https://mcp.example.com/mcp");
        header
            .values
            .insert("Authorization".to_owned(), format!("Bearer {SECRET}"));
        let found: Vec<_> = header.plain_secrets().into_iter().collect();
        assert_eq!(found, ["Authorization"]);
    }
}
