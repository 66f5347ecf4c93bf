//! How a program embeds the engine: open a home folder, publish a tool, call it, read
//! the audit. Run it with `cargo run -p ringfence-engine --example embed`.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::call::CallRequest;
use engine::{Alarm, Engine, EngineSettings, Filter, WorkerProgram};
use model::Environment;
use model::caller::{Caller, Origin};
use serde_json::json;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // A sandbox worker is this program, started again. It must become one before
    // anything else happens.
    if let Some(code) = engine::worker_main() {
        return Ok(code);
    }
    let home = std::env::temp_dir().join(format!("ringfence-embed-{}", std::process::id()));
    let runtime = tokio::runtime::Runtime::new()?;
    let told = runtime.block_on(run(&home, WorkerProgram::ThisProgram));
    std::fs::remove_dir_all(&home)?;
    write!(io::stdout(), "{}", told?)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes one call in a new home and returns the result, a line for each fact.
pub(crate) async fn run(home: &Path, program: WorkerProgram) -> Result<String, Box<dyn Error>> {
    // Alarms are what the operator must hear, such as a disk that fails.
    let alarm = Alarm::new(|sentence| {
        let _ = writeln!(io::stderr(), "alarm: {sentence}");
    });
    // Tools see no variable of this process unless it is in this environment.
    let mut settings = EngineSettings::new(PathBuf::from(home), Environment::empty(), alarm);
    settings.program = program;
    let engine = Engine::open(settings)?;

    // A new tool is a draft. Publishing runs its own test in the sandbox first.
    engine.create("hello")?;
    let passed = engine.publish("hello", Origin::Cli).await?;
    let mut told = format!("published: {}\n", passed.ok);

    // The caller decides which rules, levels and limits hold.
    let agent = Caller::named("agent");
    let request = CallRequest::new(agent, Origin::Mcp, "hello", json!({"who": "Ada"}));
    let outcome = engine.call(request).await.into_inner();
    // A refusal is an answer with a reason, not an `Err`: the engine did its job.
    match (&outcome.value, &outcome.error) {
        (_, Some(error)) => told += &format!("{}: {}\n", error.reason.code(), error.message),
        (Some(value), None) => told += &format!("result: {value}\n"),
        (None, None) => told += "result: none\n",
    }

    // Every attempt has an entry, and the entries are one hash chain.
    let audit = engine.store().audit();
    for entry in audit.list(&Filter::default())? {
        let opening = &entry.opening;
        let status = entry.closing.map(|closing| closing.status.word());
        let status = status.unwrap_or("open");
        told += &format!(
            "audit: {} called {}: {status}\n",
            opening.caller, opening.tool
        );
    }
    told += &format!("audit is whole: {}\n", audit.verify(None)?.broken.is_none());
    Ok(told)
}
