//! A client for one address that the operator named, such as a collector of traces or a
//! witness: the same guarded client that tools use, with one host and no other.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use host::fetch::{Fetch, FetchSettings, TlsTrust};
use host::message::PowerRequest;
use model::network::host_pattern::HostPattern;
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use opentelemetry_http::Request;
use serde_json::json;

/// A client for the host of an address. `setting` names the setting it was read from.
pub(crate) fn client(setting: &str, address: &str, trust: &TlsTrust) -> anyhow::Result<Fetch> {
    let parsed = Request::get(address).body(());
    let parsed = parsed.with_context(|| format!("`{setting}` is `{address}`"))?;
    let host = parsed.uri().host();
    let host =
        host.with_context(|| format!("`{setting}` names no host; write `http://HOST:PORT`"))?;
    let host = HostPattern::parse(host).map_err(|fault| anyhow!("`{setting}`: {fault}"))?;
    let none = Arc::new(Masker::none());
    let mut settings = FetchSettings::new(trust.tls()?, none);
    // The operator named this host, so it may be private.
    settings.private_hosts = Arc::new([host.clone()]);
    // One host and no other, so a redirect cannot lead the operator's data elsewhere.
    let grant = NetworkGrant::Allowlist(vec![host]);
    Fetch::from_grant(&grant, &HostBounds::default(), settings).context("nothing may be reached")
}

/// Posts a text. Returns the status and the answer.
pub(crate) async fn post(fetch: &Fetch, url: &str, body: String) -> anyhow::Result<(u16, String)> {
    let ask = PowerRequest {
        arguments: json!({
            "url": url,
            "method": "POST",
            "headers": {"content-type": "text/plain; charset=utf-8"},
        }),
        bytes: body.into_bytes(),
    };
    let answer = fetch.run(ask).await.outcome;
    let answer = answer.map_err(|fault| anyhow!(fault.told(&Masker::none())))?;
    let status = answer
        .value
        .get("status")
        .and_then(serde_json::Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    Ok((status.unwrap_or(502), text))
}
