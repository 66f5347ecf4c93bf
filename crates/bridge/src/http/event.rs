//! The size of one event of a stream, counted before anything reads it.

use std::fmt;

/// Counts the bytes of the event under way. Attack: a line without an end, or an
/// event of endless lines, is kept whole by the one who reads it.
#[derive(Debug)]
pub(crate) struct EventLimit {
    bytes_max: usize,
    event_bytes: usize,
    line_bytes: usize,
}

/// An event is larger than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge {
    bytes_max: usize,
}

impl fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes_max = self.bytes_max;
        write!(f, "an event of the stream has more than {bytes_max} bytes")
    }
}

impl std::error::Error for EventTooLarge {}

impl EventLimit {
    pub(crate) fn new(bytes_max: usize) -> EventLimit {
        EventLimit {
            bytes_max,
            event_bytes: 0,
            line_bytes: 0,
        }
    }

    /// Looks at the next piece of the stream. An empty line ends an event.
    pub(crate) fn observe(&mut self, piece: &[u8]) -> Result<(), EventTooLarge> {
        for byte in piece {
            match byte {
                b'\n' if self.line_bytes == 0 => self.event_bytes = 0,
                b'\n' => self.line_bytes = 0,
                // A line may end in both; then the line after it is empty only if
                // nothing else is on it.
                b'\r' => {}
                _ => self.line_bytes += 1,
            }
            self.event_bytes += 1;
            if self.event_bytes > self.bytes_max {
                let bytes_max = self.bytes_max;
                return Err(EventTooLarge { bytes_max });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::EventLimit;

    #[track_caller]
    fn check(pieces: &[&str], is_allowed: bool) {
        let mut limit = EventLimit::new(16);
        let passed = pieces
            .iter()
            .all(|piece| limit.observe(piece.as_bytes()).is_ok());
        assert_eq!(passed, is_allowed, "{pieces:?}");
    }

    #[test]
    fn an_event_is_counted_from_one_empty_line_to_the_next() {
        check(&["data: 12345678\n\n"], true);
        check(&["data: 1234567890\n"], false);
        check(&["data: 1\n\n", "data: 2\r\n\r\n", "data: 3\n\n"], true);
        check(&["data: 1\n", "data: 2\n", "x"], false);
        check(&["data: 1234567", "89", "01"], false);
        check(&[":\n\n:\n\n:\n\n:\n\n:\n\n:\n\n:\n\n"], true);
    }
}
