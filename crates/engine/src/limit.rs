//! Every bound of the engine, named, in one place.

model::limits! {
    /// Minutes a code for signing in at the Studio counts.
    SIGN_IN_CODE_MINUTES: i64 = 10;
    /// Wrong codes, of all peers together, in one minute. Then none is looked at.
    SIGN_IN_WRONG_PER_MINUTE_MAX: usize = 10;
    /// Seconds between two notes that a session was used.
    PERSON_SEEN_SECONDS: i64 = 30;
    /// Minutes a sign-in at an issuer may take.
    LOGIN_MINUTES_MAX: i64 = 10;
    /// Seconds that what an issuer says about itself counts.
    LOGIN_ISSUER_SECONDS_MAX: u64 = 600;
    /// A token of an issuer, in bytes.
    TOKEN_BYTES_MAX: usize = 8 * 1024;
    /// A key's name in a token, in bytes.
    KEY_NAME_BYTES_MAX: usize = 256;
    /// The name of a caller or person in a token, in characters.
    CLAIM_CHARS_MAX: usize = 128;
    /// Documents of an issuer, in bytes.
    ISSUER_BYTES_MAX: usize = 256 * 1024;
    /// Keys of an issuer.
    ISSUER_KEYS_MAX: usize = 64;
    /// What a browser calls itself, in characters.
    BROWSER_CHARS_MAX: usize = 80;
    /// The name of a secret that is set, in characters.
    SECRET_NAME_CHARS_MAX: usize = 128;
    /// Bytes of the file of secrets after one was set.
    SECRETS_FILE_BYTES_MAX: usize = 1 << 20;
    /// A path or a name in an event of a call, in characters.
    EVENT_CHARS_MAX: usize = 256;
    /// Seconds that a run without powers may compute outside its sandbox.
    COMPUTE_SECONDS_MAX: u64 = 60;
    /// Seconds that copying a folder for a Local Pass may take.
    COPY_SECONDS_MAX: u64 = 20;
    /// Requests to the host of one call that instruments learn the times of.
    HOST_STEPS_MAX: usize = 64;
    /// The reason for a decision in the audit, in characters.
    REASON_CHARS_MAX: usize = 400;
    /// The name of a new document's file, in characters, without its ending.
    FILE_STEM_CHARS_MAX: usize = 80;
    /// What is not granted yet, in a refusal, in characters.
    NEEDS_CHARS_MAX: usize = 600;
    /// Callers whose view of the search index is kept.
    SEARCH_VIEWS_MAX: usize = 64;
    /// Left-over scratch folders that one start removes.
    SWEEP_ENTRIES_MAX: usize = 1_000;
    /// Callers whose history is kept in memory for trust.
    TRUST_HISTORIES_MAX: usize = 16;
    /// Attempts to store a caller's trust while another process changes it.
    TRUST_ATTEMPTS_MAX: usize = 4;
    /// How full the audit is, in percent, when the owner is first told.
    AUDIT_TOLD_FROM_PERCENT: u64 = 80;
    /// How full the audit is, in percent, when its oldest records are removed.
    AUDIT_REMOVE_FROM_PERCENT: u64 = 90;
    /// How full the audit is after that, in percent.
    AUDIT_REMOVE_TO_PERCENT: u64 = 75;
    /// Records read at a time to decide past calls again.
    REPLAY_PAGE_RECORDS: usize = 1_000;
    /// What a database says about a failed statement, in characters.
    SQL_FAULT_CHARS_MAX: usize = 500;
    /// The body of a reply to `httpRequest` or `readPage`, in bytes.
    HTTP_BODY_BYTES_MAX: usize = 1 << 20;
    /// Characters of a page that `readPage` gives when nothing is said.
    PAGE_CHARS_DEFAULT: u64 = 100_000;
    /// The description of a tool in a search result, in characters.
    FOUND_DESCRIPTION_CHARS_MAX: usize = 300;
    /// A name of a tool, a caller or an error in a message, in characters.
    NAME_SHOWN_CHARS_MAX: usize = 200;
    /// A notice of a script, in characters.
    SCRIPT_NOTICE_CHARS_MAX: usize = 500;
    /// Bytes around a tool's answer when a script gets it.
    SCRIPT_ENVELOPE_BYTES_MAX: usize = 64;
    /// A message about a script, in characters.
    SCRIPT_ERROR_CHARS_MAX: usize = 2_000;
    /// Warnings about calls that a script did not await.
    SCRIPT_UNAWAITED_MAX: usize = 10;
    /// Bytes a program may write to one stream before it is killed; fewer are kept.
    PROCESS_OUTPUT_BYTES_MAX: u64 = 256 << 20;
    /// Seconds of one git, network included.
    GIT_SECONDS_MAX: u64 = 120;
    /// Times one call starts git.
    GIT_INVOCATIONS_MAX: usize = 16;
    /// Filters of a repository that are switched off, each by its name.
    GIT_FILTERS_MAX: usize = 64;
    /// Entries of a status.
    GIT_ENTRIES_MAX: usize = 10_000;
    /// Characters of what git says about a failure.
    GIT_ERROR_CHARS_MAX: usize = 500;
    /// Seconds that the end of a cancelled job is waited for.
    JOB_CANCEL_SECONDS_MAX: u64 = 15;
    /// Seconds that what a job wrote is kept.
    JOB_FILES_SECONDS_MAX: u64 = 7 * 86_400;
    /// Characters of a job's command that are remembered.
    JOB_COMMAND_CHARS_MAX: usize = 2_000;
    /// Sets of changes that wait to be copied.
    CHANGES_KEPT_MAX: usize = 64;
    /// Seconds that a set of changes is kept.
    CHANGES_SECONDS_MAX: u64 = 7 * 86_400;
    /// Changed files that are named in a result.
    CHANGES_SHOWN_MAX: usize = 1_000;
    /// Bytes of a changed file that is shown in a patch.
    CHANGES_TEXT_BYTES_MAX: u64 = 256 << 10;
    /// Bytes of a patch; every file has its share. A file that is cut says so, and a large
    /// one leaves room for others.
    CHANGES_PATCH_BYTES_MAX: usize = 64 << 10;
    /// Lines of a patch.
    CHANGES_LINES_MAX: usize = 2_000;
    /// Characters of a line of a patch; the middle of a longer one is left out.
    CHANGES_LINE_CHARS_MAX: usize = 1_000;
    /// Bytes of the list of changed files in a question. Without room for every name no one
    /// is asked, and nothing is copied.
    CHANGES_LIST_BYTES_MAX: usize = 128 << 10;
    /// Bytes of the list of what is not copied, in a question.
    CHANGES_LEFT_OUT_BYTES_MAX: usize = 16 << 10;
    /// Bytes of changed files that are read for one patch.
    CHANGES_READ_BYTES_MAX: u64 = 16 << 20;
    /// Files that the sentence of a question names.
    CHANGES_SUMMARY_FILES_MAX: usize = 5;
    /// Characters of a name in that sentence.
    CHANGES_SUMMARY_NAME_CHARS_MAX: usize = 60;
    /// Copied files that have an event each, and files that are left out; beyond that there
    /// is one with their number, and for copied files a digest over the list.
    CHANGES_EVENTS_MAX: usize = 500;
    /// Files that are left out of the changes of a job and named in the notice of its end.
    JOB_LEFT_OUT_MAX: usize = 20;
    /// Bytes read from a program at one time.
    PROCESS_CHUNK_BYTES: usize = 64 << 10;
    /// Bytes of a line of output that is told as progress.
    PROGRESS_LINE_BYTES_MAX: usize = 200;
    /// Lines of output of one call that are told as progress.
    PROGRESS_LINES_MAX: usize = 500;
    /// Characters of a list of hosts that `explain` shows.
    EXPLAINED_HOSTS_CHARS_MAX: usize = 400;
}
