//! A server's claims about a tool. They are forwarded and pinned, and never used to
//! lower a risk.

use serde_json::{Map, Value};

use super::{DefinitionFault, Reader, put};
use crate::limit;

/// The claims of a server about a tool. None at all is the same as an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// The name for people, in its older place.
    pub title: Option<String>,
    /// Changes nothing. Without the claim: false.
    pub read_only: Option<bool>,
    /// Destroys. Without the claim: true.
    pub destructive: Option<bool>,
    /// Calling twice has the same effect as once. Without the claim: false.
    pub idempotent: Option<bool>,
    /// Reaches beyond its own world. Without the claim: true.
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// Every hint: its name in MCP, what is claimed, and the answer that is the more
    /// dangerous one. Without a claim the dangerous one applies, as MCP defines it.
    #[must_use]
    pub fn hints(&self) -> [(&'static str, Option<bool>, bool); 4] {
        [
            ("readOnlyHint", self.read_only, false),
            ("destructiveHint", self.destructive, true),
            ("idempotentHint", self.idempotent, false),
            ("openWorldHint", self.open_world, true),
        ]
    }

    pub(super) fn to_value(&self) -> Option<Value> {
        let mut fields = Map::new();
        put(&mut fields, "title", self.title.clone().map(Value::String));
        for (name, claim, _) in self.hints() {
            put(&mut fields, name, claim.map(Value::Bool));
        }
        // No claims and an empty list are one spelling, or a harmless change
        // would be a difference.
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

pub(super) fn read(tool: &Reader<'_>, value: &Value) -> Result<ToolAnnotations, DefinitionFault> {
    let Value::Object(fields) = value else {
        return Err(tool.wrong_type("annotations", "an object"));
    };
    let reader = Reader {
        what: tool.what,
        fields,
    };
    // A fault names the tool, not the title among its annotations.
    let within = |fault: DefinitionFault| {
        let what = format!(
            "has an annotation `{}` of the wrong type or size",
            fault.field
        );
        let field = format!("annotations.{}", fault.field);
        tool.fault(fault.code, &field, &what)
    };
    Ok(ToolAnnotations {
        title: reader
            .text("title", limit::TITLE_BYTES_MAX)
            .map_err(within)?,
        read_only: reader.flag("readOnlyHint").map_err(within)?,
        destructive: reader.flag("destructiveHint").map_err(within)?,
        idempotent: reader.flag("idempotentHint").map_err(within)?,
        open_world: reader.flag("openWorldHint").map_err(within)?,
    })
}
