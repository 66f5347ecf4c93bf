//! A policy in Rust, for programs that embed Ringfence: a name and arguments in,
//! allow or deny with a reason out.
//!
//! It changes nothing, runs nothing and asks nobody. A predicate that panics
//! denies.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::text::elided;

/// Which calls are allowed.
///
/// ```
/// use model::govern::tool_policy::ToolPolicy;
///
/// let policy = ToolPolicy::allow_list(["web.search", "payment.transfer"]).and(ToolPolicy::when(
///     |tool, args| tool != "payment.transfer" || args["amount"].as_f64().is_some_and(|sum| sum <= 1000.0),
///     "amount above 1000 requires approval",
/// ));
/// let args = serde_json::json!({ "amount": 1500 });
/// let verdict = policy.check("payment.transfer", args.as_object().unwrap());
/// assert_eq!(verdict.reason(), Some("amount above 1000 requires approval"));
/// ```
#[derive(Clone)]
pub struct ToolPolicy(Kind);

type Predicate = Arc<dyn Fn(&str, &Map<String, Value>) -> bool + Send + Sync>;

#[derive(Clone)]
enum Kind {
    AllowAll,
    DenyAll,
    AllowList(Arc<BTreeSet<String>>),
    DenyList(Arc<BTreeSet<String>>),
    When(Predicate, Arc<str>),
    And(Arc<ToolPolicy>, Arc<ToolPolicy>),
}

/// What a policy says. Whatever is denied has a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolVerdict {
    /// It may run.
    Allowed,
    /// It may not.
    Denied {
        /// Why, for people and models.
        reason: String,
    },
}

impl ToolVerdict {
    /// Whether it may run.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, ToolVerdict::Allowed)
    }

    /// Why it may not.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            ToolVerdict::Allowed => None,
            ToolVerdict::Denied { reason } => Some(reason),
        }
    }
}

impl ToolPolicy {
    /// Everything.
    pub const ALLOW_ALL: ToolPolicy = ToolPolicy(Kind::AllowAll);
    /// Nothing.
    pub const DENY_ALL: ToolPolicy = ToolPolicy(Kind::DenyAll);

    /// Only these, in either case of letters.
    #[must_use]
    pub fn allow_list(names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        ToolPolicy(Kind::AllowList(Arc::new(folded(names))))
    }

    /// All but these, in either case of letters.
    #[must_use]
    pub fn deny_list(names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        ToolPolicy(Kind::DenyList(Arc::new(folded(names))))
    }

    /// Only calls for which the predicate is **true**.
    #[must_use]
    pub fn when(
        allowed: impl Fn(&str, &Map<String, Value>) -> bool + Send + Sync + 'static,
        reason: impl Into<String>,
    ) -> ToolPolicy {
        let reason: String = reason.into();
        ToolPolicy(Kind::When(Arc::new(allowed), reason.into()))
    }

    /// Only what both allow. This one is asked first; if it denies, the other is
    /// not asked.
    #[must_use]
    pub fn and(self, other: ToolPolicy) -> ToolPolicy {
        match (&self.0, &other.0) {
            (Kind::AllowAll, _) => other,
            (_, Kind::AllowAll) | (Kind::DenyAll, _) => self,
            _ => ToolPolicy(Kind::And(Arc::new(self), Arc::new(other))),
        }
    }

    /// Whether there is nothing to check, so that a caller can leave it out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.0, Kind::AllowAll)
    }

    /// Decides about one call.
    #[must_use]
    pub fn check(&self, tool: &str, arguments: &Map<String, Value>) -> ToolVerdict {
        let denied = |reason: String| ToolVerdict::Denied { reason };
        let listed = |names: &BTreeSet<String>| names.contains(&tool.to_lowercase());
        match &self.0 {
            Kind::AllowAll => ToolVerdict::Allowed,
            Kind::DenyAll => denied("every tool is denied".to_owned()),
            Kind::AllowList(names) if listed(names) => ToolVerdict::Allowed,
            Kind::AllowList(_) => denied(format!(
                "`{}` is not on the list of allowed tools",
                elided(tool, 60)
            )),
            Kind::DenyList(names) if !listed(names) => ToolVerdict::Allowed,
            Kind::DenyList(_) => denied(format!(
                "`{}` is on the list of denied tools",
                elided(tool, 60)
            )),
            // Whether the predicate left its own state in disorder is its affair;
            // here a panic is a denial.
            Kind::When(allowed, reason) => {
                match catch_unwind(AssertUnwindSafe(|| allowed(tool, arguments))) {
                    Ok(true) => ToolVerdict::Allowed,
                    Ok(false) => denied(reason.to_string()),
                    Err(_) => denied("the policy failed, so it denies".to_owned()),
                }
            }
            Kind::And(first, second) => match first.check(tool, arguments) {
                ToolVerdict::Allowed => second.check(tool, arguments),
                denied => denied,
            },
        }
    }
}

impl fmt::Debug for ToolPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::AllowAll => f.write_str("everything"),
            Kind::DenyAll => f.write_str("nothing"),
            Kind::AllowList(names) => write!(f, "only {names:?}"),
            Kind::DenyList(names) => write!(f, "all but {names:?}"),
            Kind::When(_, reason) => write!(f, "when not {reason:?}"),
            Kind::And(first, second) => write!(f, "{first:?} and {second:?}"),
        }
    }
}

fn folded(names: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    names
        .into_iter()
        .map(|name| name.as_ref().to_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[track_caller]
    fn check(policy: &ToolPolicy, tool: &str, expected: Option<&str>) {
        assert_eq!(policy.check(tool, &Map::new()).reason(), expected, "{tool}");
    }

    #[test]
    fn lists_and_constants() {
        check(&ToolPolicy::ALLOW_ALL, "x", None);
        check(&ToolPolicy::DENY_ALL, "x", Some("every tool is denied"));
        let some = ToolPolicy::allow_list(["Web.Search"]).and(ToolPolicy::deny_list(["shell"]));
        check(&some, "web.search", None);
        check(
            &some,
            "shell",
            Some("`shell` is not on the list of allowed tools"),
        );
        check(
            &ToolPolicy::deny_list(["shell"]),
            "SHELL",
            Some("`SHELL` is on the list of denied tools"),
        );
        let none: [&str; 0] = [];
        let closed = ToolPolicy::allow_list(none);
        check(
            &closed,
            "x",
            Some("`x` is not on the list of allowed tools"),
        );
    }

    #[test]
    fn the_first_denial_ends_it() {
        let asked = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&asked);
        let counting = ToolPolicy::when(
            move |_, _| seen.fetch_add(1, Ordering::Relaxed) < 100,
            "counted",
        );
        let policy = ToolPolicy::deny_list(["a"]).and(counting);
        check(&policy, "a", Some("`a` is on the list of denied tools"));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        check(&policy, "b", None);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_predicate_that_panics_denies() {
        let broken = ToolPolicy::when(|_, args| args["x"].as_u64() == Some(1), "no");
        check(&broken, "a", Some("the policy failed, so it denies"));
    }

    #[test]
    fn no_policy_is_no_work() {
        assert!(ToolPolicy::ALLOW_ALL.is_open());
        assert!(ToolPolicy::ALLOW_ALL.and(ToolPolicy::ALLOW_ALL).is_open());
        let some = ToolPolicy::deny_list(["a"]);
        assert_eq!(
            format!("{:?}", ToolPolicy::ALLOW_ALL.and(some)),
            r#"all but {"a"}"#
        );
    }
}
