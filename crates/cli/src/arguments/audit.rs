//! The arguments of `ringfence audit` that are about signed heads and proofs, and of
//! `ringfence top`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::arguments::HomeArguments;

/// The references a log is verified against.
#[derive(Debug, Args)]
pub(crate) struct AuditAgainst {
    /// A signed head kept elsewhere; the log must extend it
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Vec<PathBuf>,
    /// The public key that must have signed, as `audit key` prints it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// Verify an export instead of the log of this home
    #[arg(long, value_name = "EXPORT", conflicts_with = "proof")]
    pub(crate) file: Option<PathBuf>,
    /// Verify proofs instead, as `audit prove` prints them
    #[arg(long, value_name = "PROOFS", requires = "key")]
    pub(crate) proof: Option<PathBuf>,
    /// Verify several nodes: homes, or exports with proofs and one `--key` each
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["file", "proof", "head"])]
    pub(crate) nodes: Vec<PathBuf>,
    /// Verify all nodes from the database that records are shipped to
    #[arg(long, conflicts_with_all = ["nodes", "file", "proof", "head"])]
    pub(crate) shipped: bool,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The records
    Records,
    /// The records up to the newest signed head, with their proofs
    Proofs,
    /// Events of the Open Cybersecurity Schema Framework
    Ocsf,
}

#[derive(Debug, Args)]
pub(crate) struct AuditKey {
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditCheckpoint {
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "One proof per line; check them with `audit verify --proof FILE --key KEY`."
)]
pub(crate) struct AuditProve {
    /// The id of a call or notice, or a prefix of it
    #[arg(value_name = "ID", required_unless_present = "since")]
    pub(crate) id: Option<String>,
    /// Prove that the log extends this signed head
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "id")]
    pub(crate) since: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditWitness {
    /// The address of the witness; default: `audit.witness` of the settings
    #[arg(value_name = "URL", conflicts_with_all = ["list", "key"])]
    pub(crate) url: Option<String>,
    /// The public key of the witness; default: `audit.witness_key`
    #[arg(long, value_name = "KEY", conflicts_with_all = ["list", "key"])]
    pub(crate) witness_key: Option<String>,
    /// List the logs that this home is a witness of
    #[arg(long, conflicts_with = "key")]
    pub(crate) list: bool,
    /// Show the public key that this home cosigns with
    #[arg(long)]
    pub(crate) key: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "With `--json` one value per line; with `--once` one value.")]
pub(crate) struct TopArguments {
    /// Print the last minute once and stop
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) home: HomeArguments,
}
