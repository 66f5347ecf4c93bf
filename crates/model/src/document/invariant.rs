//! Rules that join two fields, or a field and the runtime: the shape is right,
//! but does it make sense?

use std::collections::HashSet;

use super::{ApprovalMode, Document, NetworkMode, Overrides, ParamType, unseen};
use crate::document::finding::{Code, Finding};
use crate::document::resource;
use crate::network::host_pattern::HostPattern;
use crate::text::{elided, is_hidden};
use crate::{document::codecall, document::params, document::placeholder, document::safety};

/// Globals the host installs after the params, so that they win over them.
const HOST_GLOBALS: &[&str] = &[
    "console",
    "fetch",
    "URL",
    "URLSearchParams",
    "atob",
    "btoa",
    "crypto",
    "safety",
    "globalThis",
];

/// Reserved words of JavaScript, which cannot name variables.
const RESERVED: &[&str] = &[
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "new",
    "null",
    "return",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "let",
    "static",
    "yield",
];

/// Whether a word is reserved in JavaScript.
#[must_use]
pub fn is_word(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// All contradictions. Places are found by pointer.
pub(super) fn check(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::from_iter(name(document));
    findings.extend(code(document));
    findings.extend(unseen::findings(document));
    findings.extend(param_names(document));
    findings.extend(
        params::test_arguments(&document.params)
            .err()
            .into_iter()
            .flatten(),
    );
    findings.extend(test_words(document));
    findings.extend(static_variables(document));
    findings.extend(network(&document.sandbox_overrides));
    findings.extend(files(&document.sandbox_overrides));
    findings.extend(classes(&document.sandbox_overrides));
    findings.extend(prompt(document));
    findings.extend(document.tool_safety.iter().flat_map(safety::unprovided));
    findings.extend(codecall::findings(document));
    findings.extend(resource::findings(document));
    findings
}

fn error(pointer: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding::error(Code::SpecInvariant, pointer, message)
}

fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding::warning(Code::SpecInvariant, pointer, message)
}

/// Any name is accepted, but some clients are stricter.
fn name(document: &Document) -> Option<Finding> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = &document.name;
    if name.chars().any(is_hidden) {
        let shown = elided(name, 80);
        return Some(error(
            "name",
            format!("`name` contains invisible characters: `{shown}`"),
        ));
    }
    if name.chars().all(legal) && name.len() <= 64 {
        return None;
    }
    let slug: String = name
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .take(64)
        .collect();
    let message =
        "some MCP clients take only letters, digits, `_` and `-`, up to 64, as a tool's name";
    Some(warning("name", message).fix(format!("write `{slug}`")))
}

fn code(document: &Document) -> Option<Finding> {
    let empty = document.code.trim().is_empty();
    empty.then(|| warning("code", "`code` is empty: the tool does nothing"))
}

fn param_names(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = HashSet::new();
    for (index, param) in document.params.iter().enumerate() {
        let at = format!("params[{index}].name");
        if !seen.insert(param.name.as_str()) {
            let message = format!("two params are called `{}`", elided(&param.name, 60));
            findings.push(error(&at, message).fix("give one of them another name"));
        }
        findings.extend(global_name(&at, &param.name));
        if document
            .static_variables
            .iter()
            .any(|variable| variable.name == param.name)
        {
            let message = format!(
                "a static variable `{}` hides this param",
                elided(&param.name, 60)
            );
            findings.push(warning(&at, message).fix("give one of them another name"));
        }
    }
    findings
}

/// Params and static variables become globals of the script.
fn global_name(at: &str, name: &str) -> Option<Finding> {
    let shown = elided(name, 60);
    if HOST_GLOBALS.contains(&name) {
        let message = format!("the runtime's own `{shown}` hides this one from the code");
        return Some(warning(at, message).fix("give it another name"));
    }
    if is_word(name) {
        let message = format!("`{shown}` is a reserved word of JavaScript");
        return Some(warning(at, message).fix("give it another name"));
    }
    let first = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    let is_identifier =
        name.chars().next().is_some_and(first) && name.chars().all(|c| first(c) || c.is_numeric());
    (!is_identifier).then(|| {
        let message = format!("the code cannot read `{shown}` by that name");
        warning(at, message).fix("use letters, digits and `_`, not starting with a digit")
    })
}

/// `yes` reads as false, which its author hardly means.
fn test_words(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, param) in document.params.iter().enumerate() {
        let Some(text) = param.test_value.as_deref().map(str::trim) else {
            continue;
        };
        let odd = param.kind == ParamType::Boolean
            && !text.is_empty()
            && !text.eq_ignore_ascii_case("true")
            && !text.eq_ignore_ascii_case("false");
        if odd {
            let message = format!(
                "`testValue` is `{}`, which reads as false",
                elided(text, 40)
            );
            let at = format!("params[{index}].testValue");
            findings.push(warning(at, message).fix("write `true` or `false`"));
        }
        if placeholder::names(text).next().is_some() {
            let message = "placeholders are filled in static variables only, never in arguments";
            findings.push(warning(format!("params[{index}].testValue"), message));
        }
    }
    findings
}

fn static_variables(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, variable) in document.static_variables.iter().enumerate() {
        let at = format!("staticVariables[{index}]");
        findings.extend(global_name(&at, &variable.name));
        let later = document.static_variables.iter().skip(index + 1);
        if later.into_iter().any(|other| other.name == variable.name) {
            let message = format!(
                "`{}` is given again below, and the later one wins",
                elided(&variable.name, 60)
            );
            findings.push(warning(&at, message));
        }
        for lookalike in placeholder::lookalikes(&variable.template) {
            let name = lookalike.to_ascii_uppercase().replace('-', "_");
            let message = format!(
                "`${{{}}}` is not a placeholder and stays as it is",
                elided(lookalike, 60)
            );
            findings.push(warning(&at, message).fix(format!("write `${{{name}}}`")));
        }
    }
    findings
}

fn network(overrides: &Overrides) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, raw_host) in overrides.hosts_allow.iter().enumerate() {
        let at = format!("sandboxOverrides.hostsAllow[{index}]");
        match HostPattern::parse(raw_host) {
            Ok(host) if host.is_whole_tld() => {
                let message = format!("`{host}` covers a whole top-level domain");
                findings.push(warning(at, message).fix("list the hosts the tool needs"));
            }
            Ok(host) if host.is_international() => {
                let message = format!(
                    "`{}` is looked up as `{host}`; its letters may look like others",
                    elided(raw_host, 60)
                );
                let fix = "make sure that it is the host that is meant";
                findings.push(warning(at, message).fix(fix));
            }
            Ok(_) => {}
            Err(fault) => {
                let fix = fault
                    .suggestion
                    .as_ref()
                    .map(|host| format!("write `{host}`"));
                findings.push(Finding {
                    fix,
                    ..error(at, fault.to_string())
                });
            }
        }
    }
    let listed = !overrides.hosts_allow.is_empty();
    match overrides.network_mode {
        Some(NetworkMode::Allowlist) if !listed => {
            let message =
                "`allowlist` without hosts reaches nothing unless the operator lists some";
            let finding = warning("sandboxOverrides.networkMode", message);
            findings.push(finding.fix("add `hostsAllow`, or use `blocked`"));
        }
        Some(NetworkMode::Allowlist) => {}
        Some(NetworkMode::Blocked | NetworkMode::Strict | NetworkMode::Open) | None if listed => {
            let message = "`hostsAllow` has an effect only when `networkMode` is `allowlist`";
            let finding = warning("sandboxOverrides.hostsAllow", message);
            findings.push(finding.fix("add `\"networkMode\": \"allowlist\"`"));
        }
        Some(NetworkMode::Blocked | NetworkMode::Strict | NetworkMode::Open) | None => {}
    }
    findings
}

fn files(overrides: &Overrides) -> Option<Finding> {
    let asked = overrides.file_read == Some(true) || overrides.file_write == Some(true);
    let path = overrides.fs_base_path.as_deref()?;
    let at = "sandboxOverrides.fsBasePath";
    if path.trim().is_empty() {
        return Some(error(at, "`fsBasePath` is blank").fix("name a folder, or leave it out"));
    }
    if path.contains('\0') {
        return Some(error(at, "`fsBasePath` holds a null character"));
    }
    (!asked).then(|| {
        warning(
            at,
            "`fsBasePath` has an effect only with `fileRead` or `fileWrite`",
        )
    })
}

/// There are no host classes in this runtime: such entries only raise the badge.
fn classes(overrides: &Overrides) -> Vec<Finding> {
    [
        ("addAllowClasses", &overrides.add_allow_classes),
        ("removeDenyClasses", &overrides.remove_deny_classes),
    ]
    .into_iter()
    .filter(|(_, classes)| !classes.is_empty())
    .map(|(key, _)| {
        let message = format!(
            "`{key}` raises the risk level and grants nothing: there are no Java classes here"
        );
        warning(format!("sandboxOverrides.{key}"), message)
            .fix("remove it; `fetch`, `safety.fs` and `safety.parser` take their place")
    })
    .collect()
}

fn prompt(document: &Document) -> Option<Finding> {
    let block = document.human_in_the_loop.as_ref()?;
    let template = block.prompt_template.as_deref()?;
    let at = "humanInTheLoop.promptTemplate";
    if template.chars().any(|c| is_hidden(c) && c != '\n') {
        return Some(error(
            at,
            "`promptTemplate` holds characters the approver cannot see",
        ));
    }
    match document.approval() {
        ApprovalMode::Disabled => Some(
            warning(at, "the prompt is never shown: `mode` is DISABLED")
                .fix("set `mode` to REQUIRED"),
        ),
        ApprovalMode::Required | ApprovalMode::AutoApprove => None,
    }
}
