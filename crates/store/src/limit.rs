//! Every bound of this crate, named, in one place.

use std::time::Duration;

/// One audit record's own part, in bytes.
pub const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Requests that may wait for the writer, unless the operator says otherwise.
pub const QUEUE_DEFAULT: usize = 4_096;
/// Bytes of the audit, unless the operator says otherwise.
pub const AUDIT_BYTES_DEFAULT: u64 = 4 * 1024 * 1024 * 1024;
/// How long to wait for another process that writes, in milliseconds.
pub const BUSY_MS_MAX: u64 = 5_000;
/// How long a committed record may wait for the disk, in milliseconds.
pub const SYNC_MS_MAX: u64 = 100;
/// Entries of one answer.
pub const LIST_MAX: usize = 10_000;
/// Call ids named when a prefix fits several.
pub const PREFIX_MATCHES_MAX: usize = 10;
/// Records removed in one step, so that calls do not wait long for a removal.
pub const REMOVE_STEP_RECORDS_MAX: u64 = 4_096;
/// Open records that a checkpoint can keep.
pub const KEPT_MAX: usize = 10_000;
/// Lock files that are checked when a store is opened.
pub const PROCESSES_MAX: usize = 10_000;
/// Files read from the tools folder.
pub const TOOL_FILES_MAX: usize = 10_000;
/// One tool file, in bytes.
pub const TOOL_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A tool file's name without `.json`, in bytes.
pub const STEM_BYTES_MAX: usize = 200;
/// Names tried for one file in the trash.
pub const TRASH_ATTEMPTS_MAX: u32 = 100;
/// How long a changed file may keep its stamp.
pub const STAMP_TICK: Duration = Duration::from_millis(20);
/// File system events read in one look.
pub const EVENTS_MAX: usize = 4_096;
/// Records that may wait to be indexed. Readers scan them.
pub const UNINDEXED_RECORDS_MAX: u64 = 1_024;
/// Entries held in memory while the index is rebuilt.
pub const INDEX_PIECE_ENTRIES_MAX: usize = 4_096;
/// How long they may wait when nothing else is written, in milliseconds.
pub const INDEX_IDLE_MS_MAX: u64 = 250;
/// Bytes of a segment of the log after which the next one begins.
pub const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// One line of the log, in bytes: the longest record, its call id and the rest.
pub const LINE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX + 1024 * 1024;
/// Bytes of the group buffer that stay allocated.
pub const GROUP_BYTES_KEPT_MAX: usize = 256 * 1024;
/// Other open calls up to which a call writes its own records.
pub const AT_ONCE_OPEN_MAX: u64 = 1;
/// Keys of callers in one home.
pub const KEYS_MAX: i64 = 10_000;
