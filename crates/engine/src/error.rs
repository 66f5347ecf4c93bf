//! Why the engine could not do something.

use std::error::Error;

use host::secrets::SecretsFault;
use sandbox::pool::PoolError;
use store::StoreError;

/// The engine could not do it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operator's file cannot be understood.
    #[error("{0}")]
    Settings(String),
    /// The baseline and the profile contradict each other.
    #[error("the settings contradict each other: {0}")]
    Baseline(String),
    /// The operator names a preset that is not there.
    #[error("there is no preset `{name}`{}", hint(.nearest.as_deref()))]
    Preset {
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The bundled tools cannot be read.
    #[error("the bundled tools cannot be read: {0}")]
    Catalog(String),
    /// A thread that reads documents died.
    #[error("the documents could not be read")]
    Reader,
    /// No tool has that name.
    #[error("there is no tool `{name}`: {why}{}", hint(.nearest.as_deref()))]
    NoSuchTool {
        /// The name.
        name: String,
        /// What is known about it.
        why: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Bundled tools are as they were shipped.
    #[error("`{0}` is a bundled tool; export it and import it under another name to change it")]
    Bundled(String),
    /// A bundled tool has that name.
    #[error("`{0}` is the name of a bundled tool; choose another")]
    Reserved(String),
    /// A tool names no such variable.
    #[error("`{tool}` uses no variable `{name}`{}", hint(.nearest.as_deref()))]
    NoSuchVariable {
        /// The tool.
        tool: String,
        /// The variable.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A tool has that name.
    #[error("a tool `{0}` already exists")]
    Exists(String),
    /// The name has characters a tool's name cannot have.
    #[error("`{0}` cannot be the name of a tool; use 1 to 256 letters, digits, `_`, `-` or `.`")]
    Name(String),
    /// The sandbox did not start.
    #[error("the sandbox did not start")]
    Pool(#[from] PoolError),
    /// The secrets cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretsFault),
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// An error and everything behind it, in one line for the operator.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        // Some errors repeat their cause in their own words.
        if !words.ends_with(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        source = cause.source();
    }
    words
}
