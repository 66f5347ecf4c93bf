//! Heads of this log that lie where others read them, held against the log before a newer
//! one takes their place. A log that was rolled back and went on differently is longer
//! than what it was, so its size alone shows nothing: the hash over the records that the
//! others have must still come out.

use std::path::Path;

use model::record::note::{NoteKey, SignedNote, TreeHead};
use model::record::tree::root;

use crate::audit::evidence::head_file;
use crate::audit::evidence::key::is_sound;
use crate::audit::evidence::prove::Prover;
use crate::error::StoreError;

/// Holds the heads of this log among some against the log. Those that its key did not sign
/// are none of it.
pub(crate) fn check(
    folder: &Path,
    key: &NoteKey,
    notes: &[SignedNote],
    place: &str,
) -> Result<(), StoreError> {
    let own = notes.iter().filter(|note| key.has_signed(note, &is_sound));
    let own = own.filter_map(|note| note.head().ok());
    let own: Vec<TreeHead> = own.filter(|head| head.origin == key.name()).collect();
    if own.is_empty() {
        return Ok(());
    }
    let prover = Prover::open(folder)?;
    for head in own {
        let is_past = head.size <= prover.size() && root(prover.tree(), head.size)? == head.root;
        if !is_past && !is_void(folder, &head)? {
            return Err(contradiction(&head, prover.size(), place));
        }
    }
    Ok(())
}

/// Whether the owner acknowledged that the log went on differently after a head: the head
/// stands in the history before one that declares so.
fn is_void(folder: &Path, head: &TreeHead) -> Result<bool, StoreError> {
    let history = head_file::read(folder)?;
    let history = history.iter().filter_map(|note| note.head().ok());
    let mut later = history.skip_while(|it| it.size != head.size || it.root != head.root);
    Ok(later.any(|it| it.fork.is_some_and(|fork| fork < head.size)))
}

fn contradiction(head: &TreeHead, size: u64, place: &str) -> StoreError {
    let known = head.size;
    let what = match known > size {
        true => format!(
            "`{place}` holds a head of this log over {known} records, but the log has {size}: it \
             was rolled back, or another one signs with its key"
        ),
        false => format!(
            "`{place}` holds a head of this log over {known} records that are not those it has \
             now: it was rolled back and went on differently, or another one signs with its key"
        ),
    };
    StoreError::Contradicted { what }
}
