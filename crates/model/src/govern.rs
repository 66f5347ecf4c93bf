//! Who may do what: the rights of callers, the operator's rules, approvals, consent and
//! trust. Pure decisions; counts and answers are arguments.

/// The rights of callers: levels, groups, quotas.
pub mod access;
/// What a tool does, by a fixed list of actions.
pub mod action;
/// Questions for people, and who may answer them.
pub mod approval;
/// How much a caller does without being asked.
pub mod autonomy;
/// What an owner must agree to before a tool runs.
pub mod consent;
/// Which tools clients see.
pub mod exposure;
/// Keys of callers and what they are for.
pub mod key;
/// Patterns of names.
pub mod pattern;
/// People at the Studio and what they may do there.
pub mod person;
/// The operator's rules and what they decide.
pub mod rules;
/// Decisions about tools by their names.
pub mod tool_policy;
/// Levels that callers earn and lose.
pub mod trust;
