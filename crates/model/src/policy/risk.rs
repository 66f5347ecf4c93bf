//! The risk level: how far a document widens the policy of a tool, L0 to L5.
//!
//! A pure function of the operator's baseline and the document's overrides. It
//! starts at L0 and takes the worst signal; each signal is kept, in words. L1 and
//! L2 are reserved by the specification and never given.

use serde::{Serialize, Serializer};

use crate::document::lifecycle;
use crate::document::{Document, NetworkMode, Overrides};
use crate::network::address::Reach;
use crate::network::host_pattern::HostPattern;
use crate::policy::{Baseline, EffectivePolicy};
use crate::text::{count, elided};
use crate::word::Word;

/// A risk level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing beyond computing.
    L0,
    /// Reserved.
    L1,
    /// Reserved.
    L2,
    /// A narrow widening.
    L3,
    /// A broad widening.
    L4,
    /// Beyond the promises of a sandbox.
    L5,
}

impl Level {
    /// All of them, in order.
    pub const ALL: [Level; 6] = [
        Level::L0,
        Level::L1,
        Level::L2,
        Level::L3,
        Level::L4,
        Level::L5,
    ];

    /// `L0` to `L5`.
    #[must_use]
    pub fn badge(self) -> &'static str {
        match self {
            Level::L0 => "L0",
            Level::L1 => "L1",
            Level::L2 => "L2",
            Level::L3 => "L3",
            Level::L4 => "L4",
            Level::L5 => "L5",
        }
    }

    /// The level in a word.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Level::L0 => "Verified",
            Level::L1 => "Safe",
            Level::L2 => "Low",
            Level::L3 => "Moderate",
            Level::L4 => "High",
            Level::L5 => "Critical",
        }
    }
}

impl Word for Level {
    const ALL: &'static [Level] = &Level::ALL;

    fn word(self) -> &'static str {
        self.badge()
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.badge())
    }
}

/// One thing that raises the level, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// How far it raises the level by itself.
    pub level: Level,
    /// What it is, as a phrase.
    pub words: String,
}

/// The level and everything that contributes to it, worst first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// The worst signal's level, or L0.
    pub level: Level,
    /// Every signal.
    pub signals: Vec<Signal>,
}

/// Rates a document under a policy. The level is that of [`rate`]; where the tool can
/// reach out, the variables it gets are one more reason for it.
#[must_use]
pub fn of(document: &Document, baseline: &Baseline, policy: &EffectivePolicy) -> Risk {
    let mut risk = rate(baseline, &document.sandbox_overrides, policy);
    // Without the network a variable cannot leave, so it is no reason.
    let reach = network(policy).map(|signal| signal.level);
    let variables = reach.and_then(|level| variables(document, level));
    risk.signals.extend(variables);
    risk.signals
        .sort_by_key(|signal| std::cmp::Reverse(signal.level));
    risk
}

/// A variable's value can go wherever the network reaches.
fn variables(document: &Document, level: Level) -> Option<Signal> {
    let mut names: Vec<_> = lifecycle::requirements(document).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        let words = format!(
            "variables: the value of {} can leave by the network",
            elided(&names.join(", "), 200)
        );
        signal(level, words)
    })
}

/// Rates a policy against the baseline it was resolved on.
#[must_use]
pub fn rate(baseline: &Baseline, overrides: &Overrides, policy: &EffectivePolicy) -> Risk {
    let mut signals: Vec<Signal> = [network(policy), files(policy), destructive(policy)]
        .into_iter()
        .flatten()
        .chain(inside(policy))
        .chain(dropped_denies(baseline, overrides))
        .chain(added_allows(baseline, overrides))
        .collect();
    signals.sort_by_key(|signal| std::cmp::Reverse(signal.level));
    let level = signals.first().map_or(Level::L0, |signal| signal.level);
    Risk { level, signals }
}

fn signal(level: Level, words: impl Into<String>) -> Signal {
    Signal {
        level,
        words: words.into(),
    }
}

fn network(policy: &EffectivePolicy) -> Option<Signal> {
    match policy.network {
        NetworkMode::Blocked => None,
        // An empty list reaches nothing.
        NetworkMode::Allowlist if policy.hosts.is_empty() => None,
        NetworkMode::Allowlist if policy.hosts.iter().any(|host| host.is_any()) => Some(signal(
            Level::L4,
            "network: the host list holds `*`, so any public host",
        )),
        NetworkMode::Allowlist => {
            let hosts: Vec<_> = policy.hosts.iter().map(HostPattern::shown).collect();
            let words = format!(
                "network: {} listed ({})",
                count(hosts.len(), "host"),
                elided(&hosts.join(", "), 120)
            );
            Some(signal(Level::L3, words))
        }
        NetworkMode::Strict => Some(signal(
            Level::L3,
            "network: any public host, every address checked",
        )),
        NetworkMode::Open => Some(signal(
            Level::L4,
            "network: any host, private networks included",
        )),
    }
}

/// Listed hosts that are not on the public network: as risky as `open` for the services
/// behind them. Each is a signal of its own, so that no long list hides one.
fn inside(policy: &EffectivePolicy) -> Vec<Signal> {
    let rated = |host: &HostPattern| {
        let Reach::Reserved(class) = host.reach() else {
            return None;
        };
        let words = format!("network: the host list holds `{host}`, which is {class}");
        class.leads_inside().then(|| signal(Level::L4, words))
    };
    policy.hosts.iter().filter_map(rated).collect()
}

fn files(policy: &EffectivePolicy) -> Option<Signal> {
    let place = policy.fs_base_path.as_deref().map_or_else(
        || "the workspace".to_owned(),
        |path| format!("`{}`", elided(path, 80)),
    );
    match (policy.file_read, policy.file_write) {
        (false, false) => None,
        (true, false) => Some(signal(Level::L3, format!("files: reads in {place}"))),
        (false, true) => Some(signal(Level::L4, format!("files: writes in {place}"))),
        (true, true) => Some(signal(
            Level::L4,
            format!("files: reads and writes in {place}"),
        )),
    }
}

fn destructive(policy: &EffectivePolicy) -> Option<Signal> {
    policy
        .destructive
        .then(|| signal(Level::L5, "destructive: destroys what cannot be had back"))
}

/// Removing a denied class is an escalation. The specification's pseudocode looks for
/// critical classes among the entries that *stay*; that is an error, and would rate
/// every tool L5. The removed ones are meant.
fn dropped_denies(baseline: &Baseline, overrides: &Overrides) -> Vec<Signal> {
    let mut dropped: Vec<&String> = overrides
        .remove_deny_classes
        .iter()
        .filter(|class| baseline.deny_classes.contains(*class))
        .collect();
    dropped.sort();
    dropped.dedup();
    let by_count = if dropped.len() >= 3 {
        Level::L4
    } else {
        Level::L3
    };
    let rated = |class: &&String| match Family::of(class) {
        Family::Critical => signal(
            Level::L5,
            format!("class no longer denied: `{}`, critical", elided(class, 80)),
        ),
        Family::FileWrite
        | Family::Reflection
        | Family::Network
        | Family::FileRead
        | Family::Other => signal(
            by_count,
            format!("class no longer denied: `{}`", elided(class, 80)),
        ),
    };
    dropped.iter().map(rated).collect()
}

fn added_allows(baseline: &Baseline, overrides: &Overrides) -> Vec<Signal> {
    let mut added: Vec<&String> = overrides
        .add_allow_classes
        .iter()
        .filter(|class| !baseline.allow_classes.contains(*class))
        .collect();
    added.sort();
    added.dedup();
    let rated = |class: &&String| {
        let (level, what) = match Family::of(class) {
            Family::Critical => (Level::L5, ", critical"),
            Family::FileWrite => (Level::L5, ", writes files"),
            Family::Reflection => (Level::L4, ", reflection"),
            Family::Network => (Level::L4, ", network"),
            Family::FileRead => (Level::L4, ", reads files"),
            Family::Other => (Level::L3, ""),
        };
        signal(
            level,
            format!("class also allowed: `{}`{what}", elided(class, 80)),
        )
    };
    added.iter().map(rated).collect()
}

/// Families of classes by capability, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Critical,
    FileWrite,
    Reflection,
    Network,
    FileRead,
    Other,
}

/// A family and its members: by the start of the name, or (`=`) by the whole of it.
const FAMILIES: &[(Family, &[&str])] = &[
    (
        Family::Critical,
        &["java.lang.System", "java.lang.Runtime", "java.lang.Process"],
    ),
    (
        Family::FileWrite,
        &[
            "java.io.FileWriter",
            "java.io.FileOutputStream",
            "java.io.RandomAccessFile",
            "java.nio.channels.FileChannel",
        ],
    ),
    (
        Family::Reflection,
        &["java.lang.reflect", "java.lang.invoke", "=java.lang.Class"],
    ),
    (
        Family::Network,
        &[
            "java.net.http",
            "java.net.Socket",
            "java.net.URL",
            "java.net.HttpURLConnection",
            "java.nio.channels.Socket",
            "javax.net.ssl",
            "org.jsoup",
        ],
    ),
    (
        Family::FileRead,
        &[
            "=java.io.File",
            "=java.io.FileReader",
            "=java.io.FileInputStream",
            "=java.nio.file.Files",
            "=java.nio.file.Path",
            "=java.nio.file.Paths",
        ],
    ),
];

impl Family {
    /// The worst family an entry belongs to. A package pattern such as `java.io.*`
    /// belongs to every family it covers: widening `java.io.File` to it must not lower
    /// the risk level.
    fn of(entry: &str) -> Family {
        let stem = entry.trim_end_matches('*');
        let name = stem.trim_end_matches('.');
        let covers =
            |member: &str| entry.ends_with(".*") && member.starts_with(stem) || entry == "*";
        let belongs = |member: &&str| match member.strip_prefix('=') {
            Some(exact) => name == exact || covers(exact),
            None => name.starts_with(member) || covers(member),
        };
        FAMILIES
            .iter()
            .find(|(_, members)| members.iter().any(&belongs))
            .map_or(Family::Other, |(family, _)| *family)
    }
}

#[cfg(test)]
mod tests;
