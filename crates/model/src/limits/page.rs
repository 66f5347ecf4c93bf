//! The limits as a page people read.

use std::fmt::Write as _;

use super::*;

/// One line of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The constant's name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What it bounds.
    pub what: &'static str,
}

const fn limit(name: &'static str, value: u64, what: &'static str) -> Limit {
    Limit { name, value, what }
}

/// All of them, in the order of this file.
pub const ALL: &[Limit] = &[
    limit(
        "FILE_BYTES_MAX",
        FILE_BYTES_MAX as u64,
        "bytes of a file of documents",
    ),
    limit(
        "FILE_DOCUMENTS_MAX",
        FILE_DOCUMENTS_MAX as u64,
        "documents in one file",
    ),
    limit(
        "DOCUMENT_DEPTH_MAX",
        DOCUMENT_DEPTH_MAX as u64,
        "nesting of a document",
    ),
    limit(
        "DOCUMENT_FINDINGS_MAX",
        DOCUMENT_FINDINGS_MAX as u64,
        "findings shown for one document",
    ),
    limit(
        "NAME_CHARS_MAX",
        NAME_CHARS_MAX as u64,
        "characters of `name`",
    ),
    limit(
        "DESCRIPTION_CHARS_MAX",
        DESCRIPTION_CHARS_MAX as u64,
        "characters of a `description`",
    ),
    limit(
        "CODE_CHARS_MAX",
        CODE_CHARS_MAX as u64,
        "characters of `code`",
    ),
    limit(
        "VALUE_CHARS_MAX",
        VALUE_CHARS_MAX as u64,
        "characters of a test or static value",
    ),
    limit(
        "PROMPT_CHARS_MAX",
        PROMPT_CHARS_MAX as u64,
        "characters of `promptTemplate`",
    ),
    limit(
        "WORD_CHARS_MAX",
        WORD_CHARS_MAX as u64,
        "characters of any other string",
    ),
    limit("TAGS_MAX", TAGS_MAX as u64, "tags of one document"),
    limit("PARAMS_MAX", PARAMS_MAX as u64, "params of one document"),
    limit(
        "STATIC_VARIABLES_MAX",
        STATIC_VARIABLES_MAX as u64,
        "static variables of one document",
    ),
    limit(
        "LIST_ITEMS_MAX",
        LIST_ITEMS_MAX as u64,
        "hosts or classes in one list",
    ),
    limit(
        "TIMESTAMP_MS_MAX",
        TIMESTAMP_MS_MAX,
        "milliseconds of a timestamp",
    ),
    limit(
        "ARGUMENTS_BYTES_MAX",
        ARGUMENTS_BYTES_MAX as u64,
        "bytes of one call's arguments",
    ),
    limit(
        "ARGUMENTS_DEPTH_MAX",
        ARGUMENTS_DEPTH_MAX as u64,
        "nesting of one call's arguments",
    ),
    limit(
        "INTEGER_ARGUMENT_MAX",
        INTEGER_ARGUMENT_MAX.unsigned_abs(),
        "an integer argument",
    ),
    limit(
        "PROFILE_DEPTH_MAX",
        PROFILE_DEPTH_MAX as u64,
        "profiles in one `extends` chain",
    ),
    limit(
        "SECRET_CHARS_MIN",
        SECRET_CHARS_MIN as u64,
        "characters from which a secret is masked",
    ),
    limit(
        "SECRET_BYTES_MAX",
        SECRET_BYTES_MAX as u64,
        "bytes of one secret",
    ),
    limit(
        "SECRETS_OF_CALL_BYTES_MAX",
        SECRETS_OF_CALL_BYTES_MAX as u64,
        "bytes of all secrets of one call",
    ),
    limit(
        "CONFIG_BYTES_MAX",
        CONFIG_BYTES_MAX as u64,
        "bytes of an operator's file",
    ),
    limit(
        "STATEMENTS_DEFAULT",
        STATEMENTS_DEFAULT,
        "statements of a tool, by default",
    ),
    limit(
        "TIMEOUT_MS_DEFAULT",
        TIMEOUT_MS_DEFAULT,
        "milliseconds of a tool, by default",
    ),
    limit(
        "TIMEOUT_MS_MAX",
        TIMEOUT_MS_MAX,
        "milliseconds an operator may grant",
    ),
    limit(
        "STATEMENTS_MAX",
        STATEMENTS_MAX,
        "statements an operator may grant",
    ),
    limit(
        "AUDIT_REMOVE_EVERY_MS",
        AUDIT_REMOVE_EVERY_MS,
        "milliseconds between two removals of audit entries by age",
    ),
    limit(
        "AUDIT_BYTES_DEFAULT",
        AUDIT_BYTES_DEFAULT,
        "bytes of the audit unless the operator says otherwise",
    ),
    limit(
        "AUDIT_BYTES_MIN",
        AUDIT_BYTES_MIN,
        "bytes an operator must leave the audit",
    ),
    limit(
        "AUDIT_BYTES_MAX",
        AUDIT_BYTES_MAX,
        "bytes an operator may give the audit",
    ),
    limit(
        "NOTICE_MESSAGE_CHARS_MAX",
        NOTICE_MESSAGE_CHARS_MAX as u64,
        "characters of the sentence of a notice in the audit",
    ),
    limit(
        "NOTICE_WORDS_CHARS_MAX",
        NOTICE_WORDS_CHARS_MAX as u64,
        "characters of any other text of a notice",
    ),
    limit(
        "NOTICE_DETAILS_MAX",
        NOTICE_DETAILS_MAX as u64,
        "details of one notice",
    ),
    limit(
        "RULE_FILES_MAX",
        RULE_FILES_MAX as u64,
        "files in the folder `rules`",
    ),
    limit(
        "RULE_FILES_BYTES_MAX",
        RULE_FILES_BYTES_MAX as u64,
        "bytes of all files of rules together",
    ),
    limit(
        "AUDIT_KEEP_DAYS_MAX",
        AUDIT_KEEP_DAYS_MAX,
        "days an operator may ask the audit to keep",
    ),
    limit(
        "CALL_EVENTS_MAX",
        CALL_EVENTS_MAX as u64,
        "events kept in the record of one call",
    ),
    limit(
        "WORKERS_DEFAULT",
        WORKERS_DEFAULT,
        "worker processes unless the operator says otherwise",
    ),
    limit(
        "WORKERS_MAX",
        WORKERS_MAX,
        "worker processes an operator may ask for",
    ),
    limit(
        "SEARCH_QUERIES_MAX",
        SEARCH_QUERIES_MAX as u64,
        "queries of one search",
    ),
    limit(
        "SEARCH_QUERY_CHARS_MIN",
        SEARCH_QUERY_CHARS_MIN as u64,
        "characters of one query, at least",
    ),
    limit(
        "SEARCH_QUERY_CHARS_MAX",
        SEARCH_QUERY_CHARS_MAX as u64,
        "characters of one query",
    ),
    limit(
        "SEARCH_QUERY_WORDS_MAX",
        SEARCH_QUERY_WORDS_MAX as u64,
        "words of one query that are looked for",
    ),
    limit(
        "SEARCH_TOP_DEFAULT",
        SEARCH_TOP_DEFAULT,
        "tools one query finds, by default",
    ),
    limit("SEARCH_TOP_MAX", SEARCH_TOP_MAX, "tools one query finds"),
    limit(
        "SEARCH_EXCLUDED_MAX",
        SEARCH_EXCLUDED_MAX as u64,
        "tools a search leaves out by name",
    ),
    limit(
        "SEARCH_APPS_MAX",
        SEARCH_APPS_MAX as u64,
        "apps a search keeps to",
    ),
    limit(
        "SEARCH_WORD_CHARS_MAX",
        SEARCH_WORD_CHARS_MAX as u64,
        "characters of a word of the search index",
    ),
    limit(
        "SEARCH_FIELD_WORDS_MAX",
        SEARCH_FIELD_WORDS_MAX as u64,
        "words of one field of a document that can be found",
    ),
    limit(
        "DESCRIBE_NAMES_MAX",
        DESCRIBE_NAMES_MAX as u64,
        "tools described at one time",
    ),
    limit(
        "DESCRIBE_EXAMPLES_MAX",
        DESCRIBE_EXAMPLES_MAX as u64,
        "examples in the description of a tool",
    ),
    limit(
        "OUTPUT_SCHEMA_BYTES_MAX",
        OUTPUT_SCHEMA_BYTES_MAX as u64,
        "bytes of what a document says it gives back",
    ),
    limit(
        "OUTPUT_SCHEMA_DEPTH_MAX",
        OUTPUT_SCHEMA_DEPTH_MAX as u64,
        "levels of JSON in that",
    ),
    limit(
        "EXAMPLE_CHARS_MAX",
        EXAMPLE_CHARS_MAX as u64,
        "characters of an author's example",
    ),
    limit(
        "LIST_TOKENS_MAX",
        LIST_TOKENS_MAX as u64,
        "tokens of one page of the list of tools",
    ),
    limit(
        "LOADED_TOKENS_MAX",
        LOADED_TOKENS_MAX as u64,
        "tokens of all a caller has loaded",
    ),
    limit(
        "DISCLOSURE_CALLERS_MAX",
        DISCLOSURE_CALLERS_MAX as u64,
        "callers of whom it is remembered what they loaded",
    ),
    limit(
        "RESOURCES_MAX",
        RESOURCES_MAX as u64,
        "resources of one document",
    ),
    limit(
        "RESOURCE_BYTES_MAX",
        RESOURCE_BYTES_MAX as u64,
        "bytes of the text of one resource",
    ),
    limit(
        "UNKNOWN_STEP_MS",
        UNKNOWN_STEP_MS,
        "milliseconds between two moments at which the answer to a call of an unknown tool leaves",
    ),
    limit(
        "SERVE_CONNECTIONS_DEFAULT",
        SERVE_CONNECTIONS_DEFAULT,
        "connections at one time, by default",
    ),
    limit(
        "SERVE_SESSIONS_DEFAULT",
        SERVE_SESSIONS_DEFAULT,
        "sessions at one time, by default",
    ),
    limit(
        "SERVE_SESSIONS_PER_CALLER_DEFAULT",
        SERVE_SESSIONS_PER_CALLER_DEFAULT,
        "sessions of one caller at one time, by default",
    ),
    limit(
        "SERVE_LISTENERS_DEFAULT",
        SERVE_LISTENERS_DEFAULT,
        "streams that wait for news, by default",
    ),
    limit(
        "SERVE_CALLS_PER_CALLER_DEFAULT",
        SERVE_CALLS_PER_CALLER_DEFAULT,
        "calls of one caller at one time, by default",
    ),
    limit(
        "SERVE_CALLS_PER_MINUTE_DEFAULT",
        SERVE_CALLS_PER_MINUTE_DEFAULT,
        "calls of one caller in a minute, by default",
    ),
    limit(
        "SERVE_COUNT_MAX",
        SERVE_COUNT_MAX,
        "the most of any of these an operator may ask for",
    ),
    limit(
        "SERVE_BODY_BYTES_DEFAULT",
        SERVE_BODY_BYTES_DEFAULT,
        "bytes of one request, by default",
    ),
    limit(
        "SERVE_BODY_BYTES_MIN",
        SERVE_BODY_BYTES_MIN,
        "bytes an operator must leave a request",
    ),
    limit(
        "SERVE_BODY_BYTES_MAX",
        SERVE_BODY_BYTES_MAX,
        "bytes an operator may give a request",
    ),
    limit(
        "SERVE_CALL_SECONDS_DEFAULT",
        SERVE_CALL_SECONDS_DEFAULT,
        "seconds of one call at a door, by default",
    ),
    limit(
        "SERVE_CALL_SECONDS_MAX",
        SERVE_CALL_SECONDS_MAX,
        "seconds an operator may give a call at a door",
    ),
    limit(
        "APPROVAL_WAIT_SECONDS_DEFAULT",
        APPROVAL_WAIT_SECONDS_DEFAULT,
        "seconds a call waits for a person, by default",
    ),
    limit(
        "APPROVAL_EXPIRE_SECONDS_DEFAULT",
        APPROVAL_EXPIRE_SECONDS_DEFAULT,
        "seconds a question can be answered, by default",
    ),
    limit(
        "APPROVAL_SECONDS_MAX",
        APPROVAL_SECONDS_MAX,
        "seconds an operator may give a person",
    ),
    limit(
        "APPROVAL_SAME_ARGUMENTS_SECONDS",
        APPROVAL_SAME_ARGUMENTS_SECONDS,
        "seconds an approval of the same arguments counts",
    ),
    limit(
        "APPROVAL_SESSION_SECONDS",
        APPROVAL_SESSION_SECONDS,
        "seconds an approval of a session counts at most",
    ),
    limit(
        "APPROVAL_UNTIL_CHANGED_SECONDS",
        APPROVAL_UNTIL_CHANGED_SECONDS,
        "seconds an approval until the tool changes counts at most",
    ),
    limit(
        "APPROVALS_PENDING_PER_CALLER_MAX",
        APPROVALS_PENDING_PER_CALLER_MAX,
        "questions of one caller that may wait for an answer",
    ),
    limit(
        "APPROVALS_PENDING_MAX",
        APPROVALS_PENDING_MAX,
        "questions of all callers that may wait for an answer",
    ),
    limit(
        "APPROVALS_KEPT_MAX",
        APPROVALS_KEPT_MAX,
        "questions kept after they were answered or expired",
    ),
    limit(
        "APPROVALS_WAITING_BYTES_PER_CALLER_MAX",
        APPROVALS_WAITING_BYTES_PER_CALLER_MAX,
        "bytes of arguments in questions of one caller that wait for an answer",
    ),
    limit(
        "APPROVALS_WAITING_BYTES_MAX",
        APPROVALS_WAITING_BYTES_MAX,
        "bytes of arguments in all questions that wait for an answer",
    ),
    limit(
        "APPROVAL_LOOK_MS",
        APPROVAL_LOOK_MS,
        "milliseconds until a waiting call looks for an answer again",
    ),
    limit(
        "APPROVAL_REPLY_MS",
        APPROVAL_REPLY_MS,
        "milliseconds of a deadline kept for saying that nobody answered",
    ),
    limit(
        "APPROVAL_READ_MS_MIN",
        APPROVAL_READ_MS_MIN,
        "milliseconds within which no answer counts, whatever the question",
    ),
    limit(
        "APPROVAL_READ_CHARS_PER_SECOND",
        APPROVAL_READ_CHARS_PER_SECOND,
        "characters of a question that make an answer wait one second longer",
    ),
    limit(
        "APPROVAL_READ_MS_MAX",
        APPROVAL_READ_MS_MAX,
        "milliseconds after which an answer is never too fast",
    ),
    limit(
        "APPROVAL_WHY_CHARS_MAX",
        APPROVAL_WHY_CHARS_MAX as u64,
        "characters of why a question is asked",
    ),
    limit(
        "APPROVAL_ARGUMENTS_CHARS_MAX",
        APPROVAL_ARGUMENTS_CHARS_MAX as u64,
        "characters of the arguments a question shows",
    ),
    limit(
        "APPROVAL_KEPT_CHARS_MAX",
        APPROVAL_KEPT_CHARS_MAX as u64,
        "characters of the arguments the inbox keeps of a question that is over",
    ),
    limit(
        "APPROVAL_PROMPT_CHARS_MAX",
        APPROVAL_PROMPT_CHARS_MAX as u64,
        "characters of a question in words",
    ),
    limit(
        "APPROVAL_REASONS_MAX",
        APPROVAL_REASONS_MAX as u64,
        "reasons of a badge a question keeps",
    ),
    limit(
        "APPROVAL_NOTE_CHARS_MAX",
        APPROVAL_NOTE_CHARS_MAX as u64,
        "characters of what a person adds to an answer",
    ),
    limit(
        "SCRIPT_JOURNAL_BYTES_MAX",
        SCRIPT_JOURNAL_BYTES_MAX as u64,
        "bytes of what is kept of a script that waits for a person",
    ),
    limit(
        "SCRIPT_JOURNALS_PER_CALLER_MAX",
        SCRIPT_JOURNALS_PER_CALLER_MAX.unsigned_abs(),
        "scripts of one caller that may wait for a person",
    ),
    limit(
        "SCRIPT_JOURNALS_MAX",
        SCRIPT_JOURNALS_MAX.unsigned_abs(),
        "scripts of all callers that may wait for a person",
    ),
    limit(
        "SCRIPT_CHARS_MAX",
        SCRIPT_CHARS_MAX as u64,
        "characters of a script",
    ),
    limit(
        "SCRIPT_ALLOWED_TOOLS_MAX",
        SCRIPT_ALLOWED_TOOLS_MAX as u64,
        "names on the list of tools a script may call",
    ),
    limit(
        "SCRIPT_SPACES_MAX",
        SCRIPT_SPACES_MAX as u64,
        "spaces of tools one script may use",
    ),
    limit(
        "SCRIPT_TOOLS_AT_ONCE_MAX",
        SCRIPT_TOOLS_AT_ONCE_MAX as u64,
        "tools of one script that run at one time",
    ),
    limit(
        "SCRIPTS_AT_ONCE_MAX",
        SCRIPTS_AT_ONCE_MAX as u64,
        "scripts that run at one time, where workers are shared",
    ),
    limit(
        "SCRIPT_WAIT_MS_MAX",
        SCRIPT_WAIT_MS_MAX,
        "milliseconds a script waits for its turn",
    ),
    limit(
        "SCRIPT_MESSAGE_CHARS_MAX",
        SCRIPT_MESSAGE_CHARS_MAX as u64,
        "characters of a failed tool's message in a script",
    ),
    limit(
        "SCRIPT_VALIDATION_CHARS_MAX",
        SCRIPT_VALIDATION_CHARS_MAX as u64,
        "characters about wrong arguments in a script",
    ),
    limit(
        "CONDITION_BYTES_MAX",
        CONDITION_BYTES_MAX as u64,
        "bytes of a rule's condition",
    ),
    limit(
        "CONDITION_WORDS_MAX",
        CONDITION_WORDS_MAX as u64,
        "words and marks of a condition",
    ),
    limit(
        "CONDITION_DEPTH_MAX",
        CONDITION_DEPTH_MAX as u64,
        "nesting of a condition",
    ),
    limit(
        "CONDITION_STEPS_MAX",
        CONDITION_STEPS_MAX as u64,
        "steps of a condition for one call",
    ),
    limit(
        "CONDITION_TEXT_BYTES_PER_STEP",
        CONDITION_TEXT_BYTES_PER_STEP as u64,
        "bytes of text that cost one step",
    ),
    limit(
        "CONDITION_PATTERN_BYTES_PER_STEP",
        CONDITION_PATTERN_BYTES_PER_STEP as u64,
        "bytes that cost one step in `matches`",
    ),
    limit(
        "CONDITION_PATTERN_BYTES_MAX",
        CONDITION_PATTERN_BYTES_MAX as u64,
        "bytes of a compiled pattern of `matches`",
    ),
    limit("RULES_MAX", RULES_MAX as u64, "rules of an operator"),
    limit(
        "RULE_LIST_MAX",
        RULE_LIST_MAX as u64,
        "names on one list of a rule",
    ),
    limit(
        "EXPECTED_NAMES_MAX",
        EXPECTED_NAMES_MAX as u64,
        "names of one kind that settings may expect",
    ),
    limit(
        "ACTIONS_CUSTOM_MAX",
        ACTIONS_CUSTOM_MAX as u64,
        "action types an operator may register",
    ),
    limit(
        "ACTIONS_DECLARED_MAX",
        ACTIONS_DECLARED_MAX as u64,
        "action types a document may declare",
    ),
    limit(
        "CALL_LIMITS_MAX",
        CALL_LIMITS_MAX as u64,
        "limits on calls an operator may set",
    ),
    limit(
        "CALL_LIMIT_MAX",
        CALL_LIMIT_MAX,
        "the most any limit on calls may allow",
    ),
    limit(
        "CALL_COSTS_MAX",
        CALL_COSTS_MAX as u64,
        "patterns of tools an operator may set a cost for",
    ),
    limit(
        "CALL_COST_UNITS_MAX",
        CALL_COST_UNITS_MAX,
        "units of a day that one call may cost",
    ),
    limit(
        "METER_TALLIES_MAX",
        METER_TALLIES_MAX as u64,
        "callers and limits counted at one time",
    ),
    limit(
        "DENIALS_IN_A_ROW_MAX",
        DENIALS_IN_A_ROW_MAX as u64,
        "denials in a row after which a caller is paused",
    ),
    limit(
        "DENIALS_IN_ALL_MAX",
        DENIALS_IN_ALL_MAX as u64,
        "denials in all after which a caller is paused",
    ),
    limit(
        "TRUST_RECORDS_MAX",
        TRUST_RECORDS_MAX as u64,
        "records trust looks back on for one caller",
    ),
    limit(
        "TRUST_OLDER_ERRORS_MAX",
        TRUST_OLDER_ERRORS_MAX as u64,
        "older errors and denials trust looks back on besides",
    ),
    limit(
        "TRUST_FEEDBACK_MAX",
        TRUST_FEEDBACK_MAX as u64,
        "things people said that are kept about one caller",
    ),
    limit(
        "TRUST_CALLS",
        TRUST_CALLS,
        "calls of one caller after which trust is reckoned again",
    ),
    limit(
        "TRUST_CALLS_OF_AN_ERROR",
        TRUST_CALLS_OF_AN_ERROR,
        "calls that one that went wrong counts for in that",
    ),
    limit(
        "TRUST_SECONDS",
        TRUST_SECONDS,
        "seconds after which trust is reckoned again before a call",
    ),
    limit(
        "TRUST_ABSENT_DAYS_MAX",
        TRUST_ABSENT_DAYS_MAX as u64,
        "days of absence trust is reckoned through",
    ),
    limit(
        "TRUST_QUESTION_DAYS",
        TRUST_QUESTION_DAYS as u64,
        "days a question whether to raise a level waits, and a no to it counts",
    ),
    limit(
        "CALLERS_MAX",
        CALLERS_MAX,
        "callers of whom something is remembered",
    ),
    limit(
        "CALLS_TOGETHER_MAX",
        CALLS_TOGETHER_MAX as u64,
        "calls that may be made together",
    ),
    limit(
        "CALLS_AT_ONCE_MAX",
        CALLS_AT_ONCE_MAX as u64,
        "of these, calls that run at one time",
    ),
];

/// The reference page.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Limits\n\nEvery loop, queue, body, wait and depth has a bound, and every bound a name.\n\n\
         | Name | Value | Bounds |\n| --- | --- | --- |\n",
    );
    for limit in ALL {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            limit.name, limit.value, limit.what
        );
    }
    page
}
