//! The author of a request, independent of the token shown today.

use std::sync::Arc;

use model::caller::Caller;
use model::govern::key::Role;

/// The author of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name rules and the audit know the caller by.
    pub caller: Caller,
    /// The same across tokens and replaced keys.
    pub id: PrincipalId,
    /// Its role.
    pub role: Role,
    /// The scopes of its token.
    pub scopes: Arc<[String]>,
}

/// Identifies a principal across tokens and replaced keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalId(String);

impl PrincipalId {
    /// The holder of this machine's token.
    #[must_use]
    pub fn local() -> PrincipalId {
        PrincipalId("local".to_owned())
    }

    /// The holder of the key with this id.
    #[must_use]
    pub fn key(id: &str) -> PrincipalId {
        PrincipalId(format!("key:{id}"))
    }

    /// A subject of an issuer.
    #[must_use]
    pub fn subject(issuer: &str, subject: &str) -> PrincipalId {
        // A line break is in neither, so two pairs never read the same.
        PrincipalId(format!("oauth:{issuer}\n{subject}"))
    }

    /// As text, for binding things to a principal.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
