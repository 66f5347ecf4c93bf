//! Reads scripts without running them.
//!
//! Three layers: [`scan`] on the raw text before any parser, rules on the tree, and
//! rewriting for the run. [`check`](fn@check) answers with findings at the author's own
//! lines, [`prepare`] with code for the sandbox. What a script gives back goes through
//! [`sanitise`].
//!
//! Invariant 6: this is no security boundary. The sandbox is sound without it and no
//! finding relaxes a limit; the guard tells authors early, keeps hostile text from
//! parsers and people, and gives loops one budget.

/// Where a script calls tools, and which calls are not awaited.
pub mod calls;
/// The layers in their order; the entry points.
mod check;
/// The stable names of findings.
pub mod code;
/// Early errors of JavaScript.
mod early;
/// Values of expressions that are known without running them.
mod fold;
/// Which name means what.
mod names;
/// Presets: what a script may contain, by level.
pub mod preset;
/// Regular expressions that can take too long.
mod redos;
/// Findings with their places.
pub mod report;
/// The script as it runs, and the way back to its author's lines.
mod rewrite;
/// The rules on the tree.
mod rules;
/// The functions that rewritten scripts call.
pub mod runtime;
/// Sanitising of results: cut to size, without details of the machine.
pub mod sanitise;
/// The pass over the raw text, before any parser.
pub mod scan;

pub use calls::CallSite;
pub use check::{check, fuzz, prepare};
pub use code::IssueCode;
pub use model::Severity;
pub use preset::{Globals, Preset, PresetLevel};
pub use report::{Issue, Report};
pub use rewrite::{LineBreak, Map, Prepared};
