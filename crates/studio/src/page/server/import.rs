//! Servers of a client's settings, pasted or chosen as a file: what importing them would do,
//! and doing it. The same plan as `ringfence wrap`; the client's file is not touched.

use std::collections::BTreeSet;

use engine::client_import::{self, ImportPlan, ImportedServer};
use engine::policy_admin::ApplyFault;
use engine::server_import::ImportFault;
use engine::server_settings;
use engine::server_sheet::SheetFinding;
use model::document::digest;
use model::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{FoundView, ValueView, failed, found};
use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::page::policy::applied;
use crate::page::secret::secret_refusal;
use crate::page::view::{DiffLine, diff, refused};
use crate::request::Asked;
use crate::studio::Studio;

/// A client's settings.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientImportBody {
    /// The JSON, as it stands in the client's file.
    text: String,
    /// The servers to import, by the client's names. All of them if it is missing.
    #[serde(default)]
    servers: Option<BTreeSet<String>>,
    /// The digest of the preview: proof that this very plan was shown.
    #[serde(default)]
    digest: Option<String>,
}

// It holds whatever the client's file held.
impl std::fmt::Debug for ClientImportBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientImportBody(***)")
    }
}

/// What importing would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClientImportView {
    servers: Vec<ImportedView>,
    left: Vec<LeftView>,
    diff: Vec<DiffLine>,
    digest: String,
}

/// A server that would be imported.
#[derive(Debug, Serialize, JsonSchema)]
struct ImportedView {
    from: String,
    name: String,
    known: bool,
    argv: Vec<String>,
    url: Option<String>,
    environment: Vec<ValueView>,
    read: Vec<String>,
    network: &'static str,
    /// Values that move to the file of secrets, and the name each gets there.
    moved: Vec<ValueView>,
    dropped: Vec<String>,
    findings: Vec<FoundView>,
}

/// A server that stays with its client.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftView {
    name: String,
    why: String,
}

/// The servers that were imported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportDone {
    names: Vec<String>,
}

pub(super) fn preview(
    studio: &Studio,
    _: &Asked,
    given: ClientImportBody,
) -> ApiResult<ClientImportView> {
    let plan = plan(studio, &given)?;
    let chosen = chosen(&plan, &given);
    let now = studio.engine().registry().current();
    let new = plan.imported.iter();
    let new = new.filter(|one| !one.is_known && chosen.contains(&one.from));
    let written: Vec<_> = new.map(|one| one.written.clone()).collect();
    let changed = server_settings::with(&now.settings.text, &written);
    let changed = changed.map_err(|fault| refused(studio, &fault))?;
    let left = plan.left.iter().map(|(name, why)| LeftView {
        name: text::one_line(name),
        why: text::one_line(why),
    });
    Ok(ClientImportView {
        digest: digest_of(&plan, &chosen),
        diff: diff(&now.settings.text, &changed),
        left: left.collect(),
        servers: plan.imported.iter().map(imported).collect(),
    })
}

pub(super) fn import(
    studio: &Studio,
    asked: &Asked,
    given: ClientImportBody,
) -> ApiResult<ImportDone> {
    let plan = plan(studio, &given)?;
    let chosen = chosen(&plan, &given);
    if given.digest.as_deref() != Some(digest_of(&plan, &chosen).as_str()) {
        return Err(ApiError::invalid(
            "what is to be imported is not what was shown",
        ));
    }
    let admin = studio.engine().servers().by(asked.actor()?);
    let names = admin.import(&plan, &chosen).map_err(|fault| match fault {
        ImportFault::Secret(fault) => secret_refusal(studio, &fault),
        ImportFault::Apply(ApplyFault::Changed) => {
            ApiError::conflict("the settings changed since", &())
        }
        ImportFault::Apply(fault) => applied(studio, &fault),
        ImportFault::Server(fault) => failed(studio, &fault),
        ImportFault::Engine(fault) => refused(studio, &fault),
    })?;
    Ok(ImportDone { names })
}

fn plan(studio: &Studio, given: &ClientImportBody) -> ApiResult<ImportPlan> {
    if given.text.len() > limit::IMPORT_BYTES_MAX {
        return Err(ApiError::too_large());
    }
    let entries = client_import::read_entries(&given.text);
    let entries = entries.map_err(|why| ApiError::invalid(text::one_line(&why)))?;
    let plan = studio.engine().plan_import(&entries);
    plan.map_err(|fault| secret_refusal(studio, &fault))
}

fn chosen(plan: &ImportPlan, given: &ClientImportBody) -> BTreeSet<String> {
    let all = plan.imported.iter().map(|one| one.from.clone());
    match &given.servers {
        None => all.collect(),
        Some(some) => all.filter(|name| some.contains(name)).collect(),
    }
}

fn digest_of(plan: &ImportPlan, chosen: &BTreeSet<String>) -> String {
    let wanted = plan.imported.iter();
    let wanted = wanted.filter(|one| chosen.contains(&one.from));
    let exact: Vec<_> = wanted
        .map(|one| {
            let written = &one.written;
            json!([
                written.name,
                written.command,
                written.url,
                written.values,
                written.read,
                written.write,
                written.network,
                written.private,
                one.is_known,
            ])
        })
        .collect();
    // The values of secrets are part of it, and never of what is shown.
    digest::of_value(&json!([exact, plan.secrets])).unwrap_or_default()
}

fn imported(one: &ImportedServer) -> ImportedView {
    let written = &one.written;
    let value = |(name, value): (&String, &String)| ValueView {
        name: text::one_line(name),
        value: text::one_line(value),
    };
    // What moved is no longer in the command's environment, and so no longer a finding.
    let is_moved = |place: &str| {
        let mut fields = one.moved.iter();
        fields.any(|(field, _)| place.ends_with(&format!(".{}", text::one_line(field))))
    };
    let findings = one.launch.findings();
    let findings = findings.iter().map(SheetFinding::of);
    let findings: Vec<_> = findings
        .filter(|finding| !is_moved(&finding.place))
        .collect();
    ImportedView {
        from: text::one_line(&one.from),
        name: written.name.clone(),
        known: one.is_known,
        argv: written
            .command
            .iter()
            .map(|word| text::one_line(word))
            .collect(),
        url: written.url.as_deref().map(text::one_line),
        environment: written.values.iter().map(value).collect(),
        read: written
            .read
            .iter()
            .map(|path| text::one_line(path))
            .collect(),
        network: written.network.unwrap_or("none"),
        moved: one
            .moved
            .iter()
            .map(|(field, name)| value((field, name)))
            .collect(),
        dropped: one
            .dropped
            .iter()
            .map(|field| text::one_line(field))
            .collect(),
        findings: findings.iter().map(found).collect(),
    }
}
