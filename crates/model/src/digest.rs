//! The identity of what a document means: SHA-256 over canonical JSON, with the
//! scheme's name carried beside it so that two digests are never compared by
//! accident, and a tool's own id when its author gave none.

use std::fmt;
use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::canonical::{self, CanonicalError};
use crate::document::{Document, Overrides, Word};

/// How a digest was made. A change of what goes in is a new scheme.
pub const SCHEME: &str = "ringfence-tool-1:sha256:rfc8785";

/// The namespace of tool ids made from names (UUID version 5).
pub const TOOL_NAMESPACE: Uuid = Uuid::from_u128(0x52f1_9f0e_8c1d_5b6a_9e37_0d6c_4a2b_71e5);

/// A digest and how it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolDigest {
    bytes: [u8; 32],
}

impl ToolDigest {
    /// The hash alone, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    let write = |mut hex: String, byte: &u8| {
        let _ = write!(hex, "{byte:02x}");
        hex
    };
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), write)
}

/// SHA-256 over the canonical form of any value, in hexadecimal.
pub fn of_value(value: &Value) -> Result<String, CanonicalError> {
    let bytes = canonical::to_bytes(value)?;
    Ok(hex(&Sha256::digest(&bytes)))
}

/// Scheme and hash: `ringfence-tool-1:sha256:rfc8785:9f86d0…`.
impl fmt::Display for ToolDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}:{}", self.hex())
    }
}

/// The digest of what the model sees and what runs: name, description, params,
/// labels, code, static variables, overrides and approval. Test values, the draft
/// flag, timestamps, the stored `toolSafety` and fields we do not know stay out.
pub fn of_document(document: &Document) -> Result<ToolDigest, CanonicalError> {
    let bytes = canonical::to_bytes(&meaning(document))?;
    Ok(ToolDigest {
        bytes: Sha256::digest(&bytes).into(),
    })
}

fn meaning(document: &Document) -> Value {
    let params: Vec<_> = document
        .params
        .iter()
        .map(|param| {
            json!({
                "name": param.name,
                "description": param.description,
                "required": param.required,
                "type": param.kind.word(),
            })
        })
        .collect();
    let variables: Vec<_> = document
        .static_variables
        .iter()
        .map(|variable| json!([variable.name, variable.template]))
        .collect();
    let prompt = document
        .human_in_the_loop
        .as_ref()
        .and_then(|block| block.prompt_template.clone());
    json!({
        "name": document.name,
        "description": document.description,
        "category": document.category,
        "tags": sorted(&document.tags),
        "params": params,
        "staticVariables": variables,
        "code": document.code,
        "codeType": document.code_type.word(),
        "sandboxOverrides": overrides(&document.sandbox_overrides),
        "approval": { "mode": document.approval().word(), "prompt": prompt },
    })
}

/// Lists are sets here: their order means nothing and must not count.
fn overrides(overrides: &Overrides) -> Value {
    json!({
        "addAllowClasses": sorted(&overrides.add_allow_classes),
        "removeAllowClasses": sorted(&overrides.remove_allow_classes),
        "addDenyClasses": sorted(&overrides.add_deny_classes),
        "removeDenyClasses": sorted(&overrides.remove_deny_classes),
        "networkMode": overrides.network_mode.map(Word::word),
        "hostsAllow": sorted(&overrides.hosts_allow),
        "fileRead": overrides.file_read,
        "fileWrite": overrides.file_write,
        "fsBasePath": overrides.fs_base_path,
        "destructive": overrides.destructive,
    })
}

fn sorted(items: &[String]) -> Vec<&String> {
    let mut items: Vec<_> = items.iter().collect();
    items.sort();
    items.dedup();
    items
}

/// The document's id, or one made from its name.
#[must_use]
pub fn tool_id(document: &Document) -> String {
    match &document.tool_id {
        Some(tool_id) if !tool_id.is_empty() => tool_id.clone(),
        Some(_) | None => Uuid::new_v5(&TOOL_NAMESPACE, document.name.as_bytes()).to_string(),
    }
}

#[cfg(test)]
mod tests;
