//! How a program that embeds the engine adds a policy of its own, in Rust. Run it with
//! `cargo run -p ringfence-engine --example policy`.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::call::CallRequest;
use engine::{Alarm, Engine, EngineSettings, Filter, WorkerProgram};
use model::Environment;
use model::caller::{Caller, Origin};
use model::govern::tool_policy::ToolPolicy;
use serde_json::json;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = engine::worker_main() {
        return Ok(code);
    }
    let home = std::env::temp_dir().join(format!("ringfence-policy-{}", std::process::id()));
    let runtime = tokio::runtime::Runtime::new()?;
    let told = runtime.block_on(run(&home, WorkerProgram::ThisProgram));
    std::fs::remove_dir_all(&home)?;
    write!(io::stdout(), "{}", told?)?;
    Ok(ExitCode::SUCCESS)
}

/// Two tools may be called, and one of them not with every argument.
fn policy() -> ToolPolicy {
    ToolPolicy::allow_list(["hello", "chunkText"]).and(ToolPolicy::deny_when(
        |call| call.tool_name == "hello" && call.args.get("who") == Some(&json!("Mallory")),
        "Mallory is not greeted",
    ))
}

/// Makes three calls in a new home and returns a line for each result and audit entry.
pub(crate) async fn run(home: &Path, program: WorkerProgram) -> Result<String, Box<dyn Error>> {
    let alarm = Alarm::new(|sentence| {
        let _ = writeln!(io::stderr(), "alarm: {sentence}");
    });
    let mut settings = EngineSettings::new(PathBuf::from(home), Environment::empty(), alarm);
    settings.program = program;
    settings.policy = policy();
    let engine = Engine::open(settings)?;
    engine.create("hello")?;
    engine.publish("hello", Origin::Cli).await?;

    let mut told = String::new();
    let calls = [
        ("hello", json!({"who": "Ada"})),
        ("hello", json!({"who": "Mallory"})),
        ("countWords", json!({"text": "one two"})),
    ];
    for (tool, arguments) in calls {
        let agent = Caller::named("agent");
        let request = CallRequest::new(agent, Origin::Mcp, tool, arguments);
        let outcome = engine.call(request).await.into_inner();
        match (&outcome.value, &outcome.error) {
            (_, Some(error)) => told += &format!("{}: {}\n", error.reason.code(), error.message),
            (Some(value), None) => told += &format!("result: {value}\n"),
            (None, None) => told += "result: none\n",
        }
    }
    // The rule that decided is in the audit, as for rules of `ringfence.toml`.
    for entry in engine.store().audit().list(&Filter::default())? {
        let gates = entry.closing.iter().flat_map(|closing| &closing.gates);
        for rule in gates.filter_map(|gate| gate.rule.as_ref()) {
            told += &format!("audit: {} was decided by {rule}\n", entry.opening.tool);
        }
    }
    Ok(told)
}
