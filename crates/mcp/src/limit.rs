//! The bounds of the door that are no settings, and the count of calls under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

model::limits! {
    /// Tools of one page of the list.
    TOOLS_PAGE_MAX: usize = 500;
    /// Characters of a cursor.
    CURSOR_CHARS_MAX: usize = 160;
    /// Header lines of one request.
    HEADERS_MAX: usize = 64;
    /// Bytes of the head of one request.
    HEAD_BYTES_MAX: usize = 32 << 10;
    /// Bytes the server keeps of what a connection sends and is sent, besides answers. More
    /// than a head may have, which is looked at once it is there.
    CONNECTION_BYTES_MAX: usize = 64 << 10;
    /// Seconds a connection may take to send the head of its next request.
    HEAD_SECONDS_MAX: u64 = 60;
    /// Seconds a request may take to send its body.
    BODY_SECONDS_MAX: u64 = 30;
    /// Seconds the other side of a connection may take to read a piece of an answer.
    WRITE_SECONDS_MAX: u64 = 60;
    /// Bytes of such a piece. All that is there to be read is one too.
    WRITE_PIECE_BYTES: usize = 64 << 10;
    /// Bytes the kernel is asked to keep of what a connection has not read.
    WRITE_KEPT_BYTES_MAX: usize = 128 << 10;
    /// Seconds a session may be idle.
    SESSION_IDLE_SECONDS_MAX: u64 = 600;
    /// Seconds a session may wait for its first request.
    SESSION_START_SECONDS_MAX: u64 = 30;
    /// Messages of one stream that wait to be read, and that can be read again.
    STREAM_MESSAGES_MAX: usize = 32;
    /// Seconds the answer of a call can be fetched again.
    RESUME_SECONDS_MAX: u64 = 60;
    /// Milliseconds to look again for an answer that is just being kept.
    RESUME_PAUSE_MS: u64 = 50;
    /// Answers of one session that are kept because nobody was there to read them.
    UNREAD_PER_SESSION_MAX: usize = 4;
    /// The same for all sessions.
    UNREAD_MAX: usize = 64;
    /// Bytes of such answers, of all sessions.
    UNREAD_BYTES_MAX: usize = 64 << 20;
    /// Bytes of one caller's answers that are made and not sent. A call is let in up to
    /// half of it, so that its answer still fits.
    UNSENT_PER_CALLER_BYTES_MAX: usize = 64 << 20;
    /// The same for all callers.
    UNSENT_BYTES_MAX: usize = 256 << 20;
    /// Bytes of answers after which freed memory goes back to the system.
    GIVE_BACK_BYTES: usize = 8 << 20;
    /// Milliseconds between two times that memory goes back.
    GIVE_BACK_EVERY_MS: u64 = 1_000;
    /// Milliseconds after which the stream of a modern call begins without its answer, so
    /// that a proxy sees the connection live.
    STREAM_FIRST_MS: u64 = 5_000;
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
    NEWS_EVERY_MS: u64 = 500;
    /// Milliseconds between two looks at whether the audit has room.
    TEND_AUDIT_EVERY_MS: u64 = 60_000;
    /// Looks after which lists are compared even if no file changed.
    NEWS_LOOKS_MAX: u32 = 4;
    /// Seconds one peer may take to be told.
    NEWS_SECONDS_MAX: u64 = 2;
    /// Milliseconds before the first sign of life of a call with a progress token.
    PROGRESS_FIRST_MS: u64 = 1_000;
    /// Milliseconds between two signs of life of a call.
    PROGRESS_EVERY_MS: u64 = 5_000;
    /// Milliseconds between two messages of progress, whatever there is to say.
    PROGRESS_GAP_MS: u64 = 100;
    /// Milliseconds a last message of progress may take to leave before the answer.
    PROGRESS_LAST_MS: u64 = 1_000;
    /// Icons of one tool.
    ICONS_MAX: usize = 4;
    /// Characters of the address of an icon, which may be the icon itself.
    ICON_CHARS_MAX: usize = 16 << 10;
    /// Characters of a title.
    TITLE_CHARS_MAX: usize = 120;
}

/// How many calls are under way, together and of each caller. Clones share the count.
#[derive(Clone, Debug)]
pub struct Calls {
    of: Arc<Mutex<HashMap<String, u64>>>,
    together: Arc<watch::Sender<usize>>,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            of: Arc::default(),
            together: Arc::new(watch::Sender::new(0)),
        }
    }
}

/// A call under way, until its answer was sent.
#[derive(Debug)]
pub struct Entered {
    calls: Calls,
    /// Whose place it takes; nobody's if it was one too many.
    caller: Option<String>,
}

impl Entered {
    /// Whether its caller had as many under way as may be. Such a call is refused, and
    /// counts as under way until that is written down.
    #[must_use]
    pub fn is_one_too_many(&self) -> bool {
        self.caller.is_none()
    }
}

impl Calls {
    /// Counts a call of a caller.
    #[must_use]
    pub fn enter(&self, caller: &str, most: u64) -> Entered {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of.get(caller).copied().unwrap_or(0);
        let has_room = count < most;
        if has_room {
            of.insert(caller.to_owned(), count + 1);
        }
        drop(of);
        self.together.send_modify(|together| *together += 1);
        Entered {
            calls: self.clone(),
            caller: has_room.then(|| caller.to_owned()),
        }
    }

    /// How many are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        *self.together.borrow()
    }

    /// Waits until none is under way.
    pub async fn quiet(&self) {
        let mut together = self.together.subscribe();
        let _ = together.wait_for(|together| *together == 0).await;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller {
            let mut of = self.calls.of.lock().unwrap_or_else(PoisonError::into_inner);
            match of.get_mut(caller) {
                Some(count) if *count > 1 => *count -= 1,
                // A count of none is not kept.
                _ => drop(of.remove(caller)),
            }
        }
        self.calls
            .together
            .send_modify(|together| *together = together.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_count() {
        let calls = Calls::default();
        let first = calls.enter("ann", 2);
        let second = calls.enter("ann", 2);
        assert!(!first.is_one_too_many() && !second.is_one_too_many());
        let third = calls.enter("ann", 2);
        assert!(third.is_one_too_many());
        assert!(!calls.enter("bob", 2).is_one_too_many());
        assert_eq!(calls.under_way(), 3);
        // One too many takes nobody's place, and gives none back.
        drop(third);
        assert!(calls.enter("ann", 2).is_one_too_many());
        drop(first);
        assert!(!calls.enter("ann", 2).is_one_too_many());
        drop(second);
        assert_eq!(calls.under_way(), 0);
        assert!(calls.of.lock().expect("the counts").is_empty());
    }
}
