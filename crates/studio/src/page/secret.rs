//! Variables that are secrets: their names, where they are used, whether they are set.
//! Values are written and never read back.

use std::collections::BTreeMap;

use engine::SECRETS_FILE;
use engine::secret_admin::SecretFault;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DoneView, Nothing};
use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::studio::Studio;

/// The variables.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretList {
    items: Vec<SecretRow>,
    file: &'static str,
    writable: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecretRow {
    name: String,
    set: bool,
    in_file: bool,
    used_by: Vec<UseView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UseView {
    kind: &'static str,
    name: String,
    granted: bool,
}

pub(crate) fn list(studio: &Studio, _: &Asked) -> ApiResult<SecretList> {
    let engine = studio.engine();
    let environment = engine.environment();
    let environment =
        environment.map_err(|fault| studio.alarm("secrets cannot be read", &fault))?;
    let in_file = engine.secret_names();
    let in_file = in_file.map_err(|fault| studio.alarm("secrets cannot be read", &fault))?;
    let now = engine.registry().current();
    let mut uses: BTreeMap<String, Vec<UseView>> = BTreeMap::new();
    for tool in now.tools() {
        let document = &tool.usable.document;
        for variable in tool.granted.variables(document, &environment) {
            uses.entry(variable.name).or_default().push(UseView {
                kind: "tool",
                name: text::one_line(&document.name),
                granted: variable.granted,
            });
        }
    }
    for (name, view) in now.servers().servers() {
        for secret in view.config.secrets() {
            uses.entry(secret.to_owned()).or_default().push(UseView {
                kind: "server",
                name: text::one_line(name),
                granted: true,
            });
        }
    }
    for name in &in_file {
        uses.entry(name.clone()).or_default();
    }
    let items = uses.into_iter().map(|(name, used_by)| SecretRow {
        // Whether there is one, and nothing about it: not its length, not
        // its first letters.
        set: environment.get(&name).is_some(),
        in_file: in_file.contains(&name),
        name: text::one_line(&name),
        used_by,
    });
    Ok(SecretList {
        items: items.collect(),
        file: SECRETS_FILE,
        writable: true,
    })
}

/// A value, which is never shown again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretBody {
    value: String,
}

impl std::fmt::Debug for SecretBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretBody(***)")
    }
}

pub(crate) fn set(studio: &Studio, asked: &Asked, given: SecretBody) -> ApiResult<DoneView> {
    let value = Some(given.value.as_str());
    let done = studio
        .engine()
        .set_secret(asked.part("name"), value, asked.actor()?);
    done.map_err(|fault| secret_refusal(studio, &fault))?;
    Ok(DoneView::OK)
}

pub(crate) fn remove(studio: &Studio, asked: &Asked, _: Nothing) -> ApiResult<DoneView> {
    let done = studio
        .engine()
        .set_secret(asked.part("name"), None, asked.actor()?);
    match done.map_err(|fault| secret_refusal(studio, &fault))? {
        true => Ok(DoneView::OK),
        false => Err(ApiError::unknown("the file of secrets has no such name")),
    }
}

pub(crate) fn secret_refusal(studio: &Studio, fault: &SecretFault) -> ApiError {
    match fault {
        SecretFault::Name | SecretFault::Value | SecretFault::Full => {
            ApiError::invalid(fault.to_string())
        }
        // What exactly failed may quote the file, so it is the operator's.
        SecretFault::Read(_) | SecretFault::Write(_) | SecretFault::Store(_) => {
            studio.alarm("the secret was not changed", fault)
        }
    }
}
