//! From draft to published: the Local Pass and what it earns.

use std::sync::Arc;

use model::assessment::Sound;
use model::audit::{Act, Failure, Notice, Status};
use model::caller::{Caller, Origin};
use model::mask::Masked;
use model::outcome::Outcome;
use model::params;
use model::reason::Reason;
use serde_json::Value;
use store::Pass;

use crate::call::{CallRequest, Purpose, Target};
use crate::registry::Standing;
use crate::run::now_ms;
use crate::{Engine, EngineError};

/// Who publishes.
pub(crate) const OWNER: &str = "owner";

/// What a Local Pass came to.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The tool.
    pub name: String,
    /// Whether it earned its publication.
    pub ok: bool,
    /// What the run came to; absent if there was nothing to run it with.
    pub outcome: Option<Masked<Outcome>>,
    /// Why not.
    pub error: Option<Failure>,
}

impl Engine {
    /// Runs a tool with its own test values, in the sandbox and under the policy
    /// it will live with. What came of it is remembered for this digest.
    pub async fn local_pass(
        &self,
        sound: &Arc<Sound>,
        origin: Origin,
    ) -> Result<Passed, EngineError> {
        let name = sound.document.name.clone();
        let arguments = match params::test_arguments(&sound.document.params) {
            Ok(arguments) => arguments,
            Err(findings) => {
                let messages: Vec<_> = findings
                    .into_iter()
                    .map(|finding| finding.message)
                    .collect();
                let passed = Passed {
                    name,
                    ok: false,
                    outcome: None,
                    error: Some(Failure {
                        code: Reason::LocalPassFailed.code().to_owned(),
                        message: messages.join("; "),
                    }),
                };
                self.remember(sound, &passed)?;
                return Ok(passed);
            }
        };
        let request = CallRequest {
            target: Target::Document(Arc::clone(sound)),
            purpose: Purpose::LocalPass,
            ..CallRequest::new(
                Caller::owner(),
                origin,
                "",
                Value::Object(arguments.into_values()),
            )
        };
        let outcome = self.call(request).await;
        let error = outcome.get().error.as_ref().map(|error| Failure {
            code: error.reason.code().to_owned(),
            message: error.message.clone(),
        });
        let passed = Passed {
            name,
            ok: outcome.get().status == Status::Done,
            outcome: Some(outcome),
            error,
        };
        self.remember(sound, &passed)?;
        Ok(passed)
    }

    /// A pass or a failure of the tool itself is remembered; that a variable was
    /// missing or the sandbox busy says nothing about the tool.
    fn remember(&self, sound: &Sound, passed: &Passed) -> Result<(), EngineError> {
        let outcome = passed.outcome.as_ref().map(Masked::get);
        let about_the_tool = match outcome {
            None => true,
            Some(outcome) => match outcome.status {
                Status::Done => true,
                Status::Failed => outcome.error.as_ref().is_some_and(|error| !error.retryable),
                Status::Refused | Status::Cancelled | Status::Crashed => false,
            },
        };
        if !about_the_tool {
            return Ok(());
        }
        let elapsed_us = outcome.map_or(0, |outcome| outcome.elapsed_us);
        self.store().standing().record_pass(&Pass {
            digest: sound.judged.digest.to_string(),
            name: sound.document.name.clone(),
            ok: passed.ok,
            at_ms: now_ms(),
            error: passed.error.clone(),
            elapsed_ms: elapsed_us / 1000,
        })?;
        Ok(())
    }

    /// Publishes a tool of one's own: only with a pass for exactly this digest,
    /// which is run now if there is none yet. `Err` in the middle means nothing
    /// changed.
    pub async fn publish(&self, name: &str, origin: Origin) -> Result<Passed, EngineError> {
        let tool = self.own_tool(name)?;
        let digest = tool.sound.judged.digest.to_string();
        let proven = self.store().standing().pass(&digest)?;
        let passed = match proven {
            Some(pass) if pass.ok => Passed {
                name: name.to_owned(),
                ok: true,
                outcome: None,
                error: None,
            },
            _ => self.local_pass(&tool.sound, origin).await?,
        };
        if passed.ok {
            if tool.standing != Standing::Published {
                let message = format!("`{name}` was published");
                let notice = Notice::new(Act::ToolPublished, OWNER, origin.word(), &message);
                self.notice(notice.about(name).detail("digest", &digest))?;
            }
            self.store().standing().publish(name, &digest, now_ms())?;
            self.mark(&tool, false)?;
        }
        Ok(passed)
    }

    /// Takes a tool back: from the next call on it is a draft.
    pub fn unpublish(&self, name: &str) -> Result<bool, EngineError> {
        let tool = self.own_tool(name)?;
        let was = self.store().standing().unpublish(name)?;
        if was {
            let message = format!("`{name}` is a draft again");
            let notice = Notice::new(Act::ToolUnpublished, OWNER, Origin::Cli.word(), &message);
            self.noticed(notice.about(name));
        }
        self.mark(&tool, true)?;
        Ok(was)
    }
}
