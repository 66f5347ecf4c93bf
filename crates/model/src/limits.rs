//! Every bound of this crate, named, in one place.
//!
//! A bound that is not here does not exist; the reference page is generated
//! from `ALL`, so it cannot forget one.

/// A whole file of documents, in bytes.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Documents in one file.
pub const FILE_DOCUMENTS_MAX: usize = 10_000;
/// Nesting of arrays and objects in a document.
pub const DOCUMENT_DEPTH_MAX: usize = 64;
/// Findings kept for one document; the rest are counted.
pub const DOCUMENT_FINDINGS_MAX: usize = 200;
/// `name`, in characters.
pub const NAME_CHARS_MAX: usize = 256;
/// `description`, of a tool or of a param, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 65_536;
/// `code`, in characters.
pub const CODE_CHARS_MAX: usize = 1_048_576;
/// `testValue`, or the value of a static variable, in characters.
pub const VALUE_CHARS_MAX: usize = 65_536;
/// `promptTemplate`, in characters.
pub const PROMPT_CHARS_MAX: usize = 4_096;
/// Any other string of a document, in characters.
pub const WORD_CHARS_MAX: usize = 1_024;
/// `tags` of one document.
pub const TAGS_MAX: usize = 2;
/// `params` of one document.
pub const PARAMS_MAX: usize = 128;
/// `staticVariables` of one document.
pub const STATIC_VARIABLES_MAX: usize = 128;
/// Hosts or classes in one list of a document.
pub const LIST_ITEMS_MAX: usize = 1_024;
/// A timestamp, in milliseconds: the largest integer every reader keeps exact.
pub const TIMESTAMP_MS_MAX: u64 = 9_007_199_254_740_991;
/// The arguments of one call as JSON, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;
/// Nesting of the arguments of one call.
pub const ARGUMENTS_DEPTH_MAX: usize = 32;
/// The largest integer argument, either sign: beyond it JavaScript is not exact.
pub const INTEGER_ARGUMENT_MAX: i64 = 9_007_199_254_740_991;
/// Profiles in one `extends` chain.
pub const PROFILE_DEPTH_MAX: usize = 8;
/// A secret shorter than this, in characters, is never masked.
pub const SECRET_CHARS_MIN: usize = 4;
/// One resolved secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 65_536;
/// All secrets of one call, in bytes. Looking for one byte takes up to a kilobyte.
pub const SECRETS_OF_CALL_BYTES_MAX: usize = 131_072;
/// An operator's file, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1024 * 1024;
/// Statements a tool may run unless the operator says otherwise.
pub const STATEMENTS_DEFAULT: u64 = 500_000;
/// Milliseconds a tool may take unless the operator says otherwise.
pub const TIMEOUT_MS_DEFAULT: u64 = 30_000;
/// The longest time an operator may grant, in milliseconds.
pub const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// The most statements an operator may grant.
pub const STATEMENTS_MAX: u64 = 1_000_000_000;
/// Bytes of a workspace unless the operator says otherwise.
pub const WORKSPACE_BYTES_DEFAULT: u64 = 1 << 30;
/// The fewest bytes an operator may leave a workspace.
pub const WORKSPACE_BYTES_MIN: u64 = 1 << 20;
/// The most bytes an operator may give a workspace.
pub const WORKSPACE_BYTES_MAX: u64 = 1 << 44;
/// Milliseconds between two removals of audit entries by their age.
pub const AUDIT_REMOVE_EVERY_MS: u64 = 3_600_000;
/// Bytes the audit may take unless the operator says otherwise.
pub const AUDIT_BYTES_DEFAULT: u64 = 4 << 30;
/// Bytes an operator must leave the audit.
pub const AUDIT_BYTES_MIN: u64 = 1 << 20;
/// Bytes an operator may give the audit.
pub const AUDIT_BYTES_MAX: u64 = 1 << 44;
/// Days an operator may ask for; a hundred years.
pub const AUDIT_KEEP_DAYS_MAX: u64 = 36_500;
/// The sentence of a notice in the audit, in characters.
pub const NOTICE_MESSAGE_CHARS_MAX: usize = 4_000;
/// Any other text of a notice, in characters.
pub const NOTICE_WORDS_CHARS_MAX: usize = 400;
/// Details of one notice.
pub const NOTICE_DETAILS_MAX: usize = 100;
/// Files of rules in the folder `rules`.
pub const RULE_FILES_MAX: usize = 100;
/// All files of rules together, in bytes.
pub const RULE_FILES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Events kept in the record of one call; the rest are counted.
pub const CALL_EVENTS_MAX: usize = 1_000;
/// Worker processes unless the operator says otherwise.
pub const WORKERS_DEFAULT: u64 = 2;
/// Worker processes an operator may ask for.
pub const WORKERS_MAX: u64 = 256;

/// Queries of one search.
pub const SEARCH_QUERIES_MAX: usize = 10;
/// One query, in characters, at least.
pub const SEARCH_QUERY_CHARS_MIN: usize = 2;
/// One query, in characters.
pub const SEARCH_QUERY_CHARS_MAX: usize = 256;
/// Words of one query that are looked for.
pub const SEARCH_QUERY_WORDS_MAX: usize = 64;
/// Tools one query finds unless somebody says otherwise.
pub const SEARCH_TOP_DEFAULT: u64 = 10;
/// Tools one query finds.
pub const SEARCH_TOP_MAX: u64 = 50;
/// Tools a search leaves out by name.
pub const SEARCH_EXCLUDED_MAX: usize = 50;
/// Apps a search keeps to.
pub const SEARCH_APPS_MAX: usize = 10;
/// One word of the index, in characters; the rest of it does not count.
pub const SEARCH_WORD_CHARS_MAX: usize = 64;
/// Words of one field of a document that are found; the rest are not.
pub const SEARCH_FIELD_WORDS_MAX: usize = 2_048;
/// Tools described at one time.
pub const DESCRIBE_NAMES_MAX: usize = 50;
/// Examples in the description of a tool.
pub const DESCRIBE_EXAMPLES_MAX: usize = 5;
/// What a document says it gives back, in bytes.
pub const OUTPUT_SCHEMA_BYTES_MAX: usize = 8 << 10;
/// What a document says it gives back, in levels of JSON.
pub const OUTPUT_SCHEMA_DEPTH_MAX: usize = 32;
/// An example of a tool's author, in characters.
pub const EXAMPLE_CHARS_MAX: usize = 4_096;
/// Tokens of one page of the list of tools, by `disclosure::tokens`.
pub const LIST_TOKENS_MAX: usize = 3_000;
/// Tokens of all cards and resources one caller has loaded.
pub const LOADED_TOKENS_MAX: usize = 15_000;
/// Callers of whom it is remembered what they loaded.
pub const DISCLOSURE_CALLERS_MAX: usize = 1_024;
/// Resources of one document.
pub const RESOURCES_MAX: usize = 16;
/// The text of one resource, in bytes.
pub const RESOURCE_BYTES_MAX: usize = 48 << 10;

/// Milliseconds between two moments at which the answer to a call of an unknown tool leaves.
pub const UNKNOWN_STEP_MS: u64 = 2;
/// Connections at one time unless the operator says otherwise.
pub const SERVE_CONNECTIONS_DEFAULT: u64 = 1_024;
/// Sessions at one time unless the operator says otherwise.
pub const SERVE_SESSIONS_DEFAULT: u64 = 1_024;
/// Sessions of one caller at one time unless the operator says otherwise.
pub const SERVE_SESSIONS_PER_CALLER_DEFAULT: u64 = 128;
/// Streams that wait for news at one time unless the operator says otherwise.
pub const SERVE_LISTENERS_DEFAULT: u64 = 256;
/// Calls of one caller at one time unless the operator says otherwise.
pub const SERVE_CALLS_PER_CALLER_DEFAULT: u64 = 64;
/// Calls of one caller in a minute unless the operator says otherwise.
pub const SERVE_CALLS_PER_MINUTE_DEFAULT: u64 = 6_000;
/// The most of any of these an operator may ask for.
pub const SERVE_COUNT_MAX: u64 = 10_000_000;
/// Bytes of one request unless the operator says otherwise.
pub const SERVE_BODY_BYTES_DEFAULT: u64 = 2 << 20;
/// Bytes an operator must leave a request.
pub const SERVE_BODY_BYTES_MIN: u64 = 1 << 10;
/// Bytes an operator may give a request.
pub const SERVE_BODY_BYTES_MAX: u64 = 64 << 20;
/// Seconds one call may take at a door unless the operator says otherwise.
pub const SERVE_CALL_SECONDS_DEFAULT: u64 = 300;
/// Seconds an operator may give a call at a door.
pub const SERVE_CALL_SECONDS_MAX: u64 = 86_400;
/// Seconds a call waits for a person unless the operator says otherwise.
pub const APPROVAL_WAIT_SECONDS_DEFAULT: u64 = 45;
/// Seconds a question can be answered unless the operator says otherwise.
pub const APPROVAL_EXPIRE_SECONDS_DEFAULT: u64 = 600;
/// Seconds an operator may give a person.
pub const APPROVAL_SECONDS_MAX: u64 = 86_400;

/// Seconds an approval of the same arguments counts.
pub const APPROVAL_SAME_ARGUMENTS_SECONDS: u64 = 3_600;
/// Seconds an approval of a session counts at most.
pub const APPROVAL_SESSION_SECONDS: u64 = 86_400;
/// Seconds an approval until the tool changes counts at most.
pub const APPROVAL_UNTIL_CHANGED_SECONDS: u64 = 30 * 86_400;
/// Questions of one caller that may wait for an answer.
pub const APPROVALS_PENDING_PER_CALLER_MAX: u64 = 64;
/// Questions of all callers that may wait for an answer.
pub const APPROVALS_PENDING_MAX: u64 = 1_024;
/// Questions kept after they were answered or expired; the audit keeps the rest.
pub const APPROVALS_KEPT_MAX: u64 = 10_000;
/// Milliseconds until a waiting call looks again whether another process answered.
pub const APPROVAL_LOOK_MS: u64 = 100;
/// Milliseconds of a call's deadline kept for saying that nobody answered.
pub const APPROVAL_REPLY_MS: u64 = 250;
/// Milliseconds nobody answers a question within, however short it is.
pub const APPROVAL_READ_MS_MIN: u64 = 400;
/// Characters of a question nobody reads in less than a second, on top of that. People
/// who skim take in a tenth of it.
pub const APPROVAL_READ_CHARS_PER_SECOND: u64 = 500;
/// Milliseconds after which an answer is never too fast, however long the question.
pub const APPROVAL_READ_MS_MAX: u64 = 3_000;
/// Characters of why a question is asked.
pub const APPROVAL_WHY_CHARS_MAX: usize = 600;
/// Characters of the arguments a question shows; the middle is left out.
pub const APPROVAL_ARGUMENTS_CHARS_MAX: usize = 400;
/// Characters of the arguments the inbox keeps of a question that is over; the middle
/// is left out. While a question waits, all of them are kept, to be read before a yes.
pub const APPROVAL_KEPT_CHARS_MAX: usize = 8_000;
/// Bytes of the arguments of all questions of one caller that wait for an answer.
pub const APPROVALS_WAITING_BYTES_PER_CALLER_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of the arguments of all questions that wait for an answer.
pub const APPROVALS_WAITING_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Characters of a question in words.
pub const APPROVAL_PROMPT_CHARS_MAX: usize = 2_000;
/// Reasons of a badge a question keeps.
pub const APPROVAL_REASONS_MAX: usize = 16;
/// Characters of what a person adds to an answer.
pub const APPROVAL_NOTE_CHARS_MAX: usize = 500;
/// Bytes of what is kept of a script that waits for a person.
pub const SCRIPT_JOURNAL_BYTES_MAX: usize = 4 << 20;
/// Scripts of one caller that may wait for a person.
pub const SCRIPT_JOURNALS_PER_CALLER_MAX: i64 = 64;
/// Scripts of all callers that may wait for a person.
pub const SCRIPT_JOURNALS_MAX: i64 = 256;
/// Characters of a script, at most; the guard's preset allows less.
pub const SCRIPT_CHARS_MAX: usize = 102_400;
/// Names on the list of tools a script may call.
pub const SCRIPT_ALLOWED_TOOLS_MAX: usize = 256;
/// Spaces of tools one script may use.
pub const SCRIPT_SPACES_MAX: usize = 64;
/// Tools of one script that run at one time.
pub const SCRIPT_TOOLS_AT_ONCE_MAX: usize = 20;
/// Scripts that run at one time, where workers are shared.
pub const SCRIPTS_AT_ONCE_MAX: usize = 128;
/// Milliseconds a script waits for its turn.
pub const SCRIPT_WAIT_MS_MAX: u64 = 10_000;
/// Characters of the message of a failed tool, as its script reads it.
pub const SCRIPT_MESSAGE_CHARS_MAX: usize = 1_000;
/// Characters of what a tool says about wrong arguments, as its script reads it.
pub const SCRIPT_VALIDATION_CHARS_MAX: usize = 200;
/// A rule's condition, in bytes.
pub const CONDITION_BYTES_MAX: usize = 4_096;
/// Words and marks of a condition.
pub const CONDITION_WORDS_MAX: usize = 512;
/// Nesting of a condition, and operations in a row.
pub const CONDITION_DEPTH_MAX: usize = 32;
/// Steps a condition may take for one call.
pub const CONDITION_STEPS_MAX: usize = 10_000;
/// Bytes of text that cost a condition one step.
pub const CONDITION_TEXT_BYTES_PER_STEP: usize = 256;
/// Bytes of text that cost one step in `matches`.
pub const CONDITION_PATTERN_BYTES_PER_STEP: usize = 64;
/// A compiled pattern of `matches`, in bytes.
pub const CONDITION_PATTERN_BYTES_MAX: usize = 256 << 10;
/// Rules of an operator.
pub const RULES_MAX: usize = 1_000;
/// Names on one list of a rule.
pub const RULE_LIST_MAX: usize = 256;
/// Names of one kind that settings may expect before they are there.
pub const EXPECTED_NAMES_MAX: usize = 256;
/// Action types an operator may register.
pub const ACTIONS_CUSTOM_MAX: usize = 256;
/// Action types a document may declare.
pub const ACTIONS_DECLARED_MAX: usize = 16;
/// Limits on calls an operator may set.
pub const CALL_LIMITS_MAX: usize = 256;
/// The most any limit on calls may allow.
pub const CALL_LIMIT_MAX: u64 = 1_000_000_000;
/// Patterns of tools an operator may set a cost for.
pub const CALL_COSTS_MAX: usize = 256;
/// Units of a day that one call may cost.
pub const CALL_COST_UNITS_MAX: u64 = 1_000_000;
/// Callers and limits counted at one time.
pub const METER_TALLIES_MAX: usize = 10_000;
/// Denials in a row after which a caller is paused.
pub const DENIALS_IN_A_ROW_MAX: u32 = 3;
/// Denials in all after which a caller is paused.
pub const DENIALS_IN_ALL_MAX: u32 = 20;
/// Records trust looks back on for one caller.
pub const TRUST_RECORDS_MAX: usize = 10_000;
/// Errors and denials it looks back on besides, where these are older.
pub const TRUST_OLDER_ERRORS_MAX: usize = 1_000;
/// What people said that is kept about one caller.
pub const TRUST_FEEDBACK_MAX: usize = 1_000;
/// Calls of one caller after which trust is reckoned again.
pub const TRUST_CALLS: u64 = 20;
/// As many calls one that went wrong counts for in that.
pub const TRUST_CALLS_OF_AN_ERROR: u64 = 10;
/// Seconds after which trust is reckoned again before a call.
pub const TRUST_SECONDS: u64 = 3_600;
/// Days of absence trust is reckoned through, one by one.
pub const TRUST_ABSENT_DAYS_MAX: u32 = 400;
/// Days a question whether to raise a level waits, and a no to it counts.
pub const TRUST_QUESTION_DAYS: u32 = 30;
/// Callers of whom something is remembered.
pub const CALLERS_MAX: u64 = 10_000;
/// Calls that may be made together.
pub const CALLS_TOGETHER_MAX: usize = 64;
/// Of these, calls that run at one time.
pub const CALLS_AT_ONCE_MAX: usize = 8;

mod page;

pub use page::{ALL, Limit, page};
