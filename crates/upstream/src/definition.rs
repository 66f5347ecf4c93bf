//! Definitions that a server declares: itself, its tools, prompts, resources and their
//! templates.
//!
//! A definition holds exactly what we forward and nothing else. It is read from JSON
//! of a hostile peer with bounds, unknown fields are dropped, and it is spelled in one
//! way: the value we forward is made from the canonical text that is pinned.

use std::collections::BTreeMap;
use std::fmt;

use model::text::elided;
use model::{canonical, words};
use serde_json::{Map, Value};

use crate::limit;

mod annotation;
pub(crate) mod keyword;
mod server;

pub use annotation::ToolAnnotations;
pub use server::{ServerDefinition, ServerOrigin};

words! {
    /// The kind of an item.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ItemKind {
        /// A tool.
        Tool = "tool",
        /// A prompt.
        Prompt = "prompt",
        /// A template of resources.
        ResourceTemplate = "resource_template",
        /// A resource.
        Resource = "resource",
    }
}

/// The key of an item: its kind and its server's name for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// Its kind.
    pub kind: ItemKind,
    /// The name as the server spells it; a resource's is its URI, and a resource
    /// template's its URI template.
    pub name: String,
}

impl ItemKey {
    /// The key of a tool.
    #[must_use]
    pub fn tool(name: impl Into<String>) -> ItemKey {
        ItemKey {
            kind: ItemKind::Tool,
            name: name.into(),
        }
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use model::word::Word as _;
        let kind = self.kind.word().replace('_', " ");
        write!(f, "{kind} `{}`", elided(&self.name, 80))
    }
}

/// The forwarded part of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// A tool.
    Tool(ToolDefinition),
    /// A prompt.
    Prompt(PromptDefinition),
    /// A template of resources.
    ResourceTemplate(TemplateDefinition),
    /// A resource.
    Resource(ResourceDefinition),
}

/// The forwarded part of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The name its server gives it.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments: always an object of type `object`.
    pub input_schema: Value,
    /// The schema of its structured result.
    pub output_schema: Option<Value>,
    /// Its server's claims about it.
    pub annotations: ToolAnnotations,
}

/// The forwarded part of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptDefinition {
    /// The name its server gives it.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments, by name.
    pub arguments: BTreeMap<String, PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptArgument {
    /// The name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be given.
    pub is_required: bool,
}

/// The forwarded part of a resource template.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateDefinition {
    /// The template.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it leads to.
    pub description: Option<String>,
    /// The media type of what it leads to.
    pub mime_type: Option<String>,
}

/// The forwarded part of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceDefinition {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

words! {
    /// Why a definition cannot be used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DefinitionFaultCode {
        /// A field that must be there is missing.
        Missing = "definition.missing",
        /// A field is of the wrong type.
        Type = "definition.type",
        /// A text or a list is too long.
        TooLong = "definition.too_long",
        /// A schema is nested too deeply.
        TooDeep = "definition.too_deep",
        /// A schema has too many values.
        TooLarge = "definition.too_large",
        /// Two items have one name.
        Duplicate = "definition.duplicate",
    }
}

/// A definition that cannot be used. Its tool is shown to the owner as refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DefinitionFault {
    /// The stable code.
    pub code: DefinitionFaultCode,
    /// The name of the item as far as it is known, made safe to show.
    pub name: Option<String>,
    /// Which field, such as `inputSchema`.
    pub field: String,
    /// What is wrong, in one sentence.
    pub message: String,
}

/// Reads a tool as its server sends it.
pub fn read(value: &Value) -> Result<ToolDefinition, DefinitionFault> {
    ToolDefinition::read(value)
}

impl Definition {
    /// Reads an item of a kind as its server sends it.
    pub fn read(kind: ItemKind, value: &Value) -> Result<Definition, DefinitionFault> {
        match kind {
            ItemKind::Tool => ToolDefinition::read(value).map(Definition::Tool),
            ItemKind::Prompt => PromptDefinition::read(value).map(Definition::Prompt),
            ItemKind::ResourceTemplate => {
                TemplateDefinition::read(value).map(Definition::ResourceTemplate)
            }
            ItemKind::Resource => ResourceDefinition::read(value).map(Definition::Resource),
        }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> ItemKey {
        let (kind, name) = match self {
            Definition::Tool(tool) => (ItemKind::Tool, &tool.name),
            Definition::Prompt(prompt) => (ItemKind::Prompt, &prompt.name),
            Definition::ResourceTemplate(template) => {
                (ItemKind::ResourceTemplate, &template.uri_template)
            }
            Definition::Resource(resource) => (ItemKind::Resource, &resource.uri),
        };
        ItemKey {
            kind,
            name: name.clone(),
        }
    }

    /// The same as JSON in the form of MCP, with only the fields we forward.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Definition::Tool(tool) => tool.to_value(),
            Definition::Prompt(prompt) => prompt.to_value(),
            Definition::ResourceTemplate(template) => template.to_value(),
            Definition::Resource(resource) => resource.to_value(),
        }
    }

    /// Its description by the server.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        match self {
            Definition::Tool(tool) => tool.description.as_deref(),
            Definition::Prompt(prompt) => prompt.description.as_deref(),
            Definition::ResourceTemplate(template) => template.description.as_deref(),
            Definition::Resource(resource) => resource.description.as_deref(),
        }
    }

    /// The same with another description.
    #[must_use]
    pub fn with_description(mut self, words: String) -> Definition {
        let description = match &mut self {
            Definition::Tool(tool) => &mut tool.description,
            Definition::Prompt(prompt) => &mut prompt.description,
            Definition::ResourceTemplate(template) => &mut template.description,
            Definition::Resource(resource) => &mut resource.description,
        };
        *description = Some(words);
        self
    }
}

impl ToolDefinition {
    /// Reads a tool as its server sends it.
    pub fn read(value: &Value) -> Result<ToolDefinition, DefinitionFault> {
        let reader = Reader::new("a tool", value)?;
        let annotations = reader.optional("annotations");
        Ok(ToolDefinition {
            name: reader.name("name")?,
            title: reader.text("title", limit::TITLE_BYTES_MAX)?,
            description: reader.text("description", limit::TEXT_BYTES_MAX)?,
            input_schema: reader.input_schema()?,
            output_schema: reader.schema("outputSchema")?,
            annotations: annotations.map_or(Ok(ToolAnnotations::default()), |value| {
                annotation::read(&reader, value)
            })?,
        })
    }

    /// The tool as JSON in the form of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        put(&mut fields, "name", Some(self.name.clone().into()));
        put(&mut fields, "title", text_value(&self.title));
        put(&mut fields, "description", text_value(&self.description));
        put(&mut fields, "inputSchema", Some(self.input_schema.clone()));
        put(&mut fields, "outputSchema", self.output_schema.clone());
        put(&mut fields, "annotations", self.annotations.to_value());
        Value::Object(fields)
    }
}

impl PromptDefinition {
    /// Reads a prompt as its server sends it.
    pub fn read(value: &Value) -> Result<PromptDefinition, DefinitionFault> {
        let reader = Reader::new("a prompt", value)?;
        Ok(PromptDefinition {
            name: reader.name("name")?,
            title: reader.text("title", limit::TITLE_BYTES_MAX)?,
            description: reader.text("description", limit::TEXT_BYTES_MAX)?,
            arguments: prompt_arguments(&reader)?,
        })
    }

    /// The prompt as JSON in the form of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        put(&mut fields, "name", Some(self.name.clone().into()));
        put(&mut fields, "title", text_value(&self.title));
        put(&mut fields, "description", text_value(&self.description));
        let arguments = self.arguments.iter().map(|(name, argument)| {
            let mut fields = Map::new();
            put(&mut fields, "name", Some(name.clone().into()));
            put(&mut fields, "title", text_value(&argument.title));
            put(
                &mut fields,
                "description",
                text_value(&argument.description),
            );
            put(
                &mut fields,
                "required",
                argument.is_required.then_some(Value::Bool(true)),
            );
            Value::Object(fields)
        });
        let arguments: Vec<Value> = arguments.collect();
        let arguments = (!arguments.is_empty()).then_some(Value::Array(arguments));
        put(&mut fields, "arguments", arguments);
        Value::Object(fields)
    }
}

fn prompt_arguments(
    reader: &Reader<'_>,
) -> Result<BTreeMap<String, PromptArgument>, DefinitionFault> {
    let items = match reader.optional("arguments") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(reader.wrong_type("arguments", "a list")),
    };
    if items.len() > limit::PROMPT_ARGUMENTS_MAX {
        let most = limit::PROMPT_ARGUMENTS_MAX;
        let what = format!("has more than {most} arguments");
        return Err(reader.fault(DefinitionFaultCode::TooLong, "arguments", &what));
    }
    let mut arguments = BTreeMap::new();
    for item in items {
        let inner = Reader::new("an argument of a prompt", item)?;
        let argument = PromptArgument {
            title: inner.text("title", limit::TITLE_BYTES_MAX)?,
            description: inner.text("description", limit::TEXT_BYTES_MAX)?,
            is_required: inner.flag("required")?.unwrap_or(false),
        };
        let name = inner.name("name")?;
        // Which of the two a client would see depends on the client.
        if arguments.insert(name.clone(), argument).is_some() {
            let what = format!("has two arguments `{}`", elided(&name, 60));
            return Err(reader.fault(DefinitionFaultCode::Duplicate, "arguments", &what));
        }
    }
    Ok(arguments)
}

impl TemplateDefinition {
    /// Reads a template as its server sends it.
    pub fn read(value: &Value) -> Result<TemplateDefinition, DefinitionFault> {
        let reader = Reader::new("a resource template", value)?;
        Ok(TemplateDefinition {
            uri_template: reader.uri("uriTemplate")?,
            name: reader.name("name")?,
            title: reader.text("title", limit::TITLE_BYTES_MAX)?,
            description: reader.text("description", limit::TEXT_BYTES_MAX)?,
            mime_type: reader.text("mimeType", limit::URI_BYTES_MAX)?,
        })
    }

    /// The template as JSON in the form of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        put(
            &mut fields,
            "uriTemplate",
            Some(self.uri_template.clone().into()),
        );
        put(&mut fields, "name", Some(self.name.clone().into()));
        put(&mut fields, "title", text_value(&self.title));
        put(&mut fields, "description", text_value(&self.description));
        put(&mut fields, "mimeType", text_value(&self.mime_type));
        Value::Object(fields)
    }
}

impl ResourceDefinition {
    /// Reads a resource as its server sends it.
    pub fn read(value: &Value) -> Result<ResourceDefinition, DefinitionFault> {
        let reader = Reader::new("a resource", value)?;
        Ok(ResourceDefinition {
            uri: reader.uri("uri")?,
            name: reader.name("name")?,
            title: reader.text("title", limit::TITLE_BYTES_MAX)?,
            description: reader.text("description", limit::TEXT_BYTES_MAX)?,
            mime_type: reader.text("mimeType", limit::URI_BYTES_MAX)?,
        })
    }

    /// The resource as JSON in the form of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        put(&mut fields, "uri", Some(self.uri.clone().into()));
        put(&mut fields, "name", Some(self.name.clone().into()));
        put(&mut fields, "title", text_value(&self.title));
        put(&mut fields, "description", text_value(&self.description));
        put(&mut fields, "mimeType", text_value(&self.mime_type));
        Value::Object(fields)
    }
}

fn text_value(text: &Option<String>) -> Option<Value> {
    text.clone().map(Value::String)
}

fn put(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value);
    }
}

/// The fields of one object of a peer, read with bounds.
#[derive(Debug)]
struct Reader<'a> {
    what: &'static str,
    fields: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    fn new(what: &'static str, value: &'a Value) -> Result<Reader<'a>, DefinitionFault> {
        let Value::Object(fields) = value else {
            return Err(DefinitionFault {
                code: DefinitionFaultCode::Type,
                name: None,
                field: String::new(),
                message: format!("{what} must be a JSON object"),
            });
        };
        Ok(Reader { what, fields })
    }

    /// A field, if present. `null` counts as absent.
    fn optional(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    fn name(&self, field: &str) -> Result<String, DefinitionFault> {
        let name = match self.optional(field) {
            None => return Err(self.missing(field)),
            // An empty name could not be called, and would be the same for
            // all who have none.
            Some(Value::String(name)) if name.is_empty() => return Err(self.missing(field)),
            Some(Value::String(name)) => name,
            Some(_) => return Err(self.wrong_type(field, "a text")),
        };
        // `nth` stops at the bound; counting a name of megabytes would not.
        if name.chars().nth(limit::ITEM_NAME_CHARS_MAX).is_some() {
            let most = limit::ITEM_NAME_CHARS_MAX;
            let what = format!("of more than {most} characters");
            return Err(self.bad_field(DefinitionFaultCode::TooLong, field, &what));
        }
        Ok(name.clone())
    }

    fn uri(&self, field: &str) -> Result<String, DefinitionFault> {
        let uri = self.text(field, limit::URI_BYTES_MAX)?;
        let uri = uri.filter(|text| !text.is_empty());
        uri.ok_or_else(|| self.missing(field))
    }

    /// A text. An empty one counts as absent.
    fn text(&self, field: &str, bytes_max: usize) -> Result<Option<String>, DefinitionFault> {
        match self.optional(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) if text.len() <= bytes_max => Ok(Some(text.clone())),
            Some(Value::String(_)) => {
                let what = format!("of more than {bytes_max} bytes");
                Err(self.bad_field(DefinitionFaultCode::TooLong, field, &what))
            }
            Some(_) => Err(self.wrong_type(field, "a text")),
        }
    }

    fn flag(&self, field: &str) -> Result<Option<bool>, DefinitionFault> {
        match self.optional(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong_type(field, "true or false")),
        }
    }

    /// The schema of arguments. Many servers leave out `type`, and strict clients
    /// refuse the whole list then, so it is written; anything but an object is refused.
    fn input_schema(&self) -> Result<Value, DefinitionFault> {
        const FIELD: &str = "inputSchema";
        let schema = self.schema(FIELD)?.ok_or_else(|| self.missing(FIELD))?;
        let Value::Object(mut fields) = schema else {
            return Err(self.wrong_type(FIELD, "an object"));
        };
        match fields.get("type") {
            None => {
                fields.insert("type".to_owned(), Value::from("object"));
                // The canonical text has its keys in order, and so must what is forwarded.
                fields.sort_keys();
            }
            Some(Value::String(word)) if word == "object" => {}
            Some(_) => {
                let what = "has an `inputSchema` whose `type` is not `object`";
                return Err(self.fault(DefinitionFaultCode::Type, FIELD, what));
            }
        }
        Ok(Value::Object(fields))
    }

    fn schema(&self, field: &str) -> Result<Option<Value>, DefinitionFault> {
        let Some(schema) = self.optional(field) else {
            return Ok(None);
        };
        if !schema.is_object() {
            return Err(self.wrong_type(field, "an object"));
        }
        let mut nodes = 0;
        // Before anything recurses over it: the canonical writer and the findings do.
        measure(schema, 1, &mut nodes).map_err(|code| {
            let what = match code {
                DefinitionFaultCode::TooDeep => {
                    format!("nested deeper than {}", limit::SCHEMA_DEPTH_MAX)
                }
                _ => format!("of more than {} values", limit::SCHEMA_NODES_MAX),
            };
            self.bad_field(code, field, &what)
        })?;
        let no_form =
            || self.bad_field(DefinitionFaultCode::Type, field, "without a canonical form");
        // Sets in order first. A server that shuffles them at each start has
        // not changed its tool.
        let text = canonical::to_bytes(&keyword::normal(schema)).map_err(|_| no_form())?;
        if text.len() > limit::SCHEMA_BYTES_MAX {
            let what = format!("of more than {} bytes", limit::SCHEMA_BYTES_MAX);
            return Err(self.bad_field(DefinitionFaultCode::TooLong, field, &what));
        }
        // The forwarded and the pinned text are the same: both come from here.
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|_| no_form())
    }

    fn missing(&self, field: &str) -> DefinitionFault {
        let what = format!("has no `{field}`");
        self.fault(DefinitionFaultCode::Missing, field, &what)
    }

    fn wrong_type(&self, field: &str, wanted: &str) -> DefinitionFault {
        self.bad_field(
            DefinitionFaultCode::Type,
            field,
            &format!("that is not {wanted}"),
        )
    }

    fn bad_field(&self, code: DefinitionFaultCode, field: &str, what: &str) -> DefinitionFault {
        let article = article(field);
        self.fault(code, field, &format!("has {article} `{field}` {what}"))
    }

    fn fault(&self, code: DefinitionFaultCode, field: &str, what: &str) -> DefinitionFault {
        let name = self.fields.get("name").and_then(Value::as_str);
        let name = name
            .filter(|name| !name.is_empty())
            .map(|name| elided(name, 80));
        let subject = match &name {
            Some(name) => format!("{} named `{name}`", self.what),
            None => self.what.to_owned(),
        };
        DefinitionFault {
            code,
            name,
            field: field.to_owned(),
            message: format!("{subject} {what}"),
        }
    }
}

/// `a` or `an`, by how the names of fields are spoken.
fn article(field: &str) -> &'static str {
    match field.starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    }
}

/// Counts values and refuses excessive depth, so that later code may recurse.
fn measure(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), DefinitionFaultCode> {
    *nodes += 1;
    if *nodes > limit::SCHEMA_NODES_MAX {
        return Err(DefinitionFaultCode::TooLarge);
    }
    let is_container = value.is_array() || value.is_object();
    if is_container && depth > limit::SCHEMA_DEPTH_MAX {
        return Err(DefinitionFaultCode::TooDeep);
    }
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| measure(item, depth + 1, nodes)),
        Value::Object(fields) => fields
            .values()
            .try_for_each(|item| measure(item, depth + 1, nodes)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
