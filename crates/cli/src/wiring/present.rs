//! Whether there is a home. A command that is about what a home holds does not make one: the
//! audit of a home that was just made is whole, and nobody waits for an answer there, whatever
//! happens in the home that was meant.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::bail;
use model::text::one_line;
use store::settings::CONFIG_FILE;

use crate::arguments::{AuditCommand, Command, HomeArguments, PolicyCommand};
use crate::wiring;

/// What a home has at least one of.
const MARKS: [&str; 3] = [CONFIG_FILE, "ringfence.db", "audit"];

/// Whether a folder is a home. One that cannot be looked at counts as one: opening it says what
/// is wrong.
pub(crate) fn is_home(folder: &Path) -> bool {
    MARKS
        .iter()
        .any(|mark| match fs::symlink_metadata(folder.join(mark)) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        })
}

/// Refuses a command that is about a home that is not there.
pub(crate) fn check(command: &Command) -> anyhow::Result<()> {
    let Some(arguments) = asked_about(command) else {
        return Ok(());
    };
    let home = wiring::absolute_home(arguments)?;
    if is_home(&home) {
        return Ok(());
    }
    bail!(
        "there is no home at `{}`; name another with `--home DIR` or RINGFENCE_HOME, or make one with `ringfence init`",
        one_line(&home.display().to_string())
    )
}

/// The home that a command asks about, where an empty one would be a wrong answer.
fn asked_about(command: &Command) -> Option<&HomeArguments> {
    match command {
        Command::Audit(audit) => match &audit.command {
            // Exports, proofs and several homes are looked at without a home of one's own.
            AuditCommand::Verify(verify)
                if verify.against.file.is_some()
                    || verify.against.proof.is_some()
                    || !verify.against.nodes.is_empty() =>
            {
                None
            }
            AuditCommand::Verify(_)
            | AuditCommand::List(_)
            | AuditCommand::Show(_)
            | AuditCommand::Export(_)
            | AuditCommand::Tail(_)
            | AuditCommand::Prune(_)
            | AuditCommand::Acknowledge(_)
            | AuditCommand::Key(_)
            | AuditCommand::Checkpoint(_)
            | AuditCommand::Prove(_)
            | AuditCommand::Witness(_) => Some(audit.home()),
        },
        Command::Explain(explain) => Some(&explain.common.home),
        Command::Top(top) => Some(&top.home),
        Command::Approvals(approvals) => Some(approvals.home()),
        // A pause or a code of a home that no server has would have no effect.
        Command::Callers(callers) => Some(callers.home()),
        Command::Trust(trust) => Some(trust.home()),
        Command::Studio(studio) => Some(&studio.home),
        Command::Policy(policy) => match &policy.command {
            PolicyCommand::Test(test) => Some(&test.home),
            PolicyCommand::Show(_) | PolicyCommand::Lint(_) => None,
        },
        // These make a home, change it, or show what would hold in a new one.
        Command::Check(_)
        | Command::Test(_)
        | Command::Run(_)
        | Command::Script(_)
        | Command::Serve(_)
        | Command::Stdio(_)
        | Command::New(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Import(_)
        | Command::Export(_)
        | Command::Publish(_)
        | Command::Unpublish(_)
        | Command::Delete(_)
        | Command::Secrets(_)
        | Command::Expose(_)
        | Command::Keys(_)
        | Command::Store(_)
        | Command::Connect(_)
        | Command::Servers(_)
        | Command::Wrap(_)
        | Command::Unwrap(_)
        | Command::Scan(_)
        | Command::Config(_)
        | Command::Init(_)
        | Command::Demo(_)
        | Command::Doctor(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Complete(_) => None,
    }
}
