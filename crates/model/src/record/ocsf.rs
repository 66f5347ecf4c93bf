//! The audit in the words of the Open Cybersecurity Schema Framework (OCSF), for
//! systems that collect security events: a call is *API Activity*, a notice is *Entity
//! Management*. Fields that the schema lacks are in `unmapped`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::record::audit::chain::{Body, Record};
use crate::record::audit::{Act, Closing, Notice, Opening, Status};

/// The version of the schema.
pub const VERSION: &str = "1.3.0";

/// Turns records into events, one record after the other. An opening is remembered until
/// its end comes.
#[derive(Debug, Default)]
pub struct OcsfEvents {
    open: HashMap<u64, Opening>,
    /// The version of this program.
    product: String,
}

impl OcsfEvents {
    /// Events of a product with this version.
    #[must_use]
    pub fn new(product_version: &str) -> OcsfEvents {
        OcsfEvents {
            open: HashMap::new(),
            product: product_version.to_owned(),
        }
    }

    /// The event a record completes: the end of a call, or a notice.
    pub fn step(&mut self, record: &Record) -> Option<Value> {
        match record.read::<Closing>().ok()? {
            Body::Open(opening) => {
                self.open.insert(record.sequence, opening);
                None
            }
            Body::Close(close) => {
                let opening = self.open.remove(&close.opened)?;
                Some(self.call(&opening, &close.closing, record))
            }
            Body::Notice(notice) => Some(self.notice(&notice, record)),
            Body::Checkpoint(_) | Body::Anchor(_) => None,
        }
    }

    /// Calls that began and have no end among the records.
    #[must_use]
    pub fn left(&self) -> usize {
        self.open.len()
    }

    fn call(&self, opening: &Opening, closing: &Closing, record: &Record) -> Value {
        let tool = closing.tool.as_ref();
        let (status_id, status) = match closing.status {
            Status::Done => (1, "Success"),
            Status::Refused | Status::Failed => (2, "Failure"),
            Status::Cancelled | Status::Crashed => (99, "Other"),
        };
        let risk = tool.map(|tool| tool.risk.as_str());
        let mut event = json!({
            "category_uid": 6,
            "category_name": "Application Activity",
            "class_uid": 6003,
            "class_name": "API Activity",
            "activity_id": 99,
            "activity_name": "Call",
            "type_uid": 600_399,
            "time": closing.at_ms,
            "start_time": opening.at_ms,
            "end_time": closing.at_ms,
            "duration": closing.at_ms.saturating_sub(opening.at_ms),
            "severity_id": severity(closing.status, risk),
            "status_id": status_id,
            "status": status,
            "status_detail": closing.status.word(),
            "actor": {"user": {"name": opening.caller}},
            "api": {
                "operation": opening.tool,
                "request": {"uid": opening.call_id},
                "service": {"name": "ringfence", "uid": tool.map(|tool| &tool.tool_id)},
            },
            "src_endpoint": {"svc_name": opening.origin.word()},
            "metadata": self.metadata(&opening.call_id, record),
            "unmapped": {
                "record": {"sequence": record.sequence, "hash": record.hash},
                "risk": risk,
                "gates": closing.gates,
                "arguments_digest": opening.arguments_digest,
                "result_digest": closing.result_digest,
                "parent_id": opening.parent_id,
            },
        });
        if let (Some(error), Some(event)) = (&closing.error, event.as_object_mut()) {
            event.insert("status_code".to_owned(), json!(error.code));
            event.insert("message".to_owned(), json!(error.message));
        }
        event
    }

    fn notice(&self, notice: &Notice, record: &Record) -> Value {
        let (activity, name) = activity(notice.act);
        json!({
            "category_uid": 3,
            "category_name": "Identity & Access Management",
            "class_uid": 3004,
            "class_name": "Entity Management",
            "activity_id": activity,
            "activity_name": name,
            "type_uid": 300_400 + activity,
            "time": notice.at_ms,
            "severity_id": match notice.act {
                // Records are missing, or another log is not what it was.
                Act::AuditCut | Act::AuditContradicted => 5,
                _ => 1,
            },
            "status_id": 1,
            "status": "Success",
            "message": notice.message,
            "actor": {"user": {"name": notice.by}, "app_name": notice.through},
            "entity": {"name": notice.about, "type": notice.act.word().split('.').next()},
            "metadata": self.metadata(&notice.id, record),
            "unmapped": {
                "record": {"sequence": record.sequence, "hash": record.hash},
                "act": notice.act,
                "details": notice.details,
            },
        })
    }

    fn metadata(&self, uid: &str, record: &Record) -> Value {
        json!({
            "version": VERSION,
            "uid": uid,
            "sequence": record.sequence,
            "log_name": "audit",
            "product": {"name": "Ringfence", "vendor_name": "Ringfence", "version": self.product},
        })
    }
}

/// How serious a call is: informational if it went well at a low level, up to high.
fn severity(status: Status, risk: Option<&str>) -> u8 {
    let by_risk = match risk {
        Some("L5") => 4,
        Some("L4") => 3,
        Some("L3") => 2,
        Some(_) | None => 1,
    };
    let by_status = match status {
        Status::Done | Status::Cancelled => 1,
        Status::Failed => 2,
        Status::Refused | Status::Crashed => 3,
    };
    by_risk.max(by_status)
}

/// The activity of an act: create, update, delete or other. By its last word, so that
/// acts which are added later have a place.
fn activity(act: Act) -> (u32, &'static str) {
    let word = act.word();
    let (_, word) = word.rsplit_once('.').unwrap_or(("", word));
    match word {
        "made" | "added" | "published" | "consented" => (1, "Create"),
        "changed" | "replaced" | "answered" | "paused" | "resumed" | "accepted" | "blocked" => {
            (3, "Update")
        }
        "revoked" | "unpublished" | "deleted" | "consent_withdrawn" | "removed" => (4, "Delete"),
        _ => (99, "Other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Origin;
    use crate::record::audit::chain::{
        ChainHash, RecordKind, close_body, link, notice_body, open_body,
    };
    use crate::record::audit::{Failure, spell};

    fn record(sequence: u64, kind: RecordKind, body: String) -> Record {
        let previous = ChainHash::ZERO;
        let hash = link(&previous, &body);
        Record {
            sequence,
            kind,
            previous,
            hash,
            body,
        }
    }

    /// What the schema requires of every event, and of these two classes.
    fn has_what_is_required(event: &Value) {
        for name in [
            "activity_id",
            "category_uid",
            "class_uid",
            "metadata",
            "severity_id",
            "time",
            "type_uid",
            "actor",
        ] {
            assert!(!event[name].is_null(), "{name}");
        }
        let class = event["class_uid"].as_u64().expect("a number");
        let activity = event["activity_id"].as_u64().expect("a number");
        assert_eq!(event["type_uid"].as_u64(), Some(class * 100 + activity));
        assert_eq!(event["metadata"]["version"], VERSION);
        assert!(event["metadata"]["product"]["vendor_name"].is_string());
    }

    #[test]
    fn a_call_is_one_event() {
        let opening = Opening {
            call_id: "id".to_owned(),
            parent_id: None,
            at_ms: 10,
            origin: Origin::Mcp,
            caller: "agent".to_owned(),
            tool: "send".to_owned(),
            arguments_digest: "00".to_owned(),
        };
        let error = Failure {
            code: "rule.denied".to_owned(),
            message: "no".to_owned(),
        };
        let closing = Closing::bare(25, Status::Refused, Some(error));
        let mut events = OcsfEvents::new("1");
        let part = spell::opening(&opening).expect("canonical");
        let open = record(1, RecordKind::Open, open_body(1, &part));
        assert_eq!(events.step(&open), None);
        assert_eq!(events.left(), 1);
        let part = spell::closing(&closing).expect("canonical");
        let close = record(2, RecordKind::Close, close_body(2, 1, "id", &part));
        let event = events.step(&close).expect("an event");
        has_what_is_required(&event);
        assert_eq!(event["class_uid"], 6003);
        assert_eq!(event["duration"], 15);
        assert_eq!(event["status_code"], "rule.denied");
        assert_eq!(event["severity_id"], 3);
        assert_eq!(event["api"]["operation"], "send");
        assert_eq!(event["unmapped"]["record"]["sequence"], 2);
        assert!(event["src_endpoint"].is_object());
        assert_eq!(events.left(), 0);
    }

    #[test]
    fn each_notice_is_one_event() {
        let mut events = OcsfEvents::new("1");
        for act in Act::ALL {
            let notice = Notice::new(act, "owner", "cli", "a sentence").about("it");
            let part = spell::notice(&notice).expect("canonical");
            let written = record(7, RecordKind::Notice, notice_body(7, &part));
            let event = events.step(&written).expect("an event");
            has_what_is_required(&event);
            assert_eq!(event["class_uid"], 3004);
            assert_eq!(event["entity"]["name"], "it");
        }
    }

    #[test]
    fn only_records_become_events() {
        let mut events = OcsfEvents::new("1");
        let broken = record(1, RecordKind::Notice, "{}".to_owned());
        assert_eq!(events.step(&broken), None);
    }
}
