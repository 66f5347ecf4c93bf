//! The assessment of a document before it runs: state, policy, risk, record and
//! findings. `check` prints it.

use std::sync::OnceLock;

use crate::document::digest::{self, ToolDigest};
use crate::document::environment::Environment;
use crate::document::finding::{Code, Finding};
use crate::document::json::Lines;
use crate::document::lifecycle::{self, LifecycleState};
use crate::document::safety::{JailRecord, Safety, Source, compare};
use crate::document::{Document, ParsedDocument};
use crate::limits;
use crate::policy::risk::{self, Risk};
use crate::policy::safety;
use crate::policy::{self, Baseline, EffectivePolicy};
use crate::record::audit::{SharedFacts, ToolFacts};
use crate::record::mask::is_maskable;

/// The assessment of one document of a file.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The document and its facts; absent if any finding is an error.
    pub usable: Option<UsableDocument>,
    /// Everything that was seen.
    pub findings: Vec<Finding>,
}

/// A document without errors, and the facts derived from it.
#[derive(Clone, Debug)]
pub struct UsableDocument {
    /// The document as it was read.
    pub document: Document,
    /// The facts derived from it under one baseline.
    pub facts: DocumentFacts,
}

/// Facts derived from a document and a baseline: identity, state, policy and risk.
#[derive(Clone, Debug)]
pub struct DocumentFacts {
    /// The document's `toolId`, or one made from its name.
    pub tool_id: String,
    /// The digest of its meaning.
    pub digest: ToolDigest,
    /// Draft, active, or what it lacks.
    pub state: LifecycleState,
    /// Variables it needs that are not set.
    pub missing: Vec<String>,
    /// The policy of a call.
    pub policy: EffectivePolicy,
    /// Its risk.
    pub risk: Risk,
    /// The fence around the programs it starts; nothing if it starts none.
    pub jail: Option<JailRecord>,
    /// Where the document comes from.
    source: Source,
    /// The record of the policy, made when first asked for.
    safety: OnceLock<Safety>,
    /// Its facts for the audit, made when first asked for.
    audit_facts: OnceLock<SharedFacts>,
}

impl DocumentFacts {
    /// The record of the policy of the document these facts belong to.
    fn safety(&self, document: &Document) -> &Safety {
        let make = || self.safety_under(document, &self.policy, self.source);
        self.safety.get_or_init(make)
    }

    fn safety_under(
        &self,
        document: &Document,
        policy: &EffectivePolicy,
        source: Source,
    ) -> Safety {
        let record = safety::record(document, policy, source);
        match &self.jail {
            None => record,
            Some(jail) => record.in_jail(jail),
        }
    }
}

impl UsableDocument {
    /// The facts for the audit of a call under these facts.
    #[must_use]
    pub fn audit_facts(&self) -> SharedFacts {
        let make = || self.audit_facts_under(&self.facts.risk, self.safety());
        self.facts.audit_facts.get_or_init(make).clone()
    }

    /// The record of the policy.
    #[must_use]
    pub fn safety(&self) -> &Safety {
        self.facts.safety(&self.document)
    }

    /// The record of another policy that a call of it is held to.
    #[must_use]
    pub fn safety_under(&self, policy: &EffectivePolicy, source: Source) -> Safety {
        self.facts.safety_under(&self.document, policy, source)
    }

    /// What the audit says about a call that is held to something else.
    #[must_use]
    pub fn audit_facts_under(&self, risk: &Risk, safety: &Safety) -> SharedFacts {
        let reasons = risk.signals.iter().map(|signal| signal.words.clone());
        SharedFacts::from(ToolFacts {
            tool_id: self.facts.tool_id.clone(),
            name: self.document.name.clone(),
            category: self.document.category.clone(),
            digest: self.facts.digest.to_string(),
            risk: risk.level.badge().to_owned(),
            risk_reasons: reasons.collect(),
            tool_safety: serde_json::to_value(safety).unwrap_or_default(),
        })
    }
}

/// Assesses one document of a file. `lines` are the file's, for places.
#[must_use]
pub fn assess(
    item: ParsedDocument,
    lines: &Lines<'_>,
    baseline: &Baseline,
    environment: &Environment,
    source: Source,
) -> Assessment {
    let ParsedDocument {
        name,
        document,
        mut findings,
    } = item;
    let usable = document.and_then(|document| {
        let place = |finding: Finding| {
            let span = document.tree().locate(&finding.pointer);
            finding.place(span, lines)
        };
        match judge(&document, baseline, environment, source) {
            Ok(facts) => {
                let stored = document.tool_safety.iter();
                let resolved = || facts.safety(&document);
                // Only computed if the document brings a record: most do not.
                let differences = stored.flat_map(|stored| compare(stored, resolved()));
                findings.extend(differences.map(place));
                findings.extend(unmasked(&document, environment).into_iter().map(place));
                Some(UsableDocument { document, facts })
            }
            Err(finding) => {
                findings.push(place(*finding));
                None
            }
        }
    });
    Assessment {
        name,
        usable,
        findings,
    }
}

/// Variables whose values are too short to be masked.
fn unmasked(document: &Document, environment: &Environment) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for name in lifecycle::requirements(document) {
        let short = environment
            .get(name)
            .is_some_and(|value| !is_maskable(value));
        let message = format!(
            "the value of `{name}` has fewer than {} characters and is not masked",
            limits::SECRET_CHARS_MIN
        );
        if short && findings.iter().all(|finding| finding.message != message) {
            let finding = Finding::warning(Code::SpecInvariant, "staticVariables", message);
            findings.push(finding.fix("use a longer value"));
        }
    }
    findings
}

fn judge(
    document: &Document,
    baseline: &Baseline,
    environment: &Environment,
    source: Source,
) -> Result<DocumentFacts, Box<Finding>> {
    let policy = policy::resolve(baseline, &document.sandbox_overrides)
        .map_err(|conflict| conflict.to_finding())?;
    let digest = digest::of_document(document)
        .map_err(|error| Finding::error(Code::SpecParse, "", error.to_string()))?;
    Ok(DocumentFacts {
        tool_id: digest::tool_id(document),
        digest,
        state: lifecycle::state(document, environment, source),
        missing: lifecycle::missing(document, environment),
        risk: risk::of(document, baseline, &policy),
        policy,
        jail: None,
        source,
        safety: OnceLock::new(),
        audit_facts: OnceLock::new(),
    })
}
