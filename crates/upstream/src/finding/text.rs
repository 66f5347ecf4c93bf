//! Runs every check on every text of a definition that a model reads.

use serde_json::Value;

use super::{
    FindingCode, Findings, Neighbours, UpstreamFinding, encoded, hidden, neighbour, shape, wording,
};
use crate::definition::{Definition, PromptDefinition, ServerDefinition};
use crate::limit;
use crate::schema::join;

/// The findings about one item.
#[must_use]
pub fn of_item(definition: &Definition, neighbours: &Neighbours) -> Vec<UpstreamFinding> {
    let mut reader = TextReader {
        findings: Findings::new(Some(definition.key())),
        neighbours,
        bytes_held: limit::TEXT_BYTES_HELD,
    };
    match definition {
        Definition::Tool(tool) => {
            shape::check_name(&mut reader.findings, "name", &tool.name);
            reader.maybe("title", tool.title.as_deref());
            reader.maybe("description", tool.description.as_deref());
            reader.maybe("annotations.title", tool.annotations.title.as_deref());
            reader.schema("inputSchema", &tool.input_schema);
            if let Some(schema) = &tool.output_schema {
                reader.schema("outputSchema", schema);
            }
        }
        Definition::Prompt(prompt) => reader.prompt(prompt),
        Definition::ResourceTemplate(template) => {
            reader.text("uriTemplate", &template.uri_template);
            shape::check_name(&mut reader.findings, "name", &template.name);
            reader.maybe("title", template.title.as_deref());
            reader.maybe("description", template.description.as_deref());
        }
        Definition::Resource(resource) => {
            reader.text("uri", &resource.uri);
            // A file's name is for people; it is called by its URI.
            reader.text("name", &resource.name);
            reader.maybe("title", resource.title.as_deref());
            reader.maybe("description", resource.description.as_deref());
        }
    }
    neighbour::check_clone(&mut reader.findings, neighbours, definition);
    reader.findings.all
}

/// The findings about a server's own words. `name` is the owner's name for it.
#[must_use]
pub fn of_server(
    name: &str,
    server: &ServerDefinition,
    neighbours: &Neighbours,
) -> Vec<UpstreamFinding> {
    let mut reader = TextReader {
        findings: Findings::new(None),
        neighbours,
        bytes_held: limit::INSTRUCTIONS_BYTES_HELD,
    };
    if let Some(known) = neighbours.look_alike(name) {
        let message = format!("the name of the server can be taken for `{known}`");
        let span = 0..name.len();
        reader
            .findings
            .add(FindingCode::LookAlike, "server", name, span, message);
    }
    shape::check_name(&mut reader.findings, "name", &server.name);
    hidden::check(&mut reader.findings, "version", &server.version);
    reader.maybe("instructions", server.instructions.as_deref());
    reader.findings.all
}

struct TextReader<'a> {
    findings: Findings,
    neighbours: &'a Neighbours,
    bytes_held: usize,
}

impl TextReader<'_> {
    fn maybe(&mut self, field: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(field, text);
        }
    }

    fn text(&mut self, field: &str, text: &str) {
        if text.len() > self.bytes_held {
            let message = format!("the text has {} bytes", text.len());
            self.findings
                .add(FindingCode::LongText, field, text, 0..0, message);
        }
        // All four for every text, also in schemas: a model reads them all.
        hidden::check(&mut self.findings, field, text);
        encoded::check(&mut self.findings, field, text);
        neighbour::check_text(&mut self.findings, self.neighbours, field, text);
        wording::check(&mut self.findings, field, text);
    }

    fn schema(&mut self, field: &str, schema: &Value) {
        shape::check(&mut self.findings, field, schema);
        self.value(field, schema);
    }

    /// A schema is read whole: an order to the model can be in any string of it.
    fn value(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(path, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{path}[{index}]"), item);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = join(path, key);
                    shape::check_key(&mut self.findings, &path, key, value);
                    self.value(&path, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn prompt(&mut self, prompt: &PromptDefinition) {
        shape::check_name(&mut self.findings, "name", &prompt.name);
        self.maybe("title", prompt.title.as_deref());
        self.maybe("description", prompt.description.as_deref());
        for (name, argument) in &prompt.arguments {
            let path = join("arguments", name);
            shape::check_name(&mut self.findings, &path, name);
            self.maybe(&join(&path, "title"), argument.title.as_deref());
            self.maybe(&join(&path, "description"), argument.description.as_deref());
        }
    }
}
