//! What a call holds until it is over: its place among those its limits count, and the
//! files of a Local Pass.

use crate::quota::QuotaHold;
use crate::scratch::Scratch;
use crate::services::Alarm;

/// What a call holds. Dropped, it gives everything back.
#[derive(Debug, Default)]
pub(crate) struct CallHold {
    quota: Option<QuotaHold>,
    /// Goes when the call is over and nothing can write to it any more.
    scratch: Option<Scratch>,
}

impl CallHold {
    /// Holds a place under the limits, if any is about the call.
    pub(crate) fn hold_quota(&mut self, quota: Option<QuotaHold>) {
        self.quota = quota;
    }

    pub(crate) fn hold_scratch(&mut self, scratch: Scratch) {
        self.scratch = Some(scratch);
    }

    pub(crate) fn scratch(&self) -> Option<&Scratch> {
        self.scratch.as_ref()
    }

    /// The body begins: from here on the call has used its units.
    pub(crate) fn begin_run(&mut self) {
        if let Some(quota) = &mut self.quota {
            quota.use_units();
        }
    }

    /// Gives the place under the limits back, before the answer leaves.
    pub(crate) async fn release_quota(&mut self, alarm: &Alarm) {
        if let Some(quota) = self.quota.take() {
            quota.release(alarm).await;
        }
    }
}
