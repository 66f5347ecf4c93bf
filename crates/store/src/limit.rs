//! Every bound of this crate, named, in one place.

model::limits! {
    /// One audit record's own part, in bytes.
    RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
    /// Requests that may wait for the writer, unless the operator says otherwise.
    QUEUE_DEFAULT: usize = 4_096;
    /// How long to wait for another process that writes, in milliseconds.
    BUSY_MS_MAX: u64 = 5_000;
    /// How long a committed record may wait for the disk, in milliseconds.
    SYNC_MS_MAX: u64 = 100;
    /// Entries of one answer.
    LIST_MAX: usize = 10_000;
    /// Call ids named when a prefix fits several.
    PREFIX_MATCHES_MAX: usize = 10;
    /// Records removed in one step, so that calls do not wait long for a removal.
    REMOVE_STEP_RECORDS_MAX: u64 = 4_096;
    /// Open records that a checkpoint can keep.
    KEPT_MAX: usize = 10_000;
    /// Lock files that are checked when a store is opened.
    PROCESSES_MAX: usize = 10_000;
    /// Servers of one home whose address other commands know.
    SERVING_FILES_MAX: u32 = 16;
    /// The file with the address of a server, in bytes.
    SERVING_BYTES_MAX: u64 = 4_096;
    /// Attempts to lock such a file while servers end and begin.
    SERVING_ATTEMPTS_MAX: u32 = 16;
    /// Files read from the tools folder.
    TOOL_FILES_MAX: usize = 10_000;
    /// One tool file, in bytes.
    TOOL_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// A tool file's name without `.json`, in bytes.
    STEM_BYTES_MAX: usize = 200;
    /// Names tried for one file in the trash.
    TRASH_ATTEMPTS_MAX: u32 = 100;
    /// File system events read in one look.
    EVENTS_MAX: usize = 4_096;
    /// Records that may wait to be indexed. Readers scan them.
    UNINDEXED_RECORDS_MAX: u64 = 1_024;
    /// Entries held in memory while the index is rebuilt.
    INDEX_PIECE_ENTRIES_MAX: usize = 4_096;
    /// How long they may wait when nothing else is written, in milliseconds.
    INDEX_IDLE_MS_MAX: u64 = 250;
    /// Bytes of a segment of the log after which the next one begins.
    SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// One line of the log, in bytes: the longest record, its call id and the rest.
    LINE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX + 1024 * 1024;
    /// Bytes of the group buffer that stay allocated.
    GROUP_BYTES_KEPT_MAX: usize = 256 * 1024;
    /// Other open calls up to which a call writes its own records.
    AT_ONCE_OPEN_MAX: u64 = 1;
    /// How long records may wait for a signed head, in milliseconds.
    SIGN_MS_MAX: u64 = 10_000;
    /// Records that may wait for a signed head when other nodes anchor heads.
    SIGN_RECORDS_MAX: u64 = 1_000;
    /// How long they may wait then, in milliseconds.
    SIGN_HURRIED_MS_MAX: u64 = 1_000;
    /// One signed head of the log, in bytes.
    HEAD_BYTES_MAX: u64 = 8 * 1024;
    /// Signed heads kept beside the log, in bytes. Beyond that, older ones are thinned out.
    HEADS_BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// The newest signed heads, which are never thinned out.
    HEADS_KEPT_MIN: usize = 8_192;
    /// Heads of other logs that contradict what was seen, kept as evidence: one for each log
    /// and kind.
    CONFLICTS_MAX: usize = 256;
    /// How long after a head of another log was seen an older one may only have been
    /// overtaken on its way, in seconds.
    OVERTAKEN_HEAD_SECONDS_MAX: u64 = 10;
    /// Anchors of one log that are compared with other logs.
    ANCHORS_MAX: usize = 1_000_000;
    /// Records that are shipped in one batch.
    SHIP_RECORDS_MAX: usize = 4_096;
    /// Bytes of the records that are shipped in one batch; one record may be longer.
    SHIP_BYTES_MAX: usize = 4 * 1024 * 1024;
    /// Bytes of one message to the database that records are shipped to; one record may be
    /// longer.
    SHIP_PIECE_BYTES: usize = 64 * 1024;
    /// Looks at the log that are remembered to know how long records wait.
    SHIP_LOOKS_MAX: usize = 1_024;
    /// How long records on the disk may wait to be shipped, in milliseconds, while the
    /// database answers.
    SHIP_EVERY_MS_MAX: u64 = 250;
    /// How long the database may take for one batch, in milliseconds.
    SHIP_MS_MAX: u64 = 10_000;
    /// How long a call may wait until its opening is shipped, in milliseconds, where the
    /// settings say so.
    SHIP_SYNC_MS_MAX: u64 = 5_000;
    /// How often it looks, in milliseconds.
    SHIP_LOOK_MS: u64 = 2;
    /// Leaves of the tree that are written together.
    LEAVES_PIECE_MAX: usize = 4_096;
    /// The file of the key that signs, in bytes.
    KEY_FILE_BYTES_MAX: u64 = 4_096;
    /// Keys of callers in one home.
    KEYS_MAX: i64 = 10_000;
    /// Replaced and revoked keys that are remembered.
    FORMER_KEYS_MAX: i64 = 1_000;
    /// Codes for signing in at the Studio that count at one time.
    PERSON_CODES_MAX: usize = 8;
    /// Sessions of people at the Studio at one time. The longest unused gives way.
    PERSON_SESSIONS_MAX: usize = 64;
    /// Texts of scripts that wait for a person, at one time.
    WAITING_SCRIPTS_MAX: usize = 256;
    /// Bytes of one such text, with the places of its calls.
    WAITING_SCRIPT_BYTES_MAX: usize = 1 << 20;
    /// Background jobs of one caller that are remembered.
    JOBS_PER_CALLER_MAX: i64 = 100;
    /// Background jobs that are remembered.
    JOBS_MAX: i64 = 10_000;
    /// How long a question to the shared store may take, in milliseconds.
    SHARED_WAIT_MS_MAX: u64 = 5_000;
    /// How long connecting to the shared store may take, in milliseconds.
    SHARED_CONNECT_MS_MAX: u64 = 2_000;
    /// How long until the next try to reach it, in milliseconds.
    SHARED_RETRY_MS: u64 = 250;
    /// How often it is asked what changed, in milliseconds.
    SHARED_POLL_MS: u64 = 900;
    /// How old an answer about changes may be, in milliseconds.
    SHARED_NEWS_MS_MAX: u64 = 1_000;
    /// How long a process counts as alive after it last said so, in seconds.
    SHARED_LEASE_S: u64 = 15;
    /// Questions about changes after which old leases are forgotten.
    SHARED_FORGET_ROUNDS: u64 = 600;
    /// How often files are brought together with the shared store again, when other nodes
    /// change them at the same time.
    SHARE_ATTEMPTS_MAX: u32 = 64;
    /// Files that are sent to the shared store in one statement.
    SHARE_PIECE_FILES_MAX: usize = 256;
    /// How often a call is counted again in one statement when other nodes count at the same
    /// time; then once under a lock.
    USAGE_ATTEMPTS_MAX: usize = 8;
    /// Limits of callers whose count a process remembers as it wrote it to a shared store.
    USAGE_KNOWN_MAX: usize = 16_384;
    /// Calls that may wait to be counted in a shared store.
    USAGE_QUEUE_MAX: usize = 4_096;
    /// Calls that are counted by one statement.
    USAGE_TOGETHER_MAX: usize = 256;
    /// How long more calls are waited for when several came at the same time, in microseconds.
    USAGE_GATHER_US: u64 = 300;
    /// How long a thread waits until a call is counted, in milliseconds.
    USAGE_WAIT_MS_MAX: u64 = 60_000;
    /// Prepared statements kept for one connection.
    SHARED_STATEMENTS_MAX: usize = 256;
    /// A file of certificate authorities, in bytes.
    CA_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
    /// Answers that a call tries to take when other nodes take them first.
    CLAIM_ATTEMPTS_MAX: usize = 16;
    /// Differences of clocks that no decision notices, in milliseconds.
    CLOCK_SKEW_MS: i64 = 1_000;
    /// How long a changed file may keep its stamp, in milliseconds.
    STAMP_TICK_MS: u64 = 20;
}
