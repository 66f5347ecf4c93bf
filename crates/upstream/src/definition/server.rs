//! The definition of a server as a whole: origin, name, version and instructions.

use model::text::elided;
use serde_json::{Map, Value, json};

use super::{DefinitionFault, DefinitionFaultCode, article, put};
use crate::limit;

/// The pinned definition of a server as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDefinition {
    /// Its own name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its instructions for every client.
    pub instructions: Option<String>,
    /// How it is reached.
    pub origin: ServerOrigin,
}

/// How a server is reached. The owner's configuration says so, not the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// A child process.
    Command {
        /// The program, and the file it was found as.
        program: String,
        /// Its arguments, with secrets by name.
        arguments: Vec<String>,
        /// The digest of the program's file, where it is known.
        digest: Option<String>,
    },
    /// A web address.
    Url(String),
}

impl ServerDefinition {
    /// Builds it from the server's own words, within bounds.
    pub fn new(
        raw_name: &str,
        raw_version: &str,
        raw_instructions: Option<&str>,
        origin: ServerOrigin,
    ) -> Result<ServerDefinition, DefinitionFault> {
        let bounded = |field: &str, text: &str, bytes_max: usize| {
            if text.len() > bytes_max {
                let article = article(field);
                let what =
                    format!("a server has {article} `{field}` of more than {bytes_max} bytes");
                return Err(fault(raw_name, field, what));
            }
            Ok(text.to_owned())
        };
        check_origin(raw_name, &origin)?;
        let instructions = raw_instructions
            .filter(|text| !text.is_empty())
            .map(|text| bounded("instructions", text, limit::TEXT_BYTES_MAX));
        Ok(ServerDefinition {
            name: bounded("name", raw_name, limit::TITLE_BYTES_MAX)?,
            version: bounded("version", raw_version, limit::TITLE_BYTES_MAX)?,
            instructions: instructions.transpose()?,
            origin,
        })
    }

    /// The same as JSON, for the pin.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        put(&mut fields, "name", Some(self.name.clone().into()));
        put(&mut fields, "version", Some(self.version.clone().into()));
        let instructions = self.instructions.clone().map(Value::String);
        put(&mut fields, "instructions", instructions);
        put(&mut fields, "origin", Some(self.origin.to_value()));
        Value::Object(fields)
    }

    /// Reads what [`ServerDefinition::to_value`] wrote.
    pub(crate) fn from_value(value: &Value) -> Option<ServerDefinition> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let origin = ServerOrigin::from_value(value.get("origin")?)?;
        ServerDefinition::new(
            text("name")?,
            text("version")?,
            text("instructions"),
            origin,
        )
        .ok()
    }
}

impl ServerOrigin {
    fn to_value(&self) -> Value {
        match self {
            ServerOrigin::Command {
                program,
                arguments,
                digest,
            } => match digest {
                Some(digest) => {
                    json!({"command": program, "arguments": arguments, "digest": digest})
                }
                None => json!({"command": program, "arguments": arguments}),
            },
            ServerOrigin::Url(url) => json!({"url": url}),
        }
    }

    fn from_value(value: &Value) -> Option<ServerOrigin> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        if let Some(url) = text("url") {
            return Some(ServerOrigin::Url(url));
        }
        let arguments = value.get("arguments")?.as_array()?.iter();
        let arguments: Option<Vec<String>> = arguments
            .map(|item| item.as_str().map(str::to_owned))
            .collect();
        Some(ServerOrigin::Command {
            program: text("command")?,
            arguments: arguments?,
            digest: text("digest"),
        })
    }
}

fn check_origin(raw_name: &str, origin: &ServerOrigin) -> Result<(), DefinitionFault> {
    let bytes = match origin {
        ServerOrigin::Command {
            program, arguments, ..
        } => {
            if arguments.len() > limit::COMMAND_ARGUMENTS_MAX {
                let most = limit::COMMAND_ARGUMENTS_MAX;
                let what = format!("a server has a command of more than {most} arguments");
                return Err(fault(raw_name, "command", what));
            }
            program.len() + arguments.iter().map(String::len).sum::<usize>()
        }
        ServerOrigin::Url(url) => url.len(),
    };
    if bytes > limit::COMMAND_BYTES_MAX {
        let most = limit::COMMAND_BYTES_MAX;
        let what = format!("a server has a command or an address of more than {most} bytes");
        return Err(fault(raw_name, "origin", what));
    }
    Ok(())
}

fn fault(raw_name: &str, field: &str, message: String) -> DefinitionFault {
    DefinitionFault {
        code: DefinitionFaultCode::TooLong,
        name: (!raw_name.is_empty()).then(|| elided(raw_name, 80)),
        field: field.to_owned(),
        message,
    }
}
