//! Step 8 of a call: has a person agreed? Every branch of that is here. The way
//! out is a yes from the store that this call alone has taken, or a refusal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::caller::{Caller, CallerKind};
use model::config::ApprovalsConfig;
use model::govern::approval::{ApprovalScope, ApprovalState, ApprovalSubject, Channel, authority};
use model::limits;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use model::word::Word as _;
use store::approvals::{AskResult, ChangedArguments, Claim, WaitingPlace};
use store::{Approval, Store, StoreError};

use super::Questions;
use super::answer::{AnswerFault, Given};
use crate::error::causes;
use crate::question::{ApprovalAnswer, Approver, Question};
use crate::refusal::{CallRefusal, GatePass, GateResult};
use crate::request::CallRequest;

/// What a call wants agreed to.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) request: &'a CallRequest,
    pub(crate) question: Question,
    /// What an approval of the tool binds to, whatever the arguments.
    pub(crate) tool_binding: String,
    /// A digest of the session.
    pub(crate) session: Option<String>,
    pub(crate) settings: ApprovalsConfig,
    /// When the call began.
    pub(crate) started: Instant,
}

/// Obtains a person's yes, or refuses the call. Every failure on the way is a refusal.
///
/// What comes with the yes is what is to run instead, if the person changed the arguments.
pub(crate) async fn obtain(
    questions: &Questions,
    mut asking: Asking<'_>,
) -> GateResult<Option<ChangedArguments>> {
    let began = Instant::now();
    // An empty binding would match every other call without one.
    if asking.question.binding.is_empty() {
        return Err(unavailable(
            "the call has no digest that an answer can bind to",
        ));
    }
    // An answer may be there already: of the same call made before, or a wider approval.
    if let Some(given) = claim(questions, &asking, None).await? {
        questions.observe("agreed");
        return verdict(&given, &Trail::new(&asking, began));
    }
    // A person's time is not the call's.
    let step = asking.request.script_step();
    let _waits = step.map(|step| step.waiting.begin());
    let whom = Whom::of(questions, &asking);
    // From here on the call may be cancelled at any `await`. The guard then moves the
    // question to the inbox, where it would otherwise never appear.
    let mut leaving = Leaving::new(questions, &asking, whom.as_ref());
    if let Some(same) = record_question(questions, &asking, whom.as_ref(), &leaving).await? {
        // The guard must move the question that waits, not the one that was not written.
        leaving.id.clone_from(&same.id);
        asking.question.id = same.id;
        asking.question.expires_at_ms = same.expires_at_ms;
    }
    // The question is committed before anyone is asked: an answer that comes after a
    // crash still finds it.
    questions.observe("asked");
    let mut trail = Trail::new(&asking, began);
    let until = asking.until(began);
    tell(&asking, whom.as_ref());
    let mut is_answered = false;
    if let Some(whom) = &whom {
        let answer = ask(questions, &asking, whom, until).await;
        trail.note_first(whom, answer);
        let next = match answer {
            // Another person answered elsewhere.
            None => Next::Settled,
            Some(answer) => record_answer(questions, &asking, whom, answer).await?,
        };
        // Until it was noted, whatever ends the call leaves the question to the inbox.
        leaving.is_over = true;
        match next {
            // What was answered counts, also if that took the rest of the call's time.
            Next::Settled => is_answered = true,
            Next::Inbox(id) => {
                asking.question.id.clone_from(&id);
                trail.id = id;
                tell(&asking, None);
            }
            Next::Left(answer) => return Err(left(&asking, answer, &trail)),
        }
    }
    if !is_answered {
        let answered = wait_for_answer(questions, &asking.question.id);
        let waited = tokio::time::timeout_at(until.into(), answered);
        if waited.await.is_err() {
            return Err(pending(&asking, &trail));
        }
    }
    // Taking the answer marks it as used in the same transaction, so that no two calls
    // run by one yes.
    questions.observe("answered");
    let own = asking.question.id.clone();
    match claim(questions, &asking, Some(own)).await? {
        Some(given) => {
            questions.observe("agreed");
            verdict(&given, &trail)
        }
        None => Err(refuse_unclaimed(questions, &asking, &trail).await),
    }
}

/// Who is asked first.
struct Whom<'a> {
    approver: &'a dyn Approver,
    channel: Channel,
    by: String,
}

impl<'a> Whom<'a> {
    /// The caller's own client, where its answer would count; else the owner at this
    /// process's terminal.
    fn of(questions: &'a Questions, asking: &Asking<'a>) -> Option<Whom<'a>> {
        let caller = &asking.request.caller;
        if let Some(approver) = asking.request.approver.as_deref()
            && asking.may_answer(approver.channel(), &caller.name)
        {
            return Some(Whom {
                approver,
                channel: approver.channel(),
                by: caller.name.clone(),
            });
        }
        // The terminal of this process belongs to the user that can read the home, who is
        // the owner.
        let by = Caller::owner().name;
        let approver = questions.approver.as_deref()?;
        asking.may_answer(Channel::Terminal, &by).then_some(Whom {
            approver,
            channel: Channel::Terminal,
            by,
        })
    }
}

/// What an answer of the first one asked leads to.
enum Next {
    /// There is an answer in the store.
    Settled,
    /// The inbox is waited for, under this id.
    Inbox(String),
    /// The call ends here; the question stays.
    Left(ApprovalAnswer),
}

impl Asking<'_> {
    /// Whether an answer that comes so counts.
    fn may_answer(&self, channel: Channel, by: &str) -> bool {
        let matter = ApprovalSubject::Call(self.question.risk.level);
        authority::counts(channel, matter, &self.request.caller, by, &self.settings).is_ok()
    }

    /// Who may approve is looked up again: a person may take long, and the operator may
    /// have changed the settings since.
    fn claim(&self, questions: &Questions) -> Claim {
        let now = &questions.writer.registry.current().config.approvals;
        let separate_now = now.separate;
        let caller = &self.request.caller;
        let most = authority::up_to(Channel::Elicitation, caller, now);
        Claim {
            // A yes of the caller's own client counts up to what the settings allow it
            // now.
            own_client: most.is_some_and(|most| self.question.risk.level <= most),
            call_id: self.question.call_id.clone(),
            binding: self.question.binding.clone(),
            tool_binding: self.tool_binding.clone(),
            session: self.session.clone(),
            // Either one: an operator who demands a second person after the question was
            // asked means this call too, and one who lifts it does not mean a question
            // already asked.
            separate: self.settings.separate || separate_now,
        }
    }

    fn is_of_owner(&self) -> bool {
        self.request.caller.kind == CallerKind::Owner
    }

    /// What there is to do about a question that waits.
    ///
    /// Attack: a model that has a shell takes a command in an error for the next thing
    /// to do. Only the owner is told which question it is and how it is answered.
    fn what_to_do(&self) -> String {
        let id = &self.question.id;
        match self.is_of_owner() {
            true => format!(
                "approve it with `ringfence approvals approve {id}`, then repeat the same call"
            ),
            false => format!(
                "{} answers; repeat the same call once it is approved",
                authority::ELSEWHERE
            ),
        }
    }

    /// Until when the call waits. A deadline keeps a moment to report that no one
    /// answered.
    fn until(&self, began: Instant) -> Instant {
        let wait = began + Duration::from_secs(self.settings.wait_seconds);
        let Some(deadline) = self.request.deadline else {
            return wait;
        };
        let reply = Duration::from_millis(limits::APPROVAL_REPLY_MS);
        // Counted from the start of the call, not from now: the gates before used some of
        // it.
        wait.min(self.started + deadline.saturating_sub(reply))
    }

    /// The question as the store keeps it.
    fn row(&self, place: WaitingPlace, now_ms: i64) -> Approval {
        let question = &self.question;
        let signals = question.risk.signals.iter();
        // Signals quote the document, so they are cut; the level itself is in its own
        // field.
        let reasons = signals.map(|signal| text::elided(&signal.words, 200));
        Approval {
            id: question.id.clone(),
            state: ApprovalState::Pending,
            place,
            asked_at_ms: now_ms,
            expires_at_ms: question.expires_at_ms,
            binding: question.binding.clone(),
            tool_binding: self.tool_binding.clone(),
            session: self.session.clone(),
            call_id: question.call_id.clone(),
            tool: question.tool.clone(),
            caller: self.request.caller.name.clone(),
            caller_is_owner: self.request.caller.kind == CallerKind::Owner,
            level: question.risk.level,
            reasons: reasons.take(limits::APPROVAL_REASONS_MAX).collect(),
            why: question.why.clone(),
            prompt: question.prompt.clone(),
            arguments: question.arguments.clone(),
            answer: None,
            used_by_call: None,
            used_at_ms: None,
            uses: 0,
        }
    }
}

/// Takes an answer from the store: of one question, or any that covers the call.
async fn claim(
    questions: &Questions,
    asking: &Asking<'_>,
    id: Option<String>,
) -> Result<Option<Approval>, CallRefusal> {
    let claim = asking.claim(questions);
    let now_ms = questions.now_ms();
    on_disk(questions, move |store| match &id {
        // One statement that names the state it starts from. Two processes cannot both
        // take it.
        Some(id) => store.approvals().claim_one(id, &claim, now_ms),
        None => store.approvals().claim(&claim, now_ms),
    })
    .await
}

/// Writes the question down; the answer is the one that waits already, if the same
/// was asked before.
async fn record_question(
    questions: &Questions,
    asking: &Asking<'_>,
    whom: Option<&Whom<'_>>,
    leaving: &Leaving,
) -> Result<Option<Approval>, CallRefusal> {
    let place = if whom.is_some() {
        WaitingPlace::Client
    } else {
        WaitingPlace::Inbox
    };
    let now_ms = questions.now_ms();
    let row = asking.row(place, now_ms);
    let has_left = Arc::clone(&leaving.has_left);
    let asked = on_disk(questions, move |store| {
        let asked = store.approvals().ask(&row, now_ms)?;
        // The call may be cancelled before this thread has written the row. The guard
        // then finds no row to move, so it is moved here.
        if has_left.load(Ordering::SeqCst) {
            store
                .approvals()
                .wait_at(&row.id, WaitingPlace::Inbox, now_ms)?;
        }
        Ok(asked)
    })
    .await?;
    let whose = match asked {
        AskResult::Written => return Ok(None),
        AskResult::Joined(same) => return Ok(Some(*same)),
        // Both bounds stop a caller from burying other questions in the inbox.
        AskResult::TooManyOfCaller => "of this caller",
        AskResult::TooMany => "of all callers",
    };
    let message = format!(
        "a person must approve this call, and too many questions {whose} are waiting for an answer; it did not run"
    );
    let error = CallError::passing(Reason::ApprovalTooMany, message);
    Err(CallRefusal::new(error))
}

/// Asks, until there is an answer from there or from anywhere else.
async fn ask(
    questions: &Questions,
    asking: &Asking<'_>,
    whom: &Whom<'_>,
    until: Instant,
) -> Option<ApprovalAnswer> {
    // Biased: an answer that has arrived is written down even if the time ran out in the
    // same poll.
    tokio::select! {
        biased;
        answer = whom.approver.ask(&asking.question) => Some(answer),
        () = wait_for_answer(questions, &asking.question.id) => None,
        () = tokio::time::sleep_until(until.into()) => Some(ApprovalAnswer::TimedOut),
    }
}

/// A call that is cancelled while its client is asked leaves the question to the
/// inbox. There the same call, made again, finds it and asks no other.
struct Leaving {
    store: Store,
    id: String,
    asked_ms: i64,
    /// Tells the thread that writes the question down that its call is gone.
    has_left: Arc<AtomicBool>,
    is_over: bool,
}

impl Leaving {
    fn new(questions: &Questions, asking: &Asking<'_>, whom: Option<&Whom<'_>>) -> Leaving {
        Leaving {
            store: questions.store().clone(),
            id: asking.question.id.clone(),
            asked_ms: questions.now_ms(),
            has_left: Arc::default(),
            // Without a client it is in the inbox from the start.
            is_over: whom.is_none(),
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.has_left.store(true, Ordering::SeqCst);
        let (store, id) = (self.store.clone(), std::mem::take(&mut self.id));
        let asked_ms = self.asked_ms;
        // Without a runtime the process is ending. The question then expires where it is.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || {
                store
                    .approvals()
                    .wait_at(&id, WaitingPlace::Inbox, asked_ms)
            });
        }
    }
}

/// Writes down what was answered, before it counts.
async fn record_answer(
    questions: &Questions,
    asking: &Asking<'_>,
    whom: &Whom<'_>,
    answer: ApprovalAnswer,
) -> Result<Next, CallRefusal> {
    let (writer, id) = (questions.writer.clone(), asking.question.id.clone());
    let (by, channel) = (whom.by.clone(), whom.channel);
    // A blocking thread finishes even if the call is dropped, so an answer that was given
    // is written down.
    let recorded = on_disk(questions, move |store| {
        let Some(row) = store.approvals().get(&id)? else {
            return Ok(Err(AnswerFault::Unknown));
        };
        let given = Given {
            by: &by,
            channel,
            note: None,
            changed: None,
        };
        let recorded = match writer.record(&row, answer, &given) {
            // A client is asked once within a call, so it cannot choose another scope.
            Err(AnswerFault::TooWide { .. }) => {
                writer.record(&row, ApprovalAnswer::Malformed, &given)
            }
            recorded => recorded,
        };
        match recorded {
            // Passed out, so that `on_disk` raises the alarm.
            Err(AnswerFault::Store(fault)) => Err(fault),
            recorded => Ok(recorded),
        }
    })
    .await?;
    // Another answer may have come first; what counts is in the store.
    let Ok(row) = recorded else {
        return Ok(Next::Settled);
    };
    Ok(match answer {
        ApprovalAnswer::Unavailable | ApprovalAnswer::NotRendered => Next::Inbox(row.id),
        ApprovalAnswer::TimedOut | ApprovalAnswer::Deferred => Next::Left(answer),
        ApprovalAnswer::Approved(_)
        | ApprovalAnswer::Declined
        | ApprovalAnswer::Dismissed
        | ApprovalAnswer::Malformed => Next::Settled,
    })
}

/// Returns when the question waits no more: answered, expired or gone.
pub(crate) async fn wait_for_answer(questions: &Questions, id: &str) {
    loop {
        let mut news = std::pin::pin!(questions.writer.answers.notified());
        // Registered before the row is read. An answer between the read and the wait
        // would otherwise be slept through.
        news.as_mut().enable();
        let wanted = id.to_owned();
        let found = on_disk(questions, move |store| store.approvals().get(&wanted)).await;
        let waits = match &found {
            Ok(Some(row)) => {
                row.state.at(row.expires_at_ms, questions.now_ms()) == ApprovalState::Pending
            }
            // Counts as answered: the call then tries to take the answer, and is refused
            // there if there is none.
            Ok(None) | Err(_) => false,
        };
        if !waits {
            return;
        }
        // The notification is for answers of this process. Those of others are only in
        // the store, so it is read again after a while.
        let look = Duration::from_millis(limits::APPROVAL_LOOK_MS);
        let _ = tokio::time::timeout(look, news).await;
    }
}

/// What an answer in the store means for the call that took it.
fn verdict(given: &Approval, trail: &Trail) -> GateResult<Option<ChangedArguments>> {
    let note = trail.note(given);
    let error = match given.state {
        // `Used` is the state after this call took a single yes; wider scopes stay
        // approved.
        ApprovalState::Approved | ApprovalState::Used => {
            let changed = given
                .answer
                .as_ref()
                .and_then(|answer| answer.changed.clone());
            return Ok(GatePass::new(changed, note));
        }
        ApprovalState::Declined => {
            let mut message =
                "a person declined this call; it did not run, do not repeat it".to_owned();
            let said = given
                .answer
                .as_ref()
                .and_then(|answer| answer.note.as_deref());
            if let Some(said) = said {
                message.push_str(": ");
                message.push_str(said);
            }
            CallError::new(Reason::ApprovalDeclined, message)
        }
        ApprovalState::Dismissed => CallError::new(
            Reason::ApprovalDismissed,
            "the approval question was dismissed without an answer; the call did not run",
        ),
        ApprovalState::Malformed => CallError::new(
            Reason::ApprovalMalformed,
            "the client's answer does not fit the approval question; the call did not run",
        ),
        // `claim` hands out none of these. If it does, the call is refused (invariant 8).
        ApprovalState::Pending | ApprovalState::Revoked | ApprovalState::Expired => {
            return Err(unavailable(&note));
        }
    };
    Err(CallRefusal::new(error).noted(note))
}

/// The question was answered, but there is nothing for this call to take.
async fn refuse_unclaimed(
    questions: &Questions,
    asking: &Asking<'_>,
    trail: &Trail,
) -> CallRefusal {
    let id = asking.question.id.clone();
    let found = match on_disk(questions, move |store| store.approvals().get(&id)).await {
        Ok(Some(found)) => found,
        Ok(None) => return unavailable("the question is gone"),
        Err(stop) => return stop,
    };
    let note = trail.note(&found);
    let error = match found.state.at(found.expires_at_ms, questions.now_ms()) {
        // The row is settled, but not by this call: one that asked the same took it.
        ApprovalState::Used
        | ApprovalState::Declined
        | ApprovalState::Dismissed
        | ApprovalState::Malformed => CallError::passing(
            Reason::ApprovalUsed,
            "another call with the same arguments used the answer; this call did not run, repeat it to ask again",
        ),
        ApprovalState::Expired => CallError::passing(
            Reason::ApprovalTimedOut,
            "no one answered the approval question in time; the call did not run, repeat it to ask again",
        ),
        ApprovalState::Revoked => CallError::new(
            Reason::ApprovalDeclined,
            "the approval of this call was revoked; the call did not run, do not repeat it",
        ),
        // Answered, but not takeable: the settings now demand another person, or another
        // channel.
        ApprovalState::Pending | ApprovalState::Approved => CallError::passing(
            Reason::ApprovalUnavailable,
            "another person must approve this call; it did not run",
        ),
    };
    CallRefusal::new(error).noted(note)
}

/// Refuses a call that waits no longer for an answer. The question stays.
fn pending(asking: &Asking<'_>, trail: &Trail) -> CallRefusal {
    let message = format!(
        "a person must approve this call and has not answered yet; it did not run: {}",
        asking.what_to_do()
    );
    let error = CallError::passing(Reason::ApprovalPending, message);
    CallRefusal::new(error).noted(trail.waits("pending"))
}

/// The one asked first did not settle it, and the call ends with that.
fn left(asking: &Asking<'_>, answer: ApprovalAnswer, trail: &Trail) -> CallRefusal {
    if answer != ApprovalAnswer::TimedOut {
        return pending(asking, trail);
    }
    let message = format!(
        "no one answered the approval question in time; the call did not run: {}",
        asking.what_to_do()
    );
    let error = CallError::passing(Reason::ApprovalTimedOut, message);
    CallRefusal::new(error).noted(trail.waits("timed out"))
}

/// The store could not do its part. Fails closed.
fn unavailable(note: &str) -> CallRefusal {
    let message = "a person must approve this call and could not be asked; it did not run";
    let error = CallError::passing(Reason::ApprovalUnavailable, message);
    CallRefusal::new(error).noted(note)
}

fn tell(asking: &Asking<'_>, whom: Option<&Whom<'_>>) {
    let Some(progress) = &asking.request.progress else {
        return;
    };
    match whom {
        // The person at this process's terminal sees the question there.
        Some(_) if asking.request.approver.is_none() => {}
        Some(_) => progress.tell("waiting for a person to approve the call"),
        None if asking.is_of_owner() => {
            let id = &asking.question.id;
            progress.tell(&format!(
                "waiting for a person to approve the call: `ringfence approvals approve {id}`"
            ));
        }
        None => progress.tell(&format!(
            "waiting for {} to approve the call",
            authority::ELSEWHERE
        )),
    }
}

/// Work on the database waits for the disk, and so on a thread that may.
async fn on_disk<T: Send + 'static>(
    questions: &Questions,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, CallRefusal> {
    let store = questions.store().clone();
    match tokio::task::spawn_blocking(move || work(&store)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fault)) => {
            let why = causes(&fault);
            questions
                .writer
                .alarm
                .raise(&format!("the approvals cannot be read or written: {why}"));
            Err(unavailable(&why))
        }
        // The closure panicked. What it had written is unknown, so the call is refused.
        Err(_) => Err(unavailable("the approvals task panicked")),
    }
}

/// What the audit will say about how it went.
struct Trail {
    id: String,
    binding: String,
    may_answer: String,
    began: Instant,
    /// What the one asked first said, if that was not the end of it.
    first: String,
}

impl Trail {
    fn new(asking: &Asking<'_>, began: Instant) -> Trail {
        Trail {
            id: asking.question.id.clone(),
            binding: asking.question.binding.clone(),
            may_answer: asking.question.may_answer.clone(),
            began,
            first: String::new(),
        }
    }

    fn note_first(&mut self, whom: &Whom<'_>, answer: Option<ApprovalAnswer>) {
        let word = answer.map_or("answered elsewhere", ApprovalAnswer::word);
        self.first = format!("; {} said {word}", whom.channel.word());
    }

    /// An answer: what, by whom, through what, for what, how long it took.
    fn note(&self, given: &Approval) -> String {
        let Some(answer) = &given.answer else {
            return self.waits(given.state.word());
        };
        let scope = answer.scope.map(ApprovalScope::word);
        let scope = scope.map(|word| format!(" ({word})")).unwrap_or_default();
        let word = match given.state {
            // The store says `used`; a reader of the audit wants to know what the person
            // said.
            ApprovalState::Used => ApprovalState::Approved.word(),
            other => other.word(),
        };
        let note = match &answer.note {
            Some(note) => format!("; their note: {note}"),
            None => String::new(),
        };
        let changed = match &answer.changed {
            Some(_) => ", with changed arguments",
            None => "",
        };
        // The person's time, from the question to the answer: the call that runs by it
        // may be another one, made much later.
        let took_ms = answer.at_ms.saturating_sub(given.asked_at_ms).max(0);
        format!(
            "{word}{scope}{changed} by {} via {}; approval {}; for {}; after {took_ms} ms{}{note}",
            text::one_line(&answer.by),
            answer.channel,
            given.id,
            self.binding,
            self.first,
        )
    }

    /// No answer.
    fn waits(&self, word: &str) -> String {
        format!(
            "{word}; approval {}; for {}; after {} ms{}; may answer: {}",
            self.id,
            self.binding,
            self.began.elapsed().as_millis(),
            self.first,
            self.may_answer,
        )
    }
}
