//! Every bound of `safety.fs`, named, in one place.

/// A file that is read whole, in bytes; every reading function reads it whole.
pub const FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// A file after `writeText`, `appendText` or `editText`, in bytes.
pub const WRITE_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// A file that `copy` copies, in bytes.
pub const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The strings of one answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Lines `slice`, `cut` and `sort` give back.
pub const LINES_MAX: usize = 500_000;
/// Lines `grep` gives back, and its default.
pub const GREP_LINES_MAX: usize = 10_000;
/// Lines `searchInFiles` gives back, and its default.
pub const SEARCH_LINES_MAX: usize = 1_000;
/// A line a regular expression looks at, in bytes; less for a pattern with many
/// places, see [`PATTERN_WORK_MAX`].
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Places of a pattern times bytes of a line. One look at a line cannot be cut
/// short and may take as many steps, so this is what bounds its time.
pub const PATTERN_WORK_MAX: usize = 32 * 1024 * 1024;
/// Entries `list` gives back.
pub const LIST_ENTRIES_MAX: usize = 10_000;
/// Entries `find` gives back.
pub const FIND_ENTRIES_MAX: usize = 10_000;
/// Entries `find` and `searchInFiles` look at.
pub const WALK_ENTRIES_MAX: usize = 200_000;
/// Folders below each other that a walk or `deleteDir` enters.
pub const WALK_DEPTH_MAX: usize = 128;
/// Entries one `deleteDir` removes.
pub const DELETE_ENTRIES_MAX: usize = 10_000;
/// Fields `cut` takes from a line.
pub const CUT_FIELDS_MAX: usize = 1_024;
/// A path, in bytes.
pub const PATH_BYTES_MAX: usize = 4_096;
/// One name in a path, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Names in a path below its root.
pub const PATH_NAMES_MAX: usize = 128;
/// A regular expression or a glob, in bytes.
pub const PATTERN_BYTES_MAX: usize = 4_096;
/// A compiled regular expression, in bytes.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 1024 * 1024;
/// Groups inside groups in a regular expression.
pub const PATTERN_DEPTH_MAX: u32 = 64;
/// Events kept for one call of a tool; the rest are counted.
pub const EVENTS_MAX: usize = 10_000;
/// The id of a caller or a conversation, in bytes.
pub const ID_BYTES_MAX: usize = 64;
/// Names tried for a temporary file.
pub const TEMPORARY_TRIES_MAX: usize = 16;
/// A folder that is copied for a run that must leave it alone, in bytes.
pub const STAND_IN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files and folders of such a copy.
pub const STAND_IN_ENTRIES_MAX: u64 = 20_000;
/// Folders below each other in such a copy.
pub const STAND_IN_DEPTH_MAX: usize = 32;
