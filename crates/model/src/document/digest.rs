//! The digest of a document's meaning: SHA-256 over canonical JSON, with the scheme's
//! name carried beside it so that two digests are never compared by accident, and a
//! tool's own id when its author gave none.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::canonical::{self, CanonicalError, Object};
use crate::document::codecall::{self, Metadata};
use crate::document::resource;
use crate::document::{Document, Overrides};
use crate::word::Word;

/// The scheme of a digest. A change of its input is a new scheme.
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
    let digit = |nibble: u8| match nibble {
        0..=9 => char::from(b'0' + nibble),
        _ => char::from(b'a' + nibble - 10),
    };
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        hex.push(digit(byte >> 4));
        hex.push(digit(byte & 15));
    }
    hex
}

/// SHA-256 over the canonical form of any value, in hexadecimal.
pub fn of_value(value: &Value) -> Result<String, CanonicalError> {
    let mut bytes = Vec::with_capacity(128);
    canonical::write(value, &mut bytes)?;
    Ok(hex(&Sha256::digest(&bytes)))
}

/// SHA-256 of a text, in hexadecimal, as `sha256sum` prints it.
#[must_use]
pub fn of_text(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Scheme and hash: `ringfence-tool-1:sha256:rfc8785:9f86d0…`.
impl fmt::Display for ToolDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        f.write_str(":")?;
        f.write_str(&self.hex())
    }
}

/// The digest of what the model sees and what runs: name, description, params,
/// labels, code, static variables, overrides, approval, and the examples, the schema of
/// what it gives back and the resources it ships, if any. Test values, the draft flag,
/// timestamps, the stored `toolSafety` and fields we do not know stay out.
pub fn of_document(document: &Document) -> Result<ToolDigest, CanonicalError> {
    let bytes = meaning(document)?;
    Ok(ToolDigest {
        bytes: Sha256::digest(&bytes).into(),
    })
}

/// The canonical text of the fields that count. A home of a thousand tools computes it
/// a thousand times before the first answer, so no tree is built; a test compares it
/// with the general way.
fn meaning(document: &Document) -> Result<Vec<u8>, CanonicalError> {
    let prompt = document
        .human_in_the_loop
        .as_ref()
        .and_then(|block| block.prompt_template.as_deref());
    // Fields in the order of their names, as RFC 8785 wants it.
    let mut object = Object::new(1024 + document.code.len());
    object.object("approval", |object| {
        object.text("mode", document.approval().word())?;
        object.text_or_null("prompt", prompt)
    })?;
    object.text_or_null("category", document.category.as_deref())?;
    object.text("code", &document.code)?;
    object.text("codeType", document.code_type.word())?;
    object.text("description", &document.description)?;
    let examples = Metadata::of(document).examples;
    // Left out where there are none, so that documents without them keep their digest.
    if !examples.is_empty() {
        object.list("examples", &examples, |example, out| {
            let mut object = Object::within(out);
            object.text("description", &example.description)?;
            object.value("input", &example.input)?;
            *out = object.end_bytes();
            Ok(())
        })?;
    }
    object.text("name", &document.name)?;
    if let Some(schema) = codecall::output_schema(document) {
        object.value("outputSchema", &schema)?;
    }
    object.list("params", &document.params, |param, out| {
        let mut object = Object::within(out);
        object.text("description", &param.description)?;
        object.text("name", &param.name)?;
        object.flag_or_null("required", Some(param.required));
        object.text("type", param.kind.word())?;
        *out = object.end_bytes();
        Ok(())
    })?;
    let shipped = resource::of(document);
    if !shipped.is_empty() {
        object.list("resources", &shipped, |resource, out| {
            let mut object = Object::within(out);
            object.text("mimeType", &resource.mime_type)?;
            object.text("name", &resource.name)?;
            object.text("text", &resource.text)?;
            *out = object.end_bytes();
            Ok(())
        })?;
    }
    object.object("sandboxOverrides", |object| {
        overrides(&document.sandbox_overrides, object)
    })?;
    let variables = &document.static_variables;
    object.list("staticVariables", variables, |variable, out| {
        out.push(b'[');
        canonical::write_text(&variable.name, out)?;
        out.push(b',');
        canonical::write_text(&variable.template, out)?;
        out.push(b']');
        Ok(())
    })?;
    set("tags", &document.tags, &mut object)?;
    Ok(object.end_bytes())
}

fn overrides(overrides: &Overrides, object: &mut Object) -> Result<(), CanonicalError> {
    // Field by field: a new one does not compile until it has its place here.
    let Overrides {
        add_allow_classes,
        remove_allow_classes,
        add_deny_classes,
        remove_deny_classes,
        network_mode,
        hosts_allow,
        file_read,
        file_write,
        fs_base_path,
        destructive,
    } = overrides;
    set("addAllowClasses", add_allow_classes, object)?;
    set("addDenyClasses", add_deny_classes, object)?;
    object.flag_or_null("destructive", *destructive);
    object.flag_or_null("fileRead", *file_read);
    object.flag_or_null("fileWrite", *file_write);
    object.text_or_null("fsBasePath", fs_base_path.as_deref())?;
    set("hostsAllow", hosts_allow, object)?;
    object.text_or_null("networkMode", network_mode.map(Word::word))?;
    set("removeAllowClasses", remove_allow_classes, object)?;
    set("removeDenyClasses", remove_deny_classes, object)
}

/// Lists are sets here: their order must not change the digest.
fn set(key: &str, items: &[String], object: &mut Object) -> Result<(), CanonicalError> {
    let items = sorted(items);
    object.list(key, &items, |item, out| canonical::write_text(item, out))
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
