//! Every bound of the Studio, named, in one place.

model::limits! {
    /// Bytes of the body of one request.
    BODY_BYTES_MAX: usize = 16 << 20;
    /// Bytes of a body that comes without a session.
    SIGN_IN_BYTES_MAX: usize = 4 << 10;
    /// Seconds a request may take to send its body.
    BODY_SECONDS_MAX: u64 = 30;
    /// Requests that are worked on at one time.
    REQUESTS_MAX: usize = 32;
    /// Streams of events at one time. Each tab has one at most.
    STREAMS_MAX: usize = 64;
    /// Events that are kept for a page that comes back.
    EVENTS_KEPT_MAX: usize = 1_000;
    /// Milliseconds between two looks for news, while a page listens.
    EVENTS_EVERY_MS: u64 = 100;
    /// Seconds of silence before an event says that the connection lives.
    EVENTS_PING_SECONDS: u64 = 10;
    /// Entries of the audit that one look for news takes.
    EVENTS_AUDIT_MAX: usize = 200;
    /// Rows of one page of a list.
    PAGE_ROWS_MAX: usize = 500;
    /// Rows of a page whose size was not asked for.
    PAGE_ROWS_DEFAULT: usize = 100;
    /// Characters of a note or a reason.
    NOTE_CHARS_MAX: usize = 500;
    /// Characters of the address of a request, its query included.
    ADDRESS_CHARS_MAX: usize = 8_192;
    /// Milliseconds that buttons of a question do nothing after it changed.
    INERT_MS: u64 = 500;
    /// Calls of one script that an entry of the audit shows.
    CHILDREN_MAX: usize = 500;
    /// Calls that are named for each group of changed decisions.
    GROUP_CALLS_MAX: usize = 20;
    /// Calls that the numbers are computed from.
    NUMBERS_CALLS_MAX: usize = 100_000;
    /// Points of time of a chart.
    NUMBERS_POINTS_MAX: usize = 120;
    /// Rows of the table of numbers.
    NUMBERS_ROWS_MAX: usize = 200;
    /// Seconds that an examination of this machine counts.
    HEALTH_SECONDS_MAX: u64 = 60;
    /// Bytes of a result that is shown whole.
    RESULT_BYTES_MAX: usize = 8 << 20;
    /// Seconds a call of the inspector may take, approval included.
    CALL_SECONDS_MAX: u64 = 600;
    /// Servers that are tried out at one time.
    TRIALS_MAX: usize = 2;
    /// Bytes of a client's settings to import from.
    IMPORT_BYTES_MAX: usize = 1 << 20;
    /// Calls of the inspector at one time.
    CALLS_MAX: usize = 16;
}
