//! The names presets allow and refuse.

use super::PresetLevel;

/// Names that start with one of these belong to the runtime.
pub const RESERVED_PREFIXES: &[&str] = &["__ag_", "__safe_", "__REF_"];

/// Functions the runtime adds to JavaScript. In rewritten code each has the prefix
/// `__safe_`.
pub const RUNTIME_FUNCTIONS: &[&str] = &[
    "callTool",
    "getTool",
    "parallel",
    "mcpLog",
    "mcpNotify",
    "codecallContext",
    "console",
];

/// Names of the global object.
pub(crate) const GLOBAL_OBJECTS: &[&str] = &["globalThis", "window", "self", "global"];

/// Whether a key leads from a value to its prototype or to the maker of functions.
/// A match and no list: every property of every script is asked about.
pub(crate) fn is_dangerous_key(key: &str) -> bool {
    matches!(
        key,
        "constructor"
            | "prototype"
            | "__proto__"
            | "__defineGetter__"
            | "__defineSetter__"
            | "__lookupGetter__"
            | "__lookupSetter__"
            | "callee"
            | "caller"
            | "eval"
            | "Function"
            | "AsyncFunction"
            | "GeneratorFunction"
    )
}

/// Whether a name is one of [`META_METHODS`]; they are long, and most names short.
pub(crate) fn is_meta_method(key: &str) -> bool {
    key.len() >= 14 && META_METHODS.contains(&key)
}

/// Methods of `Object` that change how objects work; distinctive enough to be
/// refused on any object.
pub(crate) const META_METHODS: &[&str] = &[
    "getOwnPropertyDescriptor",
    "getOwnPropertyDescriptors",
    "getOwnPropertySymbols",
    "getPrototypeOf",
    "setPrototypeOf",
    "defineProperty",
    "defineProperties",
];

/// Errors a script may throw and tell apart.
pub(crate) const ERROR_CLASSES: &[&str] = &[
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
    "AggregateError",
];

/// Names that `AgentScript` refuses, whether or not they exist.
pub(crate) const AGENT_SCRIPT: &[&str] = &[
    "process",
    "require",
    "module",
    "exports",
    "__dirname",
    "__filename",
    "Buffer",
    "eval",
    "Function",
    "AsyncFunction",
    "GeneratorFunction",
    "AsyncGeneratorFunction",
    "arguments",
    "RegExp",
    "Promise",
    "Symbol",
    "constructor",
    "__proto__",
    "prototype",
    "Proxy",
    "Reflect",
    "fetch",
    "XMLHttpRequest",
    "WebSocket",
    "EventSource",
    "localStorage",
    "sessionStorage",
    "indexedDB",
    "crypto",
    "performance",
    "structuredClone",
    "AbortController",
    "AbortSignal",
    "MessageChannel",
    "MessagePort",
    "BroadcastChannel",
    "TextEncoder",
    "TextDecoder",
    "Intl",
    "setTimeout",
    "setInterval",
    "setImmediate",
    "clearTimeout",
    "clearInterval",
    "clearImmediate",
    "queueMicrotask",
    "WebAssembly",
    "Worker",
    "SharedWorker",
    "ServiceWorker",
    "importScripts",
    "WeakMap",
    "WeakSet",
    "WeakRef",
    "FinalizationRegistry",
    "Map",
    "Set",
    "Atomics",
    "SharedArrayBuffer",
    "ShadowRealm",
    "Iterator",
    "AsyncIterator",
    "Deno",
    "Bun",
    "document",
    "navigator",
    "location",
];

/// Names that `SECURE` refuses.
pub(crate) const SECURE: &[&str] = &[
    "eval",
    "Function",
    "AsyncFunction",
    "GeneratorFunction",
    "process",
    "require",
    "module",
    "exports",
    "__dirname",
    "__filename",
    "Buffer",
    "globalThis",
    "window",
    "self",
    "global",
    "document",
    "location",
    "navigator",
    "Proxy",
    "Reflect",
    "WebAssembly",
    "Worker",
    "SharedWorker",
    "importScripts",
    "XMLHttpRequest",
    "WebSocket",
    "localStorage",
    "sessionStorage",
    "indexedDB",
    "setTimeout",
    "setInterval",
    "setImmediate",
    "queueMicrotask",
    "SharedArrayBuffer",
    "Atomics",
    "ShadowRealm",
    "fetch",
    "constructor",
    "__proto__",
    "prototype",
];

/// Further names that `STRICT` refuses, even ordinary constructors.
const STRICT_TOO: &[&str] = &[
    "Object",
    "Array",
    "String",
    "Number",
    "Boolean",
    "Date",
    "JSON",
    "BigInt",
    "Symbol",
    "Promise",
    "RegExp",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "WeakRef",
    "FinalizationRegistry",
    "Intl",
    "Iterator",
    "AsyncIterator",
    "ArrayBuffer",
    "DataView",
    "arguments",
    "console",
    "performance",
    "crypto",
    "structuredClone",
    "TextEncoder",
    "TextDecoder",
    "AbortController",
    "AbortSignal",
    "MessageChannel",
    "MessagePort",
    "BroadcastChannel",
    "clearTimeout",
    "clearInterval",
    "clearImmediate",
    "ServiceWorker",
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
    "AggregateError",
];

/// Names that `STRICT` refuses.
pub(crate) fn strict() -> Vec<&'static str> {
    SECURE.iter().chain(STRICT_TOO).copied().collect()
}

/// The globals of an `AgentScript`.
pub(crate) fn agent_script_globals(level: PresetLevel) -> Vec<&'static str> {
    let mut names = vec![
        "callTool",
        "getTool",
        "parallel",
        "mcpLog",
        "mcpNotify",
        "codecallContext",
        "Math",
        "JSON",
        "Array",
        "Object",
        "String",
        "Number",
        "Boolean",
        "Date",
        "undefined",
        "NaN",
        "Infinity",
    ];
    names.extend_from_slice(ERROR_CLASSES);
    match level {
        PresetLevel::Strict => return names,
        PresetLevel::Secure | PresetLevel::Standard | PresetLevel::Permissive => {}
    }
    names.extend_from_slice(&[
        "console",
        "parseInt",
        "parseFloat",
        "isNaN",
        "isFinite",
        "encodeURIComponent",
        "decodeURIComponent",
        "encodeURI",
        "decodeURI",
        "BigInt",
    ]);
    names
}
