//! The audit: opening and closing entries, writing notices, and reading them back.
//!
//! Writing goes through the desk; reading has the log as it was at one moment and a
//! connection to the index of its own, and keeps nobody waiting.

mod notices;
pub(crate) mod read;
mod tail;
mod verify;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use model::caller::Origin;
use model::record::audit::chain::{Head, Record};
use model::record::audit::walk::Verified;
use model::record::audit::{Act, Closing, Failure, Notice, Opening, Status, spell};
use rusqlite::Connection;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::desk::Desk;
use crate::error::StoreError;
use crate::ledger::{NewEntry, NewNotice, now_ms};
use crate::limit;
use crate::log::moment::Moment;
use crate::mark::Mark;
use crate::queue::{OpenRow, Request};
use read::Reader;

/// The audit of one home.
#[derive(Debug)]
pub struct Audit {
    home: PathBuf,
    desk: Arc<Desk>,
    /// Opened by the first who reads; most processes only write.
    index: Mutex<Option<Connection>>,
    mark: Mark,
}

/// One attempt: how it began and, unless it is still under way, how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What was asked.
    pub opening: Opening,
    /// What came of it.
    pub closing: Option<Closing>,
    /// The place of its open record.
    pub sequence: u64,
    /// The place of its close record.
    pub closed_sequence: Option<u64>,
    /// The hash of its last record, in hexadecimal.
    pub hash: String,
}

/// Something that was done beside calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoticeEntry {
    /// What was done.
    pub notice: Notice,
    /// The place of its record.
    pub sequence: u64,
    /// Its hash, in hexadecimal.
    pub hash: String,
}

/// A call or a notice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Item {
    /// A call.
    Call(Box<Entry>),
    /// A notice.
    Notice(NoticeEntry),
}

impl Item {
    /// The place of its first record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        match self {
            Item::Call(entry) => entry.sequence,
            Item::Notice(notice) => notice.sequence,
        }
    }

    /// The place of its last record.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        match self {
            Item::Call(entry) => entry.closed_sequence.unwrap_or(entry.sequence),
            Item::Notice(notice) => notice.sequence,
        }
    }
}

/// Which of the two a filter is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// Both.
    #[default]
    All,
    /// Calls.
    Calls,
    /// Notices.
    Notices,
}

/// A record that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its place.
    pub sequence: u64,
    /// Its hash, in hexadecimal.
    pub hash: String,
}

/// Which entries; what is not set does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Calls, notices or both; a list of one kind does not look at it.
    pub rows: Rows,
    /// The tool's name as it was asked for.
    pub tool: Option<String>,
    /// Who asked.
    pub caller: Option<String>,
    /// How it ended.
    pub status: Option<Status>,
    /// The door.
    pub origin: Option<Origin>,
    /// Only calls about which rules that are only tried say something else.
    pub differs: bool,
    /// What was done, for notices; calls do not look at it.
    pub act: Option<Act>,
    /// Opened at this time or later.
    pub since_ms: Option<i64>,
    /// Opened before this time.
    pub until_ms: Option<i64>,
    /// At most so many; [`limit::LIST_MAX`] is the most `list` gives.
    pub limit: Option<usize>,
    /// Only entries whose open record stands before this place, to page.
    pub before: Option<u64>,
    /// Only entries whose open record stands after this place, to read on.
    pub after: Option<u64>,
}

/// What the id of a call or a notice, or the start of one, leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    None,
    /// One entry.
    One(Box<Entry>),
    /// One notice.
    Notice(Box<NoticeEntry>),
    /// Several ids start like that; the first few.
    Several(Vec<String>),
}

/// Which entries are old. With both set, whatever one of them names is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Opened before this time, in milliseconds since 1970.
    pub older_than_ms: Option<i64>,
    /// Beyond so many bytes, counted from the newest record.
    pub bytes_max: Option<u64>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Records.
    pub records: u64,
    /// Entries.
    pub entries: u64,
    /// Notices.
    pub notices: u64,
    /// The last removed place; none if nothing was removed.
    pub through: Option<u64>,
}

impl Audit {
    pub(crate) fn new(home: PathBuf, desk: Arc<Desk>) -> Audit {
        Audit {
            mark: Mark::new(&home),
            home,
            desk,
            index: Mutex::default(),
        }
    }

    /// Writes down that an attempt begins. Resolves when the row survives the
    /// death of this process. That call ids are unique is for the caller to see to.
    pub async fn open(&self, opening: Opening) -> Result<OpenRow, StoreError> {
        let new = NewEntry::new(opening)?;
        if new.part.len() > limit::RECORD_BYTES_MAX {
            return Err(StoreError::TooLong {
                bytes: new.part.len(),
                bytes_max: limit::RECORD_BYTES_MAX,
            });
        }
        let (reply, answer) = oneshot::channel();
        self.desk.submit(Request::Open(new, reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Resolves when the row is on the disk. All who wait share a sync.
    pub async fn secure(&self, row: &OpenRow) -> Result<(), StoreError> {
        self.desk.shared.sync.reached(row.commit).await
    }

    /// Writes down how an attempt ended. Resolves when that survives the death of
    /// this process. After an error the end is still written as soon as it can be.
    pub async fn close(&self, mut row: OpenRow, closing: Closing) -> Result<Link, StoreError> {
        let (status, differs) = (closing.status, closing.shadow.is_some());
        let part = bounded_part(closing)?;
        let end = row.end(status, differs, part);
        let (reply, answer) = oneshot::channel();
        self.desk.submit(Request::Close(end, Some(reply))).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Writes down something that was done beside calls; its id and time are set
    /// here. Blocks until it is on the disk.
    pub fn notice(&self, mut notice: Notice) -> Result<Link, StoreError> {
        #[cfg(feature = "testing")]
        crate::testing::takes_notices(&self.home)?;
        notice.id = uuid::Uuid::now_v7().to_string();
        notice.at_ms = now_ms();
        let new = NewNotice::new(notice)?;
        if new.part.len() > limit::RECORD_BYTES_MAX {
            return Err(StoreError::TooLong {
                bytes: new.part.len(),
                bytes_max: limit::RECORD_BYTES_MAX,
            });
        }
        let (reply, answer) = mpsc::channel();
        self.desk.submit_to_thread(Request::Notice(new, reply))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    /// Notices, newest first.
    pub fn notices(&self, filter: &Filter) -> Result<Vec<NoticeEntry>, StoreError> {
        self.read(|reader| notices::list(reader, filter))
    }

    /// Calls and notices, newest first.
    pub fn items(&self, filter: &Filter) -> Result<Vec<Item>, StoreError> {
        self.read(|reader| notices::items(reader, filter))
    }

    /// Entries, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
        self.read(|reader| read::list(reader, filter))
    }

    /// The entry or notice with that id, or whose id starts so.
    pub fn find(&self, call_id_or_prefix: &str) -> Result<Found, StoreError> {
        self.read(|reader| read::find(reader, call_id_or_prefix))
    }

    /// Entries whose close record stands after a place and notices after it, oldest
    /// end first. To follow the audit, ask again with the last one's
    /// [`Item::last_sequence`].
    pub fn after(&self, sequence: u64, limit: usize) -> Result<Vec<Item>, StoreError> {
        self.read(|reader| read::after(reader, sequence, limit))
    }

    /// The last record.
    pub fn head(&self) -> Result<Head, StoreError> {
        Moment::take(&crate::log::folder(&self.home))?.head()
    }

    /// Walks the whole chain and names the first record that is wrong.
    pub fn verify(&self, expected_head: Option<&Head>) -> Result<Verified, StoreError> {
        let index = self.own_index()?;
        // Before the log is looked at, so that it cannot be behind.
        let remembered = self.mark.get()?;
        verify::verify(&Reader::new(&index, &self.home)?, expected_head, remembered)
    }

    /// Hands over the records of the entries a filter names, oldest first, and
    /// every checkpoint: with an empty filter enough to verify elsewhere. The
    /// answer is how many. A failing `each` ends it.
    pub fn export(
        &self,
        filter: &Filter,
        each: &mut dyn FnMut(&Record) -> std::io::Result<()>,
    ) -> Result<u64, StoreError> {
        let index = self.own_index()?;
        read::export(&Reader::new(&index, &self.home)?, filter, each)
    }

    /// Removes old entries and writes a checkpoint about it. Open entries stay.
    /// Blocks until it is done.
    pub fn retain(&self, rule: &Retention) -> Result<Removed, StoreError> {
        let (reply, answer) = mpsc::channel();
        self.desk.submit_to_thread(Request::Retain(*rule, reply))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(self.own_index()?),
        };
        read(&Reader::new(index, &self.home)?)
    }

    /// For what takes long, so that lists do not wait for it.
    fn own_index(&self) -> Result<Connection, StoreError> {
        crate::index::connect_to_read(&self.home)
    }
}

/// The canonical closing, with what is long left out if it is too long. An end is
/// written in any case, and says what is missing.
fn bounded_part(closing: Closing) -> Result<String, StoreError> {
    let part = spell::closing(&closing)?;
    if part.len() <= limit::RECORD_BYTES_MAX {
        return Ok(part);
    }
    let note = Failure {
        code: "audit.shortened".to_owned(),
        message: format!(
            "the record had {} bytes; its details were left out",
            part.len()
        ),
    };
    let events = u64::try_from(closing.events.len()).unwrap_or(u64::MAX);
    let mut short = Closing::bare(closing.at_ms, closing.status, closing.error.or(Some(note)));
    short.events_dropped = closing.events_dropped.saturating_add(events);
    short.result_digest = closing.result_digest;
    short.shadow = closing.shadow;
    short.timing = closing.timing;
    let part = spell::closing(&short)?;
    if part.len() <= limit::RECORD_BYTES_MAX {
        return Ok(part);
    }
    let mut bare = Closing::bare(short.at_ms, short.status, None);
    // A reason is cut when it is made, so this is short.
    bare.shadow = short.shadow;
    Ok(spell::closing(&bare)?)
}
