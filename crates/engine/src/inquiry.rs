//! One question with everything a person needs to answer it: what would be touched, what was
//! approved before, where it comes from, whether it still stands; and the answer that changes
//! the call. What is asked and what an answer counts for is decided elsewhere; this walks
//! the same gates again and says what they say.

use std::time::Instant;

use model::caller::{Caller, Origin};
use model::govern::approval::{self, ShownChanges};
use model::govern::consent::{self, Need};
use model::govern::person::{Person, PersonRole};
use model::policy::risk::{Level, Risk};
use model::record::audit::{Closing, GateRecord};
use model::record::mask::MASK;
use model::text;
use serde_json::Value;
use store::approvals::ChangedArguments;
use store::{Approval, FoundEntry};

use crate::approve::inbox::asker;
use crate::approve::{AnswerFault, Channel, Listed};
use crate::call::question;
use crate::engine::Engine;
use crate::gates::{self, CheckedCall};
use crate::json_change::{self, JsonChange};
use crate::record::CallRecord;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::tool::{Tool, ToolBody};
use crate::trust;
use crate::waiting_script::{self, AskingScript};

/// One question, with what belongs to it.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The question as lists have it.
    pub listed: Listed,
    /// Whether it is about trust, not about a call.
    pub is_trust: bool,
    /// Whether the call belongs to a conversation.
    pub has_session: bool,
    /// The door the call came through, if the audit has it.
    pub origin: Option<Origin>,
    /// The call it is part of, and that one's tool.
    pub parent: Option<(String, String)>,
    /// The script that the call is part of, while it waits.
    pub script: Option<AskingScript>,
    /// The arguments; nothing once they are shortened.
    pub arguments: Option<Value>,
    /// The changes of files that it is about, if it is.
    pub changes: Option<ShownChanges>,
    /// Whether a secret in them is masked.
    pub is_masked: bool,
    /// What would be touched.
    pub touches: Vec<Touch>,
    /// The rule that asked.
    pub rule: Option<String>,
    /// Whether it still stands as it was asked.
    pub standing: Standing,
    /// The newest approval of the same tool for the same caller, and what differs.
    pub last: Option<(Listed, Vec<JsonChange>)>,
    /// The tool, if there is one of that name.
    pub tool: Option<Box<Tool>>,
}

/// Whether a question still stands as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The same call would ask the same.
    AsAsked,
    /// Something changed since: an approval would not count.
    Stale(String),
    /// That cannot be known: a secret is masked, or the question is not waiting.
    Unknown,
}

/// One thing that a call would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// `host`, `file-read`, `file-write`, `folder`, `secret`, `destructive`, `risk`, `server`.
    pub kind: &'static str,
    /// In words, after "it would".
    pub words: String,
}

/// What a call with changed arguments would be.
#[derive(Clone, Debug)]
pub struct ChangePreview {
    /// What it would be rated.
    pub risk: Option<Risk>,
    /// What every gate says.
    pub gates: Vec<GateRecord>,
    /// Why it would be refused.
    pub refused: Option<String>,
    /// What differs from what was asked.
    pub changes: Vec<JsonChange>,
}

/// A call as the gates judge it now.
struct Judged {
    checked: CheckedCall,
    binding: String,
    tool_binding: String,
}

impl Engine {
    /// One question by its id, with everything that belongs to it.
    pub fn inquiry(&self, id: &str) -> Result<Inquiry, AnswerFault> {
        let inbox = self.approvals();
        let row = inbox.found(id)?;
        let is_trust = trust::is_question(&row);
        let now = self.registry().current();
        let given = |shown| question::given_arguments(&now, &row.tool, shown);
        let arguments = approval::read_arguments(&row.arguments).map(given);
        let changes = ShownChanges::read(&row.tool, &row.arguments);
        let is_masked = row.arguments.contains(MASK);
        let (origin, parent) = self.whence(&row.call_id);
        let judged = match (&arguments, is_trust) {
            (Some(arguments), false) => Some(self.judge_now(&row, arguments.clone(), origin)),
            (_, _) => None,
        };
        let (mut touches, mut rule) = (Vec::new(), None);
        if let Some((Ok(judged), _)) = &judged {
            touches = touches_of(&judged.checked);
            rule.clone_from(&judged.checked.decided.decision.rule);
        }
        let standing = match &judged {
            _ if row.answer.is_some() => Standing::Unknown,
            Some((Ok(judged), _)) => standing(&row, judged, is_masked),
            Some((Err(refusal), _)) => Standing::Stale(refusal.why().to_owned()),
            None => Standing::Unknown,
        };
        let last = self.store().approvals().last_approved(&row)?;
        let last = last.map(|last| {
            let was = approval::read_arguments(&last.arguments).map(given);
            let changes = match (&was, &arguments) {
                (Some(was), Some(is)) => json_change::between(was, is),
                (_, _) => Vec::new(),
            };
            (inbox.listed(last), changes)
        });
        let script = waiting_script::find(self.store(), &row.call_id, &row.tool);
        Ok(Inquiry {
            script,
            is_trust,
            has_session: row.session.is_some(),
            origin,
            parent,
            arguments,
            changes,
            is_masked,
            touches,
            rule,
            standing,
            last,
            tool: now.tool(&row.tool).cloned().map(Box::new),
            listed: inbox.listed(row),
        })
    }

    /// The script that a question comes from, while it waits.
    #[must_use]
    pub fn script_of(&self, question: &Listed) -> Option<AskingScript> {
        waiting_script::find(self.store(), &question.call_id, &question.tool)
    }

    /// What a question would become with other arguments. Nothing is written.
    pub fn preview_change(
        &self,
        id: &str,
        arguments: &Value,
    ) -> Result<ChangePreview, AnswerFault> {
        let row = self.approvals().found(id)?;
        let now = self.registry().current();
        let was = approval::read_arguments(&row.arguments);
        let was = was.map(|shown| question::given_arguments(&now, &row.tool, shown));
        let changes = was.map(|was| json_change::between(&was, arguments));
        let (origin, _) = self.whence(&row.call_id);
        let (judged, closing) = self.judge_now(&row, arguments.clone(), origin);
        let refused = match &judged {
            _ if arguments.to_string().contains(MASK) => Some(AnswerFault::Masked.to_string()),
            Ok(_) => None,
            Err(refusal) => Some(refusal.why().to_owned()),
        };
        Ok(ChangePreview {
            risk: judged
                .ok()
                .map(|judged| (*judged.checked.decided.held.risk).clone()),
            gates: closing.gates,
            refused,
            changes: changes.unwrap_or_default(),
        })
    }

    /// Yes to a call with other arguments, by a person. They are checked, judged and bound
    /// now, and again when the call runs.
    pub fn approve_changed(
        &self,
        id: &str,
        person: &Person,
        channel: Channel,
        arguments: &Value,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        let inbox = self.approvals().through(channel);
        let row = inbox.found(id)?;
        // The secret behind a mask is not known here. The call would run with the mask in
        // its place.
        if row.arguments.contains(MASK) || arguments.to_string().contains(MASK) {
            return Err(AnswerFault::Masked);
        }
        // Attack: other changes than those the person was shown.
        if ShownChanges::read(&row.tool, &row.arguments).is_some() {
            let why = "the person was shown these changes and no others";
            return Err(AnswerFault::Refused(why.to_owned()));
        }
        let (origin, _) = self.whence(&row.call_id);
        let (judged, _) = self.judge_now(&row, arguments.clone(), origin);
        let judged = judged.map_err(|refusal| AnswerFault::Refused(refusal.why().to_owned()))?;
        if judged.binding == row.binding {
            return Err(AnswerFault::Refused("nothing was changed".to_owned()));
        }
        let level: Level = judged.checked.decided.held.risk.level;
        let changed = ChangedArguments {
            arguments: arguments.to_string(),
            binding: judged.binding,
        };
        self.check_separate(&row, person)?;
        inbox.approve_changed(&row, &person.answerer(), level, note, changed)
    }

    /// Where another person must approve, the owner by another name is no other person.
    pub fn check_separate(&self, row: &Approval, person: &Person) -> Result<(), AnswerFault> {
        let settings = &self.registry().current().config.approvals;
        let is_owner = row.caller_is_owner && person.role == PersonRole::Owner;
        match settings.separate && is_owner {
            true => Err(AnswerFault::Separate),
            false => Ok(()),
        }
    }

    /// The same by the question's id.
    pub fn check_person(&self, id: &str, person: &Person) -> Result<(), AnswerFault> {
        let row = self.approvals().found(id)?;
        self.check_separate(&row, person)
    }

    /// The door a call came through, and the call it is part of.
    fn whence(&self, call_id: &str) -> (Option<Origin>, Option<(String, String)>) {
        let Ok(FoundEntry::One(entry)) = self.store().audit().find(call_id) else {
            return (None, None);
        };
        let parent = entry.opening.parent_id.as_deref().and_then(|parent| {
            match self.store().audit().find(parent) {
                Ok(FoundEntry::One(parent)) => {
                    let opening = parent.opening;
                    Some((opening.call_id, text::one_line(&opening.tool)))
                }
                Ok(_) | Err(_) => None,
            }
        });
        (Some(entry.opening.origin), parent)
    }

    /// Walks the gates for the call of a question, as they stand now.
    fn judge_now(
        &self,
        row: &Approval,
        arguments: Value,
        origin: Option<Origin>,
    ) -> (Result<Judged, CallRefusal>, Closing) {
        let caller: Caller = asker(row);
        let origin = origin.unwrap_or(Origin::Mcp);
        let request = CallRequest::new(caller, origin, &row.tool, arguments);
        let now = self.registry().current();
        let mut record = CallRecord::new(row.call_id.clone(), Instant::now(), None);
        record.follow(&now.config);
        let variables = self.variable_source();
        let judged = gates::judge(&now, &request, variables, self.now_ms(), &mut record);
        let judged = judged.map(|checked| {
            let asking = question::asking(self, &now, &request, &record, &checked, None);
            let binding = asking.question.binding.clone();
            Judged {
                binding,
                tool_binding: asking.tool_binding,
                checked,
            }
        });
        let (closing, _) = record.dry(None, self.now_ms());
        (judged, closing)
    }
}

fn standing(row: &Approval, judged: &Judged, is_masked: bool) -> Standing {
    // This one holds no arguments, so a masked secret does not matter for it.
    if judged.tool_binding != row.tool_binding {
        let why = "the tool, its policy or a rule changed since it was asked";
        return Standing::Stale(why.to_owned());
    }
    match (is_masked, judged.binding == row.binding) {
        (false, true) => Standing::AsAsked,
        (true, _) => Standing::Unknown,
        (false, false) => Standing::Stale("its arguments read otherwise now".to_owned()),
    }
}

/// What a call would touch, from the policy it is held to.
fn touches_of(checked: &CheckedCall) -> Vec<Touch> {
    let held = &checked.decided.held;
    let document = &held.found.usable.document;
    let needs = consent::needs(document, &held.policy, &held.risk);
    let mut touches: Vec<Touch> = needs.iter().map(touch).collect();
    if held.policy.file_read {
        touches.push(Touch {
            kind: "file-read",
            words: "read files".to_owned(),
        });
    }
    if let ToolBody::Server(tool) = &held.found.body {
        touches.push(Touch {
            kind: "server",
            words: format!(
                "be passed on to the MCP server `{}`",
                text::one_line(&tool.server.name)
            ),
        });
    }
    touches
}

fn touch(need: &Need) -> Touch {
    let kind = match need {
        Need::Host(_) | Need::PublicHosts | Need::AnyHost => "host",
        Need::Variable(_) => "secret",
        Need::Folder(_) => "folder",
        Need::Write => "file-write",
        Need::Destroy => "destructive",
        Need::Risk(_) => "risk",
    };
    Touch {
        kind,
        words: need.words(),
    }
}
