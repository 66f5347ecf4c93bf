//! The state a modern client carries between a question and its answer: sealed, bound
//! to one call, and good for a while.
//!
//! Attack: the state is the client's to keep, change, show to others and send again. It
//! is signed with a key of this process, and a state that does not fit is refused
//! without a reason.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use engine::Clock;
use engine::approve::{ApprovalAnswer, Question};
use engine::call::ElicitAnswer;
use model::caller::Caller;
use model::document::digest;
use model::govern::approval::authority;
use model::word::Word as _;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rmcp::model::{
    ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses,
    ProtocolVersion, RequestStateCodec, SealOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::protocol::elicit::{answer_of, form, judge, scope};
use crate::protocol::parked::{APPROVAL_KEY, ServerQuestion};

/// The binding of a state: this caller's call of this tool with these arguments. With
/// any other call it is refused.
#[derive(Clone, Debug)]
pub(crate) struct StateBinding<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
}

impl StateBinding<'_> {
    fn bytes(&self) -> Option<Vec<u8>> {
        let bound = json!({
            "caller": self.caller.name,
            "kind": format!("{:?}", self.caller.kind),
            "tool": self.tool,
            "arguments": digest::of_value(self.arguments).ok()?,
        });
        digest::of_value(&bound).ok().map(String::into_bytes)
    }

    /// Other bytes, so that the answer to a server is never one to us.
    fn server_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = self.bytes()?;
        bytes.extend_from_slice(b" for a server");
        Some(bytes)
    }
}

/// The content of a state. It is signed, not encrypted: it has no secrets, and the name
/// of the question only encrypted.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    question: Vec<u8>,
    asked_at_ms: u64,
    /// Milliseconds in which a person cannot have read the question.
    reading_ms: u64,
    /// The seal's own time limit counts whole seconds only.
    expires_at_ms: u64,
    scopes: Vec<String>,
}

/// The same for a question of a server. Its name is no secret: it opens nothing without
/// the seal, and no command answers it.
#[derive(Debug, Serialize, Deserialize)]
struct ServerState {
    question: String,
    /// What the client calls it.
    key: String,
    expires_at_ms: u64,
}

/// The state that came back with a call.
#[derive(Debug)]
pub(crate) enum ReturnedState {
    /// A state that is not ours, is about something else, or is too old: which of them
    /// is not disclosed.
    Refused,
    /// A state without an answer to its question.
    Unanswered,
    /// An answer.
    Answered(ClientAnswer),
}

/// An answer that came back with its state.
#[derive(Debug)]
pub(crate) struct ClientAnswer {
    /// The name of the question.
    pub(crate) question: String,
    pub(crate) answer: ApprovalAnswer,
}

/// Seals states with keys of this process. They end with it, and so does every state:
/// after a restart the question is asked again.
pub(crate) struct Seal {
    codec: RequestStateCodec,
    names: LessSafeKey,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(***)")
    }
}

impl Seal {
    /// A seal with new keys; nothing if the system provides no random bytes.
    pub(crate) fn fresh() -> Option<Seal> {
        let mut keys = [[0_u8; 32]; 2];
        for key in &mut keys {
            getrandom::fill(key).ok()?;
        }
        let [key, hiding] = keys;
        let codec = RequestStateCodec::try_new(key).ok()?;
        let hiding = UnboundKey::new(&CHACHA20_POLY1305, &hiding).ok()?;
        let names = LessSafeKey::new(hiding);
        Some(Seal { codec, names })
    }

    /// Encrypts the name of a question, so that its caller cannot read it: with the
    /// name an agent could point a person, or a shell, at the very command that
    /// approves it.
    fn hide(&self, question: &str) -> Option<Vec<u8>> {
        let mut nonce = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut hidden = question.as_bytes().to_vec();
        // Random nonces of 96 bits: a process would have to ask billions of questions
        // to repeat one.
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .names
            .seal_in_place_append_tag(unique, Aad::empty(), &mut hidden);
        sealed.ok()?;
        Some([&nonce[..], &hidden].concat())
    }

    fn reveal(&self, hidden: &[u8]) -> Option<String> {
        let (nonce, sealed) = hidden.split_first_chunk::<NONCE_LEN>()?;
        let mut name = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.names.open_in_place(nonce, Aad::empty(), &mut name);
        String::from_utf8(opened.ok()?.to_vec()).ok()
    }

    /// The question as the end of a call.
    pub(crate) fn ask(
        &self,
        question: &Question,
        binding: &StateBinding<'_>,
    ) -> Option<InputRequiredResult> {
        let now_ms = now_ms();
        let expires_at_ms = u64::try_from(question.expires_at_ms).ok()?;
        let left = Duration::from_millis(expires_at_ms.saturating_sub(now_ms));
        let state = State {
            question: self.hide(&question.id)?,
            asked_at_ms: now_ms,
            reading_ms: authority::reading_ms(&question.text()),
            expires_at_ms,
            scopes: question
                .scopes
                .iter()
                .map(|scope| scope.word().to_owned())
                .collect(),
        };
        let bound = binding.bytes()?;
        let options = SealOptions::new().associated_data(&bound).ttl(left);
        let sealed = self.codec.seal_json_with(&state, &options).ok()?;
        let form = form(question, Some(&ProtocolVersion::V_2026_07_28))?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = BTreeMap::from([(APPROVAL_KEY.to_owned(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    /// Opens the state that came back.
    pub(crate) fn open(
        &self,
        sealed: &str,
        responses: Option<&InputResponses>,
        binding: &StateBinding<'_>,
    ) -> ReturnedState {
        let Some((question, state)) = self.unseal(sealed, binding) else {
            return ReturnedState::Refused;
        };
        let Some(response) = responses.and_then(|responses| responses.get(APPROVAL_KEY)) else {
            return ReturnedState::Unanswered;
        };
        // Measured by our own clock from the sealed time; the client cannot claim to
        // have waited.
        let took = Duration::from_millis(now_ms().saturating_sub(state.asked_at_ms));
        let reading = Duration::from_millis(state.reading_ms);
        let scopes: Vec<_> = state.scopes.iter().filter_map(|word| scope(word)).collect();
        let answer = match ElicitResult::deserialize(response) {
            Err(_) => ApprovalAnswer::Malformed,
            Ok(result) => judge(&result, took, reading, &scopes),
        };
        ReturnedState::Answered(ClientAnswer { question, answer })
    }

    /// The question of a server as the end of a request.
    pub(crate) fn ask_for_server(
        &self,
        question: &ServerQuestion,
        binding: &StateBinding<'_>,
    ) -> Option<InputRequiredResult> {
        let bound = binding.server_bytes()?;
        let wait_ms = u64::try_from(question.wait.as_millis()).ok()?;
        let state = ServerState {
            question: question.id.clone(),
            key: question.key.clone(),
            expires_at_ms: now_ms().saturating_add(wait_ms),
        };
        // The seal's own limit counts whole seconds.
        let ttl = question.wait + Duration::from_secs(1);
        let options = SealOptions::new().associated_data(&bound).ttl(ttl);
        let sealed = self.codec.seal_json_with(&state, &options).ok()?;
        let request = InputRequest::Elicitation(ElicitRequest::new(question.form.clone()));
        let requests = BTreeMap::from([(question.key.clone(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    /// The question of a server that a client comes back for, and its answer if it has
    /// one. Nothing if the state is of another kind, about something else, or too old.
    pub(crate) fn open_for_server(
        &self,
        sealed: &str,
        responses: Option<&InputResponses>,
        binding: &StateBinding<'_>,
    ) -> Option<(String, Option<ElicitAnswer>)> {
        let bound = binding.server_bytes()?;
        let state: ServerState = self.codec.open_json_with(sealed, &bound).ok()?;
        if now_ms() >= state.expires_at_ms {
            return None;
        }
        let response = responses.and_then(|responses| responses.get(&state.key));
        Some((state.question, response.map(server_answer)))
    }

    /// A state of ours about this call that is still good, and its question.
    fn unseal(&self, sealed: &str, binding: &StateBinding<'_>) -> Option<(String, State)> {
        let bound = binding.bytes()?;
        let state: State = self.codec.open_json_with(sealed, &bound).ok()?;
        let question = self.reveal(&state.question)?;
        (now_ms() < state.expires_at_ms).then_some((question, state))
    }
}

/// What a client answers to a server. What cannot be read is no answer.
pub(crate) fn server_answer(response: &Value) -> ElicitAnswer {
    match ElicitResult::deserialize(response) {
        Ok(result) => answer_of(result),
        Err(_) => ElicitAnswer::Cancel,
    }
}

/// The wall clock, which also runs while the machine sleeps.
fn now_ms() -> u64 {
    u64::try_from(Clock::system().now_ms()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
