//! The globals that code has, for completion in an editor. What tool code is given besides
//! the language, and what a script of code mode is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiResult;
use crate::request::Asked;
use crate::studio::Studio;

/// The globals of tool code and of scripts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GlobalsView {
    tool: Vec<GlobalView>,
    script: Vec<GlobalView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GlobalView {
    name: &'static str,
    detail: &'static str,
    info: &'static str,
    needs: Option<&'static str>,
}

/// Name, how it is called, what it does, and what the document must declare for it.
type Global = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const TOOL: &[Global] = &[
    (
        "console",
        "console.log(…)",
        "writes a line that the author and the audit see",
        None,
    ),
    (
        "fetch",
        "fetch(url, init)",
        "a promise of a reply with text(), json() and arrayBuffer()",
        Some("networkMode"),
    ),
    (
        "safety.fs",
        "safety.fs.readText(path)",
        "files below fsBasePath or the workspace",
        Some("fileRead or fileWrite"),
    ),
    (
        "safety.parser.html",
        "safety.parser.html(text)",
        "HTML as data, with select, first, text and attr",
        None,
    ),
    (
        "safety.parser.xml",
        "safety.parser.xml(text)",
        "XML as data",
        None,
    ),
    (
        "safety.parser.csv",
        "safety.parser.csv(text)",
        "CSV as data",
        None,
    ),
    (
        "safety.parser.yaml",
        "safety.parser.yaml(text)",
        "YAML as data",
        None,
    ),
    (
        "crypto.randomUUID",
        "crypto.randomUUID()",
        "a random UUID",
        None,
    ),
    (
        "crypto.getRandomValues",
        "crypto.getRandomValues(array)",
        "fills an array with random numbers",
        None,
    ),
    (
        "crypto.subtle",
        "crypto.subtle.digest('SHA-256', bytes)",
        "digest, HMAC, AES-GCM, PBKDF2, HKDF",
        None,
    ),
    ("atob", "atob(text)", "text from base64", None),
    ("btoa", "btoa(text)", "base64 of a text", None),
    (
        "TextEncoder",
        "new TextEncoder().encode(text)",
        "bytes of a text",
        None,
    ),
    (
        "TextDecoder",
        "new TextDecoder().decode(bytes)",
        "text of bytes",
        None,
    ),
    ("URL", "new URL(address)", "an address in its parts", None),
    (
        "URLSearchParams",
        "new URLSearchParams(text)",
        "the query of an address",
        None,
    ),
    (
        "structuredClone",
        "structuredClone(value)",
        "a deep copy",
        None,
    ),
    (
        "Intl",
        "new Intl.DateTimeFormat('de', options)",
        "dates, numbers and sorting in ten languages",
        None,
    ),
];

const SCRIPT: &[Global] = &[
    (
        "callTool",
        "await callTool(name, args)",
        "calls a tool through every gate; throws if it fails",
        None,
    ),
    (
        "console",
        "console.log(…)",
        "writes a line into the logs of the answer",
        None,
    ),
];

pub(crate) fn globals(_: &Studio, _: &Asked) -> ApiResult<GlobalsView> {
    let view = |(name, detail, info, needs): &Global| GlobalView {
        name,
        detail,
        info,
        needs: *needs,
    };
    Ok(GlobalsView {
        tool: TOOL.iter().map(view).collect(),
        script: SCRIPT.iter().map(view).collect(),
    })
}
