//! Calls that may do harm leave their mark on the disk first.

use model::outcome::CallError;
use model::policy::EffectivePolicy;
use model::reason::Reason;
use model::risk::{Level, Risk};
use store::OpenRow;

use crate::Engine;
use crate::record::Stop;

/// Calls whose opening record must be on the disk before they run.
pub(super) fn is_grave(policy: &EffectivePolicy, risk: &Risk) -> bool {
    risk.level >= Level::L4 || policy.file_write
}

pub(super) async fn secured(engine: &Engine, row: &OpenRow) -> Result<((), String), Stop> {
    match engine.store().audit().secure(row).await {
        Ok(()) => Ok(((), "on the disk".to_owned())),
        Err(fault) => {
            let message = "the attempt could not be written to the disk; it did not run";
            let error = CallError::passing(Reason::AuditUnavailable, message);
            Err(Stop::refused(error).note(fault.to_string()))
        }
    }
}
