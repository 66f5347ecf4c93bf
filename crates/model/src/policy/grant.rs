//! The grant of one call: exactly what the policy allows, ready to be made into powers.
//! A grant can only be made from a policy.

use crate::document::NetworkMode;
use crate::network::host_pattern::HostPattern;
use crate::policy::EffectivePolicy;
use crate::policy::host_bound::HostBounds;

/// The grant of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What `fetch` may reach.
    pub network: NetworkGrant,
    /// The operator's bounds on it, checked on every hop.
    pub bounds: HostBounds,
    /// What `safety.fs` may touch.
    pub files: FileGrant,
}

/// What `fetch` may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkGrant {
    /// Nothing: `fetch` does not exist.
    Blocked,
    /// These hosts.
    Allowlist(Vec<HostPattern>),
    /// Any public host, every address checked.
    Strict,
    /// Any host.
    Open,
}

/// What `safety.fs` may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGrant {
    /// Whether the read group exists.
    pub read: bool,
    /// Whether the write group exists.
    pub write: bool,
    /// The one folder it sees; the workspace when absent.
    pub base_path: Option<String>,
}

impl Grant {
    /// The grant of a call that was allowed under this policy.
    #[must_use]
    pub fn from_policy(policy: &EffectivePolicy) -> Grant {
        let network = match policy.network {
            NetworkMode::Blocked => NetworkGrant::Blocked,
            NetworkMode::Allowlist => NetworkGrant::Allowlist(policy.hosts.clone()),
            NetworkMode::Strict => NetworkGrant::Strict,
            NetworkMode::Open => NetworkGrant::Open,
        };
        let files = FileGrant {
            read: policy.file_read,
            write: policy.file_write,
            base_path: policy.fs_base_path.clone(),
        };
        Grant {
            network,
            bounds: policy.bounds.clone(),
            files,
        }
    }
}
