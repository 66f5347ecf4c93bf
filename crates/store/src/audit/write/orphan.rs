//! Orphans: calls whose process died before it could write how they ended. The next
//! process that opens the store closes them as crashed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::Path;

use model::record::audit::{Closing, Failure, Status, spell};
use rusqlite::Connection;

use crate::audit::log::LockWait;
use crate::audit::write::chain::{ChainWriter, NewEnd};
use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::database::from_integer;
use crate::home::process::{DeadLocks, dead_locks, lock_path};

const DOING: &str = "look for calls of dead processes";

/// Closes the calls of dead processes. Returns how many.
pub(crate) fn close_orphans(home: &Path, chain: &mut ChainWriter) -> Result<u64, StoreError> {
    // Rebuilding the index can take long; done before the group begins, it does not
    // keep other processes from writing.
    chain.index()?;
    chain.begin(LockWait::Bounded)?;
    let closed = close_within_group(home, chain);
    if closed.is_err() {
        chain.roll_back();
    }
    let (count, locks) = closed?;
    // Held until the calls are closed, so that no other process closes them too.
    for (path, _lock) in locks {
        let _ = fs::remove_file(&path);
    }
    Ok(count)
}

fn close_within_group(
    home: &Path,
    chain: &mut ChainWriter,
) -> Result<(u64, DeadLocks), StoreError> {
    chain.index_within_group()?;
    // Locked while their calls are closed, so that a process that starts meanwhile does not
    // do the same.
    let locks = dead_locks(home, chain.process())?;
    let mut fates = HashMap::new();
    let mut count = 0;
    for open in open_entries(chain.connection())? {
        let is_dead = match open.process {
            // No process claims it, so none will end it.
            None => true,
            Some(process) if process == **chain.process() => false,
            Some(process) => match fates.entry(process) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let path = lock_path(home, unknown.key());
                    let is_ours = locks.iter().any(|(held, _)| *held == path);
                    *unknown.insert(is_ours || !path.exists())
                }
            },
        };
        if !is_dead {
            continue;
        }
        let error = Failure {
            code: "call.crashed".to_owned(),
            message: "the process ended before the call did".to_owned(),
        };
        let closing = Closing::bare(now_ms(), Status::Crashed, Some(error));
        chain.close(&NewEnd {
            opened: open.opened,
            call_id: open.call_id,
            status: Status::Crashed,
            differs: false,
            part: spell::closing(&closing)?,
        })?;
        count += 1;
    }
    chain.commit()?;
    Ok((count, locks))
}

/// An entry without an end.
struct OpenEntry {
    opened: u64,
    call_id: String,
    process: Option<String>,
}

fn open_entries(connection: &Connection) -> Result<Vec<OpenEntry>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare(
            "SELECT opened, call_id, process FROM entries WHERE closed IS NULL ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map([], |row| {
            Ok(OpenEntry {
                opened: from_integer(row.get(0)?),
                call_id: row.get(1)?,
                process: row.get(2)?,
            })
        })
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}
