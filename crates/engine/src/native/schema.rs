//! What the tools of code mode give back. A call that fails has the shape of every
//! failure, and clients hold that against the schema too, so each schema takes both.

use serde_json::{Value, json};

use super::Native;

pub(super) fn output(native: Native) -> Option<Value> {
    match native {
        Native::Search => Some(or_failure(
            &search(),
            &["tools", "warnings", "totalAvailableTools"],
        )),
        Native::Describe => Some(or_failure(&describe(), &["tools"])),
        Native::Execute => Some(or_failure(&execute(), &["status"])),
        Native::List => Some(or_failure(&list(), &["tools", "total"])),
        Native::Load => Some(or_failure(
            &load("tool"),
            &[
                "tool",
                "tokens",
                "cost",
                "loadedTokens",
                "loadedTokensMax",
                "unloaded",
            ],
        )),
        Native::LoadResource => Some(or_failure(
            &load("resource"),
            &[
                "resource",
                "tokens",
                "loadedTokens",
                "loadedTokensMax",
                "unloaded",
            ],
        )),
        // It is whatever the tool gives.
        Native::Invoke => None,
    }
}

fn or_failure(properties: &Value, required: &[&str]) -> Value {
    let mut all = json!({
        "code": {"type": "string"},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
    });
    if let (Some(all), Some(more)) = (all.as_object_mut(), properties.as_object()) {
        all.extend(more.clone());
    }
    json!({
        "type": "object",
        "properties": all,
        "anyOf": [{"required": required}, {"required": ["code", "message"]}],
    })
}

fn strings() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn search() -> Value {
    let kinds = [
        "excluded_tool_not_found",
        "no_results",
        "low_relevance",
        "unmatched_words",
    ];
    json!({
        "tools": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "appId": {"type": "string"},
                "description": {"type": "string"},
                "relevanceScore": {"type": "number", "minimum": 0, "maximum": 1},
                "matchedQueries": strings(),
            },
            "required": ["name", "description", "relevanceScore", "matchedQueries"],
        }},
        "warnings": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": kinds},
                "message": {"type": "string"},
                "affectedTools": strings(),
                "words": strings(),
            },
            "required": ["type", "message"],
        }},
        "totalAvailableTools": {"type": "integer", "minimum": 0},
    })
}

fn describe() -> Value {
    let example = json!({
        "type": "object",
        "properties": {"description": {"type": "string"}, "code": {"type": "string"}},
        "required": ["description", "code"],
    });
    json!({
        "tools": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "appId": {"type": "string"},
                "description": {"type": "string"},
                "inputSchema": {"type": ["object", "null"]},
                "outputSchema": {"type": ["object", "null"]},
                "annotations": {"type": "object"},
                "risk": {"type": "object"},
                "usageExamples": {"type": "array", "items": example, "maxItems": 5},
            },
            "required": ["name", "appId", "description", "inputSchema", "outputSchema", "usageExamples"],
        }},
        "notFound": strings(),
    })
}

fn execute() -> Value {
    let statuses = [
        "ok",
        "syntax_error",
        "illegal_access",
        "runtime_error",
        "tool_error",
        "timeout",
    ];
    json!({
        "status": {"type": "string", "enum": statuses},
        "result": {},
        "logs": strings(),
        "error": {"type": "object"},
    })
}

fn list() -> Value {
    json!({
        "tools": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "line": {"type": "string"},
                "category": {"type": "string"},
                "tokens": {"type": "integer", "minimum": 0},
                "cost": {"type": "integer", "minimum": 0, "default": 1},
            },
            "required": ["name", "line", "tokens"],
        }},
        "total": {"type": "integer", "minimum": 0},
        "nextCursor": {"type": "string"},
    })
}

fn load(key: &str) -> Value {
    let count = json!({"type": "integer"});
    json!({
        key: {"type": "object"},
        "tokens": count,
        "cost": count,
        "loadedTokens": count,
        "loadedTokensMax": count,
        // Every word here is read by all who list.
        "unloaded": {"type": "array", "items": {"type": "object"}},
    })
}
