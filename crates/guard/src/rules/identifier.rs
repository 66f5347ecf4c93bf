//! Names: unknown ones, refused ones, those of the runtime, and those with letters
//! that look the same.

use oxc_span::Span;

use super::Rules;
use crate::code::IssueCode;
use crate::preset::{GLOBAL_OBJECTS, RESERVED_PREFIXES, RUNTIME_FUNCTIONS, Targets};
use crate::scan::unicode;

/// Names that a script may not even give to something of its own.
const NEVER_DECLARED: &[&str] = &["arguments", "eval", "constructor", "__proto__", "prototype"];

impl Rules<'_, '_> {
    /// Every use of a name.
    pub(super) fn references(&mut self) {
        let names = self.names;
        for reference in &names.references {
            let (name, span) = (reference.name, reference.span);
            self.hidden_letters(name, span);
            if is_reserved(name) {
                let code = match reference.is_write {
                    true => IssueCode::ReservedPrefixAssignment,
                    false => IssueCode::ReservedPrefix,
                };
                self.error(code, span, || {
                    format!("`{name}` belongs to the runtime; use another name")
                });
                continue;
            }
            if reference.binding.is_some() {
                continue;
            }
            let is_given = self
                .allowed
                .as_ref()
                .is_some_and(|allowed| allowed.contains(name));
            if reference.is_write && is_given {
                self.error(IssueCode::NoCallTargetAssignment, span, || {
                    format!("`{name}` belongs to the runtime and cannot be replaced")
                });
            }
            self.global(name, span, reference.is_typeof);
            let is_called = reference.is_callee || reference.is_typeof;
            // A copy of `callTool` under another name would call tools
            // that no rule has seen.
            if name == "callTool" && !is_called && self.preset.targets == Targets::Literal {
                self.error(IssueCode::DynamicCallTarget, span, || {
                    String::from(
                        "`callTool` can only be called directly; write `callTool('name', { … })`",
                    )
                });
            }
        }
    }

    fn global(&mut self, name: &str, span: Span, is_typeof: bool) {
        let is_allowed = self
            .allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(name));
        // The lists may overlap: what is refused stays so even if it is given.
        if is_allowed && !self.refused.contains(name) {
            return;
        }
        if self.preset.is_agent_script && GLOBAL_OBJECTS.contains(&name) {
            self.error(IssueCode::NoGlobalAccess, span, || {
                format!("`{name}` is not available; use the names the script is given")
            });
            return;
        }
        if matches!(
            name,
            "eval" | "Function" | "AsyncFunction" | "GeneratorFunction"
        ) && self.refused.contains(name)
        {
            self.error(IssueCode::NoEval, span, || {
                format!("`{name}` makes code from text; write the code itself")
            });
            return;
        }
        if self.refused.contains(name) {
            let code = if name == "Reflect" {
                IssueCode::NoReflectApi
            } else {
                IssueCode::DisallowedIdentifier
            };
            self.error(code, span, || {
                format!("`{name}` is not available{}", instead(name))
            });
            if name == "Reflect" {
                self.error(IssueCode::DisallowedIdentifier, span, || {
                    format!("`{name}` is not available")
                });
            }
            return;
        }
        // It reads as `undefined`; the rewriting sees to it.
        if is_typeof {
            return;
        }
        let allowed = self.allowed.as_ref();
        // Inside the closure: a hostile script has thousands of unknown names, and only
        // the first hundred are reported.
        self.marks
            .error(IssueCode::UnknownGlobal, super::at(span), || {
                let mut known: Vec<&str> =
                    allowed.map_or_else(Vec::new, |allowed| allowed.iter().copied().collect());
                known.sort_unstable();
                let shown = model::text::elided(name, 80);
                match model::nearest::nearest(&shown, known) {
                    Some(nearest) => {
                        format!("`{shown}` is not declared here; did you mean `{nearest}`?")
                    }
                    None => format!("`{shown}` is not declared here"),
                }
            });
    }

    /// A name that is declared, or a label.
    pub(super) fn check_declaration(&mut self, name: &str, span: Span) {
        self.hidden_letters(name, span);
        if !self.preset.is_agent_script {
            return;
        }
        if is_reserved(name) {
            self.error(IssueCode::ReservedPrefix, span, || {
                format!("`{name}` starts like the names of the runtime; use another name")
            });
        }
        if self.is_runtime(name) {
            self.error(IssueCode::NoCallTargetAssignment, span, || {
                format!("`{name}` belongs to the runtime and cannot be declared again")
            });
        }
        if NEVER_DECLARED.contains(&name) {
            self.error(IssueCode::DisallowedIdentifier, span, || {
                format!("`{name}` cannot be a name of your own")
            });
        }
    }

    fn is_runtime(&self, name: &str) -> bool {
        self.preset.is_agent_script && RUNTIME_FUNCTIONS.contains(&name)
    }

    /// Names as they are after their escapes are read.
    pub(super) fn hidden_letters(&mut self, name: &str, span: Span) {
        if name.is_ascii() || !self.preset.is_agent_script {
            return;
        }
        let found = name.chars().find_map(|character| {
            if unicode::is_direction(character) {
                return Some(IssueCode::UnicodeBidi);
            }
            if unicode::is_joiner(character) || character == '\u{200b}' {
                return Some(IssueCode::UnicodeZeroWidth);
            }
            let is_unseen = unicode::is_invisible(character) || unicode::is_blank_letter(character);
            is_unseen.then_some(IssueCode::UnicodeInvisible)
        });
        let found =
            found.or_else(|| unicode::is_homograph(name).then_some(IssueCode::UnicodeHomoglyph));
        if let Some(code) = found {
            self.error(code, span, || {
                String::from("this name is not what it looks like; use plain letters")
            });
        }
    }
}

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// A replacement for names that people often try.
fn instead(name: &str) -> &'static str {
    match name {
        "Promise" => "; use `parallel(items, fn)` to call tools side by side, or `await` each call",
        "fetch" | "XMLHttpRequest" | "WebSocket" => "; call a tool that fetches",
        "require" | "module" | "exports" => "; a script has no modules, call a tool instead",
        "process" => "; what a script may know is in `codecallContext`",
        "Map" | "WeakMap" => "; use a plain object",
        "Set" | "WeakSet" => "; use an array with `includes`, or the keys of an object",
        "RegExp" => "; use `includes`, `startsWith` or `split` with text",
        "setTimeout" | "setInterval" | "setImmediate" | "queueMicrotask" => {
            "; a script runs from top to bottom, `await` what it waits for"
        }
        "structuredClone" => "; use `JSON.parse(JSON.stringify(value))`",
        "crypto" | "performance" | "Intl" | "TextEncoder" | "TextDecoder" | "Buffer" => {
            "; call a tool for it"
        }
        "Symbol" | "Proxy" => "; use plain objects",
        "arguments" => "; name the parameters",
        _ => "",
    }
}
