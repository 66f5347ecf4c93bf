//! Tells the person who runs a server that a call waits for approval. A client that can
//! show no question says nothing to its person, and the caller itself is not told how to
//! approve; so one line goes to standard error, which is this terminal, the log of the
//! server or that of the client.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use engine::approve::Listing;
use engine::{Alarm, Engine};
use model::text::elided;
use tokio::task::JoinHandle;

/// Between two looks at the questions.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Characters of a name.
const NAME_CHARS_MAX: usize = 60;

/// Reports each waiting question once, until the task is aborted. Where each line is JSON, a
/// line of plain text would be one that its reader cannot take.
pub(crate) fn report(engine: &Arc<Engine>, into: Alarm) -> JoinHandle<()> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move {
        let mut seen = HashSet::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let looked = Arc::clone(&engine);
            let list = move || looked.approvals().list(Listing::Pending);
            // A store that cannot be read is reported where it is used.
            let Ok(Ok(pending)) = tokio::task::spawn_blocking(list).await else {
                continue;
            };
            let still: HashSet<_> = pending.iter().map(|row| row.id.clone()).collect();
            seen.retain(|id| still.contains(id));
            for row in pending {
                if seen.insert(row.id.clone()) {
                    let tool = elided(&row.tool, NAME_CHARS_MAX);
                    let caller = elided(&row.caller, NAME_CHARS_MAX);
                    into.raise(&format!(
                        "a call of `{tool}` by `{caller}` waits for approval: answer it with `ringfence approvals watch` in a terminal"
                    ));
                }
            }
        }
    })
}
