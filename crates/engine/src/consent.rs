//! What the owner agrees to for a tool, and takes back.
//!
//! A grant is written into the audit before it counts. It belongs to a name, and for
//! a document in a file also to the file; what is imported starts with none.

use std::path::Path;
use std::sync::Arc;

use model::caller::Origin;
use model::govern::consent::{Granted, Need, Variable};
use model::govern::person::Actor;
use model::nearest::nearest;
use model::policy::assessment::UsableDocument;
use model::policy::risk::Risk;
use model::record::audit::{Act, Notice};
use model::text;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::gates::{self, HeldTool};
use crate::publish::Trial;
use crate::request::CallPurpose;
use crate::snapshot::place_word;
use store::clock::now_ms;

/// How the owner agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// They were shown what for, at a terminal, and typed yes.
    Terminal,
    /// They said so when they gave the command.
    Flag,
    /// They were shown what for, at the Studio, and agreed there.
    Page,
}

impl Consent {
    /// The word in the store and the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Consent::Terminal => "terminal",
            Consent::Flag => "flag",
            Consent::Page => "studio",
        }
    }
}

/// What a document reaches for that its owner has not agreed to yet.
#[derive(Clone, Debug)]
pub struct WantedGrants {
    /// Each thing; empty if there is nothing to ask.
    pub needs: Vec<Need>,
    /// The risk of the document.
    pub risk: Risk,
}

impl Engine {
    /// What a document reaches for that its owner has not agreed to. One that no policy
    /// fits wants nothing: it will not run.
    #[must_use]
    pub fn wants(&self, usable: &Arc<UsableDocument>, place: Option<&Path>) -> WantedGrants {
        let now = self.registry().current();
        let trial = Trial {
            place: place.map(Path::to_owned),
            files: None,
        };
        let request = trial.request(usable, CallPurpose::LocalPass, Origin::Cli);
        let found = gates::find_document(&now, &request, usable);
        let held = found.and_then(|found| HeldTool::for_test(&now, found.value));
        match held {
            Ok(held) => WantedGrants {
                needs: gates::wanted(&held.found, &held.policy, &held.risk),
                risk: (*held.risk).clone(),
            },
            Err(_) => WantedGrants {
                needs: Vec::new(),
                risk: usable.facts.risk.clone(),
            },
        }
    }

    /// The owner agrees to what a document was seen to reach for, for its tool.
    pub fn consent(
        &self,
        usable: &UsableDocument,
        place: Option<&Path>,
        needs: &[Need],
        how: Consent,
    ) -> Result<(), EngineError> {
        let name = &usable.document.name;
        let actor = Actor::OWNER_AT_TERMINAL;
        self.grant((name, place), needs, how, Some(usable), actor)
    }

    /// The same by a person at a door of people.
    pub fn consent_by(
        &self,
        usable: &UsableDocument,
        needs: &[Need],
        actor: Actor<'_>,
    ) -> Result<(), EngineError> {
        let name = &usable.document.name;
        self.grant((name, None), needs, Consent::Page, Some(usable), actor)
    }

    /// Grants a variable to a tool. Returns whether that is new.
    pub fn grant_variable(&self, name: &str, variable: &str) -> Result<bool, EngineError> {
        self.grant_variable_by(name, variable, Consent::Flag, Actor::OWNER_AT_TERMINAL)
    }

    /// The same by a person at a door of people.
    pub fn grant_variable_by(
        &self,
        name: &str,
        variable: &str,
        how: Consent,
        actor: Actor<'_>,
    ) -> Result<bool, EngineError> {
        let tool = self.own_tool(name)?;
        self.named_variable(name, variable)?;
        if tool.granted.has_variable(variable) {
            return Ok(false);
        }
        let needs = [Need::Variable(variable.to_owned())];
        self.grant((name, None), &needs, how, None, actor)?;
        Ok(true)
    }

    /// Takes a variable back from a tool: from the next call on it has it no more. The
    /// answer is whether it had.
    pub fn revoke_variable(&self, name: &str, variable: &str) -> Result<bool, EngineError> {
        self.revoke_variable_by(name, variable, Actor::OWNER_AT_TERMINAL)
    }

    /// The same by a person at a door of people.
    pub fn revoke_variable_by(
        &self,
        name: &str,
        variable: &str,
        actor: Actor<'_>,
    ) -> Result<bool, EngineError> {
        self.own_tool(name)?;
        let need = Need::Variable(variable.to_owned()).word();
        let standing = self.store().publications();
        // The empty place is the tools folder. Grants for a document in a file are apart.
        let had = standing.revoke((name, ""), Some(&need))?;
        if had {
            let message = format!("the variable `{variable}` was revoked from `{name}`");
            self.noticed(withdrawn(actor, name, &message).detail("need", &need));
        }
        Ok(had)
    }

    /// The variables of a tool and how they stand.
    pub fn variables(&self, name: &str) -> Result<Vec<Variable>, EngineError> {
        let tool = self.tool(name)?;
        let environment = self.environment()?;
        Ok(tool.granted.variables(&tool.usable.document, &environment))
    }

    /// What was granted to the document of a name in a file.
    #[must_use]
    pub fn granted_in(&self, name: &str, place: Option<&Path>) -> Granted {
        self.registry().current().granted(name, place)
    }

    /// What was granted to a name counts no more: another document takes it.
    pub(crate) fn forget_consent(&self, name: &str) -> Result<(), EngineError> {
        if self.store().publications().revoke((name, ""), None)? {
            let message = format!("the grants of `{name}` were revoked");
            self.noticed(withdrawn(Actor::OWNER_AT_TERMINAL, name, &message));
        }
        Ok(())
    }

    fn named_variable(&self, name: &str, variable: &str) -> Result<(), EngineError> {
        let variables = self.variables(name)?;
        if variables.iter().any(|known| known.name == variable) {
            return Ok(());
        }
        let known = variables.iter().map(|known| known.name.as_str());
        Err(EngineError::NoSuchVariable {
            tool: name.to_owned(),
            name: text::elided(variable, 80),
            nearest: nearest(variable, known).map(str::to_owned),
        })
    }

    fn grant(
        &self,
        (name, place): (&str, Option<&Path>),
        needs: &[Need],
        how: Consent,
        usable: Option<&UsableDocument>,
        actor: Actor<'_>,
    ) -> Result<(), EngineError> {
        if needs.is_empty() {
            return Ok(());
        }
        let place = place_word(place);
        let needs: Vec<_> = needs.iter().map(Need::word).collect();
        let message = format!("`{name}` may: {}", needs.join("; "));
        let mut notice = Notice::new(Act::ToolConsented, actor.by, actor.through, &message)
            .about(name)
            .detail("how", how.word());
        // Says later which text the owner saw. The grant itself belongs to the name.
        if let Some(usable) = usable {
            notice = notice.detail("digest", &usable.facts.digest.to_string());
        }
        if !place.is_empty() {
            notice = notice.detail("file", &place);
        }
        for (index, need) in needs.iter().enumerate() {
            notice = notice.detail(&format!("need {}", index + 1), need);
        }
        self.notice(notice)?;
        let standing = self.store().publications();
        standing.grant((name, &place), &needs, how.word(), now_ms())?;
        Ok(())
    }
}

fn withdrawn(actor: Actor<'_>, name: &str, message: &str) -> Notice {
    let act = Act::ToolConsentWithdrawn;
    Notice::new(act, actor.by, actor.through, message).about(name)
}
