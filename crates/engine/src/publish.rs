//! From draft to published: the Local Pass and what it earns.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::caller::{Caller, Origin};
use model::document::params;
use model::govern::person::Actor;
use model::policy::assessment::UsableDocument;
use model::reason::Reason;
use model::record::audit::{Act, Failure, Notice, Status};
use model::record::mask::Masked;
use model::record::outcome::Outcome;
use serde_json::Value;
use store::Pass;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::gates::unconsented;
use crate::life::marked;
pub use crate::request::Trial;
use crate::request::{CallPurpose, CallRequest, CallTarget};
use crate::tool::ToolState;
use store::clock::now_ms;

/// The name of the owner in notices.
pub(crate) const OWNER: &str = "owner";

/// What a Local Pass came to.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The name of the tool.
    pub name: String,
    /// Whether it earned its publication.
    pub ok: bool,
    /// Whether it was tried at all: what could not be tried neither passed nor failed,
    /// and nothing is remembered about it.
    pub tried: bool,
    /// What the run came to; absent if there was nothing to run it with.
    pub outcome: Option<Masked<Outcome>>,
    /// Why it did not pass or was not tried.
    pub error: Option<Failure>,
}

impl Trial {
    /// The call that tries a document, with no arguments yet.
    pub(crate) fn request(
        &self,
        usable: &Arc<UsableDocument>,
        purpose: CallPurpose,
        origin: Origin,
    ) -> CallRequest {
        CallRequest {
            target: CallTarget::Document(Arc::clone(usable)),
            purpose,
            trial: self.clone(),
            ..CallRequest::new(Caller::owner(), origin, "", Value::Null)
        }
    }
}

impl Engine {
    /// Runs a tool with its own test values, in the sandbox and under the policy
    /// it will live with. The result is stored for this digest.
    pub async fn local_pass(
        &self,
        usable: &Arc<UsableDocument>,
        origin: Origin,
    ) -> Result<Passed, EngineError> {
        self.local_pass_with(usable, origin, &Trial::default())
            .await
    }

    /// [`Engine::local_pass`] of a document in a file, or with files of its own.
    pub fn local_pass_with<'a>(
        &'a self,
        usable: &'a Arc<UsableDocument>,
        origin: Origin,
        trial: &'a Trial,
    ) -> BoxFuture<'a, Result<Passed, EngineError>> {
        Box::pin(self.try_locally(usable, origin, trial))
    }

    async fn try_locally(
        &self,
        usable: &Arc<UsableDocument>,
        origin: Origin,
        trial: &Trial,
    ) -> Result<Passed, EngineError> {
        let name = usable.document.name.clone();
        let arguments = match params::test_arguments(&usable.document.params) {
            Ok(arguments) => arguments,
            // Test values that do not fit the params are the author's fault: a failed test, which
            // is remembered like one.
            Err(findings) => {
                let messages: Vec<_> = findings
                    .into_iter()
                    .map(|finding| finding.message)
                    .collect();
                let passed = Passed {
                    name,
                    ok: false,
                    tried: true,
                    outcome: None,
                    error: Some(Failure {
                        code: Reason::LocalPassFailed.code().to_owned(),
                        message: messages.join("; "),
                    }),
                };
                self.remember(usable, &passed)?;
                return Ok(passed);
            }
        };
        let mut request = trial.request(usable, CallPurpose::LocalPass, origin);
        request.arguments = Value::Object(arguments.into_values());
        request.trial.files = request.trial.files.or_else(|| self.fixture(usable, trial));
        let outcome = self.call(request).await;
        let error = outcome.get().error.as_ref().map(|error| Failure {
            code: error.reason.code().to_owned(),
            message: error.message.clone(),
        });
        let passed = Passed {
            name,
            ok: outcome.get().status == Status::Done,
            tried: is_about_the_tool(outcome.get()),
            outcome: Some(outcome),
            error,
        };
        self.remember(usable, &passed)?;
        Ok(passed)
    }

    /// Runs a document, published or not, with arguments of its author's. It proves nothing, and
    /// nothing is remembered about it.
    pub async fn trial_run(
        &self,
        usable: &Arc<UsableDocument>,
        origin: Origin,
        arguments: Value,
    ) -> Masked<Outcome> {
        let trial = Trial::default();
        let mut request = trial.request(usable, CallPurpose::LocalPass, origin);
        request.arguments = arguments;
        request.trial.files = self.fixture(usable, &trial);
        self.call(request).await
    }

    /// The folder `NAME.files` beside a document. A link in its place could lead
    /// anywhere and is none.
    fn fixture(&self, usable: &UsableDocument, trial: &Trial) -> Option<PathBuf> {
        let document = match &trial.place {
            Some(place) => place.clone(),
            None => {
                let tool = self.own_tool(&usable.document.name).ok()?;
                self.registry().folder().path(tool.file.as_deref()?)
            }
        };
        let files = document.with_extension("files");
        let about = std::fs::symlink_metadata(&files).ok()?;
        about.is_dir().then_some(files)
    }

    /// A pass or a failure of the tool itself is remembered; that a variable was
    /// missing, a host out of reach or the sandbox busy says nothing about the tool.
    fn remember(&self, usable: &UsableDocument, passed: &Passed) -> Result<(), EngineError> {
        if !passed.tried {
            return Ok(());
        }
        let outcome = passed.outcome.as_ref().map(Masked::get);
        let elapsed_us = outcome.map_or(0, |outcome| outcome.elapsed_us);
        self.store().publications().record_pass(&Pass {
            digest: usable.facts.digest.to_string(),
            name: usable.document.name.clone(),
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
        self.publish_with(name, origin, &Trial::default()).await
    }

    /// [`Engine::publish`] by a person at a door of people.
    pub async fn publish_by(&self, name: &str, actor: Actor<'_>) -> Result<Passed, EngineError> {
        let trial = Trial::default();
        self.publish_as(name, Origin::Studio, &trial, actor).await
    }

    /// [`Engine::publish`] of a tool that is tried with files.
    pub async fn publish_with(
        &self,
        name: &str,
        origin: Origin,
        trial: &Trial,
    ) -> Result<Passed, EngineError> {
        let actor = Actor {
            by: OWNER,
            through: origin.word(),
        };
        self.publish_as(name, origin, trial, actor).await
    }

    fn publish_as<'a>(
        &'a self,
        name: &'a str,
        origin: Origin,
        trial: &'a Trial,
        actor: Actor<'a>,
    ) -> BoxFuture<'a, Result<Passed, EngineError>> {
        Box::pin(self.prove_and_publish(name, origin, trial, actor))
    }

    async fn prove_and_publish(
        &self,
        name: &str,
        origin: Origin,
        trial: &Trial,
        actor: Actor<'_>,
    ) -> Result<Passed, EngineError> {
        let tool = self.own_tool(name)?;
        let digest = tool.usable.facts.digest.to_string();
        let proven = self.store().publications().pass(&digest)?;
        let passed = match proven {
            // What passed may have been unpublished or imported again since.
            Some(pass) if pass.ok => self.proven(&tool.usable),
            _ => self.local_pass_with(&tool.usable, origin, trial).await?,
        };
        if passed.ok {
            // First what can fail for the file's sake, so that a failure leaves a draft.
            self.mark(&tool, false)?;
            if tool.state != ToolState::Published {
                let message = format!("`{name}` was published");
                let notice = Notice::new(Act::ToolPublished, actor.by, actor.through, &message);
                self.notice(notice.about(name).detail("digest", &digest))?;
            }
            let publications = self.store().publications();
            // The text comes first: other nodes read it as soon as it is published.
            publications.keep_text(name, &digest, &marked(&tool, false))?;
            publications.publish(name, &digest, now_ms())?;
        }
        Ok(passed)
    }

    /// A document that passed before, if its owner agrees to what it reaches for.
    fn proven(&self, usable: &Arc<UsableDocument>) -> Passed {
        let wanted = self.wants(usable, None).needs;
        let refused = (!wanted.is_empty()).then(|| unconsented(&wanted));
        Passed {
            name: usable.document.name.clone(),
            ok: refused.is_none(),
            tried: refused.is_none(),
            outcome: None,
            error: refused.map(|error| Failure {
                code: error.reason.code().to_owned(),
                message: error.message,
            }),
        }
    }

    /// Takes a tool back: from the next call on it is a draft.
    pub fn unpublish(&self, name: &str) -> Result<bool, EngineError> {
        self.unpublish_by(name, Actor::OWNER_AT_TERMINAL)
    }

    /// The same by a person at a door of people.
    pub fn unpublish_by(&self, name: &str, actor: Actor<'_>) -> Result<bool, EngineError> {
        let tool = self.own_tool(name)?;
        // Taken back before it is noted: what takes something away happens in any case.
        let was = self.store().publications().unpublish(name)?;
        if was {
            let message = format!("`{name}` is a draft again");
            let notice = Notice::new(Act::ToolUnpublished, actor.by, actor.through, &message);
            self.noticed(notice.about(name));
        }
        // The file last. If it cannot be written, the tool is a draft all the same.
        self.mark(&tool, true)?;
        Ok(was)
    }
}

/// Whether an outcome says something about the tool itself.
fn is_about_the_tool(outcome: &Outcome) -> bool {
    match outcome.status {
        Status::Done => true,
        Status::Failed => outcome.error.as_ref().is_some_and(|error| !error.retryable),
        Status::Refused | Status::Cancelled | Status::Crashed => false,
    }
}
