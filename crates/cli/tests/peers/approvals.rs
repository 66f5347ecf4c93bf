//! A tool that needs a person's yes: asked in a client that can ask, waiting in the inbox for
//! one that cannot, and never run otherwise.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Kind, Way};
use crate::world::Home;

/// What a person needs to read a question, and more.
const READING_MS: u64 = 1_500;

/// How often a machine may try to be fast.
const ATTEMPTS_MAX: usize = 5;

/// A question that is not in the inbox by then will not come.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn the_python_client_over_http() {
    over_http(Kind::Python);
}

#[test]
fn the_python_client_over_pipes() {
    over_pipes(Kind::Python);
}

#[test]
fn the_older_typescript_client() {
    over_http(Kind::SdkV1);
    over_pipes(Kind::SdkV1);
}

#[test]
fn the_newer_typescript_client_over_http() {
    over_http(Kind::ClientV2);
}

#[test]
fn the_newer_typescript_client_over_pipes() {
    over_pipes(Kind::ClientV2);
}

fn over_http(kind: Kind) {
    let home = Home::new(&format!("approvals-http-{kind:?}"));
    let server = home.serve();
    for mode in kind.modes() {
        visit(kind, *mode, Way::Http(&server), &home);
    }
}

fn over_pipes(kind: Kind) {
    let home = Home::new(&format!("approvals-pipes-{kind:?}"));
    for mode in kind.modes() {
        visit(kind, *mode, Way::Pipes(&home), &home);
    }
}

fn visit(kind: Kind, mode: (&str, bool), way: Way<'_>, home: &Home) {
    let before = home.runs();
    asked_in_the_client(kind, mode, way);
    assert_eq!(home.runs(), before + 1, "only what was approved has run");
    let attempts = answered_by_a_machine(kind, mode, way, home);
    nobody_at_the_client(kind, mode, way, home);
    let expected = before + 1 + attempts + 1;
    assert_eq!(home.runs(), expected, "only what was approved has run");
}

/// Yes, no, and the question put away.
fn asked_in_the_client(kind: Kind, mode: (&str, bool), way: Way<'_>) {
    let answers = json!([
        {"action": "accept", "afterMs": READING_MS, "choice": "once"},
        {"action": "decline", "afterMs": READING_MS},
        {"action": "cancel", "afterMs": READING_MS},
    ]);
    let steps = json!([call("Ann"), call("Bob"), call("Cid")]);
    let plan = json!({"answers": answers, "steps": steps});
    let client = Client::start(kind, mode, way, &plan);
    let approved = client.step(0);
    client.check(approved["isError"] == json!(false), &approved);
    client.check(said(&approved).contains("did it for Ann"), &approved);
    let declined = client.step(1);
    client.check(is_refused(&declined, "approval.declined"), &declined);
    let dismissed = client.step(2);
    client.check(is_refused(&dismissed, "approval.dismissed"), &dismissed);
    let end = client.next();
    let asked = end["asked"].as_array().unwrap();
    client.check(asked.len() == 3, &end);
    for (question, who) in asked.iter().zip(["Ann", "Bob", "Cid"]) {
        let message = question["message"].as_str().unwrap();
        client.check(
            message.contains(&format!("May 'careful' do it for \"{who}\"?")),
            question,
        );
        client.check(message.contains("[risk L"), question);
    }
}

/// No person reads a question in no time, so an instant yes does not count: the owner is asked instead. On a busy machine
/// even such a yes may be as slow as a person's, and counts; then it is tried again. Answers
/// how often.
fn answered_by_a_machine(kind: Kind, mode: (&str, bool), way: Way<'_>, home: &Home) -> usize {
    for attempt in 1..=ATTEMPTS_MAX {
        let who = format!("Dan {} {attempt}", mode.0);
        let answers = json!([{"action": "accept", "afterMs": 0, "choice": "once"}]);
        let plan = json!({"answers": answers, "steps": [call(&who)]});
        let client = Client::start(kind, mode, way, &plan);
        let stays = home.question_that_stays(&who);
        if let Some(question) = &stays {
            home.must(&["approvals", "approve", question, "--automation"]);
        }
        let approved = client.step(0);
        client.check(
            said(&approved).contains(&format!("did it for {who}")),
            &approved,
        );
        if stays.is_some() {
            return attempt;
        }
    }
    panic!("no answer was too fast for a person")
}

/// A client that cannot ask: the call waits for the owner, in another process.
fn nobody_at_the_client(kind: Kind, mode: (&str, bool), way: Way<'_>, home: &Home) {
    let plan = json!({"steps": [call("Eve"), call("Fay")]});
    let client = Client::start(kind, mode, way, &plan);
    let question = home.question("Eve");
    home.must(&["approvals", "approve", &question, "--automation"]);
    let approved = client.step(0);
    client.check(said(&approved).contains("did it for Eve"), &approved);
    let question = home.question("Fay");
    home.must(&["approvals", "deny", &question]);
    let denied = client.step(1);
    client.check(is_refused(&denied, "approval.declined"), &denied);
}

impl Home {
    /// Waits until the question about a person is in the inbox, and returns its id.
    #[track_caller]
    pub(crate) fn question(&self, who: &str) -> String {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let listed: Value =
                serde_json::from_str(&self.must(&["approvals", "list", "--json"])).unwrap();
            let mut waiting = listed.as_array().unwrap().iter();
            let found = waiting.find(|row| {
                row["state"] == json!("pending")
                    && row["arguments"]
                        .as_str()
                        .is_some_and(|text| text.contains(who))
            });
            if let Some(found) = found {
                return found["id"].as_str().unwrap().to_owned();
            }
            // Sleeps: looks again and again until the question is there.
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no question about {who} came")
    }

    /// The question about a person, if it is still there after the client's own answer came.
    fn question_that_stays(&self, who: &str) -> Option<String> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let asked = self.questions(who);
            let is_pending = |row: &&Value| row["state"] == json!("pending");
            if asked.iter().any(|row| !is_pending(&row)) {
                return None;
            }
            if let Some(row) = asked.first() {
                let id = row["id"].as_str().unwrap().to_owned();
                // Sleeps: what is pending for a moment only was answered in the client.
                std::thread::sleep(Duration::from_secs(2));
                let stays = self.questions(who).iter().any(|row| is_pending(&row));
                return stays.then_some(id);
            }
            // Sleeps: looks again and again until the question is there.
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no question about {who} came")
    }

    /// Every question about a person, answered or not.
    fn questions(&self, who: &str) -> Vec<Value> {
        let listed = self.must(&["approvals", "list", "--all", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        let is_about = |row: &Value| {
            row["arguments"]
                .as_str()
                .is_some_and(|text| text.contains(who))
        };
        listed.into_iter().filter(is_about).collect()
    }

    /// How often `careful` has run, by the audit.
    fn runs(&self) -> usize {
        let arguments = [
            "audit", "list", "--tool", "careful", "--status", "done", "--json",
        ];
        let listed: Value = serde_json::from_str(&self.must(&arguments)).unwrap();
        listed.as_array().unwrap().len()
    }
}

fn call(who: &str) -> Value {
    json!({"do": "call", "name": "careful", "arguments": {"who": who}})
}

fn said(event: &Value) -> &str {
    event["text"].as_str().unwrap_or_default()
}

/// A refusal in a result, with its reason.
fn is_refused(event: &Value, reason: &str) -> bool {
    event["isError"] == json!(true) && event.to_string().contains(reason)
}
