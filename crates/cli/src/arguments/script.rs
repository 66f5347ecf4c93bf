//! The command line of `ringfence script`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use model::config::ScriptPreset;

use super::{Common, HomeArguments};

/// Scripts call tools; each call goes through every gate.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 1 refused or failed, 2 could not be tried.")]
pub(crate) struct Script {
    #[command(subcommand)]
    pub(crate) command: ScriptCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// Check a script without running it: findings, places and fixes
    Check(ScriptCheck),
    /// Run a script, with the tools you may call
    Run(ScriptRun),
}

#[derive(Debug, Args)]
pub(crate) struct ScriptCheck {
    /// The script, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How much it is trusted, instead of `codecall.preset`
    #[arg(long, value_name = "PRESET")]
    pub(crate) preset: Option<PresetWord>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ScriptRun {
    /// The script, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How much it is trusted, instead of `codecall.preset`
    #[arg(long, value_name = "PRESET")]
    pub(crate) preset: Option<PresetWord>,
    /// The JSON object that the script reads as `codecallContext`
    #[arg(long, value_name = "JSON")]
    pub(crate) context: Option<String>,
    /// The only tool it may call; give it several times for several
    #[arg(long, value_name = "TOOL")]
    pub(crate) allow: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum PresetWord {
    LockedDown,
    Secure,
    Balanced,
    Experimental,
}

impl PresetWord {
    pub(crate) fn preset(self) -> ScriptPreset {
        match self {
            PresetWord::LockedDown => ScriptPreset::LockedDown,
            PresetWord::Secure => ScriptPreset::Secure,
            PresetWord::Balanced => ScriptPreset::Balanced,
            PresetWord::Experimental => ScriptPreset::Experimental,
        }
    }
}

impl Script {
    pub(crate) fn home(&self) -> &HomeArguments {
        match &self.command {
            ScriptCommand::Check(check) => &check.home,
            ScriptCommand::Run(run) => &run.common.home,
        }
    }
}
