//! What we answer to a server: progress goes to the call it belongs to, questions to the
//! person behind it, and "the list changed" to what keeps the list.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::sync::lock;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken, RequestId,
};
use rmcp::service::{NotificationContext, OriginatingRequestId, RequestContext, RoleClient};
use rmcp::{ErrorData, model::FormElicitationCapability};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::caller::{ElicitAnswer, ElicitQuestion, Elicitor, ProgressSink};
use crate::limit;
use crate::noise::{LineFaults, Losses};
use crate::secret_mask::SecretMask;

/// One for each connection.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    calls: Calls,
    /// The server says that its list changed.
    list_changed: Arc<Notify>,
}

/// The calls that are under way on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    running: Arc<Mutex<Vec<RunningCall>>>,
    mask: SecretMask,
    /// What was wrong with the lines of a process.
    faults: LineFaults,
    /// Whether the owner passes questions on.
    may_ask: bool,
}

#[derive(Debug)]
struct RunningCall {
    id: RequestId,
    token: ProgressToken,
    progress: Option<ProgressSink>,
    elicitor: Option<Arc<dyn Elicitor>>,
    progress_count: u64,
    question_count: usize,
    /// Since when a person is asked.
    asking: Option<Instant>,
    /// How long people took to answer, not yet counted.
    asked: Duration,
}

impl Calls {
    pub(crate) fn mask(&self) -> &SecretMask {
        &self.mask
    }

    pub(crate) fn add(
        &self,
        id: &RequestId,
        token: &ProgressToken,
        progress: Option<ProgressSink>,
        elicitor: Option<Arc<dyn Elicitor>>,
    ) {
        lock(&self.running).push(RunningCall {
            id: id.clone(),
            token: token.clone(),
            progress,
            elicitor,
            progress_count: 0,
            question_count: 0,
            asking: None,
            asked: Duration::ZERO,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.running).is_empty()
    }

    pub(crate) fn faults(&self) -> &LineFaults {
        &self.faults
    }

    /// Waits until a message is lost that only one of them can have waited for: no more
    /// than `most` calls are under way.
    pub(crate) async fn wait_for_loss(&self, losses: &mut Losses, most: usize) {
        loop {
            losses.next().await;
            if lock(&self.running).len() <= most {
                return;
            }
        }
    }

    pub(crate) fn remove(&self, id: &RequestId) {
        lock(&self.running).retain(|call| call.id != *id);
    }

    /// How long a person was asked since this was last called. That time does not count
    /// as the server's.
    pub(crate) fn take_asked(&self, id: &RequestId) -> Duration {
        let mut calls = lock(&self.running);
        let Some(call) = calls.iter_mut().find(|call| call.id == *id) else {
            return Duration::ZERO;
        };
        let now = Instant::now();
        let current = call.asking.map(|since| now - since).unwrap_or_default();
        call.asking = call.asking.map(|_| now);
        std::mem::take(&mut call.asked) + current
    }

    fn tell(&self, param: &ProgressNotificationParam) {
        let sink = {
            let mut calls = lock(&self.running);
            let call = calls
                .iter_mut()
                .find(|call| call.token == param.progress_token);
            let Some(call) = call else { return };
            // Counted even where nothing listens, so that the bound is on
            // what the server sends.
            call.progress_count += 1;
            if call.progress_count > limit::SERVER_PROGRESS_MAX {
                return;
            }
            call.progress.clone()
        };
        let Some(sink) = sink else { return };
        // Words that cannot be masked are left out; how far it is may be told.
        let words = param.message.as_deref();
        let words = words.and_then(|words| Some(self.mask.now().ok()?.text(words)));
        sink.tell(param.progress, param.total, words.as_deref());
    }

    /// Who can answer a question that belongs to a call. A server that does not say which
    /// call its question belongs to gets an answer only while there is just one.
    fn begin_question(&self, of: Option<&RequestId>) -> Option<(RequestId, Arc<dyn Elicitor>)> {
        let mut calls = lock(&self.running);
        let only = calls.len() == 1;
        let call = calls
            .iter_mut()
            .find(|call| of.map_or(only, |id| call.id == *id))?;
        // Counted before the check, and declined questions count too: a server must not try
        // without end.
        call.question_count += 1;
        if call.question_count > limit::SERVER_QUESTIONS_MAX {
            return None;
        }
        let elicitor = call.elicitor.clone()?;
        call.asking = Some(Instant::now());
        Some((call.id.clone(), elicitor))
    }

    fn end_question(&self, id: &RequestId) {
        let mut calls = lock(&self.running);
        if let Some(call) = calls.iter_mut().find(|call| call.id == *id)
            && let Some(since) = call.asking.take()
        {
            call.asked += since.elapsed();
        }
    }

    /// Puts a server's question to the person behind a call. A link for a person to open
    /// is not passed on: it would come with our name.
    pub(crate) async fn ask(
        &self,
        of: Option<&RequestId>,
        key: Option<&str>,
        question: &ElicitRequestParams,
    ) -> ElicitAnswer {
        // A link that a person opens on our word would be a way to phish.
        let is_form = matches!(question, ElicitRequestParams::FormElicitationParams { .. });
        let Ok(question) = serde_json::to_value(question) else {
            return ElicitAnswer::Decline;
        };
        let bytes = question.to_string().len();
        if !self.may_ask || !is_form || bytes > limit::SERVER_QUESTION_BYTES_MAX {
            return ElicitAnswer::Decline;
        }
        let Ok(mask) = self.mask.now() else {
            return ElicitAnswer::Decline;
        };
        let question = ElicitQuestion {
            key: key.map(|key| mask.text(key)),
            form: mask.value(question),
        };
        let Some((id, elicitor)) = self.begin_question(of) else {
            return ElicitAnswer::Decline;
        };
        let answer = elicitor.ask(question).await;
        self.end_question(&id);
        answer
    }
}

/// A call that is under way while rmcp knows of no request: it is plain, or its person is
/// asked between two rounds. Dropped, it is under way no more, also when the call is given up
/// meanwhile: otherwise its connection would never be idle.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    calls: &'a Calls,
    id: &'a RequestId,
}

impl<'a> UnderWay<'a> {
    pub(crate) fn add(
        calls: &'a Calls,
        id: &'a RequestId,
        elicitor: Option<Arc<dyn Elicitor>>,
    ) -> UnderWay<'a> {
        calls.add(id, &ProgressToken(id.clone()), None, elicitor);
        UnderWay { calls, id }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.calls.remove(self.id);
    }
}

impl Client {
    pub(crate) fn new(may_ask: bool, mask: SecretMask) -> Client {
        Client {
            calls: Calls {
                running: Arc::default(),
                mask,
                faults: LineFaults::new(),
                may_ask,
            },
            list_changed: Arc::new(Notify::new()),
        }
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    pub(crate) fn list_changed(&self) -> &Arc<Notify> {
        &self.list_changed
    }

    /// What every server is told about us.
    pub(crate) fn about_us(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.calls.may_ask {
            // Offered only if the owner passes questions on; other capabilities
            // are never offered.
            let mut elicitation = ElicitationCapability::new();
            elicitation.form = Some(FormElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        let us = Implementation::new("ringfence", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us)
    }
}

/// An answer as the protocol writes it.
pub(crate) fn elicit_result(answer: ElicitAnswer) -> ElicitResult {
    match answer {
        ElicitAnswer::Accept(content) => {
            let result = ElicitResult::new(ElicitationAction::Accept);
            match content {
                Some(content) => result.with_content(content),
                None => result,
            }
        }
        ElicitAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
        ElicitAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.about_us()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let of = context.extensions.get::<OriginatingRequestId>();
        let answer = self.calls.ask(of.map(|id| &id.0), None, &request).await;
        Ok(elicit_result(answer))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.calls.tell(&params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        // A flood of these is one signal.
        self.list_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }
}
