//! Phrases that poisoned descriptions use, and harmless ones too: they warn.
//!
//! Phrases are looked for in small letters with single spaces and plain quotes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::{FindingCode, Findings};

/// A family of phrases.
struct PhraseFamily {
    code: FindingCode,
    message: &'static str,
    phrases: &'static [&'static str],
}

const FAMILIES: &[PhraseFamily] = &[
    PhraseFamily {
        code: FindingCode::Override,
        message: "the text wants to replace what the model was told",
        phrases: &[
            "ignore previous",
            "ignore all previous",
            "ignore any previous",
            "ignore prior",
            "ignore the above",
            "ignore your instructions",
            "ignore all other instructions",
            "ignore all safety",
            "disregard previous",
            "disregard all",
            "disregard any",
            "disregard the user",
            "disregard your",
            "forget your instructions",
            "forget previous",
            "forget everything",
            "forget all",
            "override your",
            "override any",
            "overrides all",
            "overrides any",
            "supersedes all",
            "supersede all",
            "supersedes any",
            "new instructions",
            "updated instructions",
            "you are now",
            "you are no longer",
            "act as if",
            "pretend to be",
            "pretend that",
            "developer mode",
            "jailbreak",
            "regardless of what the user",
            "regardless of the user",
            "even if the user",
            "takes priority over",
            "take priority over",
            "system prompt",
        ],
    },
    PhraseFamily {
        code: FindingCode::Secrecy,
        message: "the text wants something kept from people",
        phrases: &[
            "do not tell",
            "don't tell",
            "never tell",
            "do not mention",
            "don't mention",
            "never mention",
            "do not inform",
            "don't inform",
            "do not reveal",
            "don't reveal",
            "do not disclose",
            "do not show the user",
            "don't show the user",
            "do not notify",
            "don't notify",
            "do not let the user",
            "don't let the user",
            "without telling",
            "without informing",
            "without mentioning",
            "without notifying",
            "without asking",
            "without the user",
            "without confirmation",
            "keep this secret",
            "keep this hidden",
            "keep this between",
            "keep it secret",
            "keep it confidential",
            "hide this",
            "hidden from the user",
            "hide from the user",
            "silently",
            "secretly",
            "covertly",
            "discreetly",
            "user does not need to know",
            "user doesn't need to know",
            "user should not know",
            "user must not",
            "user should not see",
            "not be visible to",
            "do not display",
            "do not log",
            "omit this from",
            "leave this out of",
        ],
    },
    PhraseFamily {
        code: FindingCode::Precedence,
        message: "the text wants its tool used before or instead of others",
        phrases: &[
            "before using",
            "before calling",
            "before any other",
            "before you use",
            "before you call",
            "before invoking",
            "before every",
            "before each",
            "prior to using",
            "prior to calling",
            "prior to any",
            "must be called first",
            "must call this",
            "call this first",
            "call this tool first",
            "always call this",
            "always use this",
            "use this tool first",
            "use this instead",
            "use this tool instead",
            "instead of any other",
            "instead of the other",
            "instead of other",
            "prefer this tool",
            "only use this tool",
            "do not use any other",
            "don't use any other",
            "never use other",
            "never use any other",
            "replaces the",
            "other tools are deprecated",
            "other tools are broken",
            "whenever any tool",
            "whenever another tool",
            "when any other tool",
            "after every",
            "after each call",
            "every time the user",
            "in every conversation",
            "at the start of every",
            "on every request",
        ],
    },
    PhraseFamily {
        code: FindingCode::Directive,
        message: "the text gives orders to the model or looks like its markup",
        phrases: &[
            "<important>",
            "</important>",
            "<system",
            "</system",
            "<instruction",
            "<secret",
            "<hidden",
            "<admin",
            "<|im_start|>",
            "<|im_end|>",
            "<|system|>",
            "[inst]",
            "[system]",
            "[[system]]",
            "### instruction",
            "### system",
            "<<sys>>",
            "system:",
            "assistant:",
            "important:",
            "important!",
            "critical:",
            "mandatory",
            "attention:",
            "you must",
            "the assistant must",
            "the model must",
            "the agent must",
            "the ai must",
            "the llm must",
            "as an ai",
            "note to the model",
            "note to assistant",
            "note for ai",
            "instructions for the",
            "instruction to the",
            "strictly required",
            "it is essential",
            "it is crucial",
            "otherwise the tool",
            "or the tool will fail",
            "will not work unless",
            "compliance requirement",
            "security requirement",
            "legal requirement",
        ],
    },
    PhraseFamily {
        code: FindingCode::Credentials,
        message: "the text names credentials or where they are kept",
        phrases: &[
            "~/.ssh",
            ".ssh/",
            "id_rsa",
            "id_ed25519",
            "authorized_keys",
            ".aws/",
            ".env file",
            "/.env",
            "`.env`",
            "/etc/passwd",
            "/etc/shadow",
            "mcp.json",
            "mcp_config",
            "claude_desktop_config",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".git-credentials",
            ".kube/config",
            ".docker/config",
            ".gnupg",
            "keychain",
            "keyring",
            "seed phrase",
            "mnemonic",
            "wallet",
            "private key",
            "secret key",
            "api key",
            "api_key",
            "apikey",
            "access token",
            "auth token",
            "bearer",
            "session cookie",
            "session token",
            "password",
            "passphrase",
            "credentials",
            "environment variables",
            "printenv",
            "authorization header",
            "credit card",
            "social security",
            "one-time code",
            "verification code",
        ],
    },
    PhraseFamily {
        code: FindingCode::Transfer,
        message: "the text wants data sent somewhere",
        phrases: &[
            "send it to",
            "send them to",
            "send the contents",
            "send the content",
            "send a copy",
            "send all",
            "send their",
            "send the user",
            "upload it to",
            "upload the",
            "upload them",
            "post it to",
            "post them to",
            "post the",
            "forward it",
            "forward all",
            "forward a copy",
            "forward the",
            "exfiltrate",
            "bcc",
            "copy all",
            "include the contents",
            "include the content",
            "include the full",
            "include its content",
            "append the",
            "pass its content",
            "pass the content",
            "pass their content",
            "pass the full",
            "paste the",
            "put the contents",
            "attach the contents",
            "attach the full",
            "encode the",
            "as the value of",
            "in the sidenote",
            "full conversation",
            "entire conversation",
            "conversation history",
            "chat history",
            "previous messages",
            "all messages",
            "webhook",
            "pastebin",
            "ngrok",
            "requestbin",
            "attacker",
        ],
    },
];

/// All phrases as one machine, so that a text is read once; beside it the family of
/// each phrase. A machine that cannot be built would be seen by every test.
static MACHINE: LazyLock<(Option<AhoCorasick>, Vec<usize>)> = LazyLock::new(|| {
    let phrases = || FAMILIES.iter().flat_map(|family| family.phrases);
    let families = FAMILIES.iter().enumerate();
    let owners = families.flat_map(|(index, family)| family.phrases.iter().map(move |_| index));
    (AhoCorasick::new(phrases()).ok(), owners.collect())
});

/// Every family that a text has a phrase of, with its first phrase.
pub(super) fn check(findings: &mut Findings, field: &str, text: &str) {
    let (plain, places) = plain(text);
    let (machine, owners) = &*MACHINE;
    let mut first: BTreeMap<usize, Range<usize>> = BTreeMap::new();
    for found in machine
        .iter()
        .flat_map(|machine| machine.find_overlapping_iter(&plain))
    {
        let Some(family) = owners.get(found.pattern().as_usize()) else {
            continue;
        };
        let span = found.range();
        let is_earlier = first
            .get(family)
            .is_none_or(|known| span.start < known.start);
        if is_earlier && is_whole(&plain, &span) {
            first.insert(*family, span);
        }
    }
    let place = |index: usize| places.get(index).copied().unwrap_or(text.len());
    for (family, span) in first {
        if let Some(family) = FAMILIES.get(family) {
            let span = place(span.start)..place(span.end);
            findings.add(family.code, field, text, span, family.message);
        }
    }
}

/// Whether a phrase does not begin or end inside a word.
fn is_whole(text: &str, span: &Range<usize>) -> bool {
    let is_letter = |c: char| c.is_alphanumeric();
    let phrase = text.get(span.clone()).unwrap_or("");
    let before = text
        .get(..span.start)
        .and_then(|before| before.chars().next_back());
    let after = text.get(span.end..).and_then(|after| after.chars().next());
    let starts = !phrase.starts_with(is_letter) || !before.is_some_and(is_letter);
    let ends = !phrase.ends_with(is_letter) || !after.is_some_and(is_letter);
    starts && ends
}

/// The text in small letters, with single spaces and plain quotes; and for each of its
/// bytes the place in the text it comes from.
fn plain(text: &str) -> (String, Vec<usize>) {
    let mut plain = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let before = plain.len();
        match character {
            space if space.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            '\u{2018}' | '\u{2019}' | '\u{02bc}' => plain.push('\''),
            '\u{201c}' | '\u{201d}' => plain.push('"'),
            hidden if model::text::is_hidden(hidden) => {}
            other => plain.extend(other.to_lowercase()),
        }
        places.extend(std::iter::repeat_n(at, plain.len() - before));
    }
    (plain, places)
}
