//! Asking a person. A question says what would run, with what, for whom and how
//! risky it is; an answer counts for exactly that and only once.

use std::fmt;
use std::pin::Pin;

use model::document::Document;
use model::mask::{Masked, Masker};
use model::risk::Risk;
use model::text;
use serde_json::{Map, Value};

/// Characters of the arguments a question shows; the middle is left out with a
/// count.
const ARGUMENTS_SHOWN_CHARS_MAX: usize = 400;
/// Characters of a filled-in prompt.
const PROMPT_SHOWN_CHARS_MAX: usize = 2_000;

/// Someone who can be asked.
pub trait Approver: fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer.
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}

/// What a person is asked. Secrets are masked and hidden characters shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The call it is about.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Who calls.
    pub caller: String,
    /// The badge and why.
    pub risk: Risk,
    /// The question in words.
    pub prompt: String,
    /// The arguments, as one line of JSON.
    pub arguments: String,
    /// What the answer counts for: a digest of document, policy, arguments and
    /// caller.
    pub binding: String,
    /// The name of the question in the inbox.
    pub id: String,
    /// When it can no longer be answered, in milliseconds since 1970.
    pub expires_at_ms: i64,
    /// What an approval may count for; the risk decides.
    pub scopes: Vec<Scope>,
}

/// What a person said, or what came instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Run it, and these calls after it.
    Approved(Scope),
    /// Do not.
    Declined,
    /// The question was put away without an answer.
    Dismissed,
    /// Nobody answered in time.
    TimedOut,
    /// There was nobody to ask.
    Unavailable,
    /// A yes that came faster than anybody reads: it was not shown to a person.
    NotRendered,
    /// An answer that does not fit the question.
    Malformed,
    /// The answer will come with another call.
    Deferred,
}

/// What an approval counts for, besides the call it was given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Nothing else.
    Once,
    /// The same tool with the same arguments, for a while.
    SameArguments,
    /// The same tool, in the same session.
    Session,
    /// The same tool, until its document or its policy changes.
    UntilChanged,
}

impl Answer {
    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Answer::Approved(_) => "approved",
            Answer::Declined => "declined",
            Answer::Dismissed => "dismissed",
            Answer::TimedOut => "timed out",
            Answer::Unavailable => "unavailable",
            Answer::NotRendered => "not rendered",
            Answer::Malformed => "malformed",
            Answer::Deferred => "deferred",
        }
    }
}

/// The question in the document's words, or in ours. Arguments are data: they
/// are filled in as JSON on one line, and what was filled in is not looked at
/// again.
pub(crate) fn prompt(
    document: &Document,
    arguments: &Map<String, Value>,
    masker: &Masker,
) -> Masked<String> {
    let template = document
        .human_in_the_loop
        .as_ref()
        .and_then(|block| block.prompt_template.as_deref())
        .filter(|template| !template.trim().is_empty())
        .unwrap_or("Run `{toolName}` with {args}?");
    let mut prompt = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        prompt.push_str(before);
        match after
            .split_once('}')
            .and_then(|(field, tail)| Some((fill(field, document, arguments)?, tail)))
        {
            Some((filled, tail)) => {
                prompt.push_str(&text::elided(&filled, ARGUMENTS_SHOWN_CHARS_MAX));
                rest = tail;
            }
            None => {
                prompt.push('{');
                rest = after;
            }
        }
    }
    prompt.push_str(rest);
    masker.text(&text::elided(
        &text::one_line(&prompt),
        PROMPT_SHOWN_CHARS_MAX,
    ))
}

/// `toolName`, `args`, or a path into the arguments; anything else stays as it is.
fn fill(field: &str, document: &Document, arguments: &Map<String, Value>) -> Option<String> {
    if field == "toolName" {
        return Some(document.name.clone());
    }
    if field == "args" {
        return Some(Value::Object(arguments.clone()).to_string());
    }
    let mut steps = field.strip_prefix("args.")?.split('.');
    let mut value = arguments.get(steps.next()?);
    for step in steps {
        value = value.and_then(|value| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        });
    }
    Some(value.map_or_else(|| "nothing".to_owned(), Value::to_string))
}

/// The arguments as a question shows them.
pub(crate) fn shown(arguments: &Map<String, Value>, masker: &Masker) -> Masked<String> {
    let line = text::one_line(&Value::Object(arguments.clone()).to_string());
    masker.text(&text::elided(&line, ARGUMENTS_SHOWN_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(template: &str, arguments: Value, expected: &str) {
        let text = json!({
            "name": "send", "code": "", "codeType": "Javascript",
            "humanInTheLoop": {"mode": "REQUIRED", "promptTemplate": template},
        });
        let item = model::document::parse(&text.to_string()).items.pop();
        let document = item
            .and_then(|item| item.document)
            .expect("a sound document");
        let masker = Masker::new(["s3cret-value"]).expect("a masker");
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        assert_eq!(prompt(&document, &arguments, &masker).get(), expected);
    }

    #[test]
    fn templates_are_filled_once() {
        check("", json!({"a": 1}), r#"Run `send` with {"a":1}?"#);
        check(
            "{toolName}: {args.to.0}",
            json!({"to": ["ann", "bob"]}),
            r#"send: "ann""#,
        );
        check(
            "{args.a.b}",
            json!({"a": {"b": {"c": null}}}),
            r#"{"c":null}"#,
        );
        check("{args.gone.deep}", json!({}), "nothing");
        check("{unknown} {", json!({}), "{unknown} {");
        // What an argument says is not a template.
        check(
            "{args.a}",
            json!({"a": "{args.b}", "b": "x"}),
            r#""{args.b}""#,
        );
    }

    #[test]
    fn arguments_cannot_hide_or_show_secrets() {
        check(
            "{args.a}",
            json!({"a": "pay\u{202e}evil\n\u{1b}[2Jyes"}),
            "\"pay\\u{202e}evil\\n\\u001b[2Jyes\"",
        );
        check("{args.a}", json!({"a": "s3cret-value"}), "\"***\"");
    }
}
