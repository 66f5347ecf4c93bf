//! What a recorded call did after its gates: programs, connections, files, and the calls and
//! jobs that came of it. A few plain lines; `audit show` has every field.

use model::record::audit::{Act, Notice, Status};
use model::text::{elided, one_line};
use serde_json::{Value, json};
use store::{AuditEntry, Filter, Store, StoreError};

/// Lines of one call; of more, the number.
const LINES_MAX: usize = 20;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 160;
/// Entries that are looked through for calls that are part of this one.
const LOOKED_THROUGH_MAX: usize = 1_000;

/// What came of a call besides its result.
#[derive(Debug, Default)]
pub(super) struct Steps {
    events: Vec<Value>,
    /// The calls it made, oldest first.
    children: Vec<AuditEntry>,
    /// The ends of the jobs it started.
    jobs: Vec<Notice>,
}

impl Steps {
    /// Those of an entry, with what the log has of its parts.
    pub(super) fn of(store: &Store, entry: &AuditEntry) -> Result<Steps, StoreError> {
        let opening = &entry.opening;
        let Some(closing) = &entry.closing else {
            return Ok(Steps::default());
        };
        // A part begins and ends within the call; only a job goes on after it.
        let within = Filter {
            since_ms: Some(opening.at_ms),
            until_ms: Some(closing.at_ms.saturating_add(1)),
            limit: Some(LOOKED_THROUGH_MAX),
            ..Filter::default()
        };
        let mut children = store.audit().list(&within)?;
        children.retain(|child| child.opening.parent_id.as_ref() == Some(&opening.call_id));
        children.reverse();
        let starts_job = closing.events.iter().any(|event| is_kind(event, "job"));
        let jobs = match starts_job {
            true => ended_jobs(store, &opening.call_id, opening.at_ms)?,
            false => Vec::new(),
        };
        Ok(Steps {
            events: closing.events.clone(),
            children,
            jobs,
        })
    }

    /// As lines: a word, and what happened.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines: Vec<_> = self.events.iter().map(step).collect();
        let children = self.children.iter().map(child);
        let after: Vec<_> = children.chain(self.jobs.iter().flat_map(job)).collect();
        let over = (lines.len() + after.len()).saturating_sub(LINES_MAX);
        // Attack: a program that does so much that the copy of its changes has no line.
        let room = LINES_MAX.saturating_sub(after.len()).max(LINES_MAX / 2);
        lines.truncate(room);
        lines.extend(after);
        if over > 0 {
            lines.truncate(LINES_MAX);
            lines.push((
                "…",
                format!("and {over} more; `ringfence audit show` has all"),
            ));
        }
        let clean = |line: String| elided(&one_line(&line), LINE_CHARS_MAX);
        lines
            .into_iter()
            .map(|(word, line)| (word, clean(line)))
            .collect()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let children = self.children.iter().map(|child| {
            json!({
                "callId": child.opening.call_id, "tool": child.opening.tool,
                "status": status(child),
            })
        });
        json!({
            "events": self.events,
            "calls": children.collect::<Vec<_>>(),
            "jobs": self.jobs,
        })
    }
}

fn ended_jobs(store: &Store, call_id: &str, since_ms: i64) -> Result<Vec<Notice>, StoreError> {
    let filter = Filter {
        act: Some(Act::JobEnded),
        since_ms: Some(since_ms),
        limit: Some(LOOKED_THROUGH_MAX),
        ..Filter::default()
    };
    let notices = store.audit().notices(&filter)?;
    let notices = notices.into_iter().map(|entry| entry.notice);
    let is_its = |notice: &Notice| notice.details.get("callId").is_some_and(|id| id == call_id);
    Ok(notices.filter(is_its).collect())
}

fn is_kind(event: &Value, kind: &str) -> bool {
    event.get("kind").and_then(Value::as_str) == Some(kind)
}

/// A member of an event, as a person writes it; nothing if it is absent or null.
fn part(event: &Value, name: &str) -> Option<String> {
    match event.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn step(event: &Value) -> (&'static str, String) {
    let kind = event
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match kind {
        "process" => ("ran", program(event)),
        "egress" | "fetch" => connection(event),
        "file" => ("file", file(event)),
        "sql" => (
            "database",
            pairs(event, &["source", "mode", "rows", "changed", "refusal"]),
        ),
        "job" => ("job", pairs(event, &["job", "state"])),
        "refused" => ("refused", pairs(event, &["operation", "tool", "refusal"])),
        _ => ("did", event.to_string()),
    }
}

fn program(event: &Value) -> String {
    let program = part(event, "program").unwrap_or_default();
    if let Some(refusal) = part(event, "refusal") {
        return format!("{program} did not start: {refusal}");
    }
    let mut line = program;
    for (name, words) in [
        ("exitCode", "exit code"),
        ("stdoutBytes", "bytes out"),
        ("cpuMs", "ms of processor time"),
        ("rung", "rung"),
    ] {
        let Some(value) = part(event, name) else {
            continue;
        };
        line.push_str(&match name {
            "exitCode" | "rung" => format!(", {words} {value}"),
            _ => format!(", {value} {words}"),
        });
    }
    match part(event, "why") {
        Some(why) => format!("{line}: {why}"),
        None => line,
    }
}

fn connection(event: &Value) -> (&'static str, String) {
    let port = part(event, "port")
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let host = part(event, "host").filter(|host| !host.is_empty());
    // A request to a route of ours. The connection that came of it is an event of its own.
    if let (None, None, Some(route)) = (&host, part(event, "refusal"), part(event, "route")) {
        let status = part(event, "status").unwrap_or_else(|| "none".to_owned());
        return (
            "asked",
            format!("the route `{route}` of Ringfence, status {status}"),
        );
    }
    let host = format!(
        "{}{port}",
        host.unwrap_or_else(|| "no host named".to_owned())
    );
    match part(event, "refusal") {
        Some(refusal) => {
            let by = part(event, "by")
                .map(|by| format!(" by {by}"))
                .unwrap_or_default();
            ("refused", format!("{host} [{refusal}]{by}"))
        }
        None => {
            let status = part(event, "status").map(|status| format!(", status {status}"));
            let bytes = part(event, "bytes").unwrap_or_default();
            (
                "connected",
                format!("{host}{}, {bytes} bytes in", status.unwrap_or_default()),
            )
        }
    }
}

fn file(event: &Value) -> String {
    pairs(
        event,
        &[
            "path",
            "change",
            "changes",
            "protected",
            "unnamed",
            "function",
            "bytes",
            "refusal",
        ],
    )
}

fn pairs(event: &Value, names: &[&str]) -> String {
    let known = names
        .iter()
        .filter_map(|name| Some((name, part(event, name)?)));
    let known: Vec<_> = known
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    known.join(", ")
}

fn status(entry: &AuditEntry) -> &'static str {
    let closing = entry.closing.as_ref();
    closing.map_or("under way", |closing| Status::word(closing.status))
}

fn child(entry: &AuditEntry) -> (&'static str, String) {
    let error = entry
        .closing
        .as_ref()
        .and_then(|closing| closing.error.as_ref());
    let error = error
        .map(|error| format!(" [{}]", error.code))
        .unwrap_or_default();
    let opening = &entry.opening;
    (
        "called",
        format!(
            "{}, {}{error}  ({})",
            opening.tool,
            status(entry),
            opening.call_id
        ),
    )
}

/// The end of a job and what it connected to, which its call did not live to see.
fn job(notice: &Notice) -> Vec<(&'static str, String)> {
    let mut lines = vec![("job ended", notice.message.clone())];
    let own = ["state", "callId", "program", "backend"];
    let details = notice.details.iter();
    let details = details.filter(|(name, _)| !own.contains(&name.as_str()));
    lines.extend(details.map(|(name, value)| ("", format!("{name} {value}"))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_a_route_of_ours_is_no_connection_to_an_unnamed_host() {
        let asked =
            json!({"kind": "egress", "host": "", "status": 200, "route": "git", "refusal": null});
        let line = "the route `git` of Ringfence, status 200";
        assert_eq!(step(&asked), ("asked", line.to_owned()));
        let refused = json!({"kind": "egress", "host": "", "route": "git", "refusal": "bad-route"});
        let line = "no host named [bad-route]";
        assert_eq!(step(&refused), ("refused", line.to_owned()));
        let reached = json!({
            "kind": "egress", "host": "git.example.com", "port": 443, "status": 200, "bytes": 7,
            "route": "git", "refusal": null,
        });
        let line = "git.example.com:443, status 200, 7 bytes in";
        assert_eq!(step(&reached), ("connected", line.to_owned()));
    }

    #[test]
    fn what_is_left_out_is_told_and_hides_no_call_that_was_made() {
        let left_out = json!({
            "kind": "file", "function": "shell", "path": ".envrc",
            "refusal": "left out: a file that direnv runs",
        });
        let line = "path .envrc, function shell, refusal left out: a file that direnv runs";
        assert_eq!(step(&left_out), ("file", line.to_owned()));
        let notice = Notice::new(Act::JobEnded, "ann", "mcp", "it ended");
        let steps = Steps {
            events: vec![left_out; 40],
            children: Vec::new(),
            jobs: vec![notice],
        };
        let lines = steps.lines();
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines[LINES_MAX - 1].0, "job ended");
        assert!(lines[LINES_MAX].1.starts_with("and 21 more"), "{lines:?}");
    }
}
