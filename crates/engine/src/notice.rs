//! Notices: what is done beside calls, written into the same chain.
//!
//! What grants something is written down first and does not happen without; what
//! takes something away happens in any case, and is said aloud if it cannot be
//! written down.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::egress::EgressEvent;
use model::record::audit::{Act, Notice};
use model::record::mask::Masker;
use model::text;
use store::{Store, StoreError};

use crate::error::causes;
use crate::services::Alarm;

/// Writes a notice, or says aloud that it could not.
pub(crate) fn loudly(store: &Store, alarm: &Alarm, notice: Notice) {
    let said = format!("{}: {}", notice.act.word(), notice.message);
    if let Err(fault) = store.audit().notice(notice) {
        alarm.raise(&format!(
            "not recorded in the audit ({said}): {}",
            causes(&fault)
        ));
    }
}

/// Adds each host that a process reached outside of calls, or tried to, once, with what became
/// of the connections to it. How many there were stands beside it. Those that were sent the
/// most come first, and of too many hosts the last are left out.
pub(crate) fn with_connections(notice: Notice, events: &[EgressEvent], masker: &Masker) -> Notice {
    let mut hosts: BTreeMap<(String, Option<&str>), HostTotal> = BTreeMap::new();
    for event in events {
        let host = match event.port {
            Some(port) => format!("{}:{port}", event.host),
            None => event.host.clone(),
        };
        let total = hosts.entry((host, event.refusal)).or_default();
        total.count = total.count.saturating_add(1);
        total.sent = total.sent.saturating_add(event.sent_bytes);
        total.received = total.received.saturating_add(event.bytes);
    }
    if events.is_empty() {
        return notice;
    }
    let mut notice = notice.detail("connections", &connection_count(events));
    // Attack: a program that asks for many hosts that refuse it, so that the one to which it
    // sends data has no place any more.
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    hosts.sort_by_key(|((_, refusal), total)| (refusal.is_some(), Reverse(total.sent)));
    for ((host, refusal), total) in hosts {
        let HostTotal {
            count,
            sent,
            received,
        } = total;
        // Attack: a program that puts a secret into the name of a host it asks for.
        let host = text::one_line(masker.text(&host).get());
        let (name, value) = match refusal {
            None => {
                let value = format!("connected, {count}; bytes: {sent} out, {received} in");
                (host, value)
            }
            Some(reason) => (format!("{host} {reason}"), format!("refused, {count}")),
        };
        notice = notice.detail(&name, &value);
    }
    notice
}

/// The connections to one host that ended in the same way.
#[derive(Default)]
struct HostTotal {
    count: u64,
    sent: u64,
    received: u64,
}

/// How many there were, and how many of them came to nothing.
pub(crate) fn connection_count(events: &[EgressEvent]) -> String {
    let refused = events.iter().filter(|event| event.refusal.is_some());
    format!(
        "{}, {} of them refused",
        text::count(events.len(), "connection"),
        refused.count()
    )
}

/// An answer to a question, by whom and through what.
pub(crate) struct AnswerNotice<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) caller: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) by: &'a str,
    pub(crate) channel: &'a str,
    /// The word of the answer, such as `approved`.
    pub(crate) decision: &'a str,
    pub(crate) scope: Option<&'a str>,
    /// Whether the arguments were changed.
    pub(crate) is_changed: bool,
}

impl AnswerNotice<'_> {
    pub(crate) fn notice(&self) -> Notice {
        let message = format!(
            "the question about a call of `{}` was answered: {}",
            self.tool, self.decision
        );
        let notice = Notice::new(Act::ApprovalAnswered, self.by, self.channel, &message)
            .about(self.id)
            .detail("decision", self.decision)
            .detail("tool", self.tool)
            .detail("caller", self.caller)
            .detail("callId", self.call_id);
        let notice = match self.is_changed {
            true => notice.detail("arguments", "changed"),
            false => notice,
        };
        match self.scope {
            Some(scope) => notice.detail("scope", scope),
            None => notice,
        }
    }
}

/// Carries an act out with its notice: before it, where it grants something, and
/// after it otherwise. `done` says whether it happened.
pub(crate) fn with_notice<T>(
    store: &Store,
    alarm: &Alarm,
    grants: bool,
    notice: Notice,
    act: impl FnOnce() -> Result<T, StoreError>,
    done: impl FnOnce(&T) -> bool,
) -> Result<T, StoreError> {
    let undone = notice.clone();
    let loud = |notice| loudly(store, alarm, notice);
    if grants {
        store.audit().notice(notice)?;
        let came = act();
        match &came {
            Ok(it) if done(it) => {}
            Ok(_) => loud(undone.undone("another change came first")),
            Err(fault) => loud(undone.undone(&causes(fault))),
        }
        return came;
    }
    let came = act()?;
    if done(&came) {
        loud(notice);
    }
    Ok(came)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_told_once_without_secrets() {
        let event = |host: &str, refusal| EgressEvent {
            host: host.to_owned(),
            port: Some(443),
            sent_bytes: 2,
            bytes: 3,
            refusal,
            ..EgressEvent::default()
        };
        let events = [
            event("a.example.com", None),
            event("a.example.com", None),
            // Attack: a secret that leaves, or is kept, as the name of a host.
            event(
                "long-secret-value.example.com",
                Some("host-not-in-allowlist"),
            ),
        ];
        let masker = Masker::new(["long-secret-value"]).expect("a masker");
        let notice = Notice::new(Act::JobEnded, "ann", "mcp", "it ended");
        let notice = with_connections(notice.clone(), &[], &masker);
        assert!(notice.details.is_empty(), "{notice:?}");
        let notice = with_connections(notice, &events, &masker);
        let told: Vec<_> = notice.details.iter().collect();
        let expected = [
            ("***.example.com:443 host-not-in-allowlist", "refused, 1"),
            ("a.example.com:443", "connected, 2; bytes: 4 out, 6 in"),
            ("connections", "3 connections, 1 of them refused"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(
            told.iter()
                .copied()
                .eq(expected.iter().map(|(name, value)| (name, value))),
            "{told:?}"
        );
    }

    #[test]
    fn the_host_that_was_sent_data_is_told_among_many_that_refused() {
        let event = |host: String, sent_bytes, refusal| EgressEvent {
            host,
            sent_bytes,
            refusal,
            ..EgressEvent::default()
        };
        let mut events: Vec<_> = (0..200)
            .map(|number| event(format!("a{number:03}.example.com"), 0, Some("refused")))
            .collect();
        events.extend((0..200).map(|number| event(format!("b{number:03}.example.com"), 0, None)));
        events.push(event("z.example.com".to_owned(), 9, None));
        let notice = Notice::new(Act::JobEnded, "ann", "mcp", "it ended");
        let notice = with_connections(notice, &events, &Masker::none());
        let told = notice.details.get("z.example.com").map(String::as_str);
        assert_eq!(told, Some("connected, 1; bytes: 9 out, 0 in"));
    }
}
