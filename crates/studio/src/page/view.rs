//! What several parts show: risks, changes, values as trees, findings, differences of texts.

use engine::EngineError;
use engine::json_change::JsonChange;
use model::document::finding::Finding;
use model::policy::risk::Risk;
use model::reason::Reason;
use model::record::audit::GateRecord;
use model::record::outcome::{CallError, ConsoleLine};
use model::text;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::studio::Studio;

/// A badge and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RiskView {
    pub(crate) level: &'static str,
    pub(crate) label: &'static str,
    pub(crate) reasons: Vec<String>,
}

impl RiskView {
    pub(crate) fn of(risk: &Risk) -> RiskView {
        let reasons = risk
            .signals
            .iter()
            .map(|signal| text::one_line(&signal.words));
        RiskView {
            level: risk.level.badge(),
            label: risk.level.label(),
            reasons: reasons.collect(),
        }
    }
}

/// One place that differs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeView {
    pub(crate) pointer: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

pub(crate) fn changes(changes: &[JsonChange]) -> Vec<ChangeView> {
    let view = |change: &JsonChange| ChangeView {
        pointer: text::one_line(&change.pointer),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    changes.iter().map(view).collect()
}

/// A value as a tree: whole, with nothing hidden in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct NodeView {
    name: Option<String>,
    pointer: String,
    kind: &'static str,
    text: String,
    chars: usize,
    hidden: usize,
    children: Option<Vec<NodeView>>,
}

impl NodeView {
    pub(crate) fn of(value: &Value) -> NodeView {
        node(None, String::new(), value)
    }
}

fn node(name: Option<&str>, pointer: String, value: &Value) -> NodeView {
    let below = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    let (kind, plain, children) = match value {
        Value::Null => ("null", "null".to_owned(), None),
        Value::Bool(yes) => ("boolean", yes.to_string(), None),
        Value::Number(number) => ("number", number.to_string(), None),
        Value::String(text) => ("string", text.clone(), None),
        Value::Array(items) => {
            let each = items.iter().enumerate();
            let each = each.map(|(index, item)| {
                let name = index.to_string();
                node(Some(&name), below(&name), item)
            });
            ("array", String::new(), Some(each.collect()))
        }
        Value::Object(members) => {
            let each = members.iter();
            let each = each.map(|(name, item)| node(Some(name), below(name), item));
            ("object", String::new(), Some(each.collect()))
        }
    };
    let is_unseen = |letter: &char| text::is_hidden(*letter) && *letter != '\n' && *letter != '\t';
    NodeView {
        name: name.map(text::one_line),
        hidden: plain.chars().filter(is_unseen).count(),
        chars: plain.chars().count(),
        text: lines(&plain),
        pointer: text::one_line(&pointer),
        kind,
        children,
    }
}

/// Text of others in several lines: each line safe to show, the line ends kept.
pub(crate) fn lines(raw: &str) -> String {
    let shown: Vec<String> = raw.split('\n').map(text::one_line).collect();
    shown.join("\n")
}

/// Something validation saw.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingView {
    code: String,
    severity: &'static str,
    pointer: String,
    message: String,
    fix: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(rename = "in")]
    place: &'static str,
}

impl FindingView {
    pub(crate) fn of(finding: &Finding) -> FindingView {
        let at = finding.position;
        FindingView {
            code: finding.code.word().to_owned(),
            severity: finding.severity.word(),
            pointer: text::one_line(&finding.pointer),
            message: text::one_line(&finding.message),
            fix: finding.fix.as_deref().map(text::one_line),
            line: (at.line > 0).then_some(at.line),
            column: (at.column > 0).then_some(at.column),
            place: "document",
        }
    }

    pub(crate) fn all(findings: &[Finding]) -> Vec<FindingView> {
        findings.iter().map(FindingView::of).collect()
    }

    /// A place inside a text of code.
    pub(crate) fn in_code(
        code: &str,
        severity: &'static str,
        message: &str,
        (line, column): (u32, u32),
    ) -> FindingView {
        let number = |number: u32| usize::try_from(number).ok().filter(|number| *number > 0);
        FindingView {
            code: code.to_owned(),
            severity,
            pointer: "code".to_owned(),
            message: text::one_line(message),
            fix: None,
            line: number(line),
            column: number(column),
            place: "code",
        }
    }
}

/// What one gate said.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct GateView {
    gate: String,
    verdict: String,
    reason: Option<String>,
    note: Option<String>,
    rule: Option<String>,
    /// Microseconds it took; absent in older records.
    us: Option<u64>,
}

pub(crate) fn gates(gates: &[GateRecord]) -> Vec<GateView> {
    let view = |gate: &GateRecord| GateView {
        gate: gate.gate.to_string(),
        verdict: gate.verdict.to_string(),
        reason: gate.reason.as_ref().map(ToString::to_string),
        note: gate.note.as_deref().map(text::one_line),
        rule: gate.rule.as_deref().map(text::one_line),
        us: gate.us,
    };
    gates.iter().map(view).collect()
}

/// Why a call did not get there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CallErrorView {
    code: String,
    message: String,
    meaning: &'static str,
    retryable: bool,
    line: Option<u32>,
    column: Option<u32>,
    remedy: Option<String>,
}

impl CallErrorView {
    pub(crate) fn of(error: &CallError) -> CallErrorView {
        let advice = error.advice.as_ref();
        CallErrorView {
            code: error.reason.code().to_owned(),
            message: text::one_line(&error.message),
            meaning: error.reason.meaning(),
            retryable: error.retryable,
            line: error.place.map(|(line, _)| line),
            column: error.place.map(|(_, column)| column),
            remedy: advice.and_then(|advice| advice.remedy.as_deref().map(text::one_line)),
        }
    }
}

/// One line that code wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ConsoleView {
    level: &'static str,
    text: String,
}

pub(crate) fn console(lines_of: &[ConsoleLine]) -> Vec<ConsoleView> {
    let view = |line: &ConsoleLine| ConsoleView {
        level: line.level,
        text: lines(&line.text),
    };
    lines_of.iter().map(view).collect()
}

/// One line of a difference between two texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DiffLine {
    kind: &'static str,
    text: String,
    old: Option<usize>,
    new: Option<usize>,
}

/// The difference between two texts, line by line. What is the same at both ends is found
/// first; what is between is compared by the longest common run of lines, as long as that
/// is little work, and shown as replaced otherwise.
pub(crate) fn diff(old: &str, new: &str) -> Vec<DiffLine> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let before = old
        .iter()
        .zip(&new)
        .take_while(|(one, two)| one == two)
        .count();
    let rest = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let after = ends.take_while(|(one, two)| one == two).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let mut shown = Vec::with_capacity(old.len().max(new.len()));
    let mut push = |kind, text: &str, old: Option<usize>, new: Option<usize>| {
        shown.push(DiffLine {
            kind,
            text: text::one_line(text),
            old: old.map(|at| at + 1),
            new: new.map(|at| at + 1),
        });
    };
    for (at, line) in old.iter().enumerate().take(before) {
        push("same", line, Some(at), Some(at));
    }
    let gone: Vec<&str> = old.get(before..old_end).unwrap_or_default().to_vec();
    let come: Vec<&str> = new.get(before..new_end).unwrap_or_default().to_vec();
    for step in steps(&gone, &come) {
        match step {
            Step::Same(one, two) => push(
                "same",
                gone.get(one).copied().unwrap_or_default(),
                Some(before + one),
                Some(before + two),
            ),
            Step::Gone(one) => {
                push(
                    "remove",
                    gone.get(one).copied().unwrap_or_default(),
                    Some(before + one),
                    None,
                );
            }
            Step::Come(two) => {
                push(
                    "add",
                    come.get(two).copied().unwrap_or_default(),
                    None,
                    Some(before + two),
                );
            }
        }
    }
    for (offset, line) in old.iter().skip(old_end).enumerate() {
        push("same", line, Some(old_end + offset), Some(new_end + offset));
    }
    shown
}

enum Step {
    Same(usize, usize),
    Gone(usize),
    Come(usize),
}

/// Pairs of lines that are compared at most.
const DIFF_PAIRS_MAX: usize = 1 << 21;

fn steps(gone: &[&str], come: &[&str]) -> Vec<Step> {
    let all = || {
        let gone = (0..gone.len()).map(Step::Gone);
        gone.chain((0..come.len()).map(Step::Come)).collect()
    };
    let width = come.len() + 1;
    if gone.is_empty() || come.is_empty() || gone.len().saturating_mul(width) > DIFF_PAIRS_MAX {
        return all();
    }
    // The longest common run of what is left from each pair of places on.
    let mut longest = vec![0_u32; (gone.len() + 1) * width];
    let at = |one: usize, two: usize| one * width + two;
    let get = |longest: &[u32], one, two| longest.get(at(one, two)).copied().unwrap_or(0);
    for one in (0..gone.len()).rev() {
        for two in (0..come.len()).rev() {
            let best = match gone.get(one) == come.get(two) {
                true => get(&longest, one + 1, two + 1) + 1,
                false => get(&longest, one + 1, two).max(get(&longest, one, two + 1)),
            };
            if let Some(place) = longest.get_mut(at(one, two)) {
                *place = best;
            }
        }
    }
    let (mut one, mut two) = (0, 0);
    let mut found = Vec::new();
    while one < gone.len() || two < come.len() {
        let is_same = one < gone.len() && two < come.len() && gone.get(one) == come.get(two);
        let drops = get(&longest, one + 1, two) >= get(&longest, one, two + 1);
        if is_same {
            found.push(Step::Same(one, two));
            (one, two) = (one + 1, two + 1);
        } else if one < gone.len() && (two >= come.len() || drops) {
            found.push(Step::Gone(one));
            one += 1;
        } else {
            found.push(Step::Come(two));
            two += 1;
        }
    }
    found
}

/// Every reason code.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReasonList {
    items: Vec<ReasonRow>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReasonRow {
    code: &'static str,
    meaning: &'static str,
}

pub(crate) fn reasons() -> ReasonList {
    let row = |reason: &Reason| ReasonRow {
        code: reason.code(),
        meaning: reason.meaning(),
    };
    ReasonList {
        items: Reason::ALL.iter().map(row).collect(),
    }
}

/// What a page is told of an error of the engine. What is about the request is said; what
/// is about this machine goes to the operator.
pub(crate) fn refused(studio: &Studio, fault: &EngineError) -> ApiError {
    match fault {
        EngineError::NoSuchTool { .. } => ApiError::unknown(text::one_line(&fault.to_string())),
        EngineError::Bundled(_)
        | EngineError::Reserved(_)
        | EngineError::Exists(_)
        | EngineError::Name(_)
        | EngineError::NoSuchVariable { .. }
        | EngineError::Settings(_)
        | EngineError::Baseline(_)
        | EngineError::Preset { .. } => ApiError::invalid(lines(&fault.to_string())),
        _ => studio.alarm("the server could not do that", fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let sign = |line: &DiffLine| match line.kind {
            "same" => format!(" {}", line.text),
            "add" => format!("+{}", line.text),
            _ => format!("-{}", line.text),
        };
        diff(old, new).iter().map(sign).collect()
    }

    #[test]
    fn a_difference_keeps_what_is_common() {
        assert_eq!(
            shown("a\nb\nc\nd", "a\nX\nc\nY\nd"),
            [" a", "-b", "+X", " c", "+Y", " d"]
        );
        assert_eq!(shown("", "a"), ["+a"]);
        assert_eq!(shown("a", ""), ["-a"]);
        assert_eq!(shown("a\nb", "a\nb"), [" a", " b"]);
        let numbered = diff("a\nb\nc", "b\nc");
        assert_eq!((numbered[1].old, numbered[1].new), (Some(2), Some(1)));
    }

    /// Attack: two long texts with nothing in common make a table of their product.
    #[test]
    fn a_large_difference_is_no_large_work() {
        let old: String = (0..20_000).map(|at| format!("a{at}\n")).collect();
        let new: String = (0..20_000).map(|at| format!("b{at}\n")).collect();
        assert_eq!(diff(&old, &new).len(), 40_000);
    }

    #[test]
    fn nothing_of_a_value_is_hidden_or_cut() {
        let long = "x".repeat(100_000);
        let tree = NodeView::of(&json!({"a\u{202e}b": ["\u{200b}z", long], "n": null}));
        let items = tree.children.expect("members");
        assert_eq!(items[0].name.as_deref(), Some("a\\u{202e}b"));
        let inside = items[0].children.as_ref().expect("items");
        assert_eq!((inside[0].hidden, inside[0].chars), (1, 2));
        assert!(!inside[0].text.contains('\u{200b}'));
        assert_eq!(inside[1].text.len(), 100_000);
        assert_eq!(items[1].kind, "null");
        assert_eq!(items[0].pointer, "/a\\u{202e}b");
    }
}
