//! Every reason a thing can be refused for, listed once, with a stable code.
//!
//! A code never changes its meaning and is never used again for another. The
//! reference page is generated from here.

use std::fmt::Write as _;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The arguments of a call are not an object.
    ArgumentsNotAnObject,
    /// The arguments of a call are too long.
    ArgumentsTooLarge,
    /// The arguments of a call are nested too deep.
    ArgumentsTooDeep,
    /// A required argument is absent.
    ArgumentMissing,
    /// An argument is of the wrong type.
    ArgumentType,
    /// An argument's name is not one of the tool's.
    ArgumentUnknown,
    /// A class is both allowed and denied.
    PolicyOverlap,
    /// A profile does not exist.
    PolicyProfileUnknown,
    /// A profile extends itself.
    PolicyProfileCycle,
    /// A chain of profiles is too long.
    PolicyProfileDepth,
    /// A host pattern is not one.
    PolicyHostPattern,
    /// An environment variable a tool needs is not set.
    RequirementMissing,
}

impl Reason {
    /// All of them, in the order of their codes.
    pub const ALL: &[Reason] = &[
        Reason::ArgumentMissing,
        Reason::ArgumentsNotAnObject,
        Reason::ArgumentsTooDeep,
        Reason::ArgumentsTooLarge,
        Reason::ArgumentType,
        Reason::ArgumentUnknown,
        Reason::PolicyHostPattern,
        Reason::PolicyOverlap,
        Reason::PolicyProfileCycle,
        Reason::PolicyProfileDepth,
        Reason::PolicyProfileUnknown,
        Reason::RequirementMissing,
    ];

    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Reason::ArgumentsNotAnObject => "argument.not_an_object",
            Reason::ArgumentsTooLarge => "argument.too_large",
            Reason::ArgumentsTooDeep => "argument.too_deep",
            Reason::ArgumentMissing => "argument.missing",
            Reason::ArgumentType => "argument.type",
            Reason::ArgumentUnknown => "argument.unknown",
            Reason::PolicyOverlap => "policy.overlap",
            Reason::PolicyProfileUnknown => "policy.profile_unknown",
            Reason::PolicyProfileCycle => "policy.profile_cycle",
            Reason::PolicyProfileDepth => "policy.profile_depth",
            Reason::PolicyHostPattern => "policy.host_pattern",
            Reason::RequirementMissing => "requirement.missing",
        }
    }

    /// What it means and what helps, for the reference page.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Reason::ArgumentsNotAnObject => "The arguments of a call must be a JSON object.",
            Reason::ArgumentsTooLarge => "The arguments are longer than `ARGUMENTS_BYTES_MAX`.",
            Reason::ArgumentsTooDeep => "The arguments nest deeper than `ARGUMENTS_DEPTH_MAX`.",
            Reason::ArgumentMissing => "A required argument is absent or null. Give it.",
            Reason::ArgumentType => "An argument is not of the type the tool declares.",
            Reason::ArgumentUnknown => "The tool declares no argument of that name.",
            Reason::PolicyOverlap => {
                "After merging, a class is both allowed and denied. Remove it from one of the lists."
            }
            Reason::PolicyProfileUnknown => {
                "No profile of that name exists in the operator's file."
            }
            Reason::PolicyProfileCycle => "A profile extends itself, directly or through others.",
            Reason::PolicyProfileDepth => "A chain of profiles is longer than `PROFILE_DEPTH_MAX`.",
            Reason::PolicyHostPattern => "A host pattern is not a host name, `*.name` or `*`.",
            Reason::RequirementMissing => {
                "An environment variable the tool names is unset, empty or blank. Set it."
            }
        }
    }
}

/// The reference page.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Reason codes\n\nEvery refusal carries one of these. A code keeps its meaning for good.\n\n\
         | Code | Meaning |\n| --- | --- |\n",
    );
    for reason in Reason::ALL {
        let _ = writeln!(page, "| `{}` | {} |", reason.code(), reason.meaning());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn the_page_lists_every_code() {
        assert!(
            Reason::ALL
                .iter()
                .all(|reason| page().contains(reason.code()))
        );
    }
}
