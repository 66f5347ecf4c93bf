//! The operator's file, `ringfence.toml`: as it is written, and as it is meant.
//!
//! Unknown keys are errors that name the nearest key. A file that does not load
//! changes nothing: the caller keeps what it had, and says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::document::{NetworkMode, Word, words};
use crate::host_pattern::HostPattern;
use crate::limits;
use crate::nearest::nearest;
use crate::policy::{self, Baseline, PolicyConflict, Profile, Profiles};
use crate::text::elided;

/// What the operator set.
///
/// Defaults ([`Config::closed`]): the closed baseline, no profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What holds for every tool.
    pub baseline: Baseline,
    /// Profiles by name.
    pub profiles: Profiles,
    /// The profile in force for every tool, if any.
    pub profile: Option<String>,
}

impl Config {
    /// Nothing set: closed.
    #[must_use]
    pub fn closed() -> Config {
        Config {
            baseline: Baseline::closed(),
            profiles: Profiles::new(),
            profile: None,
        }
    }

    /// The ground every tool stands on.
    pub fn ground(&self) -> Result<Baseline, PolicyConflict> {
        policy::ground(&self.baseline, &self.profiles, self.profile.as_deref())
    }

    /// Reads the operator's file. All problems of meaning come back together.
    pub fn parse(text: &str) -> Result<Config, Vec<ConfigFault>> {
        if text.len() > limits::CONFIG_BYTES_MAX {
            let message = format!(
                "the file is longer than {} KiB",
                limits::CONFIG_BYTES_MAX >> 10
            );
            return Err(vec![ConfigFault {
                line: 0,
                column: 0,
                message,
                fix: None,
            }]);
        }
        let file: ConfigFile =
            toml::from_str(text).map_err(|error| vec![from_toml(text, &error)])?;
        file.resolve(text)
    }
}

/// One thing wrong with the operator's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigFault {
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    profile: Option<toml::Spanned<String>>,
    baseline: LayerFile,
    profiles: BTreeMap<String, LayerFile>,
}

/// The baseline or a profile, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LayerFile {
    extends: Option<toml::Spanned<String>>,
    allow_classes: Option<BTreeSet<String>>,
    deny_classes: Option<BTreeSet<String>>,
    network: Option<toml::Spanned<String>>,
    hosts: Vec<toml::Spanned<String>>,
    file_read: Option<bool>,
    file_write: Option<bool>,
    fs_base_path: Option<String>,
    statements_max: Option<toml::Spanned<u64>>,
    timeout_ms: Option<toml::Spanned<u64>>,
}

impl ConfigFile {
    fn resolve(self, text: &str) -> Result<Config, Vec<ConfigFault>> {
        let mut faults = Faults {
            text,
            faults: Vec::new(),
        };
        let mut config = Config::closed();
        for (name, layer) in self.profiles {
            let profile = faults.profile(layer);
            config.profiles.insert(name, profile);
        }
        if let Some(extends) = &self.baseline.extends {
            faults.say(
                extends,
                "the baseline extends nothing".to_owned(),
                Some("remove the line".to_owned()),
            );
        }
        let layer = faults.profile(self.baseline);
        config.baseline = over_closed(layer);
        let spanned = self.profile;
        config.profile = spanned.as_ref().map(|name| name.get_ref().clone());
        // Every profile must resolve, used or not: a broken one is found when the
        // file is loaded, not when somebody first needs it.
        for name in config.profiles.keys() {
            if let Err(conflict) = policy::ground(&config.baseline, &config.profiles, Some(name)) {
                faults.conflict(&conflict);
            }
        }
        if let (Some(spanned), Err(conflict)) = (&spanned, config.ground())
            && faults
                .faults
                .iter()
                .all(|fault| fault.message != conflict.to_string())
        {
            faults.say(spanned, conflict.to_string(), conflict.to_finding().fix);
        }
        if faults.faults.is_empty() {
            Ok(config)
        } else {
            Err(faults.faults)
        }
    }
}

/// Lists in the baseline replace the defaults: whoever sets them means them all.
fn over_closed(layer: Profile) -> Baseline {
    let closed = Baseline::closed();
    let or = |given: BTreeSet<String>, default| if given.is_empty() { default } else { given };
    Baseline {
        allow_classes: or(layer.allow_classes, closed.allow_classes),
        deny_classes: or(layer.deny_classes, closed.deny_classes),
        network: layer.network.unwrap_or(closed.network),
        hosts: layer.hosts,
        file_read: layer.file_read.unwrap_or(closed.file_read),
        file_write: layer.file_write.unwrap_or(closed.file_write),
        fs_base_path: layer.fs_base_path,
        statements_max: layer.statements_max.unwrap_or(closed.statements_max),
        timeout_ms: layer.timeout_ms.unwrap_or(closed.timeout_ms),
    }
}

struct Faults<'a> {
    text: &'a str,
    faults: Vec<ConfigFault>,
}

impl Faults<'_> {
    fn say<T>(&mut self, place: &toml::Spanned<T>, message: String, fix: Option<String>) {
        let (line, column) = position(self.text, place.span().start);
        self.faults.push(ConfigFault {
            line,
            column,
            message,
            fix,
        });
    }

    fn conflict(&mut self, conflict: &PolicyConflict) {
        let fault = ConfigFault {
            line: 0,
            column: 0,
            message: conflict.to_string(),
            fix: conflict.to_finding().fix,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn profile(&mut self, layer: LayerFile) -> Profile {
        let network = layer.network.as_ref().and_then(|word| {
            let found = NetworkMode::ALL
                .iter()
                .copied()
                .find(|mode| mode.word() == word.get_ref());
            if found.is_none() {
                let known = NetworkMode::ALL.iter().map(|mode| mode.word());
                let fix = nearest(word.get_ref(), known).map(|word| format!("write `{word}`"));
                let shown = elided(word.get_ref(), 40);
                self.say(
                    word,
                    format!(
                        "`network` is `{shown}`; it must be {}",
                        words::<NetworkMode>()
                    ),
                    fix,
                );
            }
            found
        });
        let mut hosts = Vec::new();
        for raw_host in &layer.hosts {
            match HostPattern::parse(raw_host.get_ref()) {
                Ok(host) => hosts.push(host),
                Err(fault) => {
                    let fix = fault
                        .suggestion
                        .as_ref()
                        .map(|host| format!("write `{host}`"));
                    self.say(raw_host, fault.to_string(), fix);
                }
            }
        }
        Profile {
            extends: layer.extends.map(toml::Spanned::into_inner),
            allow_classes: layer.allow_classes.unwrap_or_default(),
            deny_classes: layer.deny_classes.unwrap_or_default(),
            network,
            hosts,
            file_read: layer.file_read,
            file_write: layer.file_write,
            fs_base_path: layer.fs_base_path,
            statements_max: self.bounded(
                "statements_max",
                layer.statements_max,
                limits::STATEMENTS_MAX,
            ),
            timeout_ms: self.bounded("timeout_ms", layer.timeout_ms, limits::TIMEOUT_MS_MAX),
        }
    }

    fn bounded(&mut self, name: &str, value: Option<toml::Spanned<u64>>, max: u64) -> Option<u64> {
        let value = value?;
        let number = *value.get_ref();
        if number == 0 || number > max {
            self.say(
                &value,
                format!("`{name}` is {number}; it must be between 1 and {max}"),
                None,
            );
        }
        Some(number)
    }
}

fn from_toml(text: &str, error: &toml::de::Error) -> ConfigFault {
    let start = error.span().map_or(0, |span| span.start);
    let (line, column) = position(text, start);
    let message = error.message().lines().next().unwrap_or("not TOML");
    // serde says: unknown field `x`, expected one of `a`, `b`
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message
        .starts_with("unknown field")
        .then(|| quoted.next())
        .flatten();
    match unknown {
        Some(unknown) => ConfigFault {
            line,
            column,
            message: format!("there is no setting `{}` here", elided(unknown, 60)),
            fix: nearest(unknown, quoted).map(|name| format!("did you mean `{name}`?")),
        },
        None => ConfigFault {
            line,
            column,
            message: elided(message, 200),
            fix: None,
        },
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let position = crate::json::Lines::new(text).position(offset);
    (position.line, position.column)
}

#[cfg(test)]
mod tests;
