//! Every bound of this crate, in one table.

model::limits! {
    /// One message of a server, in bytes; a longer one is skipped. The call that waits for it
    /// ends at once if it is alone, else by its time limit.
    SERVER_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
    /// Lines on the standard output of a server that are no messages; after more of them
    /// its connection ends.
    SERVER_NOISE_LINES_MAX: usize = 1_000;
    /// Pages of one list.
    SERVER_LIST_PAGES_MAX: usize = 200;
    /// Tools of one server, and as many prompts, resources and templates.
    SERVER_TOOLS_MAX: usize = 2_000;
    /// All lists of a server as JSON, in bytes.
    SERVER_LIST_BYTES_MAX: usize = 8 * 1024 * 1024;
    /// Milliseconds a list may take.
    SERVER_LIST_MS_MAX: u64 = 30_000;
    /// A cursor of a list, in bytes.
    SERVER_CURSOR_BYTES_MAX: usize = 4_096;
    /// Standard error that is kept of a process, in bytes.
    SERVER_LOG_BYTES_MAX: usize = 64 * 1024;
    /// One line of it, in bytes.
    SERVER_LOG_LINE_BYTES_MAX: usize = 4_096;
    /// Milliseconds between two writes of it to its file.
    SERVER_LOG_PAUSE_MS: u64 = 200;
    /// Milliseconds for the last words of a process that ended.
    SERVER_LAST_WORDS_MS: u64 = 500;
    /// Milliseconds for which a new file counts as used, before its process has locked it.
    SERVER_LOG_FRESH_MS: u64 = 10_000;
    /// Such files of one server in one process.
    SERVER_LOG_FILES_MAX: usize = 64;
    /// Files of processes that ended which are kept.
    SERVER_LOG_FILES_KEPT: usize = 3;
    /// Questions to a person in one call.
    SERVER_QUESTIONS_MAX: usize = 8;
    /// A question to a person as JSON, in bytes.
    SERVER_QUESTION_BYTES_MAX: usize = 64 * 1024;
    /// Rounds of `input_required` in one call.
    SERVER_ROUNDS_MAX: usize = 10;
    /// The result of a call as JSON, in bytes.
    SERVER_RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;
    /// Content blocks of a result.
    SERVER_RESULT_BLOCKS_MAX: usize = 1_000;
    /// Progress messages that are passed on in one call.
    SERVER_PROGRESS_MAX: u64 = 1_000;
    /// Milliseconds after a change of the list before it is fetched again.
    SERVER_RELIST_DELAY_MS: u64 = 500;
    /// Milliseconds between two fetches because of changes.
    SERVER_RELIST_PAUSE_MS: u64 = 10_000;
    /// Milliseconds a list counts as current at a server that does not tell of changes, unless
    /// the server names less; a call after that fetches and compares it again first.
    SERVER_LIST_AGE_MS_MAX: u64 = 30_000;
    /// Milliseconds such a list counts as current at least, whatever the server names.
    SERVER_LIST_AGE_MS_MIN: u64 = 10_000;
    /// Milliseconds a server may take to say that it heard we listen.
    SERVER_LISTEN_MS_MAX: u64 = 5_000;
    /// Milliseconds before the first new attempt; each one doubles it.
    SERVER_RETRY_MS_MIN: u64 = 1_000;
    /// Milliseconds between attempts, at most.
    SERVER_RETRY_MS_MAX: u64 = 300_000;
    /// Failures in a row after which a server is held until the owner restarts it.
    SERVER_FAILURES_MAX: u32 = 10;
    /// Milliseconds a connection must last before earlier failures are forgotten.
    SERVER_HEALTHY_MS: u64 = 60_000;
    /// Tokens of a sign-in that are masked, the newest first.
    SERVER_TOKENS_MASKED_MAX: usize = 16;
    /// Connections that one process of a server makes in its whole life, through our proxy.
    SERVER_CONNECTIONS_MAX: u64 = 1_000_000;
    /// Bytes both ways of all of them together.
    SERVER_NETWORK_BYTES_MAX: u64 = 1 << 40;
    /// Calls of one server at a time; more wait within their own time limit.
    SERVER_CALLS_MAX: usize = 64;
}
