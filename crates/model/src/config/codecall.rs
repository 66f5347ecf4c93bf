//! Scripts that call tools, as the operator sets them.

use serde::Deserialize;

use super::Faults;
use crate::document::Word;

/// Scripts that call tools.
///
/// Defaults ([`CodecallConfig::standard`]): everything is listed, scripts run under
/// `secure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecallConfig {
    /// Whether there are scripts, and what is listed besides.
    pub mode: CodecallMode,
    /// How much a script is trusted.
    pub preset: ScriptPreset,
}

words_of! {
    /// Whether there are scripts, and what is listed besides.
    CodecallMode {
        /// No scripts: the tools of code mode do not exist.
        Off = "off",
        /// The tools of code mode, and those whose documents ask to be listed.
        CodecallOnly = "codecall_only",
        /// Everything is listed; scripts see the tools whose documents ask for it.
        CodecallOptIn = "codecall_opt_in",
        /// Everything is listed but what its document hides.
        MetadataDriven = "metadata_driven",
    }
}

words_of! {
    /// How much a script is trusted, from least to most.
    ScriptPreset {
        /// Two seconds, ten calls, no console.
        LockedDown = "locked_down",
        /// Three and a half seconds, a hundred calls.
        Secure = "secure",
        /// Five seconds, two hundred calls.
        Balanced = "balanced",
        /// Ten seconds, five hundred calls.
        Experimental = "experimental",
    }
}

impl CodecallConfig {
    /// What holds when the operator says nothing.
    #[must_use]
    pub fn standard() -> CodecallConfig {
        CodecallConfig {
            mode: CodecallMode::MetadataDriven,
            preset: ScriptPreset::Secure,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CodecallFile {
    mode: Option<toml::Spanned<String>>,
    preset: Option<toml::Spanned<String>>,
}

impl Faults<'_> {
    pub(super) fn codecall(&mut self, file: CodecallFile) -> CodecallConfig {
        let mut codecall = CodecallConfig::standard();
        self.word("mode", file.mode, &mut codecall.mode);
        self.word("preset", file.preset, &mut codecall.preset);
        codecall
    }
}
