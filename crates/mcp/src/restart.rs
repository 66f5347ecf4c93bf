//! Settings a running server keeps until it ends: sockets, authentication, the bounds of
//! its transport. An operator who changes one is told that it takes a restart.
//!
//! The rest of `[serve]`, what one call may cost, is looked up at every request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Alarm, Engine};
use model::config::{Config, ServeConfig};

use crate::limit;

/// The settings a server was started with and keeps.
#[derive(Clone, Debug)]
pub struct StartupSettings {
    config: Config,
    /// Whether a flag gave the address, so that the setting has no effect.
    listen_is_given: bool,
}

impl StartupSettings {
    /// A server that was started with these settings.
    #[must_use]
    pub fn with(config: Config, listen_is_given: bool) -> StartupSettings {
        StartupSettings {
            config,
            listen_is_given,
        }
    }

    /// The settings that differ from those at the start.
    #[must_use]
    pub fn differs(&self, now: &Config) -> Vec<&'static str> {
        let mut names = serve_differs(&self.config.serve, &now.serve);
        if self.listen_is_given {
            names.retain(|name| *name != "serve.listen");
        }
        if self.config.store != now.store {
            names.push("store");
        }
        if self.config.oauth != now.oauth {
            names.push("oauth");
        }
        if self.config.network != now.network {
            names.push("network");
        }
        // The jail is asked at each start of a child.
        let workers = |config: &Config| (config.sandbox.workers, config.sandbox.sharing);
        if workers(&self.config) != workers(now) {
            names.push("sandbox");
        }
        if self.config.files.workspace != now.files.workspace {
            names.push("files.workspace");
        }
        if self.config.telemetry != now.telemetry {
            names.push("telemetry");
        }
        names
    }
}

fn serve_differs(started: &ServeConfig, now: &ServeConfig) -> Vec<&'static str> {
    // Every setting is named, so that another one is not forgotten here.
    let ServeConfig {
        listen,
        public_url,
        hosts,
        origins,
        connections_max,
        sessions_max,
        sessions_per_caller_max,
        listeners_max: _,
        calls_per_caller_max: _,
        calls_per_minute,
        body_bytes_max,
        call_seconds_max: _,
    } = started;
    let kept = [
        ("serve.listen", *listen == now.listen),
        ("serve.public_url", *public_url == now.public_url),
        ("serve.hosts", *hosts == now.hosts),
        ("serve.origins", *origins == now.origins),
        (
            "serve.connections_max",
            *connections_max == now.connections_max,
        ),
        ("serve.sessions_max", *sessions_max == now.sessions_max),
        (
            "serve.sessions_per_caller_max",
            *sessions_per_caller_max == now.sessions_per_caller_max,
        ),
        (
            "serve.calls_per_minute",
            *calls_per_minute == now.calls_per_minute,
        ),
        (
            "serve.body_bytes_max",
            *body_bytes_max == now.body_bytes_max,
        ),
    ];
    let changed = kept.into_iter().filter(|(_, is_same)| !is_same);
    changed.map(|(name, _)| name).collect()
}

/// Looks at the settings now and then, for as long as it is polled, and says of each
/// change once what it takes.
pub async fn watch(engine: Arc<Engine>, started: StartupSettings, alarm: Alarm) {
    let mut known = Vec::new();
    let mut tended = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(limit::LIST_CHANGED_EVERY_MS)).await;
        if tended.elapsed() >= Duration::from_millis(limit::TEND_AUDIT_EVERY_MS) {
            let engine = Arc::clone(&engine);
            // It waits for the disk. A panic in it is not ours to die of.
            let _ = tokio::task::spawn_blocking(move || engine.tend_audit()).await;
            tended = Instant::now();
        }
        let names = started.differs(&engine.registry().current().config);
        if names == known {
            continue;
        }
        alarm.raise(&sentence(&names));
        known = names;
    }
}

fn sentence(names: &[&str]) -> String {
    if names.is_empty() {
        return "the settings are again those that this server started with".to_owned();
    }
    format!(
        "these settings changed and take effect only after a restart of this server: {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text).expect("settings")
    }

    #[test]
    fn settings_that_take_a_restart_are_named() {
        let started = StartupSettings::with(config(""), false);
        for (text, expected) in [
            ("", &[][..]),
            ("[serve]\nlisten = \"127.0.0.1:1\"", &["serve.listen"]),
            (
                "[serve]\npublic_url = \"https://a.test\"\nhosts = [\"b.test\"]",
                &["serve.public_url", "serve.hosts"],
            ),
            (
                "[serve]\norigins = [\"https://a.test\"]",
                &["serve.origins"],
            ),
            (
                "[serve]\nconnections_max = 1\nsessions_max = 1\nsessions_per_caller_max = 1",
                &[
                    "serve.connections_max",
                    "serve.sessions_max",
                    "serve.sessions_per_caller_max",
                ],
            ),
            (
                "[serve]\ncalls_per_minute = 1\nbody_bytes_max = 4096",
                &["serve.calls_per_minute", "serve.body_bytes_max"],
            ),
            // Looked up at every request.
            (
                "[serve]\ncalls_per_caller_max = 1\nlisteners_max = 1\ncall_seconds_max = 1",
                &[],
            ),
            ("[sandbox]\nworkers = 5", &["sandbox"]),
            ("[files]\nworkspace = \"w\"", &["files.workspace"]),
            ("[files]\nper_caller = true", &[]),
            (
                "[store]\nurl = \"postgres://ringfence@db.test/ringfence\"",
                &["store"],
            ),
            ("[network]\nca_file = \"ca.pem\"", &["network"]),
            ("[audit]\nbytes_max = 1048576\ndurability = \"full\"", &[]),
            ("[approvals]\nwait_seconds = 1", &[]),
            ("[oauth]\nissuer = \"https://a.test\"", &["oauth"]),
            (
                "[telemetry]\notlp_endpoint = \"http://127.0.0.1:1\"",
                &["telemetry"],
            ),
        ] {
            assert_eq!(started.differs(&config(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_address_given_besides_does_not_change_with_the_settings() {
        let started = StartupSettings::with(config(""), true);
        let now = config("[serve]\nlisten = \"127.0.0.1:1\"");
        assert_eq!(started.differs(&now), [""; 0]);
    }
}
