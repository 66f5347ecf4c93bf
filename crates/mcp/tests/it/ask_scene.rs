//! Where a cell of the matrix is played: a home of its own, a tool that leaves a line
//! for each run, and a client that is asked in the way of its era.

use std::time::Duration;

use engine::approve::{AnswerFault, ApprovalScope, Listed, Listing};
use engine::{AuditEntry, Filter};
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::record::audit::Status;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Events, Http, LEGACY, Pipe, call};
use crate::world::{CALLER, Server, World, document};

/// Longer than any person needs to read a question of these tests.
const READ: Duration = Duration::from_millis(1_200);
/// The tool everything is about.
pub(crate) const TOOL: &str = "guarded";

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    LegacyHttp,
    LegacyPipe,
    ModernHttp,
    ModernPipe,
}

impl Column {
    pub(crate) const ALL: [Column; 4] = [
        Column::LegacyHttp,
        Column::LegacyPipe,
        Column::ModernHttp,
        Column::ModernPipe,
    ];

    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Column::ModernHttp | Column::ModernPipe)
    }

    pub(crate) fn is_http(self) -> bool {
        matches!(self, Column::LegacyHttp | Column::ModernHttp)
    }

    /// The name the caller is known by.
    pub(crate) fn caller(self) -> &'static str {
        if self.is_http() { "ann" } else { "stdio" }
    }
}

/// What there is to see at one moment: what the client was told, how often the tool
/// ran, where each question stands, the oldest first, and how many the inbox shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) told: String,
    pub(crate) runs: usize,
    pub(crate) states: Vec<ApprovalState>,
    pub(crate) shown: usize,
}

/// A cell while it is played.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) column: Column,
    pub(crate) facts: Vec<Fact>,
    what: String,
}

/// Leaves a line for each run, which no record could make up.
pub(crate) fn guarded(name: &str, word: &str) -> Value {
    let code = format!("safety.fs.appendText('ran.txt', to + '\\n'); return '{word}'");
    let more = json!({
        "humanInTheLoop": {"mode": "REQUIRED"},
        "params": [{"name": "to", "type": "STRING", "required": false, "testValue": "t"}],
        "sandboxOverrides": {"fileWrite": true},
    });
    document(name, &code, more)
}

pub(crate) fn to(whom: &str) -> Value {
    json!({"to": whom})
}

pub(crate) fn yes() -> Value {
    json!({"action": "accept", "content": {"answer": "once"}})
}

/// As long as a person needs at least.
pub(crate) async fn read() {
    // Sleeps: an answer counts only if a person could have read the question.
    tokio::time::sleep(READ).await;
}

impl Scene {
    pub(crate) async fn new(what: &str, column: Column, approvals: &str) -> Scene {
        let world = World::with(&format!("[approvals]\n{approvals}")).await;
        world.publish(&guarded(TOOL, "ran")).await;
        let server = world.serve().await;
        Scene {
            world,
            server,
            column,
            facts: Vec::new(),
            what: format!("{what} over {column:?}"),
        }
    }

    /// A client of this column whose person can be asked.
    pub(crate) async fn visitor(&self) -> Visitor {
        self.visitor_with(json!({"elicitation": {"form": {}}}))
            .await
    }

    pub(crate) async fn visitor_with(&self, capabilities: Value) -> Visitor {
        self.visitor_as(self.column, None, capabilities).await
    }

    /// A client of any column, of another caller if there is a name.
    pub(crate) async fn visitor_as(
        &self,
        column: Column,
        name: Option<&str>,
        capabilities: Value,
    ) -> Visitor {
        let (line, serving) = if column.is_http() {
            let mut http = self.server.client().await;
            let name = name.map(|name| (CALLER.to_owned(), name.to_owned()));
            http.headers.extend(name);
            (Line::Http(http), None)
        } else {
            let (pipe, serving, _) = self.world.pipe();
            (Line::Pipe(Box::new(pipe)), Some(serving))
        };
        Visitor::begun(column, line, serving, capabilities).await
    }

    /// A client at the pipe of a process that comes after this one.
    pub(crate) async fn after_restart(&self) -> Visitor {
        let (pipe, serving, _) = self.world.reopened().pipe();
        let capabilities = json!({"elicitation": {"form": {}}});
        let line = Line::Pipe(Box::new(pipe));
        Visitor::begun(self.column, line, Some(serving), capabilities).await
    }

    /// Notes what the client was told, and everything else there is to see.
    pub(crate) fn see(&mut self, told: impl Into<String>) {
        let told = told.into();
        self.facts.push(Fact {
            told,
            runs: self.runs(),
            states: self.questions().iter().map(|row| row.state).collect(),
            shown: self.shown().len(),
        });
    }

    /// What the client was told as the answer of a call.
    pub(crate) fn see_answer(&mut self, said: &Value) {
        self.see(outcome(said));
    }

    /// What the audit says of a call whose client is gone.
    pub(crate) async fn see_audit(&mut self) {
        let closing = self.world.ended(TOOL).await.closing.unwrap();
        self.see(closing.error.map_or("ran".to_owned(), |error| error.code));
    }

    /// Makes a call and waits for its question, which is in the inbox by then.
    pub(crate) async fn ask(&self, visitor: &mut Visitor, arguments: &Value) -> Asked {
        let runs = self.runs();
        let asked = visitor.ask(arguments).await;
        let newest = self.questions().pop().unwrap();
        assert_eq!(newest.state, ApprovalState::Pending, "{}", self.what);
        assert!(self.shown().contains(&newest), "{}", self.what);
        assert_eq!(self.runs(), runs, "{}", self.what);
        asked
    }

    /// Every question, the oldest first.
    pub(crate) fn questions(&self) -> Vec<Listed> {
        self.world.engine().approvals().list(Listing::All).unwrap()
    }

    fn shown(&self) -> Vec<Listed> {
        let inbox = self.world.engine().approvals();
        inbox.list(Listing::Pending).unwrap()
    }

    /// Approves the newest question in the inbox.
    pub(crate) fn approve(&self, by: &Caller) -> Result<Listed, AnswerFault> {
        let newest = self.questions().pop().unwrap();
        let inbox = self.world.engine().approvals();
        inbox.approve(&newest.id, by, ApprovalScope::Once, None)
    }

    /// The calls of clients that have ended.
    pub(crate) fn attempts(&self) -> Vec<AuditEntry> {
        let filter = Filter {
            tool: Some(TOOL.to_owned()),
            ..Filter::default()
        };
        let entries = self.world.engine().store().audit().list(&filter).unwrap();
        let is_over =
            |entry: &AuditEntry| entry.opening.origin == Origin::Mcp && entry.closing.is_some();
        entries.into_iter().filter(is_over).collect()
    }

    /// How often the tool ran. The audit and the file must agree on it, and whatever
    /// did not run was refused or taken back.
    pub(crate) fn runs(&self) -> usize {
        let statuses: Vec<_> = self
            .attempts()
            .into_iter()
            .filter_map(|entry| entry.closing)
            .map(|closing| closing.status)
            .collect();
        let ran = |status: &&Status| match status {
            Status::Done => true,
            Status::Refused | Status::Cancelled => false,
            Status::Failed | Status::Crashed => panic!("{}: {statuses:?}", self.what),
        };
        let runs = statuses.iter().filter(ran).count();
        assert_eq!(self.lines().len(), runs, "{}", self.what);
        runs
    }

    /// For whom the tool ran.
    pub(crate) fn lines(&self) -> Vec<String> {
        let path = self.world.home.path.join("workspace/ran.txt");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) async fn end(self) -> Vec<Fact> {
        self.server.end().await;
        self.facts
    }
}

enum Line {
    Http(Http),
    Pipe(Box<Pipe>),
}

/// A client, and the person at it.
pub(crate) struct Visitor {
    column: Column,
    line: Line,
    serving: Option<JoinHandle<()>>,
    capabilities: Value,
    calls: u64,
}

/// A call whose question was shown.
pub(crate) struct Asked {
    pub(crate) call: u64,
    pub(crate) arguments: Value,
    /// The id of the question in a session, the sealed state otherwise.
    pub(crate) token: Value,
    events: Option<Events>,
}

impl Visitor {
    async fn begun(
        column: Column,
        mut line: Line,
        serving: Option<JoinHandle<()>>,
        capabilities: Value,
    ) -> Visitor {
        if !column.is_modern() {
            match &mut line {
                Line::Http(http) => http.begin(LEGACY, capabilities.clone()).await,
                Line::Pipe(pipe) => pipe.begin(LEGACY, capabilities.clone()).await,
            };
        }
        Visitor {
            column,
            line,
            serving,
            capabilities,
            calls: 0,
        }
    }

    fn message(&mut self, arguments: &Value) -> Value {
        self.calls += 1;
        call(self.calls, TOOL, arguments.clone())
    }

    /// Makes a call that ends with its question, or waits for an answer to it.
    pub(crate) async fn ask(&mut self, arguments: &Value) -> Asked {
        let message = self.message(arguments);
        let (token, events) = if self.column.is_modern() {
            let said = self.say_modern(&message).await;
            assert_eq!(outcome(&said), "asked", "{said}");
            (said["result"]["requestState"].clone(), None)
        } else {
            self.asked_now(&message).await
        };
        Asked {
            call: self.calls,
            arguments: arguments.clone(),
            token,
            events,
        }
    }

    async fn asked_now(&mut self, message: &Value) -> (Value, Option<Events>) {
        let (question, events) = match &mut self.line {
            Line::Http(http) => {
                // The call holds its connection; another takes its place.
                let next = http.another().await;
                let mut busy = std::mem::replace(http, next);
                let mut events = busy.post(message).await.events();
                (events.next().await.unwrap(), Some(events))
            }
            Line::Pipe(pipe) => {
                pipe.say(message).await;
                (pipe.next().await.unwrap(), None)
            }
        };
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (question["id"].clone(), events)
    }

    /// Makes a call, and says nothing to any question.
    pub(crate) async fn call(&mut self, arguments: &Value) -> Value {
        let message = self.message(arguments);
        if self.column.is_modern() {
            return self.say_modern(&message).await;
        }
        match &mut self.line {
            Line::Http(http) => http.post(&message).await.last().await,
            Line::Pipe(pipe) => pipe.ask(&message).await,
        }
    }

    /// Answers a question, and returns what comes of the call.
    pub(crate) async fn answer(&mut self, asked: &mut Asked, result: &Value) -> Value {
        if self.column.is_modern() {
            let message = self.retry(asked, result);
            return self.say_modern(&message).await;
        }
        self.respond(&asked.token, result).await;
        self.rest(asked).await
    }

    /// The call of a modern client with its answer.
    pub(crate) fn retry(&mut self, asked: &Asked, result: &Value) -> Value {
        let mut message = self.message(&asked.arguments);
        message["params"]["requestState"] = asked.token.clone();
        message["params"]["inputResponses"] = json!({"approval": result});
        message
    }

    pub(crate) async fn say_modern(&mut self, message: &Value) -> Value {
        let capabilities = self.capabilities.clone();
        match &mut self.line {
            Line::Http(http) => http.modern_with(message, capabilities).await.last().await,
            Line::Pipe(pipe) => pipe.modern(message, capabilities).await,
        }
    }

    /// Says what has no answer.
    pub(crate) async fn say(&mut self, message: &Value) {
        match &mut self.line {
            Line::Http(http) => drop(http.post(message).await.text().await),
            Line::Pipe(pipe) => pipe.say(message).await,
        }
    }

    /// The next line of a pipe.
    pub(crate) async fn next(&mut self) -> Value {
        let Line::Pipe(pipe) = &mut self.line else {
            panic!("a pipe has lines");
        };
        pipe.next().await.unwrap()
    }

    /// Answers the question with this id; what it is told of that, if anything.
    pub(crate) async fn respond(&mut self, id: &Value, result: &Value) -> String {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match &mut self.line {
            Line::Http(http) => {
                let said = http.post(&message).await;
                let status = said.status.as_u16();
                said.text().await;
                if status == 202 {
                    return "nothing".to_owned();
                }
                format!("status {status}")
            }
            Line::Pipe(pipe) => {
                pipe.say(&message).await;
                "nothing".to_owned()
            }
        }
    }

    /// The answer of a call that waited.
    pub(crate) async fn rest(&mut self, asked: &mut Asked) -> Value {
        loop {
            let said = match (&mut asked.events, &mut self.line) {
                (Some(events), _) => events.next().await,
                (None, Line::Pipe(pipe)) => pipe.next().await,
                (None, Line::Http(_)) => panic!("no stream to read"),
            };
            let said = said.unwrap();
            if said["id"] == asked.call && said.get("method").is_none() {
                return said;
            }
        }
    }

    /// A round trip: whatever was said before it has arrived.
    pub(crate) async fn ping(&mut self) {
        let message = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
        match &mut self.line {
            Line::Http(http) => drop(http.post(&message).await.last().await),
            Line::Pipe(pipe) => drop(pipe.ask(&message).await),
        }
    }

    /// Speaks in the session of another, under its own name.
    pub(crate) fn borrow_session(&mut self, from: &Visitor) {
        let (Line::Http(own), Line::Http(from)) = (&mut self.line, &from.line) else {
            panic!("pipes have no sessions to borrow");
        };
        own.headers.retain(|(name, _)| name == CALLER);
        own.headers.extend(from.headers.iter().cloned());
    }

    /// Ends its session.
    pub(crate) async fn leave(&mut self) {
        let Line::Http(http) = &mut self.line else {
            panic!("a pipe is hung up");
        };
        let said = http.send(
            axum::http::Method::DELETE,
            "/mcp",
            axum::body::Body::empty(),
        );
        assert_eq!(said.await.status, 204);
    }

    /// Is gone from one moment to the next, and the server has noticed.
    pub(crate) async fn vanish(self, asked: Asked) {
        drop((self.line, asked));
        if let Some(serving) = self.serving {
            serving.await.unwrap();
        }
    }
}

/// `ran`, `asked`, or the code of the error.
pub(crate) fn outcome(said: &Value) -> String {
    let result = &said["result"];
    if result["resultType"] == "input_required" {
        let asked = &result["inputRequests"]["approval"];
        assert_eq!(asked["method"], "elicitation/create", "{said}");
        return "asked".to_owned();
    }
    if result["isError"] == false {
        assert_eq!(result["content"][0]["text"], "ran", "{said}");
        return "ran".to_owned();
    }
    // What was not even made is an error of the protocol.
    let refused = said["error"]["data"]["code"].as_str();
    if let Some(reason) = refused {
        assert_eq!(said["error"]["code"], -32602, "{said}");
        assert_eq!(reason, "approval.state", "{said}");
    }
    let code = result["structuredContent"]["code"].as_str().or(refused);
    code.unwrap_or_else(|| panic!("{said}")).to_owned()
}
