//! A server in its jail, and who reviews its list.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge::{
    CallKind, Reviewer, SeenTools, Server, ServerFault, ServerSettings, ServerTarget, ToolCall,
    ToolResult,
};
use host::egress::EgressEvent;
use jail::{JailSettings, WorkerProgram};
use model::config::ServerEra;
use model::record::mask::Masker;
use serde_json::{Map, Value};

/// Keeps every list, and refuses them all if told to.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) seen: Mutex<Vec<SeenTools>>,
    pub(crate) connections: Mutex<Vec<EgressEvent>>,
    pub(crate) refuse: bool,
}

impl Reviewer for Lists {
    fn review(&self, _server: &str, seen: &SeenTools) -> Result<String, String> {
        self.seen.lock().expect("the lists").push(seen.clone());
        match self.refuse {
            true => Err("the owner does not want it".to_owned()),
            false => Ok(format!("{seen:?}")),
        }
    }

    fn note_connections(&self, _server: &str, events: &[EgressEvent]) {
        let mut noted = self.connections.lock().expect("the connections");
        noted.extend(events.iter().cloned());
    }
}

impl Lists {
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().expect("the lists").len()
    }
}

/// A folder that goes when the test ends.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "{name}-{}-{:?}",
            std::process::id(),
            std::time::Instant::now()
        ));
        let plain: String = path
            .display()
            .to_string()
            .chars()
            .filter(|character| !" {}:,".contains(*character))
            .collect();
        let path = PathBuf::from(plain);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn settings(folder: &Folder, words: &[&str]) -> ServerSettings {
    let program = env!("CARGO_BIN_EXE_bridge-test-server").to_owned();
    let words = words.iter().map(|word| (*word).to_owned());
    let command = std::iter::once(program).chain(words).collect();
    let mut jail = JailSettings::new(command, folder.0.join("home"));
    jail.read.push(folder.0.clone());
    ServerSettings {
        name: "test".to_owned(),
        target: ServerTarget::Command {
            jail,
            hosts: None,
            program: WorkerProgram::Other(
                env!("CARGO_BIN_EXE_bridge-test-worker").into(),
                Vec::new(),
            ),
        },
        era: ServerEra::Legacy,
        start_timeout: Duration::from_secs(20),
        idle: Duration::from_secs(600),
        may_ask: true,
        prompts: false,
        resources: false,
        logs: None,
        masker: Arc::new(Masker::none()),
    }
}

pub(crate) fn server(folder: &Folder, words: &[&str]) -> (Server, Arc<Lists>) {
    let lists = Arc::new(Lists::default());
    let server = Server::new(settings(folder, words), Arc::clone(&lists) as _);
    (server, lists)
}

pub(crate) fn tool_call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        kind: CallKind::Tool,
        tool: tool.to_owned(),
        arguments: match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        },
        timeout: Duration::from_secs(20),
        progress: None,
        elicitor: None,
        trace: None,
    }
}

pub(crate) async fn call(
    server: &Server,
    tool: &str,
    arguments: Value,
) -> Result<ToolResult, ServerFault> {
    server.call(tool_call(tool, arguments), |_| Ok(())).await
}

/// The text of the first block.
pub(crate) fn text(result: &ToolResult) -> &str {
    let first = result.content.first();
    let text = first
        .and_then(|block| block.get("text"))
        .and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Waits until something holds, for twenty seconds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..400 {
        if holds() {
            return;
        }
        ticks.tick().await;
    }
    panic!("{what} did not come true");
}

/// The processes whose variables hold a text: a server's home is in its folder, and what
/// it starts inherits that.
pub(crate) fn processes(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(text) {
            found.push(pid);
        }
    }
    found
}
