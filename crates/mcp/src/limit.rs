//! The bounds of the door that are not settings.

model::limits! {
    /// Tools of one page of the list.
    TOOLS_PAGE_MAX: usize = 500;
    /// Characters of a cursor.
    CURSOR_CHARS_MAX: usize = 160;
    /// Messages of one batch.
    BATCH_MESSAGES_MAX: usize = 32;
    /// Bytes of the answer to one message of a batch.
    BATCH_ANSWER_BYTES_MAX: usize = 64 << 20;
    /// Header lines of one request.
    HEADERS_MAX: usize = 64;
    /// Bytes of the head of one request.
    HEAD_BYTES_MAX: usize = 32 << 10;
    /// Bytes of buffers of one connection, without answers. More than a head may have,
    /// because a head is checked once it is complete.
    CONNECTION_BYTES_MAX: usize = 64 << 10;
    /// Seconds a connection may take to send the head of its next request.
    HEAD_SECONDS_MAX: u64 = 60;
    /// Seconds a request may take to send its body.
    BODY_SECONDS_MAX: u64 = 30;
    /// Seconds the other side of a connection may take to read a piece of an answer.
    WRITE_SECONDS_MAX: u64 = 60;
    /// Bytes of such a piece. A shorter rest counts as a piece too.
    WRITE_PIECE_BYTES: usize = 64 << 10;
    /// Bytes of the kernel's send buffer of a connection.
    WRITE_KEPT_BYTES_MAX: usize = 128 << 10;
    /// Seconds a session may be idle.
    SESSION_IDLE_SECONDS_MAX: u64 = 600;
    /// Seconds a session may wait for its first request.
    SESSION_START_SECONDS_MAX: u64 = 30;
    /// Messages of one stream that wait to be read, and that can be read again.
    STREAM_MESSAGES_MAX: usize = 32;
    /// Seconds the answer of a call can be fetched again.
    RESUME_SECONDS_MAX: u64 = 60;
    /// Milliseconds before a second look for an answer that is just being kept.
    RESUME_PAUSE_MS: u64 = 50;
    /// Answers of one session that are kept for a client to come back for.
    RESUME_ANSWERS_PER_SESSION_MAX: usize = 4;
    /// The same for all sessions.
    RESUME_ANSWERS_MAX: usize = 64;
    /// Bytes of such answers, of all sessions.
    RESUME_ANSWERS_BYTES_MAX: usize = 64 << 20;
    /// Bytes of one caller's answers that are made and not sent. A call is let in up to
    /// half of it, so that its answer still fits.
    UNSENT_PER_CALLER_BYTES_MAX: usize = 64 << 20;
    /// The same for all callers.
    UNSENT_BYTES_MAX: usize = 256 << 20;
    /// Bytes of answers after which freed memory goes back to the system.
    GIVE_BACK_BYTES: usize = 8 << 20;
    /// The same once no answer waits any more: no later answer would trigger it.
    GIVE_BACK_LAST_BYTES: usize = 256 << 10;
    /// Milliseconds between two times that memory goes back.
    GIVE_BACK_EVERY_MS: u64 = 1_000;
    /// Milliseconds after which the stream of a modern call begins without its answer, so
    /// that a proxy sees the connection live.
    STREAM_FIRST_MS: u64 = 5_000;
    /// Milliseconds that the beginning of a legacy reply is looked at: a large answer that comes
    /// by then is no event of a stream.
    STREAM_LOOK_MS: u64 = 1_000;
    /// Events of such a beginning.
    STREAM_LOOK_EVENTS_MAX: usize = 4;
    /// Bytes of an answer that is an event of a stream, if it can be the whole reply instead.
    /// The official client for Python takes events of at most 1 MiB.
    EVENT_BYTES_MAX: usize = 512 << 10;
    /// Seconds between two signs of life on a quiet stream.
    KEEP_ALIVE_SECONDS: u64 = 15;
    /// Seconds calls may finish after the server was asked to end.
    SHUTDOWN_GRACE_SECONDS: u64 = 10;
    /// Seconds cancelled calls may take to close their audit rows.
    SHUTDOWN_CLOSE_SECONDS: u64 = 5;
    /// Seconds the last answers may take to be written.
    SHUTDOWN_ANSWER_SECONDS: u64 = 2;
    /// Seconds connections may take to end after their streams did.
    SHUTDOWN_CONNECTION_SECONDS: u64 = 1;
    /// Milliseconds between two looks at whether the tools changed.
    LIST_CHANGED_EVERY_MS: u64 = 500;
    /// Milliseconds between two looks at whether the audit has room.
    TEND_AUDIT_EVERY_MS: u64 = 60_000;
    /// Looks after which it is asked even if no file changed: a variable may be set.
    LIST_CHANGED_LOOKS_MAX: u32 = 4;
    /// Seconds one peer may take to be told.
    LIST_CHANGED_SECONDS_MAX: u64 = 2;
    /// Milliseconds before the first sign of life of a call with a progress token.
    PROGRESS_FIRST_MS: u64 = 1_000;
    /// Milliseconds between two signs of life of a call.
    PROGRESS_EVERY_MS: u64 = 5_000;
    /// Milliseconds between two progress messages, at least.
    PROGRESS_GAP_MS: u64 = 100;
    /// Sentences of a call that wait for a slow client; of more, the oldest are dropped.
    PROGRESS_KEPT_MAX: usize = 16;
    /// Milliseconds a last message of progress may take to leave before the answer.
    PROGRESS_LAST_MS: u64 = 1_000;
    /// Calls of modern clients that wait for an answer to a server.
    PARKED_CALLS_MAX: usize = 256;
    /// Icons of one tool.
    ICONS_MAX: usize = 4;
    /// Characters of the address of an icon, which may be the icon itself.
    ICON_CHARS_MAX: usize = 16 << 10;
    /// Characters of a title.
    TITLE_CHARS_MAX: usize = 120;
}
