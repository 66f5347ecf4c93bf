//! Every bound of this crate, named, in one place; and the table every crate writes its
//! bounds in.
//!
//! A line of `limits!` is a constant, and a line of the reference page where that has the
//! table, so the two cannot disagree.

/// One line of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct LimitLine {
    /// The constant's name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What it bounds.
    pub what: &'static str,
}

/// A table of bounds: each line becomes a public constant, and `ALL` lists them in the
/// order of the table, each with its doc comment.
#[macro_export]
macro_rules! limits {
    (@number i64 $name:ident) => {
        $name.unsigned_abs()
    };
    (@number u64 $name:ident) => {
        $name
    };
    (@number $kind:ident $name:ident) => {
        $name as u64
    };
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $value:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: $kind = $value;)+

        /// The whole table, in its order.
        pub const ALL: &[$crate::limits::LimitLine] = &[$($crate::limits::LimitLine {
            name: stringify!($name),
            value: $crate::limits!(@number $kind $name),
            what: concat!($($doc),+),
        }),+];
    };
}

limits! {
    /// Minutes a person's session may be unused unless the operator says otherwise.
    PERSON_IDLE_MINUTES_DEFAULT: u64 = 60;
    /// Minutes an operator may let a session be unused.
    PERSON_IDLE_MINUTES_MAX: u64 = 1_440;
    /// Hours a person's session lasts unless the operator says otherwise.
    PERSON_SESSION_HOURS_DEFAULT: u64 = 12;
    /// Hours an operator may let a session last.
    PERSON_SESSION_HOURS_MAX: u64 = 168;
    /// A whole file of documents, in bytes.
    FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Documents in one file.
    FILE_DOCUMENTS_MAX: usize = 10_000;
    /// Nesting of arrays and objects in a document.
    DOCUMENT_DEPTH_MAX: usize = 64;
    /// Findings kept for one document; the rest are counted.
    DOCUMENT_FINDINGS_MAX: usize = 200;
    /// `name`, in characters.
    NAME_CHARS_MAX: usize = 256;
    /// `description`, of a tool or of a param, in characters.
    DESCRIPTION_CHARS_MAX: usize = 65_536;
    /// `code`, in characters.
    CODE_CHARS_MAX: usize = 1_048_576;
    /// `testValue`, or the value of a static variable, in characters.
    VALUE_CHARS_MAX: usize = 65_536;
    /// `promptTemplate`, in characters.
    PROMPT_CHARS_MAX: usize = 4_096;
    /// Any other string of a document, in characters.
    WORD_CHARS_MAX: usize = 1_024;
    /// `tags` of one document.
    TAGS_MAX: usize = 2;
    /// `params` of one document.
    PARAMS_MAX: usize = 128;
    /// `staticVariables` of one document.
    STATIC_VARIABLES_MAX: usize = 128;
    /// Hosts or classes in one list of a document.
    LIST_ITEMS_MAX: usize = 1_024;
    /// A timestamp, in milliseconds: the largest integer every reader keeps exact.
    TIMESTAMP_MS_MAX: u64 = 9_007_199_254_740_991;
    /// The arguments of one call as JSON, in bytes.
    ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;
    /// Nesting of the arguments of one call.
    ARGUMENTS_DEPTH_MAX: usize = 32;
    /// The largest integer argument, either sign: beyond it JavaScript is not exact.
    INTEGER_ARGUMENT_MAX: i64 = 9_007_199_254_740_991;
    /// Profiles in one `extends` chain.
    PROFILE_DEPTH_MAX: usize = 8;
    /// A secret shorter than this, in characters, is never masked.
    SECRET_CHARS_MIN: usize = 4;
    /// One resolved secret, in bytes.
    SECRET_BYTES_MAX: usize = 65_536;
    /// All secrets of one call, in bytes. Looking for one byte takes up to a kilobyte.
    SECRETS_OF_CALL_BYTES_MAX: usize = 131_072;
    /// An operator's file, in bytes.
    CONFIG_BYTES_MAX: usize = 1024 * 1024;
    /// Statements a tool may run unless the operator says otherwise.
    STATEMENTS_DEFAULT: u64 = 500_000;
    /// Milliseconds a tool may take unless the operator says otherwise.
    TIMEOUT_MS_DEFAULT: u64 = 30_000;
    /// The longest time an operator may grant, in milliseconds.
    TIMEOUT_MS_MAX: u64 = 3_600_000;
    /// The most statements an operator may grant.
    STATEMENTS_MAX: u64 = 1_000_000_000;
    /// Bytes of a workspace unless the operator says otherwise.
    WORKSPACE_BYTES_DEFAULT: u64 = 1 << 30;
    /// The fewest bytes an operator may leave a workspace.
    WORKSPACE_BYTES_MIN: u64 = 1 << 20;
    /// The most bytes an operator may give a workspace.
    WORKSPACE_BYTES_MAX: u64 = 1 << 44;
    /// Milliseconds between two removals of audit entries by their age.
    AUDIT_REMOVE_EVERY_MS: u64 = 3_600_000;
    /// Bytes the audit may take unless the operator says otherwise.
    AUDIT_BYTES_DEFAULT: u64 = 4 << 30;
    /// Bytes an operator must leave the audit.
    AUDIT_BYTES_MIN: u64 = 1 << 20;
    /// Bytes an operator may give the audit.
    AUDIT_BYTES_MAX: u64 = 1 << 44;
    /// Days an operator may ask for; a hundred years.
    AUDIT_KEEP_DAYS_MAX: u64 = 36_500;
    /// The sentence of a notice in the audit, in characters.
    NOTICE_MESSAGE_CHARS_MAX: usize = 4_000;
    /// Any other text of a notice, in characters.
    NOTICE_WORDS_CHARS_MAX: usize = 400;
    /// Details of one notice.
    NOTICE_DETAILS_MAX: usize = 100;
    /// The name of a log or witness, in bytes.
    LOG_NAME_BYTES_MAX: usize = 255;
    /// A signed note, in bytes.
    NOTE_BYTES_MAX: usize = 1024 * 1024;
    /// Hashes of one proof.
    PROOF_HASHES_MAX: usize = 64;
    /// Heads of other logs in one anchor.
    ANCHOR_HEADS_MAX: usize = 64;
    /// One head of another log in an anchor, in bytes.
    ANCHOR_NOTE_BYTES_MAX: usize = 8 * 1024;
    /// How long a head of another log may wait for an anchor if it grew by one record, in
    /// milliseconds.
    ANCHOR_IDLE_MS_MAX: u64 = 300_000;
    /// Seconds between two anchors unless the operator says otherwise.
    ANCHOR_SECONDS_DEFAULT: u64 = 10;
    /// Seconds an operator may put between two anchors.
    ANCHOR_SECONDS_MAX: u64 = 3_600;
    /// Records after which heads are anchored at once unless the operator says otherwise.
    ANCHOR_RECORDS_DEFAULT: u64 = 1_000;
    /// Records an operator may put between two anchors.
    ANCHOR_RECORDS_MAX: u64 = 1_000_000;
    /// Other nodes whose logs a node anchors.
    PEERS_MAX: usize = 64;
    /// Signatures of one note.
    NOTE_SIGNATURES_MAX: usize = 64;
    /// Files of rules in the folder `rules`.
    RULE_FILES_MAX: usize = 100;
    /// All files of rules together, in bytes.
    RULE_FILES_BYTES_MAX: usize = 4 * 1024 * 1024;
    /// Events kept in the record of one call; the rest are counted.
    CALL_EVENTS_MAX: usize = 1_000;
    /// Worker processes unless the operator says otherwise.
    WORKERS_DEFAULT: u64 = 2;
    /// Worker processes an operator may ask for.
    WORKERS_MAX: u64 = 256;
    /// Connections to a shared store.
    STORE_CONNECTIONS_DEFAULT: u64 = 16;
    /// Connections to a shared store that an operator may allow.
    STORE_CONNECTIONS_MAX: u64 = 200;
    /// Tools one query finds by default.
    SEARCH_TOP_DEFAULT: u64 = 10;
    /// Tools one query finds.
    SEARCH_TOP_MAX: u64 = 50;
    /// Tools described at one time.
    DESCRIBE_NAMES_MAX: usize = 50;
    /// Examples in the description of a tool.
    DESCRIBE_EXAMPLES_MAX: usize = 5;
    /// The schema of a tool's result, in bytes.
    OUTPUT_SCHEMA_BYTES_MAX: usize = 8 << 10;
    /// The schema of a tool's result, in levels of JSON.
    OUTPUT_SCHEMA_DEPTH_MAX: usize = 32;
    /// An example of a tool's author, in characters.
    EXAMPLE_CHARS_MAX: usize = 4_096;
    /// Tokens of one page of the list of tools, by `progressive::tokens`.
    LIST_TOKENS_MAX: usize = 3_000;
    /// Tokens of all cards and resources one caller has loaded.
    LOADED_TOKENS_MAX: usize = 15_000;
    /// Callers whose loaded tools are remembered.
    PROGRESSIVE_CALLERS_MAX: usize = 1_024;
    /// Resources of one document.
    RESOURCES_MAX: usize = 16;
    /// The text of one resource, in bytes.
    RESOURCE_BYTES_MAX: usize = 48 << 10;
    /// Milliseconds between two moments at which the answer to a call of an unknown tool leaves.
    UNKNOWN_STEP_MS: u64 = 2;
    /// Connections at one time unless the operator says otherwise.
    SERVE_CONNECTIONS_DEFAULT: u64 = 1_024;
    /// Sessions at one time unless the operator says otherwise.
    SERVE_SESSIONS_DEFAULT: u64 = 1_024;
    /// Sessions of one caller at one time unless the operator says otherwise.
    SERVE_SESSIONS_PER_CALLER_DEFAULT: u64 = 128;
    /// Streams that wait for changes at one time unless the operator says otherwise.
    SERVE_LISTENERS_DEFAULT: u64 = 256;
    /// Calls of one caller at one time unless the operator says otherwise.
    SERVE_CALLS_PER_CALLER_DEFAULT: u64 = 64;
    /// Calls of one caller in a minute unless the operator says otherwise.
    SERVE_CALLS_PER_MINUTE_DEFAULT: u64 = 6_000;
    /// The most of any of these an operator may ask for.
    SERVE_COUNT_MAX: u64 = 10_000_000;
    /// Bytes of one request unless the operator says otherwise.
    SERVE_BODY_BYTES_DEFAULT: u64 = 2 << 20;
    /// Bytes an operator must leave a request.
    SERVE_BODY_BYTES_MIN: u64 = 1 << 10;
    /// Bytes an operator may give a request.
    SERVE_BODY_BYTES_MAX: u64 = 64 << 20;
    /// Seconds one call may take at a door unless the operator says otherwise.
    SERVE_CALL_SECONDS_DEFAULT: u64 = 300;
    /// Seconds an operator may give a call at a door.
    SERVE_CALL_SECONDS_MAX: u64 = 86_400;
    /// Seconds a call waits for a person unless the operator says otherwise.
    APPROVAL_WAIT_SECONDS_DEFAULT: u64 = 45;
    /// Seconds a question can be answered unless the operator says otherwise.
    APPROVAL_EXPIRE_SECONDS_DEFAULT: u64 = 600;
    /// Seconds an operator may give a person.
    APPROVAL_SECONDS_MAX: u64 = 86_400;
    /// Seconds an approval of the same arguments is valid.
    APPROVAL_SAME_ARGUMENTS_SECONDS: u64 = 3_600;
    /// Seconds an approval of a session is valid at most.
    APPROVAL_SESSION_SECONDS: u64 = 86_400;
    /// Seconds an approval until the tool changes is valid at most.
    APPROVAL_UNTIL_CHANGED_SECONDS: u64 = 30 * 86_400;
    /// Questions of one caller that may wait for an answer.
    APPROVALS_PENDING_PER_CALLER_MAX: u64 = 64;
    /// Questions of all callers that may wait for an answer.
    APPROVALS_PENDING_MAX: u64 = 1_024;
    /// Questions kept after they were answered or expired; the audit keeps the rest.
    APPROVALS_KEPT_MAX: u64 = 10_000;
    /// Milliseconds until a waiting call looks again whether another process answered.
    APPROVAL_LOOK_MS: u64 = 100;
    /// Milliseconds of a call's deadline kept for reporting that no answer came.
    APPROVAL_REPLY_MS: u64 = 250;
    /// Milliseconds a person needs at least to answer a question, however short it is.
    APPROVAL_READ_MS_MIN: u64 = 400;
    /// Places of changed arguments that are named.
    ARGUMENT_CHANGES_MAX: usize = 200;
    /// Characters of a question a person reads in a second at most, on top of that. People
    /// who skim take in a tenth of it.
    APPROVAL_READ_CHARS_PER_SECOND: u64 = 500;
    /// Milliseconds after which an answer is never too fast, however long the question.
    APPROVAL_READ_MS_MAX: u64 = 3_000;
    /// Characters of the reason for a question.
    APPROVAL_WHY_CHARS_MAX: usize = 600;
    /// Characters of the arguments a question shows; the middle is left out.
    APPROVAL_ARGUMENTS_CHARS_MAX: usize = 400;
    /// Characters of the arguments the inbox keeps of a question that is over; the middle
    /// is left out. While a question waits, all of them are kept, to be read before a yes.
    APPROVAL_KEPT_CHARS_MAX: usize = 8_000;
    /// Bytes of the arguments of all questions of one caller that wait for an answer.
    APPROVALS_WAITING_BYTES_PER_CALLER_MAX: u64 = 16 * 1024 * 1024;
    /// Bytes of the arguments of all questions that wait for an answer.
    APPROVALS_WAITING_BYTES_MAX: u64 = 128 * 1024 * 1024;
    /// Characters of a question in words.
    APPROVAL_PROMPT_CHARS_MAX: usize = 2_000;
    /// Reasons of a risk level that a question keeps.
    APPROVAL_REASONS_MAX: usize = 16;
    /// Characters of a person's note to an answer.
    APPROVAL_NOTE_CHARS_MAX: usize = 500;
    /// Bytes of the journal of a script that waits for a person.
    SCRIPT_JOURNAL_BYTES_MAX: usize = 4 << 20;
    /// Scripts of one caller that may wait for a person.
    SCRIPT_JOURNALS_PER_CALLER_MAX: i64 = 64;
    /// Scripts of all callers that may wait for a person.
    SCRIPT_JOURNALS_MAX: i64 = 256;
    /// Characters of a script, at most; the guard's preset allows less.
    SCRIPT_CHARS_MAX: usize = 102_400;
    /// Names on the list of tools a script may call.
    SCRIPT_ALLOWED_TOOLS_MAX: usize = 256;
    /// Spaces of tools one script may use.
    SCRIPT_SPACES_MAX: usize = 64;
    /// Tools of one script that run at one time.
    SCRIPT_TOOLS_AT_ONCE_MAX: usize = 20;
    /// Scripts that run at one time, where workers are shared.
    SCRIPTS_AT_ONCE_MAX: usize = 128;
    /// Milliseconds a script waits for its turn.
    SCRIPT_WAIT_MS_MAX: u64 = 10_000;
    /// Characters of the message of a failed tool, as its script reads it.
    SCRIPT_MESSAGE_CHARS_MAX: usize = 1_000;
    /// Characters of a tool's message about wrong arguments, as its script reads it.
    SCRIPT_VALIDATION_CHARS_MAX: usize = 200;
    /// A rule's condition, in bytes.
    CONDITION_BYTES_MAX: usize = 4_096;
    /// Words and marks of a condition.
    CONDITION_WORDS_MAX: usize = 512;
    /// Nesting of a condition, and operations in a row.
    CONDITION_DEPTH_MAX: usize = 32;
    /// Steps a condition may take for one call.
    CONDITION_STEPS_MAX: usize = 10_000;
    /// Bytes of text that cost a condition one step.
    CONDITION_TEXT_BYTES_PER_STEP: usize = 256;
    /// Bytes of text that cost one step in `matches`.
    CONDITION_PATTERN_BYTES_PER_STEP: usize = 64;
    /// A compiled pattern of `matches`, in bytes.
    CONDITION_PATTERN_BYTES_MAX: usize = 256 << 10;
    /// Rules of an operator.
    RULES_MAX: usize = 1_000;
    /// Names on one list of a rule.
    RULE_LIST_MAX: usize = 256;
    /// Names of one kind that settings may use before they exist.
    EXPECTED_NAMES_MAX: usize = 256;
    /// Action types an operator may register.
    ACTIONS_CUSTOM_MAX: usize = 256;
    /// Action types a document may declare.
    ACTIONS_DECLARED_MAX: usize = 16;
    /// Limits on calls an operator may set.
    CALL_LIMITS_MAX: usize = 256;
    /// The most any limit on calls may allow.
    CALL_LIMIT_MAX: u64 = 1_000_000_000;
    /// Patterns of tools an operator may set a cost for.
    CALL_COSTS_MAX: usize = 256;
    /// Units of a day that one call may cost.
    CALL_COST_UNITS_MAX: u64 = 1_000_000;
    /// Callers and limits counted at one time.
    METER_TALLIES_MAX: usize = 10_000;
    /// Denials in a row after which a caller is paused.
    DENIALS_IN_A_ROW_MAX: u32 = 3;
    /// Denials in all after which a caller is paused.
    DENIALS_IN_ALL_MAX: u32 = 20;
    /// Records trust looks back on for one caller.
    TRUST_RECORDS_MAX: usize = 10_000;
    /// Older errors and denials that trust looks back on as well.
    TRUST_OLDER_ERRORS_MAX: usize = 1_000;
    /// Ratings kept about one caller.
    TRUST_FEEDBACK_MAX: usize = 1_000;
    /// Calls of one caller after which trust is recomputed.
    TRUST_CALLS: u64 = 20;
    /// The weight of a failed call in that count.
    TRUST_CALLS_OF_AN_ERROR: u64 = 10;
    /// Seconds after which trust is recomputed before a call.
    TRUST_SECONDS: u64 = 3_600;
    /// Days of absence for which trust is recomputed, one by one.
    TRUST_ABSENT_DAYS_MAX: u32 = 400;
    /// Days a question about raising a level waits, and a no to it is valid.
    TRUST_QUESTION_DAYS: u32 = 30;
    /// Callers with a record.
    CALLERS_MAX: u64 = 10_000;
    /// Calls of one batch.
    CALLS_TOGETHER_MAX: usize = 64;
    /// Of these, calls that run at one time.
    CALLS_AT_ONCE_MAX: usize = 8;
    /// `[[server]]` sections.
    SERVERS_MAX: usize = 256;
    /// The name of a server, in characters.
    SERVER_NAME_CHARS_MAX: usize = 24;
    /// A description that the operator writes for a server's tool, in characters.
    SERVER_DESCRIPTION_CHARS_MAX: usize = 4_096;
    /// A client id or a scope of a sign-in, in bytes.
    SERVER_OAUTH_WORD_BYTES_MAX: usize = 512;
    /// `start_timeout_ms` or `call_timeout_ms` of a server, in milliseconds.
    SERVER_TIMEOUT_MS_MAX: u64 = 3_600_000;
    /// `start_timeout_ms` when nothing is set.
    SERVER_START_TIMEOUT_MS_DEFAULT: u64 = 60_000;
    /// `call_timeout_ms` when nothing is set.
    SERVER_CALL_TIMEOUT_MS_DEFAULT: u64 = 120_000;
    /// `idle_seconds` of a server.
    SERVER_IDLE_SECONDS_MAX: u64 = 604_800;
    /// `idle_seconds` when nothing is set.
    SERVER_IDLE_SECONDS_DEFAULT: u64 = 600;
    /// A SQL statement, in bytes.
    SQL_STATEMENT_BYTES_MAX: usize = 64 << 10;
    /// Words and marks of a SQL statement that is read, values, commas and brackets apart; a
    /// longer one counts as the worst.
    SQL_WORDS_MAX: usize = 600;
    /// Words and marks of a SQL statement that is read, with all of these.
    SQL_TOKENS_MAX: usize = 30_000;
    /// Nesting of a SQL statement that is read.
    SQL_DEPTH_MAX: usize = 40;
    /// `[connections.NAME]` sections.
    CONNECTIONS_MAX: usize = 256;
    /// The database, the user or the schema of a connection, in bytes.
    CONNECTION_TEXT_BYTES_MAX: usize = 63;
    /// Seconds of one call of a native tool.
    TOOLBOX_SECONDS_MAX: u64 = 600;
    /// Bytes of memory of one process of a native tool, at least.
    TOOLBOX_MEMORY_BYTES_MIN: u64 = 64 << 20;
    /// Bytes of memory of one process of a native tool when nothing is set.
    TOOLBOX_MEMORY_BYTES_DEFAULT: u64 = 2 << 30;
    /// Bytes of memory of one process of a native tool.
    TOOLBOX_MEMORY_BYTES_MAX: u64 = 64 << 30;
    /// Processes and threads of one call of a native tool when nothing is set.
    TOOLBOX_PROCESSES_DEFAULT: u64 = 128;
    /// Processes and threads of one call of a native tool.
    TOOLBOX_PROCESSES_MAX: u64 = 4_096;
    /// Bytes of one file that a process of a native tool writes when nothing is set.
    TOOLBOX_FILE_BYTES_DEFAULT: u64 = 256 << 20;
    /// Bytes of one file that a process of a native tool writes.
    TOOLBOX_FILE_BYTES_MAX: u64 = 64 << 30;
    /// Bytes of output that a native tool keeps of each stream when nothing is set. A result
    /// has them twice, as text and as structure, and some clients take no more than 1 MiB.
    TOOLBOX_OUTPUT_BYTES_DEFAULT: u64 = 256 << 10;
    /// Bytes of output that a native tool keeps of each stream.
    TOOLBOX_OUTPUT_BYTES_MAX: u64 = 4 << 20;
    /// Bytes one call of a native tool exchanges with hosts when nothing is set.
    TOOLBOX_NETWORK_BYTES_DEFAULT: u64 = 512 << 20;
    /// Bytes one call of a native tool exchanges with hosts.
    TOOLBOX_NETWORK_BYTES_MAX: u64 = 64 << 30;
    /// Background jobs of one caller that run at one time when nothing is set.
    TOOLBOX_JOBS_PER_CALLER_DEFAULT: u64 = 4;
    /// Background jobs of one caller that run at one time.
    TOOLBOX_JOBS_PER_CALLER_MAX: u64 = 64;
    /// Seconds of one background job when nothing is set.
    TOOLBOX_JOB_SECONDS_DEFAULT: u64 = 3_600;
    /// Seconds of one background job.
    TOOLBOX_JOB_SECONDS_MAX: u64 = 86_400;
}
