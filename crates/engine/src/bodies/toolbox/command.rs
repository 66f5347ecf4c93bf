//! `shell` and `runCode`: a program of the caller's choice, in the jail.

use std::collections::BTreeMap;
use std::time::Duration;

use host::files::changes::CollectedChanges;
use model::text;
use serde_json::{Map, Value, json};

use crate::bodies::toolbox::{ToolboxWork, apply};
use crate::changes::{ChangeRecord, KeptSet, Staging};
use crate::jailed::{
    self, Captured, JailedCommand, JailedRun, OutputSink, OutputStream, ProgressLines,
};
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::scratch::Scratch;

/// Seconds of a call that does not say how many.
const SECONDS_DEFAULT: u64 = 30;

/// The command line, read by the system's shell.
pub(super) async fn shell(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let sh = work.engine.jailer().find("sh")?;
    let line = work.text("command").unwrap_or_default();
    let words = vec![sh, "-c".to_owned(), line.to_owned()];
    run(work, words).await
}

/// The program, as text, by its interpreter.
pub(super) async fn run_code(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let jailer = work.engine.jailer();
    let code = work.text("code").unwrap_or_default().to_owned();
    // Isolated from what lies around: no user site, no startup files.
    let words = match work.text("language") {
        Some("python") => vec![
            jailer.find("python3")?,
            "-I".to_owned(),
            "-c".to_owned(),
            code,
        ],
        Some("javascript") => vec![jailer.find("node")?, "-e".to_owned(), code],
        _ => vec![
            jailer.find("bash")?,
            "--noprofile".to_owned(),
            "--norc".to_owned(),
            "-c".to_owned(),
            code,
        ],
    };
    run(work, words).await
}

/// How long a call may take: what it asks for, within the operator's bound.
pub(super) fn time(work: &ToolboxWork<'_>) -> Duration {
    let asked = work.number("timeout").unwrap_or(SECONDS_DEFAULT);
    Duration::from_secs(asked.min(work.now.config.toolbox.seconds_max))
}

/// The variables every program of a call has.
pub(super) fn environment(work: &ToolboxWork<'_>) -> BTreeMap<String, String> {
    let caller = text::elided(&work.request.caller.name, 200);
    [
        ("RINGFENCE_CALL_ID", work.call_id.clone()),
        ("RINGFENCE_CALLER", caller),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

async fn run(work: &ToolboxWork<'_>, words: Vec<String>) -> Result<RunResult, CallRefusal> {
    let staged = work.stage().await?;
    let start = work.start("workingDirectory", staged.folder.path())?;
    let own = Scratch::new(work.engine.home(), &work.call_id);
    let command = JailedCommand {
        command: words,
        environment: environment(work),
        stdin: work.text("stdin").unwrap_or_default().as_bytes().to_vec(),
        own_folder: own.path().to_path_buf(),
        folder: staged.folder,
        start,
        time: time(work),
        network: work.network()?,
        stop: None,
    };
    let (ran, stdout, stderr) = run_jailed(work, command).await?;
    let mut value = result(&ran, &stdout, &stderr);
    let changes = match keep(staged.staging, work).await {
        Ok(Some(kept)) => Some(apply::offer(work, kept).await),
        Ok(None) => None,
        Err(why) => Some(apply::lost(work, &why)),
    };
    if let Some(changes) = changes {
        value.insert("changes".to_owned(), changes);
    }
    Ok(RunResult::done(Value::Object(value)))
}

/// What a program changed beside the operator's folder, kept for its caller. Nothing if it
/// changed nothing there.
async fn keep(staging: Option<Staging>, work: &ToolboxWork<'_>) -> Result<Option<KeptSet>, String> {
    let Some(staging) = staging else {
        return Ok(None);
    };
    let keeper = work.engine.changes().clone();
    let record = ChangeRecord {
        caller: work.request.caller.name.clone(),
        call_id: work.call_id.clone(),
        folder: work.policy.fs_base_path.clone().unwrap_or_default(),
        collected: CollectedChanges::default(),
    };
    let keeping = move || keeper.keep_program(staging, record);
    let kept = tokio::task::spawn_blocking(keeping).await;
    kept.unwrap_or_else(|_| Err("the changes could not be looked at".to_owned()))
}

/// Runs a program, tells its lines as progress, and puts it on record.
pub(super) async fn run_jailed(
    work: &ToolboxWork<'_>,
    command: JailedCommand,
) -> Result<(JailedRun, Captured, Captured), CallRefusal> {
    let program = command.command.first().cloned().unwrap_or_default();
    let limits = &work.now.config.toolbox;
    let mut note = ProcessNote {
        work,
        program: &program,
        is_over: false,
    };
    let mut tell_stdout = teller(work, OutputStream::Stdout);
    let mut tell_stderr = teller(work, OutputStream::Stderr);
    let mut stdout = OutputSink::watched(limits.output_bytes_max, &work.masker, &mut tell_stdout);
    let mut stderr = OutputSink::watched(limits.output_bytes_max, &work.masker, &mut tell_stderr);
    let jailer = work.engine.jailer();
    let ran = jailer.run(command, limits, &mut stdout, &mut stderr).await;
    note.is_over = true;
    let ran = ran.map_err(|fault| {
        let why = crate::error::causes(&fault);
        let event =
            json!({"kind": "process", "backend": "jail", "program": program, "refusal": why});
        work.powers.note(event);
        jailed::refuse(&fault)
    })?;
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    for event in &ran.egress {
        work.powers.note(event.to_json());
    }
    work.powers
        .note(ran.event(&program, stdout.bytes, stderr.bytes));
    Ok((ran, stdout, stderr))
}

/// Tells the lines of an output as progress, secrets masked.
fn teller<'a>(work: &'a ToolboxWork<'_>, stream: OutputStream) -> impl FnMut(&[u8]) + Send + 'a {
    let mut lines = ProgressLines::default();
    let progress = work.request.progress.clone();
    move |bytes| {
        let Some(progress) = &progress else { return };
        for line in lines.push(bytes, &work.masker) {
            // Masked before: a secret on one line may be spelt otherwise.
            let line = text::one_line(line.get());
            progress.tell(&format!("{}: {line}", stream.word()));
        }
    }
}

/// A program that was started. If the call is dropped before its end, the program is
/// killed, and that is put on record.
struct ProcessNote<'a> {
    work: &'a ToolboxWork<'a>,
    program: &'a str,
    is_over: bool,
}

impl Drop for ProcessNote<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let event = json!({
                "kind": "process", "backend": "jail", "program": self.program,
                "ended": "interrupted",
            });
            self.work.powers.note(event);
        }
    }
}

/// What a caller gets of a program that ran.
fn result(ran: &JailedRun, stdout: &Captured, stderr: &Captured) -> Map<String, Value> {
    let value = json!({
        "exitCode": ran.end.exit_code(),
        "ended": ran.end.word(),
        "stdout": stdout.text,
        "stderr": stderr.text,
        "stdoutBytes": stdout.bytes,
        "stderrBytes": stderr.bytes,
        "truncated": stdout.is_cut || stderr.is_cut,
        "seconds": ran.wall.as_secs_f64(),
    });
    let mut members = match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if let Some(why) = ran.end.why() {
        members.insert("why".to_owned(), why.into());
    }
    members
}
