//! Every bound of `safety.fs`, named, in one place.

model::limits! {
    /// A file that is read whole, in bytes; every reading function reads it whole.
    FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;
    /// A file after `writeText`, `appendText` or `editText`, in bytes.
    WRITE_BYTES_MAX: u64 = 10 * 1024 * 1024;
    /// A file that `copy` copies, in bytes.
    COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;
    /// The strings of one answer, in bytes.
    ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Lines `slice`, `cut` and `sort` give back.
    LINES_MAX: usize = 500_000;
    /// Lines `grep` gives back, and its default.
    GREP_LINES_MAX: usize = 10_000;
    /// Lines `searchInFiles` gives back, and its default.
    SEARCH_LINES_MAX: usize = 1_000;
    /// A line a regular expression looks at, in bytes; less for a pattern with many
    /// places, see [`PATTERN_WORK_MAX`].
    LINE_BYTES_MAX: usize = 1024 * 1024;
    /// Places of a pattern times bytes of a line. One look at a line cannot be cut
    /// short and may take as many steps, so this is what bounds its time.
    PATTERN_WORK_MAX: usize = 32 * 1024 * 1024;
    /// Entries `list` gives back.
    LIST_ENTRIES_MAX: usize = 10_000;
    /// Entries `find` gives back.
    FIND_ENTRIES_MAX: usize = 10_000;
    /// Entries `find` and `searchInFiles` look at.
    WALK_ENTRIES_MAX: usize = 200_000;
    /// Folders below each other that a walk or `deleteDir` enters.
    WALK_DEPTH_MAX: usize = 128;
    /// Files and folders among which those are searched for that their owner may not enter,
    /// before a folder that a program filled is removed.
    REMOVE_ENTRIES_MAX: usize = 1_000_000;
    /// Entries one `deleteDir` removes.
    DELETE_ENTRIES_MAX: usize = 10_000;
    /// Files and folders of a workspace.
    WORKSPACE_ENTRIES_MAX: u64 = 100_000;
    /// Workspaces whose size is remembered between writes.
    WORKSPACES_KNOWN_MAX: usize = 1_024;
    /// Fields `cut` takes from a line.
    CUT_FIELDS_MAX: usize = 1_024;
    /// A path, in bytes.
    PATH_BYTES_MAX: usize = 4_096;
    /// One name in a path, in bytes.
    NAME_BYTES_MAX: usize = 255;
    /// Names in a path below its root.
    PATH_NAMES_MAX: usize = 128;
    /// A regular expression or a glob, in bytes.
    PATTERN_BYTES_MAX: usize = 4_096;
    /// A compiled regular expression, in bytes.
    PATTERN_PROGRAM_BYTES_MAX: usize = 1024 * 1024;
    /// Groups inside groups in a regular expression.
    PATTERN_DEPTH_MAX: u32 = 64;
    /// Events kept for one call of a tool; the rest are counted.
    EVENTS_MAX: usize = 10_000;
    /// The id of a caller or a conversation, in bytes.
    ID_BYTES_MAX: usize = 64;
    /// Names tried for a temporary file.
    TEMPORARY_TRIES_MAX: usize = 16;
    /// A folder that is copied for a run that must leave it alone, in bytes.
    STAND_IN_BYTES_MAX: u64 = 64 * 1024 * 1024;
    /// Files and folders of such a copy.
    STAND_IN_ENTRIES_MAX: u64 = 20_000;
    /// Folders below each other in such a copy.
    STAND_IN_DEPTH_MAX: usize = 32;
    /// Bytes of one file of a repository's settings. What is longer is not read, and
    /// everything in the repository is protected.
    REPOSITORY_CONFIG_BYTES_MAX: u64 = 256 * 1024;
    /// Files and folders among which repositories are searched for before changes are copied. In
    /// a larger folder nothing is copied.
    REPOSITORY_SEARCH_ENTRIES_MAX: usize = 2_000_000;
    /// Files of one repository's settings, included ones too.
    REPOSITORY_CONFIG_FILES_MAX: usize = 16;
    /// Words of one command in a repository's settings that are taken for paths.
    REPOSITORY_COMMAND_WORDS_MAX: usize = 64;
    /// Files and folders of one set of changes.
    CHANGES_ENTRIES_MAX: usize = 20_000;
    /// Bytes of the files of one set of changes.
    CHANGES_BYTES_MAX: u64 = 512 * 1024 * 1024;
    /// Folders below each other in a set of changes.
    CHANGES_DEPTH_MAX: usize = 64;
}
