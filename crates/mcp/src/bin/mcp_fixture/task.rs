//! Calls that go on after their answer, which the client then asks about.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult,
    ErrorData, InputRequest,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};

use crate::content::{failure, text};
use crate::round;
use crate::server::{Fixture, typed};

/// A job that fails takes this long to do so.
const FAILING: Duration = Duration::from_secs(1);

/// The longest job.
const SECONDS_MAX: u64 = 60;

pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let declared = context.client_capabilities();
    let can_wait = declared.is_some_and(|declared| declared.supports_tasks());
    let arguments = request.arguments.unwrap_or_default();
    let responses = request.input_responses.unwrap_or_default();
    let mut job = match request.name.as_ref() {
        "slow_compute" => {
            let seconds = arguments
                .get("seconds")
                .and_then(Value::as_u64)
                .unwrap_or(0);
            Job::Compute(seconds.min(SECONDS_MAX))
        }
        "failing_job" => Job::Fail,
        "protocol_error_job" => Job::Break,
        "confirm_delete" => Job::Ask(vec!["confirm"]),
        "multi_input" => Job::Ask(vec!["first", "second"]),
        _ => Job::Greet(String::new()),
    };
    if !can_wait {
        // Without tasks, only what ends soon and asks nothing can be had.
        return match job {
            Job::Compute(seconds) => {
                // Sleeps: the work is to take time.
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(text("The computation is done.")?.into())
            }
            Job::Fail | Job::Break | Job::Ask(_) | Job::Greet(_) => {
                let tasks = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(tasks))
            }
        };
    }
    if let Job::Greet(name) = &mut job {
        let Some(given) = round::accepted(&responses, "user_name", "name") else {
            let question = round::elicitation("What is your name?", "name", "string");
            return Ok(round::ask(context, json!({"user_name": question}), None)?.into());
        };
        *name = given;
    }
    let task = fixture
        .shared
        .tasks
        .spawn(TaskOptions::new(), |task| Box::pin(work(task, job)));
    Ok(CreateTaskResult::new(task).into())
}

enum Job {
    Compute(u64),
    Fail,
    Break,
    /// Asks all of these at once.
    Ask(Vec<&'static str>),
    Greet(String),
}

async fn work(task: TaskContext, job: Job) -> Result<CallToolResult, TaskExit> {
    match job {
        Job::Compute(seconds) => tokio::select! {
            // Sleeps: the work is to take time.
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {
                Ok(text("The computation is done.")?)
            }
            () = task.cancelled() => Err(TaskExit::Cancelled),
        },
        Job::Fail => {
            // Sleeps: the failure is to come late.
            tokio::time::sleep(FAILING).await;
            Ok(failure("The job failed, as it always does.")?)
        }
        Job::Break => Err(ErrorData::internal_error("the job broke", None).into()),
        Job::Ask(keys) => {
            let mut waiting = tokio::task::JoinSet::new();
            for key in keys {
                let question = round::elicitation("Go on?", "confirm", "boolean");
                let question: InputRequest = typed(question)?;
                let task = task.clone();
                waiting.spawn(async move { task.request_input(key, question).await });
            }
            while let Some(answer) = waiting.join_next().await {
                answer.map_err(|_| TaskExit::Cancelled)??;
            }
            Ok(text("All answers are in.")?)
        }
        Job::Greet(name) => Ok(text(&format!("Hello, {name}!"))?),
    }
}
