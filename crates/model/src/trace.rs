//! W3C trace context: which trace a call is part of, and the span it is itself. A call
//! tells others about itself by ids made from its own id, so nothing has to be kept.

use std::fmt;

use uuid::Uuid;

/// The place of a call in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// The flags; the lowest bit means that it is recorded.
    pub flags: u8,
}

impl TraceParent {
    /// Reads `00-<trace>-<span>-<flags>`. Anything else is no parent.
    #[must_use]
    pub fn parse(header: &str) -> Option<TraceParent> {
        let mut parts = header.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version != "00" || parts.next().is_some() {
            return None;
        }
        let parent = TraceParent {
            trace: bytes(trace)?,
            span: bytes(span)?,
            flags: u8::from_be_bytes(bytes(flags)?),
        };
        let is_valid = parent.trace != [0; 16] && parent.span != [0; 8];
        is_valid.then_some(parent)
    }

    /// The place of a call: within the trace it was told of, or a trace of its own.
    /// Nothing if its id is no UUID.
    #[must_use]
    pub fn of_call(call_id: &str, told: Option<&str>) -> Option<TraceParent> {
        let id = Uuid::parse_str(call_id).ok()?.into_bytes();
        let parent = told.and_then(TraceParent::parse);
        // The last half of an id is random; the first is mostly the time.
        let mut span = [0; 8];
        span.copy_from_slice(id.get(8..)?);
        Some(TraceParent {
            trace: parent.map_or(id, |parent| parent.trace),
            span,
            flags: parent.map_or(1, |parent| parent.flags),
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

/// Bytes in lower-case hexadecimal.
fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        for digit in pair {
            let nibble = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = (*byte << 4) | nibble;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const CALL: &str = "019a9324-5ab0-7c01-8f00-aabbccddeeff";

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let parent = TraceParent::parse(HEADER).expect("sound");
        assert_eq!(parent.to_string(), HEADER);
        for broken in [
            "",
            "00",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b77-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\u{e9}",
        ] {
            assert_eq!(TraceParent::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_call_is_a_span_of_the_trace_it_was_told_of() {
        let told = TraceParent::of_call(CALL, Some(HEADER)).expect("a call");
        assert_eq!(
            told.to_string(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-8f00aabbccddeeff-01"
        );
        for header in [None, Some("nonsense")] {
            let own = TraceParent::of_call(CALL, header).expect("a call");
            assert_eq!(
                own.to_string(),
                "00-019a93245ab07c018f00aabbccddeeff-8f00aabbccddeeff-01"
            );
        }
        assert_eq!(TraceParent::of_call("no id", None), None);
    }
}
