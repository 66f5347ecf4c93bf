//! The operator's connections, as one call finds them: by name, for callers who may use
//! them, with the credential read when the call is made.

use model::caller::CallerKind;
use model::config::{Config, ConnectionConfig, ConnectionKind};
use model::reason::Reason;
use model::record::mask::{Masker, is_maskable};
use model::record::outcome::CallError;
use model::word::Word as _;
use model::{Environment, text};

use crate::limit;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::services::VariableSource;

/// The connection of a name and kind. To a caller who may not use it, it is not there: the
/// words are the same, and only the owner is told what else there is.
pub(crate) fn find<'a>(
    config: &'a Config,
    request: &CallRequest,
    groups: &[String],
    name: &str,
    kind: ConnectionKind,
) -> Result<&'a ConnectionConfig, CallRefusal> {
    let named = config.connections.iter().find(|known| known.name == name);
    // One filter for kind and callers, so that both end in the same refusal.
    let usable = named.filter(|known| known.kind == kind && known.serves(&request.caller, groups));
    if let Some(found) = usable {
        return Ok(found);
    }
    let shown = text::elided(name, limit::NAME_SHOWN_CHARS_MAX);
    let mut error = CallError::new(
        Reason::ConnectionUnknown,
        format!("there is no connection `{shown}`"),
    );
    let why = match named {
        None => "no `[connections]` section has this name".to_owned(),
        Some(known) if known.kind != kind => {
            format!("`{shown}` is of the kind `{}`", known.kind.word())
        }
        Some(_) => format!("the caller is not among the `callers` of `{shown}`"),
    };
    if request.caller.kind == CallerKind::Owner {
        error.message.push_str(&format!(": {why}"));
    }
    Err(CallRefusal::new(error).noted(why))
}

/// The password or token of a connection, read now: an operator who changes a secret
/// expects the next call to use it. One that the call does not mask is not used: it was
/// changed while the call was judged.
pub(crate) fn credential(
    source: &VariableSource,
    masker: &Masker,
    connection: &ConnectionConfig,
) -> Result<Option<String>, CallRefusal> {
    let Some(name) = &connection.credential else {
        return Ok(None);
    };
    let refuse = |reason, note: String| {
        let message = format!("the credential of `{}` is not available", connection.name);
        CallRefusal::new(CallError::new(reason, message)).noted(note)
    };
    let environment = source
        .read()
        .map_err(|fault| refuse(Reason::SecretsUnavailable, fault.to_string()))?;
    let value = environment
        .get(name)
        .filter(|value| !value.trim().is_empty());
    match value {
        Some(value) if is_maskable(value) && !masker.shows(value.as_bytes()) => {
            let note = format!("{name} changed while the call was judged");
            Err(refuse(Reason::SecretsUnavailable, note))
        }
        Some(value) => Ok(Some(value.to_owned())),
        None => Err(refuse(
            Reason::RequirementMissing,
            format!("not set: {name}"),
        )),
    }
}

/// The credentials of every connection, so that no output of a call that may use one shows
/// them.
pub(crate) fn secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let names = config
        .connections
        .iter()
        .filter_map(|known| known.credential.as_deref());
    names
        .filter_map(|name| environment.get(name))
        .map(str::to_owned)
        .collect()
}
