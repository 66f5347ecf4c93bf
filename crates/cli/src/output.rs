//! Output for people: text, questions, exit codes.

/// The risk badge of a tool.
pub(crate) mod badge;
/// Asks the person at the terminal.
pub(crate) mod console;
/// The part of a document that a finding is about.
pub(crate) mod excerpt;
/// The exit codes.
pub(crate) mod exit;
/// What to do about an error.
pub(crate) mod hint;
/// Writes to standard output and error.
pub(crate) mod printer;
/// A progress bar for work that takes long.
pub(crate) mod progress;
/// A question as a page of text.
pub(crate) mod sheet;
