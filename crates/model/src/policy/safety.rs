//! The record of a call's policy, made from the effective policy.

use crate::document::safety::{
    Capabilities, Category, Network, RUNTIME_ID, Runtime, Safety, Source, VERSION,
};
use crate::document::{Document, NetworkMode};
use crate::policy::EffectivePolicy;

/// The record of the policy of a call of this tool.
#[must_use]
pub fn record(document: &Document, policy: &EffectivePolicy, source: Source) -> Safety {
    let source = match source {
        Source::Builtin => "builtin",
        Source::User => "user",
        Source::Server => "server",
    };
    Safety {
        version: Some(VERSION.to_owned()),
        runtime: Some(Runtime {
            id: Some(RUNTIME_ID.to_owned()),
            min_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ecma_version: Some("2024".to_owned()),
            java_interop: Some(false),
            helpers: helpers(policy)
                .iter()
                .map(|helper| (*helper).to_owned())
                .collect(),
            console: Some(true),
        }),
        category: Some(Category {
            source: Some(source.to_owned()),
            id: document.category.clone(),
        }),
        capabilities: Some(Capabilities {
            network: Some(Network {
                mode: Some(policy.network),
                hosts: policy.hosts.iter().map(ToString::to_string).collect(),
            }),
            file_read: Some(policy.file_read),
            file_write: Some(policy.file_write),
            destructive: policy.destructive.then_some(true),
        }),
        // Added where the fence is known, in `DocumentFacts`.
        jail: None,
    }
}

const ALWAYS: &[&str] = &[
    "safety.parser/v1",
    "tool-safety-helpers/v1#crypto",
    "tool-safety-helpers/v1#encoding",
];

/// The helper groups that a policy grants.
fn helpers(policy: &EffectivePolicy) -> Vec<&'static str> {
    let http = (policy.network != NetworkMode::Blocked).then_some("safety.http/v1");
    let fs = (policy.file_read || policy.file_write).then_some("safety.fs/v1");
    http.into_iter()
        .chain(fs)
        .chain(ALWAYS.iter().copied())
        .collect()
}
