//! Scripts that call tools, as the operator sets them.

use serde::Deserialize;

use super::Faults;
use crate::caller::Origin;
use crate::document::Document;
use crate::document::codecall::Metadata;
use crate::govern::pattern::{self, NamePattern};
use crate::limits;
use crate::word::Word;

/// Tools no script calls and no search shows, unless the operator says otherwise.
pub(super) const BLOCKED: [&str; 3] = ["system:*", "internal:*", "__*"];

/// Scripts that call tools.
///
/// Defaults ([`CodecallConfig::standard`]): everything is listed, scripts run under
/// `secure`, a search finds ten tools for each query, and whatever a script may call
/// can be called through `codecall_invoke` too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecallConfig {
    /// Whether there are scripts, and which tools are listed.
    pub mode: CodecallMode,
    /// How much a script is trusted.
    pub preset: ScriptPreset,
    /// Tools a search finds for each query unless it says how many.
    pub top_k: u64,
    /// The tools that `codecall_invoke` may call. Without any it does not exist.
    pub invoke: Vec<NamePattern>,
    /// Tools that code mode never reaches.
    pub blocked: Vec<NamePattern>,
}

crate::words! {
    /// Whether there are scripts, and which tools are listed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CodecallMode {
        /// No scripts: the tools of code mode do not exist.
        Off = "off",
        /// The tools of code mode, and those whose documents ask to be listed.
        CodecallOnly = "codecall_only",
        /// Everything is listed; scripts see the tools whose documents ask for it.
        CodecallOptIn = "codecall_opt_in",
        /// Everything is listed except tools whose documents hide them.
        MetadataDriven = "metadata_driven",
    }
}

crate::words! {
    /// How much a script is trusted, from least to most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ScriptPreset {
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
    /// The defaults.
    #[must_use]
    pub fn standard() -> CodecallConfig {
        CodecallConfig {
            mode: CodecallMode::MetadataDriven,
            preset: ScriptPreset::Secure,
            top_k: limits::SEARCH_TOP_DEFAULT,
            invoke: NamePattern::parse("*").into_iter().collect(),
            blocked: BLOCKED
                .iter()
                .filter_map(|pattern| NamePattern::parse(pattern).ok())
                .collect(),
        }
    }

    /// Whether a tool can be reached through a door under this mode; if not, why.
    ///
    /// A tool that clients do not see in their list cannot be called by name either,
    /// and search does not show tools that scripts may not call.
    pub fn reaches(&self, origin: Origin, document: &Document) -> Result<(), String> {
        match origin {
            Origin::Mcp => self.lists(document),
            Origin::Script => self.scripts(document),
            // The mode does not limit people at this machine.
            Origin::Cli | Origin::Studio => Ok(()),
        }
    }

    fn lists(&self, document: &Document) -> Result<(), String> {
        let visible = match (self.mode, Metadata::of(document).visible) {
            (CodecallMode::Off, _) => true,
            (CodecallMode::CodecallOnly, visible) => visible == Some(true),
            (CodecallMode::CodecallOptIn | CodecallMode::MetadataDriven, visible) => {
                visible != Some(false)
            }
        };
        let mode = self.mode.word();
        let no = || format!("not listed under `codecall.mode = \"{mode}\"`; scripts call it");
        visible.then_some(()).ok_or_else(no)
    }

    fn scripts(&self, document: &Document) -> Result<(), String> {
        if let Some(pattern) = pattern::first(&self.blocked, document.name.trim()) {
            return Err(format!(
                "kept from scripts by `{pattern}` in codecall.blocked"
            ));
        }
        let enabled = match (self.mode, Metadata::of(document).enabled) {
            // A terminal can run scripts in every mode.
            (
                CodecallMode::Off | CodecallMode::CodecallOnly | CodecallMode::MetadataDriven,
                enabled,
            ) => enabled != Some(false),
            (CodecallMode::CodecallOptIn, enabled) => enabled == Some(true),
        };
        let mode = self.mode.word();
        let no = || format!("not enabled for scripts under `codecall.mode = \"{mode}\"`");
        enabled.then_some(()).ok_or_else(no)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CodecallFile {
    mode: Option<toml::Spanned<String>>,
    preset: Option<toml::Spanned<String>>,
    top_k: Option<toml::Spanned<u64>>,
    invoke: Option<Vec<toml::Spanned<String>>>,
    blocked: Option<Vec<toml::Spanned<String>>>,
}

impl Faults<'_> {
    pub(super) fn codecall(&mut self, file: CodecallFile) -> CodecallConfig {
        let mut codecall = CodecallConfig::standard();
        self.set_word("mode", file.mode, &mut codecall.mode);
        self.set_word("preset", file.preset, &mut codecall.preset);
        let top = self.read_number("top_k", file.top_k, 1..=limits::SEARCH_TOP_MAX);
        codecall.top_k = top.unwrap_or(codecall.top_k);
        if let Some(patterns) = file.invoke {
            codecall.invoke = self.patterns(&patterns);
        }
        if let Some(patterns) = file.blocked {
            codecall.blocked = self.patterns(&patterns);
        }
        codecall
    }
}
