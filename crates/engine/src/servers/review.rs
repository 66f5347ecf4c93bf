//! What a server offers is kept before any of it is used, and compared with what its
//! owner accepted.

use bridge::{Reviewer, SeenTools};
use host::egress::EgressEvent;
use model::config::{ServerConfig, ServerTransport};
use model::document::digest;
use model::record::audit::{Act, Notice};
use model::record::mask::Masker;
use model::text::elided;
use model::word::Word as _;
use serde_json::{Value, json};
use store::Store;
use upstream::definition::{ItemKind, ServerDefinition, ServerOrigin};
use upstream::pin::{ChangeSubject, PinnedServer, SeenServer, serve};

use crate::error::causes;
use crate::notice::{connection_count, loudly, with_connections};
use crate::services::{Alarm, Clock};

/// Keeps what servers offer. The registry makes the tools from it, at the next call of
/// any process.
#[derive(Debug)]
pub(crate) struct KeptReview {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
}

impl Reviewer for KeptReview {
    fn review(&self, server: &str, seen: &SeenTools) -> Result<String, String> {
        let text = seen_text(seen);
        let stamp = digest::of_text(&text);
        let at_ms = self.clock.now_ms();
        let kept = self.store.publications().save_seen(server, &text, at_ms);
        match kept {
            Ok(false) => Ok(stamp),
            Ok(true) => {
                let count = model::text::count(seen.offers.tools.len(), "tool");
                let against = self.against_accepted(server, &text).unwrap_or_default();
                let message =
                    format!("the server `{server}` offers {count}, not as before{against}");
                let notice = Notice::new(Act::ServerListed, server, "server", &message);
                loudly(&self.store, &self.alarm, notice.about(server));
                Ok(stamp)
            }
            // What cannot be kept cannot be compared, so nothing of it is used.
            Err(fault) => Err(format!("its list could not be kept: {}", causes(&fault))),
        }
    }

    fn note_connections(&self, server: &str, events: &[EgressEvent]) {
        loudly(&self.store, &self.alarm, connection_notice(server, events));
    }
}

/// Items that a notice names.
const NAMED_MAX: usize = 5;
/// Characters of the name of one.
const NAME_CHARS_MAX: usize = 60;

impl KeptReview {
    /// What a list changes against what its owner accepted, in words: what is held for it,
    /// and what is served with other words than the server's. Nothing before a first yes.
    fn against_accepted(&self, server: &str, text: &str) -> Option<String> {
        let kept = self.store.publications().all().ok()?;
        let pinned = PinnedServer::from_json(&kept.servers.get(server)?.pins).ok()?;
        // Where it comes from is the settings' word and nothing that a list changes.
        let origin = pinned.server.as_ref()?.definition.origin.clone();
        let seen = read_from(origin, text).ok()?;
        let changes = serve(&pinned, Some(&seen)).changes;
        if changes.is_empty() {
            return Some(", but as accepted".to_owned());
        }
        let named = changes.iter().take(NAMED_MAX).map(|change| {
            let class = change.class.word();
            match &change.subject {
                ChangeSubject::Server => format!("the server itself ({class})"),
                ChangeSubject::Item(key) => {
                    format!("`{}` ({class})", elided(&key.name, NAME_CHARS_MAX))
                }
            }
        });
        let mut words: Vec<_> = named.collect();
        let more = changes.len().saturating_sub(words.len());
        if more > 0 {
            words.push(format!("{more} more"));
        }
        Some(format!(": {}", words.join(", ")))
    }
}

/// Each host once, with what became of the connections to it.
fn connection_notice(server: &str, events: &[EgressEvent]) -> Notice {
    let message = format!(
        "the process of the server `{server}` made connections outside of calls: {}",
        connection_count(events)
    );
    let notice = Notice::new(Act::ServerConnected, server, "server", &message).about(server);
    // Masked already, with the secrets of the server.
    with_connections(notice, events, &Masker::none())
}

/// What a server offers, as it is kept.
pub(crate) fn seen_text(seen: &SeenTools) -> String {
    json!({
        "name": seen.server.name,
        "version": seen.server.version,
        "instructions": seen.server.instructions,
        "protocol": seen.server.protocol,
        "tools": seen.offers.tools,
        "prompts": seen.offers.prompts,
        "resources": seen.offers.resources,
        "templates": seen.offers.templates,
    })
    .to_string()
}

/// What a server offered last, from what was kept. Where it comes from is what the
/// settings say now: another command is another server.
pub(crate) fn read_seen(config: &ServerConfig, kept: &str) -> Result<SeenServer, String> {
    read_from(origin(config), kept)
}

fn read_from(origin: ServerOrigin, kept: &str) -> Result<SeenServer, String> {
    let broken = |why: String| format!("what it offered last cannot be read: {why}");
    let kept: Value = serde_json::from_str(kept).map_err(|error| broken(error.to_string()))?;
    let text = |field: &str| kept.get(field).and_then(Value::as_str);
    let server = ServerDefinition::new(
        text("name").unwrap_or_default(),
        text("version").unwrap_or_default(),
        text("instructions"),
        origin,
    );
    let server = server.map_err(|fault| broken(fault.message))?;
    let lists = [
        ("tools", ItemKind::Tool),
        ("prompts", ItemKind::Prompt),
        ("resources", ItemKind::Resource),
        ("templates", ItemKind::ResourceTemplate),
    ];
    let listed = lists.into_iter().flat_map(|(field, kind)| {
        let items = kept.get(field).and_then(Value::as_array);
        items.into_iter().flatten().map(move |item| (kind, item))
    });
    SeenServer::read(server, listed).map_err(|error| broken(error.to_string()))
}

fn origin(config: &ServerConfig) -> ServerOrigin {
    match &config.transport {
        ServerTransport::Command(command) => ServerOrigin::Command {
            program: command.command.first().cloned().unwrap_or_default(),
            arguments: command.command.iter().skip(1).cloned().collect(),
            digest: None,
        },
        ServerTransport::Url(url) => ServerOrigin::Url(url.url.clone()),
    }
}
