//! `ringfence run`: one call of one document, in both walls.
//!
//! The document is taken as it stands in its file. Its policy and arguments are
//! judged by `model`; the code runs in a sandbox worker with the powers its policy
//! grants. There is no audit row yet: that comes with the engine's call path, which
//! this command will then enter.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use engine::powers::{PowerSettings, Powers};
use model::assessment::{self, Assessment, Sound};
use model::document::{self, ApprovalMode};
use model::finding::any_error;
use model::grant::Grant;
use model::json::Lines;
use model::mask::{Masked, Masker};
use model::params::{self, Arguments};
use model::reason::Reason;
use model::risk::Level;
use model::safety::Source as ToolSource;
use model::{Environment, placeholder, text};
use sandbox::job::{ConsoleLine, Ended, Job, Limits, Thrown};
use sandbox::pool::{Pool, PoolError, RunError, Sharing, WorkerProgram};
use serde_json::{Map, Value, json};

use crate::arguments::Run as RunArguments;
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::settings;
use crate::source::{self, Source};

/// How a call ended.
enum Outcome {
    /// The code returned; `None` is `undefined`.
    Done(Option<Value>),
    /// A gate said no; nothing ran.
    Refused(Failure),
    /// It ran and did not get there.
    Failed(Failure),
}

struct Failure {
    reason: Reason,
    message: String,
    /// The author's own line and column, when the code threw.
    place: Option<(u32, u32)>,
}

/// A call and what came of it, not yet fit to leave.
struct Called {
    outcome: Outcome,
    console: Vec<ConsoleLine>,
    elapsed_ms: f64,
}

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let environment = settings::environment_with(arguments.common.env_file.as_deref())?;
    let raw_arguments = read_arguments(arguments.args.as_deref())?;
    let sound = load(arguments, &environment)?;
    let home = settings::home(arguments.common.home.as_deref())
        .context("there is no home folder; set RINGFENCE_HOME")?;
    let workspace = std::path::absolute(home)?.join("workspace");
    let started = Instant::now();
    let (called, masker) = match prepare(&sound, &raw_arguments, &environment, &workspace)? {
        Ok(prepared) => {
            let (outcome, console) = execute(&prepared)?;
            let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
            (
                Called {
                    outcome,
                    console,
                    elapsed_ms,
                },
                prepared.masker,
            )
        }
        Err(failure) => {
            let outcome = Outcome::Refused(failure);
            let called = Called {
                outcome,
                console: Vec::new(),
                elapsed_ms: 0.0,
            };
            (called, Arc::new(Masker::new([])?))
        }
    };
    let exit = match called.outcome {
        Outcome::Done(_) => Exit::Done,
        Outcome::Refused(_) | Outcome::Failed(_) => Exit::No,
    };
    let shown = masker.value(to_value(called));
    match printer.format() {
        Format::Json => printer.json(shown.get()),
        Format::Human => show(&shown, printer),
    }
    Ok(exit)
}

fn read_arguments(text: Option<&str>) -> anyhow::Result<Value> {
    let Some(text) = text else {
        return Ok(Value::Null);
    };
    let (node, repeated) = model::json::parse(text)
        .map_err(|fault| anyhow!("`--args` is not JSON: {}", fault.message))?;
    match repeated.first() {
        Some(fault) => bail!("`--args`: {}", fault.message),
        None => Ok(node.to_value()),
    }
}

/// The one document of a file, or the one that was named.
fn load(arguments: &RunArguments, environment: &Environment) -> anyhow::Result<Sound> {
    let path = arguments.file.as_path();
    let Source::Text(text) = source::documents(path)? else {
        bail!(
            "`{}` holds no tool document; run `ringfence check` on it",
            path.display()
        );
    };
    let home = settings::home(arguments.common.home.as_deref());
    let ground = settings::config(home.as_deref())?.ground()?;
    let lines = Lines::new(&text);
    let assess = |item| assessment::assess(item, &lines, &ground, environment, ToolSource::User);
    let mut documents: Vec<Assessment> = document::parse(&text)
        .items
        .into_iter()
        .map(assess)
        .collect();
    if let Some(name) = &arguments.tool {
        documents.retain(|document| document.name.as_ref() == Some(name));
    }
    let count = documents.len();
    match (documents.pop(), count) {
        (Some(document), 1) => document.sound.with_context(|| {
            let errors = document
                .findings
                .iter()
                .filter(|finding| any_error(std::slice::from_ref(*finding)));
            let first = errors
                .map(|finding| finding.message.clone())
                .next()
                .unwrap_or_default();
            format!("the document cannot be used: {first}; `ringfence check` says more")
        }),
        (_, 0) => bail!("`{}` holds no such document", path.display()),
        (_, count) => bail!(
            "`{}` holds {count} documents; name one with `--tool`",
            path.display()
        ),
    }
}

/// A call that every gate let through.
struct Prepared {
    job: Job,
    powers: Powers,
    masker: Arc<Masker>,
}

/// The gates in front of the sandbox, in the order of the call path.
fn prepare(
    sound: &Sound,
    raw_arguments: &Value,
    environment: &Environment,
    workspace: &Path,
) -> anyhow::Result<Result<Prepared, Failure>> {
    let refused = |reason, message| {
        Ok(Err(Failure {
            reason,
            message,
            place: None,
        }))
    };
    let arguments = match params::check(&sound.document.params, raw_arguments) {
        Ok(arguments) => arguments,
        Err(faults) => {
            let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
            let reason = faults
                .first()
                .map_or(Reason::ArgumentType, |fault| fault.reason);
            return refused(reason, messages.join("; "));
        }
    };
    if !sound.judged.missing.is_empty() {
        let names = sound.judged.missing.join(", ");
        return refused(Reason::RequirementMissing, format!("not set: {names}"));
    }
    if let Some((reason, message)) = ask(sound, &arguments) {
        return refused(reason, message);
    }
    let (globals, secrets) = globals(sound, arguments, environment)?;
    let declared = sound.document.params.iter().map(|param| param.name.clone());
    let variables = sound
        .document
        .static_variables
        .iter()
        .map(|variable| variable.name.clone());
    let masker = Arc::new(Masker::new(secrets.iter().map(String::as_str))?);
    let limits = Limits::for_policy(&sound.judged.policy);
    let deadline = Instant::now() + Duration::from_millis(u64::from(limits.wall_ms_max));
    let grant = Grant::from_policy(&sound.judged.policy);
    let settings = PowerSettings::new(workspace.to_path_buf());
    let powers = Powers::from_grant(&grant, &settings, Arc::clone(&masker), deadline)?;
    let seed = uuid::Uuid::new_v4().as_u64_pair().1;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let job = Job {
        body: sound.document.code.clone(),
        globals: Value::Object(globals).to_string(),
        declared: declared.chain(variables).collect(),
        powers: powers.faces(),
        limits,
        seed,
        now_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
    };
    Ok(Ok(Prepared {
        job,
        powers,
        masker,
    }))
}

/// Params and static variables as the script sees them; a static variable wins.
fn globals(
    sound: &Sound,
    arguments: Arguments,
    environment: &Environment,
) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
    let mut globals = arguments.into_values();
    let mut secrets = Vec::new();
    for variable in &sound.document.static_variables {
        let resolved = placeholder::resolve(&variable.template, environment)
            .map_err(|missing| anyhow!("not set: {}", missing.join(", ")))?;
        globals.insert(variable.name.clone(), Value::String(resolved.text));
        secrets.extend(resolved.secrets);
    }
    Ok((globals, secrets))
}

/// Asks the person at the terminal where the document wants a person. `None`
/// means go on; without a terminal nobody can agree, so nothing runs.
fn ask(sound: &Sound, arguments: &Arguments) -> Option<(Reason, String)> {
    let wanted = match sound.document.approval() {
        ApprovalMode::Disabled => false,
        ApprovalMode::Required => true,
        ApprovalMode::AutoApprove => sound.judged.risk.level >= Level::L3,
    };
    if !wanted {
        return None;
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "a person must approve this call, and there is no terminal to ask at";
        return Some((Reason::ApprovalUnavailable, message.to_owned()));
    }
    let name = text::elided(&sound.document.name, 60);
    let shown = text::elided(&Value::Object(arguments.values().clone()).to_string(), 400);
    let level = sound.judged.risk.level;
    let question = format!(
        "[risk {} {}] Run `{name}` with {shown}? [y/N] ",
        level.badge(),
        level.label()
    );
    let _ = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    let agreed = io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes");
    (!agreed).then(|| {
        (
            Reason::ApprovalDeclined,
            "the call was not approved".to_owned(),
        )
    })
}

fn execute(prepared: &Prepared) -> anyhow::Result<(Outcome, Vec<ConsoleLine>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let pool = start_pool().await?;
        Ok(
            match pool
                .run("local", prepared.job.clone(), &prepared.powers)
                .await
            {
                Ok(run) => (to_outcome(run.report.ended), run.console),
                Err(error) => (Outcome::Failed(from_run_error(&error)), Vec::new()),
            },
        )
    })
}

/// One worker for one call.
pub(crate) async fn start_pool() -> Result<Pool, PoolError> {
    let mut settings =
        sandbox::pool::PoolSettings::new(WorkerProgram::ThisProgram, Sharing::PerCall);
    settings.workers = 1;
    Pool::start(settings).await
}

fn from_run_error(error: &RunError) -> Failure {
    Failure {
        reason: error.reason(),
        message: error.to_string(),
        place: None,
    }
}

fn to_outcome(ended: Ended) -> Outcome {
    let failed = |reason: Reason, message: String| {
        Outcome::Failed(Failure {
            reason,
            message,
            place: None,
        })
    };
    match ended {
        Ended::Value(json) => match serde_json::from_str(&json) {
            Ok(value) => Outcome::Done(Some(value)),
            Err(_) => failed(Reason::SandboxBroken, "the result is not JSON".to_owned()),
        },
        Ended::Undefined => Outcome::Done(None),
        Ended::Threw(Thrown {
            name,
            message,
            line,
            column,
            ..
        }) => Outcome::Failed(Failure {
            reason: Reason::ToolThrew,
            message: if message.is_empty() {
                name
            } else {
                format!("{name}: {message}")
            },
            place: (line > 0).then_some((line, column)),
        }),
        Ended::Breached(breach) => failed(breach.reason(), breach.to_string()),
        Ended::Cancelled => failed(Reason::SandboxClosed, "the call was cancelled".to_owned()),
        Ended::Broken(_) => failed(Reason::SandboxBroken, "the sandbox broke".to_owned()),
    }
}

/// The shape scripts rely on.
fn to_value(called: Called) -> Value {
    let (status, result, failure) = match called.outcome {
        Outcome::Done(value) => ("done", value.unwrap_or(Value::Null), None),
        Outcome::Refused(failure) => ("refused", Value::Null, Some(failure)),
        Outcome::Failed(failure) => ("failed", Value::Null, Some(failure)),
    };
    let error = failure.map(|failure| {
        let mut error = json!({"code": failure.reason.code(), "message": failure.message});
        if let (Some((line, column)), Some(members)) = (failure.place, error.as_object_mut()) {
            members.insert("line".to_owned(), line.into());
            members.insert("column".to_owned(), column.into());
        }
        error
    });
    let line = |line: &ConsoleLine| json!({"level": line.level.word(), "text": line.text});
    json!({
        "callId": uuid::Uuid::now_v7().to_string(),
        "status": status,
        "result": result,
        "error": error,
        "console": called.console.iter().map(line).collect::<Vec<_>>(),
        "elapsedMs": (called.elapsed_ms * 1000.0).round() / 1000.0,
    })
}

fn show(shown: &Masked<Value>, printer: &mut Printer) {
    let value = shown.get();
    let field = |name: &str| value.get(name).cloned().unwrap_or_default();
    for line in field("console").as_array().into_iter().flatten() {
        let word = |key: &str| {
            line.get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        printer.note(&format!(
            "[{}] {}",
            word("level"),
            text::one_line(&word("text"))
        ));
    }
    match (field("status").as_str(), field("result")) {
        (Some("done"), Value::String(text)) => {
            text.lines()
                .for_each(|line| printer.line(&text::one_line(line)));
        }
        (Some("done"), result) => {
            // Control characters inside strings are escaped by JSON itself; the
            // invisible ones are not.
            format!("{result:#}")
                .lines()
                .for_each(|line| printer.line(&text::one_line(line)));
        }
        (status, _) => {
            let error = field("error");
            let word = |key: &str| {
                error
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned()
            };
            let place = match (error.get("line"), error.get("column")) {
                (Some(line), Some(column)) => {
                    format!(" (line {line}, column {column} of the code)")
                }
                _ => String::new(),
            };
            let head = printer.styled(
                Style::Bad,
                &format!("{}[{}]", status.unwrap_or("failed"), word("code")),
            );
            printer.note(&format!(
                "{head}: {}{place}",
                text::one_line(&word("message"))
            ));
        }
    }
}
