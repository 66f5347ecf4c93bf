//! From the operator's baseline, a profile and a document's overrides to the
//! policy of one call.
//!
//! Resolution is a pure function of the settings and the document. It is done again
//! whenever either changed, so a change is in force at the next call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::document::finding::{Code, Finding};
use crate::document::{NetworkMode, Overrides};
use crate::limits;
use crate::nearest::nearest;
use crate::network::host_pattern::HostPattern;
use crate::policy::host_bound::HostBounds;
use crate::reason::Reason;
use crate::text::elided;

/// Everything known about one document under a baseline.
pub mod assessment;
/// Exactly what one call may use.
pub mod grant;
/// Host bounds from callers and rules.
pub mod host_bound;
/// The risk level and its reasons.
pub mod risk;
/// The record of a call's policy.
pub mod safety;

/// The operator's settings for every tool.
///
/// Defaults ([`Baseline::closed`]): network blocked, no hosts, no files, the
/// pure-compute Java packages allowed and the dangerous classes denied (both only
/// for the badge), 500 000 statements, 30 seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Classes allowed.
    pub allow_classes: Classes,
    /// Classes denied.
    pub deny_classes: Classes,
    /// What `fetch` may reach.
    pub network: NetworkMode,
    /// Hosts every `allowlist` tool may reach.
    pub hosts: Vec<HostPattern>,
    /// Whether files can be read.
    pub file_read: bool,
    /// Whether files can be written.
    pub file_write: bool,
    /// The folder files are in; the workspace when absent.
    pub fs_base_path: Option<String>,
    /// Statements a call may run.
    pub statements_max: u64,
    /// Milliseconds a call may take.
    pub timeout_ms: u64,
}

impl Baseline {
    /// The default baseline: closed.
    #[must_use]
    pub fn closed() -> Baseline {
        let set = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            Classes::new(names.collect())
        };
        Baseline {
            allow_classes: set(&[
                "java.lang.*",
                "java.math.*",
                "java.time.*",
                "java.util.*",
                "java.text.*",
            ]),
            deny_classes: set(&[
                "java.lang.System",
                "java.lang.Runtime",
                "java.lang.ProcessBuilder",
                "java.lang.Process",
                "java.lang.Class",
                "java.lang.invoke.*",
                "java.lang.reflect.*",
                "java.lang.Thread",
                "java.lang.ThreadGroup",
                "java.lang.ClassLoader",
                "java.util.ServiceLoader",
                "java.util.spi.*",
            ]),
            network: NetworkMode::Blocked,
            hosts: Vec::new(),
            file_read: false,
            file_write: false,
            fs_base_path: None,
            statements_max: limits::STATEMENTS_DEFAULT,
            timeout_ms: limits::TIMEOUT_MS_DEFAULT,
        }
    }
}

/// A named set of changes to the baseline. What is absent is inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The profile this one starts from.
    pub extends: Option<String>,
    /// More allowed classes.
    pub allow_classes: BTreeSet<String>,
    /// More denied classes.
    pub deny_classes: BTreeSet<String>,
    /// What `fetch` may reach.
    pub network: Option<NetworkMode>,
    /// More hosts.
    pub hosts: Vec<HostPattern>,
    /// Whether files can be read.
    pub file_read: Option<bool>,
    /// Whether files can be written.
    pub file_write: Option<bool>,
    /// The folder files are in.
    pub fs_base_path: Option<String>,
    /// Statements a call may run.
    pub statements_max: Option<u64>,
    /// Milliseconds a call may take.
    pub timeout_ms: Option<u64>,
}

/// Names of classes. Most policies have the very lists of their baseline.
pub type Classes = Arc<BTreeSet<String>>;

/// Profiles by name.
pub type Profiles = BTreeMap<String, Profile>;

/// The policy of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePolicy {
    /// Classes allowed.
    pub allow_classes: Classes,
    /// Classes denied.
    pub deny_classes: Classes,
    /// What `fetch` may reach.
    pub network: NetworkMode,
    /// The hosts of mode `allowlist`; empty in every other mode.
    pub hosts: Vec<HostPattern>,
    /// The operator's bounds on them, or on whatever the mode reaches.
    pub bounds: HostBounds,
    /// Whether files can be read.
    pub file_read: bool,
    /// Whether files can be written.
    pub file_write: bool,
    /// The folder files are in; the workspace when absent.
    pub fs_base_path: Option<String>,
    /// Whether a call destroys what cannot be had back.
    pub destructive: bool,
    /// Statements the call may run.
    pub statements_max: u64,
    /// Milliseconds the call may take.
    pub timeout_ms: u64,
}

impl EffectivePolicy {
    /// Whether a call can reach any host at all.
    #[must_use]
    pub fn reaches_out(&self) -> bool {
        match self.network {
            NetworkMode::Blocked => false,
            NetworkMode::Allowlist => !self.hosts.is_empty(),
            NetworkMode::Strict | NetworkMode::Open => true,
        }
    }
}

/// Why there is no policy for a call. The call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyConflict {
    /// A class on both lists.
    #[error("sandbox policy conflict: {} both allowed and denied", listed(classes))]
    Overlap {
        /// The classes.
        classes: Vec<String>,
    },
    /// A name that is no profile.
    #[error("there is no profile `{name}`")]
    ProfileUnknown {
        /// The name.
        name: String,
        /// The closest that exists.
        nearest: Option<String>,
    },
    /// A profile that extends itself.
    #[error("the profile `{name}` extends itself")]
    ProfileCycle {
        /// The profile met twice.
        name: String,
    },
    /// Too many profiles in a row.
    #[error("the profile `{name}` extends more than {} others", limits::PROFILE_DEPTH_MAX - 1)]
    ProfileDepth {
        /// Where the chain starts.
        name: String,
    },
    /// A host pattern that is not valid.
    #[error("{message}")]
    HostPattern {
        /// Which of the document's hosts.
        index: usize,
        /// What is wrong with it.
        message: String,
        /// The pattern that was probably meant.
        suggestion: Option<String>,
    },
}

fn listed(classes: &[String]) -> String {
    let verb = if classes.len() == 1 { "is" } else { "are" };
    format!("`{}` {verb}", elided(&classes.join("`, `"), 200))
}

impl PolicyConflict {
    /// The stable code.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            PolicyConflict::Overlap { .. } => Reason::PolicyOverlap,
            PolicyConflict::ProfileUnknown { .. } => Reason::PolicyProfileUnknown,
            PolicyConflict::ProfileCycle { .. } => Reason::PolicyProfileCycle,
            PolicyConflict::ProfileDepth { .. } => Reason::PolicyProfileDepth,
            PolicyConflict::HostPattern { .. } => Reason::PolicyHostPattern,
        }
    }

    /// The same as a finding about the document.
    #[must_use]
    pub fn to_finding(&self) -> Finding {
        let (pointer, fix) = match self {
            PolicyConflict::Overlap { .. } => (
                "sandboxOverrides".to_owned(),
                Some("also list it in `removeDenyClasses` or `removeAllowClasses`".to_owned()),
            ),
            PolicyConflict::HostPattern {
                index, suggestion, ..
            } => (
                format!("sandboxOverrides.hostsAllow[{index}]"),
                suggestion.as_ref().map(|host| format!("write `{host}`")),
            ),
            PolicyConflict::ProfileUnknown { nearest, .. } => (
                String::new(),
                nearest
                    .as_ref()
                    .map(|name| format!("did you mean `{name}`?")),
            ),
            PolicyConflict::ProfileCycle { .. } | PolicyConflict::ProfileDepth { .. } => {
                (String::new(), None)
            }
        };
        let finding = Finding::error(Code::ResolverReject, pointer, self.to_string());
        Finding { fix, ..finding }
    }
}

/// The baseline with a profile on top: the operator's grant before any document. The
/// risk of a document is measured against this.
pub fn effective_baseline(
    baseline: &Baseline,
    profiles: &Profiles,
    profile: Option<&str>,
) -> Result<Baseline, PolicyConflict> {
    let Some(first) = profile else {
        return Ok(baseline.clone());
    };
    let mut effective = baseline.clone();
    // From the base up, so that the named profile has the last word.
    for profile in chain(profiles, first)?.into_iter().rev() {
        // Copied only here: without a profile all tools share the lists of the baseline.
        Classes::make_mut(&mut effective.allow_classes)
            .extend(profile.allow_classes.iter().cloned());
        Classes::make_mut(&mut effective.deny_classes).extend(profile.deny_classes.iter().cloned());
        merge_hosts(&mut effective.hosts, &profile.hosts);
        effective.network = profile.network.unwrap_or(effective.network);
        effective.file_read = profile.file_read.unwrap_or(effective.file_read);
        effective.file_write = profile.file_write.unwrap_or(effective.file_write);
        effective.fs_base_path = profile.fs_base_path.clone().or(effective.fs_base_path);
        effective.statements_max = profile.statements_max.unwrap_or(effective.statements_max);
        effective.timeout_ms = profile.timeout_ms.unwrap_or(effective.timeout_ms);
    }
    Ok(effective)
}

/// A profile and those it extends, the named one first.
fn chain<'a>(profiles: &'a Profiles, first: &str) -> Result<Vec<&'a Profile>, PolicyConflict> {
    let mut chain = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = Some(first);
    while let Some(name) = next {
        // Before the depth: a profile that extends itself is told so, and not that it is
        // too deep.
        if !seen.insert(name) {
            return Err(PolicyConflict::ProfileCycle {
                name: name.to_owned(),
            });
        }
        if chain.len() == limits::PROFILE_DEPTH_MAX {
            return Err(PolicyConflict::ProfileDepth {
                name: first.to_owned(),
            });
        }
        let profile = profiles
            .get(name)
            .ok_or_else(|| PolicyConflict::ProfileUnknown {
                name: name.to_owned(),
                nearest: nearest(name, profiles.keys().map(String::as_str)).map(str::to_owned),
            })?;
        chain.push(profile);
        next = profile.extends.as_deref();
    }
    Ok(chain)
}

/// The policy of a call: the operator's baseline, and the document's overrides on it.
/// `baseline` comes from [`effective_baseline`].
pub fn resolve(
    baseline: &Baseline,
    overrides: &Overrides,
) -> Result<EffectivePolicy, PolicyConflict> {
    let merged = |base: &Classes, add: &[String], remove: &[String]| {
        if add.is_empty() && remove.is_empty() {
            return Classes::clone(base);
        }
        let added = base
            .iter()
            .chain(add)
            .filter(|class| !remove.contains(class));
        Classes::new(added.cloned().collect())
    };
    let allow_classes = merged(
        &baseline.allow_classes,
        &overrides.add_allow_classes,
        &overrides.remove_allow_classes,
    );
    let deny_classes = merged(
        &baseline.deny_classes,
        &overrides.add_deny_classes,
        &overrides.remove_deny_classes,
    );
    // Not resolved by an order of the lists: an author who writes both meant something
    // else.
    let classes: Vec<_> = allow_classes.intersection(&deny_classes).cloned().collect();
    if !classes.is_empty() {
        return Err(PolicyConflict::Overlap { classes });
    }
    let network = overrides.network_mode.unwrap_or(baseline.network);
    // Parsed in every mode: a host that is not valid is an error even where it has no
    // effect.
    let mut hosts = host_patterns(&overrides.hosts_allow)?;
    match network {
        NetworkMode::Allowlist => merge_hosts(&mut hosts, &baseline.hosts),
        NetworkMode::Blocked | NetworkMode::Strict | NetworkMode::Open => hosts.clear(),
    }
    Ok(EffectivePolicy {
        allow_classes,
        deny_classes,
        network,
        hosts,
        bounds: HostBounds::default(),
        file_read: overrides.file_read.unwrap_or(baseline.file_read),
        file_write: overrides.file_write.unwrap_or(baseline.file_write),
        fs_base_path: overrides
            .fs_base_path
            .clone()
            .or_else(|| baseline.fs_base_path.clone()),
        destructive: overrides.destructive.unwrap_or(false),
        // Only the operator sets budgets; a document cannot.
        statements_max: baseline.statements_max,
        timeout_ms: baseline.timeout_ms,
    })
}

fn host_patterns(raw_hosts: &[String]) -> Result<Vec<HostPattern>, PolicyConflict> {
    let mut hosts = Vec::new();
    for (index, raw_host) in raw_hosts.iter().enumerate() {
        let host = HostPattern::parse(raw_host).map_err(|fault| PolicyConflict::HostPattern {
            index,
            message: fault.to_string(),
            suggestion: fault.suggestion,
        })?;
        merge_hosts(&mut hosts, &[host]);
    }
    Ok(hosts)
}

/// Adds hosts that are not there yet, order kept.
fn merge_hosts(hosts: &mut Vec<HostPattern>, more: &[HostPattern]) {
    for host in more {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
}

#[cfg(test)]
mod tests;
