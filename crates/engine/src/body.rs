//! Step 9: what runs. A kind of body is one arm of `run` and one file of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::policy::grant::Grant;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::trace::TraceParent;

use crate::bodies::server::ServerCall;
use crate::bodies::toolbox::ToolboxWork;
use crate::bodies::{describe, invoke, listing, search, server, toolbox};
use crate::engine::Engine;
use crate::gates::{CheckedCall, DecidedCall, HeldTool};
use crate::hold::CallHold;
use crate::native::Native;
use crate::powers::Powers;
use crate::record::CallRecord;
use crate::refusal::{CallRefusal, Gate, GatePass, Notes as _};
use crate::request::CallRequest;
use crate::run::{self, RunResult};
use crate::script;
use crate::server_tool::ServerTool;
use crate::snapshot::Snapshot;
use crate::stage;
use crate::tool::ToolBody;
use crate::toolbox::ToolboxTool;
use crate::work::Work;

/// Runs the body of a call that passed every gate.
pub(crate) async fn run(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    checked: CheckedCall,
    record: &mut CallRecord,
    hold: &mut CallHold,
) -> Result<RunResult, CallRefusal> {
    // Only a document's code runs often enough to have its place in every call's future;
    // the other bodies would make it several times as large. The body is cloned, because
    // `checked` moves into the arm.
    match checked.decided.held.found.body.clone() {
        ToolBody::Code => run_code(engine, now, request, checked, record, hold).await,
        // Built-in tools reach only the engine itself. A tool they call passes the gates as
        // a call of its own, with its own powers.
        ToolBody::Native(native) => {
            let powers = Arc::new(Powers::none());
            hold.begin_run();
            record.run_with(&powers);
            let work = Work {
                engine,
                now,
                request,
                call_id: record.call_id(),
                arguments: checked.decided.arguments.into_values(),
                powers,
                started: record.started(),
            };
            Box::pin(run_native(native, work)).await
        }
        ToolBody::Server(tool) => {
            Box::pin(run_server(engine, request, checked, &tool, record, hold)).await
        }
        ToolBody::Toolbox(tool) => {
            Box::pin(run_toolbox(
                engine, now, request, checked, tool, record, hold,
            ))
            .await
        }
    }
}

/// Passes a call on to the MCP server of its tool.
async fn run_server(
    engine: &Engine,
    request: &CallRequest,
    checked: CheckedCall,
    tool: &Arc<ServerTool>,
    record: &mut CallRecord,
    hold: &mut CallHold,
) -> Result<RunResult, CallRefusal> {
    // A rule that leaves only some hosts cannot be held against a process of others.
    if !checked.decided.decision.bounds.is_empty() {
        let message = "a rule limits the hosts of this call, which its server does not keep to";
        let refusal = CallRefusal::new(CallError::new(Reason::HostDenied, message));
        return record.gate(Gate::Powers, Err(refusal));
    }
    record.gate(Gate::Powers, Ok(GatePass::new((), "its server's own")))?;
    // From here on the units are used: the server may do the work even if its answer is
    // lost.
    hold.begin_run();
    let powers = Arc::new(Powers::none());
    record.run_with(&powers);
    // On the disk before the server is asked, so that a script that resumes never repeats
    // a call whose end is not known.
    if let Some(begins) = request.script_step().and_then(|step| step.begins.as_ref()) {
        script::note_begun(engine, begins).await?;
    }
    let called = server::run(ServerCall {
        engine,
        request,
        tool,
        powers: Arc::clone(&powers),
        environment: checked.variables.environment(),
        arguments: checked.decided.arguments.into_values(),
        masker: checked.masker,
        trace: TraceParent::of_call(record.call_id(), request.trace.as_deref()),
    });
    powers.time("upstream", called).await
}

/// Runs a toolbox tool, with powers made from its grant.
async fn run_toolbox(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    checked: CheckedCall,
    tool: ToolboxTool,
    record: &mut CallRecord,
    hold: &mut CallHold,
) -> Result<RunResult, CallRefusal> {
    let CheckedCall {
        decided, masker, ..
    } = checked;
    let DecidedCall {
        held, arguments, ..
    } = decided;
    // Connections are granted by group, and `held` is taken apart here.
    let groups = held.groups().to_vec();
    let policy = held.policy.into_owned();
    let settings = engine.powers().for_call(&now.config, &request.caller);
    let settings = stage::stage(settings, request, &policy, hold.scratch()).await;
    let settings = settings.or_else(|refusal| record.gate(Gate::Powers, Err(refusal)))?;
    // The operator's bound for programs. The time limit of the policy is one for scripts.
    let deadline = Instant::now() + Duration::from_secs(now.config.toolbox.seconds_max);
    let grant = Grant::from_policy(&policy);
    let powers = Powers::from_grant(&grant, &settings, Arc::clone(&masker), deadline);
    let powers = match powers {
        Ok(powers) => Ok(GatePass::new(Arc::new(powers), tool.powers())),
        Err(fault) => Err(stage::no_powers(request, &fault)),
    };
    let powers = record.gate(Gate::Powers, powers)?;
    hold.begin_run();
    record.run_with(&powers);
    // See `run_server`: written before anything has an effect.
    if let Some(begins) = request.script_step().and_then(|step| step.begins.as_ref()) {
        script::note_begun(engine, begins).await?;
    }
    let work = ToolboxWork {
        engine,
        now,
        request,
        groups,
        call_id: record.call_id().to_owned(),
        arguments: arguments.into_values(),
        policy,
        masker,
        powers,
        settings,
    };
    toolbox::run(tool, work).await
}

/// Runs the code of a document in a fresh sandbox.
async fn run_code(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    checked: CheckedCall,
    record: &mut CallRecord,
    hold: &mut CallHold,
) -> Result<RunResult, CallRefusal> {
    let CheckedCall {
        decided,
        variables,
        masker,
    } = checked;
    let DecidedCall {
        held, arguments, ..
    } = decided;
    let HeldTool { found, policy, .. } = held;
    // Read for each call, so that a change of the settings holds at the next one.
    let settings = engine.powers().for_call(&now.config, &request.caller);
    let settings = stage::stage(settings, request, &policy, hold.scratch()).await;
    let settings = settings.or_else(|refusal| record.gate(Gate::Powers, Err(refusal)))?;
    let prepared = run::prepare(
        &found.usable,
        &policy,
        arguments,
        variables,
        &settings,
        masker,
        engine.run_start(),
    );
    let prepared = match prepared {
        Ok(prepared) => {
            let faces = prepared.job.powers.join(", ");
            Ok(GatePass::new(prepared, faces))
        }
        Err(fault) => Err(stage::no_powers(request, &fault)),
    };
    let prepared = record.gate(Gate::Powers, prepared)?;
    hold.begin_run();
    record.run_with(&prepared.powers);
    // As for a server: a step that may have begun is never run twice.
    if let Some(begins) = request.script_step().and_then(|step| step.begins.as_ref()) {
        script::note_begun(engine, begins).await?;
    }
    // The pool starts with the first call that needs it. Other kinds of body need no
    // worker.
    let pool = engine.pool_for_call().await?;
    let powers = prepared.powers;
    let ran = pool
        .run(&request.caller.name, prepared.job, powers.as_ref())
        .await;
    let result = RunResult::from_run(ran);
    Ok(stage::excuse_unreached(request, powers.unreached(), result))
}

/// Runs a built-in tool.
async fn run_native(native: Native, work: Work<'_>) -> Result<RunResult, CallRefusal> {
    match native {
        Native::Search => search::run(&work),
        Native::Describe => describe::run(&work),
        Native::Invoke => invoke::run(&work).await,
        Native::Execute => script::execute(work).await,
        Native::List => listing::list(&work),
        Native::Load => listing::load(&work),
        Native::LoadResource => listing::load_resource(&work),
    }
}
