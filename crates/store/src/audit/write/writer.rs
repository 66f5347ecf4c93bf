//! Which thread writes. A call that is alone writes its own record: handing it to
//! another thread and back costs as much as writing it. Calls that come at the same
//! time queue up; the first of them yields once, so that the others can join, then
//! writes for all of them with one write. Anything slow, such as waiting for another
//! process or for the disk, is left to a thread of its own.

use std::future::poll_fn;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use crate::audit::index::AuditIndex;
use crate::audit::log::Log;
use crate::audit::settings::StoreSettings;
use crate::audit::write::batch::{BatchWriter, Shared};
use crate::audit::write::chain::ChainWriter;
use crate::audit::write::orphan;
use crate::audit::write::queue::{QueuePosition, WriteRequest};
use crate::error::StoreError;
use crate::home::mark::AuditMark;
use crate::home::process::ProcessIdentity;

/// Takes requests from any thread and has them written.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Shared,
    /// Locked only while something is written.
    batches: Mutex<BatchWriter>,
}

impl Writer {
    /// Opens the log and its index for one process, and closes the calls of dead
    /// ones. Returns how many calls that were.
    pub(crate) fn open(
        home: &Path,
        identity: &ProcessIdentity,
        settings: StoreSettings,
    ) -> Result<(Writer, u64), StoreError> {
        let (log, index) = (Log::open(home)?, AuditIndex::open(home)?);
        let mut chain = ChainWriter::new(log, index, AuditMark::new(home), identity.clone())?;
        // Before the first record of this process, so that crashed calls end
        // before new ones begin.
        let crashed = orphan::close_orphans(home, &mut chain)?;
        let shared = Shared::new(home, settings.queue_max);
        if crashed > 0 {
            // They are in the log and not on the disk yet; the first sync takes them along.
            shared.syncer.note_commit(chain.file(), false);
        }
        let batches = Mutex::new(BatchWriter::new(chain, settings));
        Ok((Writer { shared, batches }, crashed))
    }

    /// The queue, the syncer and the counters.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Exclusive access to the log writer, once nothing is being written. Fails if a
    /// thread panicked while it had that access: the state of the log is unknown then.
    pub(crate) fn batches(&self) -> Result<MutexGuard<'_, BatchWriter>, StoreError> {
        self.batches.lock().map_err(|_| StoreError::Closed)
    }

    /// Whether the opening of a call could be written now.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        match self.shared.syncer.failure() {
            Some(failure) => Err(failure),
            None => self.batches()?.ready(),
        }
    }

    /// Has a request of a call written, now or when its turn comes.
    pub(crate) async fn submit(&self, request: WriteRequest) -> Result<(), StoreError> {
        let Some(request) = self.write_alone(request) else {
            return Ok(());
        };
        match self.shared.queue.push(request)? {
            QueuePosition::Behind => Ok(()),
            QueuePosition::First => {
                // If this future is dropped while it yields, the thread takes over.
                let duty = Duty(&self.shared);
                yield_once().await;
                // The duty is fulfilled below. Dropping it would wake the
                // thread for nothing.
                std::mem::forget(duty);
                self.write_together();
                Ok(())
            }
        }
    }

    /// Has the thread write a request.
    pub(crate) fn submit_to_thread(&self, request: WriteRequest) -> Result<(), StoreError> {
        self.shared.queue.push(request)?;
        self.shared.queue.hand_over();
        Ok(())
    }

    /// Writes a request if that takes no time and no other call is under way;
    /// otherwise gives it back.
    fn write_alone(&self, request: WriteRequest) -> Option<WriteRequest> {
        if !self.shared.queue.is_free() {
            return Some(request);
        }
        // A lock that is taken means that others write: then queueing up is
        // faster than waiting.
        let Ok(mut batches) = self.batches.try_lock() else {
            return Some(request);
        };
        if !batches.is_light() || !batches.is_quiet(&request) {
            return Some(request);
        }
        let mut batch = vec![request];
        self.write(&mut batches, &mut batch);
        batch.pop()
    }

    /// Writes what waits, or has the thread do it.
    fn write_together(&self) {
        let queue = &self.shared.queue;
        let Ok(mut batches) = self.batches.try_lock() else {
            return queue.hand_over();
        };
        if !batches.is_light() {
            return queue.hand_over();
        }
        let mut batch = queue.take_at_once();
        self.write(&mut batches, &mut batch);
        drop(batches);
        if !batch.is_empty() {
            queue.give_back(batch);
        }
    }

    fn write(&self, batches: &mut BatchWriter, batch: &mut Vec<WriteRequest>) {
        let was_indexed = batches.is_indexed();
        batches.write_at_once(&self.shared, batch);
        // The thread sleeps until there is something to do for it.
        if (was_indexed && !batches.is_indexed()) || batches.has_chores() {
            self.shared.queue.nudge();
        }
    }

    /// Body of the writer thread. However it ends, it closes the queue.
    pub(crate) fn run(&self) {
        let _guard = Guard(&self.shared);
        let mut batch = Vec::new();
        loop {
            // A thread panicked while it wrote; the state of the log is unknown.
            let Ok(idle_max) = self.batches.lock().map(|batches| batches.idle_max()) else {
                return;
            };
            let taken = self.shared.queue.take(&mut batch, idle_max);
            let Ok(mut batches) = self.batches.lock() else {
                return;
            };
            // Also with an empty batch, because ends may be owed.
            batches.write(&self.shared, &mut batch);
            batches.do_chores(&self.shared, taken.is_idle);
            if !taken.is_open {
                return batches.finish(&self.shared);
            }
        }
    }

    /// Body of the sync thread.
    pub(crate) fn run_syncer(&self) {
        self.shared.syncer.run();
    }

    /// Body of the signing thread.
    pub(crate) fn run_signer(&self) {
        self.shared.signer.run();
    }
}

/// Lets every task that can run do so once. Calls that are about to write queue up
/// meanwhile.
async fn yield_once() {
    let mut is_over = false;
    poll_fn(|context| {
        if is_over {
            return Poll::Ready(());
        }
        is_over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The obligation to write what waits. Dropped, it passes to the thread.
struct Duty<'a>(&'a Shared);

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        self.0.queue.hand_over();
    }
}

/// Fails every waiting request when the thread ends, even by a panic.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}
