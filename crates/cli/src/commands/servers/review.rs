//! The review of a server: current definitions against the accepted ones, for its
//! owner.
//!
//! Attack: every name and every text here is the server's. Each is on lines of its own
//! behind a bar, whatever commands a terminal is shown instead, and `--json` escapes
//! the same.

use std::collections::BTreeMap;

use engine::server_admin::ServerReview;
use engine::server_sheet::{state_word, state_words};
use model::config::{ServerConfig, ServerNetwork, ServerTransport};
use model::govern::approval;
use model::network::host_pattern::HostPattern;
use model::policy::risk::Risk;
use model::text::{count, elided, one_line};
use model::word::Word as _;
use serde_json::{Value, json};
use upstream::definition::{Definition, ItemKey, ItemKind, ToolDefinition};
use upstream::finding::{FindingWeight, UpstreamFinding};
use upstream::pin::{ChangeClass, ChangeSubject, ItemChange, ServedItem, ServedState};

use crate::output::badge;
use crate::output::printer::{Format, Printer, Style};
use engine::server_launch::{ServerLaunch, finding_line, finding_value};

/// Characters of one value of a difference, or of one text.
const TEXT_CHARS_MAX: usize = 8_000;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 80;
/// Differences of one item that are printed; `--json` has all.
const DIFFS_MAX: usize = 40;

/// A review with everything that was found.
pub(crate) struct ReviewSheet {
    review: ServerReview,
    launch: ServerLaunch,
    /// Findings about its start and its own words.
    findings: Vec<UpstreamFinding>,
    items: Vec<ReviewedItem>,
}

struct ReviewedItem {
    served: ServedItem,
    change: Option<ItemChange>,
    /// The current definition.
    now: Option<Definition>,
    findings: Vec<UpstreamFinding>,
    risk: Option<Risk>,
}

/// What the process of a server may connect to, on one line; a server at an address has
/// none.
fn reach(config: &ServerConfig) -> Option<String> {
    match &config.transport {
        ServerTransport::Command(command) => Some(match &command.network {
            ServerNetwork::None => "nothing".to_owned(),
            ServerNetwork::Open => "anything".to_owned(),
            ServerNetwork::Hosts(hosts) => {
                let hosts: Vec<_> = hosts.iter().map(HostPattern::shown).collect();
                format!("{}, and nothing else", elided(&hosts.join(", "), 300))
            }
        }),
        ServerTransport::Url(_) => None,
    }
}

impl ReviewSheet {
    pub(crate) fn new(review: ServerReview) -> ReviewSheet {
        let launch = ServerLaunch::of(&review.config);
        let about = |key: Option<&ItemKey>| -> Vec<UpstreamFinding> {
            let all = review.findings.iter();
            all.filter(|finding| finding.item.as_ref() == key)
                .cloned()
                .collect()
        };
        let mut changes: BTreeMap<ItemKey, ItemChange> = BTreeMap::new();
        for change in &review.served.changes {
            if let ChangeSubject::Item(key) = &change.subject {
                changes.insert(key.clone(), change.clone());
            }
        }
        let items = review.served.items.iter().map(|served| {
            let seen = review.seen.items.get(&served.key);
            let now = seen.map(|seen| seen.definition.clone());
            let risk = now.as_ref().map(|definition| review.risk(definition));
            ReviewedItem {
                served: served.clone(),
                change: changes.remove(&served.key),
                now,
                findings: about(Some(&served.key)),
                risk,
            }
        });
        let items = items.collect();
        ReviewSheet {
            findings: about(None),
            review,
            launch,
            items,
        }
    }

    /// The digest of all that is shown.
    pub(crate) fn digest(&self) -> &str {
        &self.review.digest
    }

    /// How many tools would be callable after all of it is accepted.
    pub(crate) fn offered_count(&self) -> usize {
        self.review.seen.items.len()
    }

    /// Whether the owner has something to decide.
    pub(crate) fn is_settled(&self) -> bool {
        let is_held = |item: &ReviewedItem| matches!(item.served.state, ServedState::Held(_));
        self.review.served.changes.is_empty() && !self.items.iter().any(is_held)
    }

    /// How many findings hold an item.
    pub(crate) fn holding_count(&self) -> usize {
        let of_items = self.items.iter().flat_map(|item| &item.findings);
        let all = self.findings.iter().chain(of_items);
        all.filter(|finding| finding.weight() == FindingWeight::Hold)
            .count()
    }

    pub(crate) fn show(&self, printer: &mut Printer) {
        match printer.format() {
            Format::Json => printer.json(&self.value()),
            Format::Human => self.lines(printer),
        }
    }

    fn lines(&self, printer: &mut Printer) {
        let config = &self.review.config;
        let name = printer.styled(Style::Bold, &config.name);
        printer.line(&format!(
            "{name}  {}  {}",
            self.review.decision.word(),
            self.launch.shown()
        ));
        let server = &self.review.seen.server;
        let calls_itself = elided(&server.name, NAME_CHARS_MAX);
        let version = elided(&server.version, NAME_CHARS_MAX);
        printer.line(&format!("  calls itself {calls_itself} {version}"));
        foreign(printer, server.instructions.as_deref());
        if let Some(reach) = reach(config) {
            printer.line(&format!("  it may connect to {reach}"));
        }
        findings(printer, "  ", &self.findings);
        let of_server = self.review.served.changes.iter();
        let of_server = of_server.filter(|change| change.subject == ChangeSubject::Server);
        for change in of_server {
            diffs(printer, change);
        }
        for item in &self.items {
            item.lines(printer);
        }
        for refused in self
            .review
            .seen
            .refused
            .iter()
            .filter(|one| one.name.is_none())
        {
            printer.line(&format!("  refused  {}", one_line(&refused.fault.message)));
        }
    }

    fn value(&self) -> Value {
        let server = &self.review.seen.server;
        let of_server = self.review.served.changes.iter();
        let of_server = of_server.filter(|change| change.subject == ChangeSubject::Server);
        json!({
            "server": self.review.config.name,
            "decision": self.review.decision.word(),
            "launch": self.launch.shown(),
            "reach": reach(&self.review.config),
            "digest": self.review.digest,
            "declares": {
                "name": server.name,
                "version": server.version,
                "instructions": server.instructions,
            },
            "changes": of_server.map(change_value).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding_value).collect::<Vec<_>>(),
            "items": self.items.iter().map(ReviewedItem::value).collect::<Vec<_>>(),
            "refused": self.review.seen.refused.iter().map(|refused| json!({
                "name": refused.name, "message": refused.fault.message,
            })).collect::<Vec<_>>(),
        })
    }
}

impl ReviewedItem {
    fn lines(&self, printer: &mut Printer) {
        let name = printer.styled(Style::Bold, &name_words(&self.served.key.name));
        let name = match self.served.key.kind {
            ItemKind::Tool => name,
            kind => format!("{} {name}", kind.word().replace('_', " ")),
        };
        let class = self.change.as_ref().map_or("same", |one| one.class.word());
        let state = state_words(&self.served.state);
        let risk = self
            .risk
            .as_ref()
            .map(|risk| badge::level(printer, risk.level));
        let risk = risk.unwrap_or_default();
        let line = match self.served.state {
            // Nothing of it was read, so nothing is the same.
            ServedState::Refused(_) => format!("  {name}  {state}"),
            _ => format!("  {name}  {class}  {state}  {risk}"),
        };
        printer.line(&line);
        match &self.change {
            Some(change) if change.class != ChangeClass::New => {
                if let Some(from) = &change.renamed_from {
                    printer.line(&format!("    was {}", name_words(&from.name)));
                }
                diffs(printer, change);
            }
            // All of it is new to the owner.
            Some(_) => self.definition_lines(printer),
            None if matches!(self.served.state, ServedState::Held(_)) => {
                self.definition_lines(printer);
            }
            None => {}
        }
        findings(printer, "    ", &self.findings);
    }

    fn definition_lines(&self, printer: &mut Printer) {
        let Some(definition) = &self.now else {
            return;
        };
        foreign(printer, definition.description());
        match definition {
            Definition::Tool(tool) => argument_lines(printer, tool),
            Definition::Prompt(prompt) => {
                for (name, argument) in &prompt.arguments {
                    let need = if argument.is_required {
                        ", required"
                    } else {
                        ""
                    };
                    let name = name_words(name);
                    printer.line(&format!("    takes {name}: text{need}"));
                    foreign(printer, argument.description.as_deref());
                }
            }
            Definition::ResourceTemplate(_) | Definition::Resource(_) => {}
        }
    }

    fn value(&self) -> Value {
        json!({
            "kind": self.served.key.kind.word(),
            "name": self.served.key.name,
            "state": state_word(&self.served.state),
            "reason": reason(&self.served.state),
            "change": self.change.as_ref().map(change_value),
            "now": self.now.as_ref().map(Definition::to_value),
            "risk": self.risk.as_ref().map(|risk| json!({
                "level": risk.level.badge(),
                "reasons": risk.signals.iter().map(|signal| &signal.words).collect::<Vec<_>>(),
            })),
            "findings": self.findings.iter().map(finding_value).collect::<Vec<_>>(),
        })
    }
}

/// Text of the server's, line by line behind a bar.
fn foreign(printer: &mut Printer, text: Option<&str>) {
    let Some(text) = text else {
        return;
    };
    let shown: String = text.chars().take(TEXT_CHARS_MAX).collect();
    for line in shown.lines() {
        printer.line(&format!("    | {}", one_line(line)));
    }
    let more = text.chars().count().saturating_sub(TEXT_CHARS_MAX);
    if more > 0 {
        printer.line(&format!("    ({} more)", count(more, "character")));
    }
}

/// The arguments of a tool. Their descriptions go to the model as well.
fn argument_lines(printer: &mut Printer, tool: &ToolDefinition) {
    let schema = &tool.input_schema;
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten();
        names.any(|one| one.as_str() == Some(name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, about) in properties.into_iter().flatten() {
        let kind = about.get("type").map(ToString::to_string);
        let kind = kind.unwrap_or_else(|| "any".to_owned());
        let need = if is_required(name) { ", required" } else { "" };
        printer.line(&format!(
            "    takes {}: {}{need}",
            name_words(name),
            elided(kind.trim_matches('"'), NAME_CHARS_MAX)
        ));
        foreign(printer, about.get("description").and_then(Value::as_str));
    }
}

/// A name as questions show it: letters that look like Latin ones as their numbers, so that
/// two names that look alike do not.
fn name_words(name: &str) -> String {
    elided(&approval::shown(name), NAME_CHARS_MAX)
}

fn findings(printer: &mut Printer, indent: &str, findings: &[UpstreamFinding]) {
    for finding in findings {
        let style = match finding.weight() {
            FindingWeight::Hold => Style::Bad,
            FindingWeight::Warn => Style::Caution,
        };
        let weight = printer.styled(style, finding.weight().word());
        printer.line(&format!("{indent}{weight}  {}", finding_line(finding)));
    }
}

fn diffs(printer: &mut Printer, change: &ItemChange) {
    let shown = |value: &Option<Value>| match value {
        None => "(nothing)".to_owned(),
        Some(value) => elided(&value.to_string(), TEXT_CHARS_MAX),
    };
    for diff in change.diffs.iter().take(DIFFS_MAX) {
        let path = elided(&diff.path, TEXT_CHARS_MAX);
        printer.line(&format!("    {}  {path}", diff.effect.word()));
        printer.line(&format!("    - {}", shown(&diff.old)));
        printer.line(&format!("    + {}", shown(&diff.new)));
    }
    let more = change.diffs.len().saturating_sub(DIFFS_MAX);
    if more > 0 {
        printer.line(&format!(
            "    ({} more; `--json` has them)",
            count(more, "difference")
        ));
    }
}

fn change_value(change: &ItemChange) -> Value {
    json!({
        "class": change.class.word(),
        "renamedFrom": change.renamed_from.as_ref().map(|key| &key.name),
        "oldDigest": change.old_digest,
        "newDigest": change.new_digest,
        "diffs": change.diffs.iter().map(|diff| json!({
            "path": diff.path,
            "effect": diff.effect.word(),
            "old": diff.old,
            "new": diff.new,
        })).collect::<Vec<_>>(),
    })
}

fn reason(state: &ServedState) -> Option<String> {
    match state {
        ServedState::Callable { is_old: true, .. } => Some("accepted_text".to_owned()),
        ServedState::Held(reason) => Some(reason.word().to_owned()),
        ServedState::Refused(why) => Some(why.clone()),
        ServedState::Callable { is_old: false, .. } | ServedState::Blocked | ServedState::Gone => {
            None
        }
    }
}
