//! Which tools a caller is told about: those a call of theirs would find. Listing
//! and calling ask the same gates, so that they cannot disagree.

use std::sync::Arc;

use model::assessment::Sound;
use model::caller::{Caller, Origin};
use model::policy::EffectivePolicy;
use model::risk::{self, Risk};
use model::safety::Source;
use serde_json::Value;

use crate::Engine;
use crate::call::{self, CallRequest, Target};
use crate::native::Native;
use crate::record::Stop;
use crate::registry::Snapshot;

/// A tool a caller may call.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The document and what holds for it.
    pub sound: Arc<Sound>,
    /// Where it comes from.
    pub source: Source,
    /// The body of ours that runs instead of the document's code.
    pub native: Option<Native>,
    /// What a call would be held to.
    pub policy: EffectivePolicy,
    /// Its badge.
    pub risk: Risk,
}

impl Engine {
    /// The tools a caller may call through a door, by name. Rules look at
    /// arguments, so what they say is known only when a call is made.
    #[must_use]
    pub fn offered(&self, caller: &Caller, origin: Origin) -> Vec<Offered> {
        let now = self.registry().current();
        let mut request = CallRequest::new(caller.clone(), origin, "", Value::Null);
        let offered = now.tools().filter_map(|tool| {
            request.target = Target::Name(tool.sound.document.name.clone());
            reachable(self, &now, &request).ok()
        });
        offered.collect()
    }
}

/// The gates a call passes before anybody looks at its arguments.
fn reachable(engine: &Engine, now: &Snapshot, request: &CallRequest) -> Result<Offered, Stop> {
    let (found, _) = call::find(now, request)?;
    call::access(now, request, &found)?;
    let (environment, _) = call::environment(engine, request, &found)?;
    call::required(request, &found, &environment)?;
    let (policy, _) = call::effective(now, request, &found)?;
    let policy = policy.into_owned();
    let overrides = &found.sound.document.sandbox_overrides;
    let risk = risk::rate(&now.ground, overrides, &policy);
    Ok(Offered {
        sound: found.sound,
        source: found.source,
        native: found.native,
        policy,
        risk,
    })
}
