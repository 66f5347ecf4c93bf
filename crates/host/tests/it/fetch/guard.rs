//! Who may be reached. The cases are data; every attempt ends at a wire that
//! only takes notes.

use host::fetch::resolve::{Resolve as _, SystemResolver};
use host::fetch::{Fetch, FetchSettings};
use host::{FaultKind, PowerRequest};
use model::policy::grant::NetworkGrant;
use model::policy::host_bound::HostBounds;
use model::record::mask::Masker;
use serde_json::json;

use crate::lab::{Ending, Lab, raw, redirect, reply};
use crate::world::{PUBLIC, World};

const GUARD: &str = include_str!("../../../../../cases/host/fetch/guard.txt");
const TABLE: &str = include_str!("../../../../../cases/host/address/table.txt");

#[tokio::test]
async fn the_cases_of_the_guard() {
    let lines = GUARD
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let [grant, url, dns, expected] = line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let (private, listed): (Vec<_>, Vec<_>) = grant
            .split_whitespace()
            .partition(|word| word.starts_with('+'));
        let mut world = World::new(&listed.join(" "));
        world = world.private(&private.join(" ").replace('+', ""));
        if let Some((name, answers)) = dns.split_once(' ') {
            for answer in answers.split(';') {
                world = world.dns(name, answer.trim());
            }
        }
        let fault = world.get(url).await.expect_err(line);
        let called = world.called();
        let found = match fault.reason {
            "io" => called.join(" "),
            reason => {
                assert!(called.is_empty(), "{line}: called {called:?}");
                reason.to_owned()
            }
        };
        assert_eq!(found, expected, "{line}\n{}", fault.told(&Masker::none()));
        if fault.kind == FaultKind::Security {
            assert!(
                fault.told(&Masker::none()).starts_with("[fetch] denied: "),
                "{line}: {}",
                fault.told(&Masker::none())
            );
        }
        count += 1;
    }
    assert!(count >= 60, "only {count} cases");
}

#[tokio::test]
async fn no_reserved_host_is_reached_in_strict_mode_or_through_a_star() {
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (host, verdict) = line.split_once(' ').unwrap();
        for grant in ["strict", "*"] {
            let world = World::new(grant);
            let reason = world.reason(&format!("http://{host}/")).await;
            let expected: &[&str] = match verdict.trim() {
                "public" => &["io", "dns-resolution-failed"],
                "invalid" => &["invalid-url", "missing-host"],
                _ => &["literal-private-ip", "resolved-private-ip"],
            };
            assert!(expected.contains(&reason), "{grant} {host}: {reason}");
            assert_eq!(world.called().is_empty(), reason != "io", "{host}");
        }
    }
}

#[tokio::test]
async fn no_reserved_address_is_reached_by_a_name() {
    for line in TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (host, verdict) = line.split_once(' ').unwrap();
        let Ok(address) = url_address(host).ok_or(()) else {
            continue;
        };
        for answer in [
            address.clone(),
            format!("{PUBLIC},{address}"),
            format!("{address},{PUBLIC}"),
        ] {
            let world = World::new("strict").dns("rebind.example.com", &answer);
            let reason = world.reason("http://rebind.example.com/").await;
            let expected = match verdict.trim() {
                "public" => "io",
                _ => "resolved-private-ip",
            };
            assert_eq!(reason, expected, "{answer}");
        }
    }
}

/// What a literal of the table is once parsed.
fn url_address(host: &str) -> Option<String> {
    let text = host.trim_start_matches('[').trim_end_matches(']');
    text.parse::<std::net::IpAddr>()
        .ok()
        .map(|address| address.to_string())
}

/// Attack: dns-rebinding. The second answer is never asked for.
#[tokio::test]
async fn the_address_connected_to_is_the_one_checked() {
    let lab = Lab::start(|_| reply("200 OK", "fine")).await;
    let world = World::new("strict")
        .lab(&lab)
        .dns("rebind.example.com", PUBLIC)
        .dns("rebind.example.com", "127.0.0.1");
    let answer = world.get("http://rebind.example.com/").await.unwrap();
    assert_eq!(answer.bytes, b"fine");
    assert_eq!(world.called(), [format!("{PUBLIC}:80")]);
    assert_eq!(*world.dns.asked.lock().unwrap(), ["rebind.example.com"]);
    assert_eq!(
        world.reason("http://rebind.example.com/").await,
        "resolved-private-ip"
    );
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let world = World::new("strict").dns(
        "many.example.com",
        "1.1.1.1,1.0.0.1,[::]".trim_end_matches(",[::]"),
    );
    assert_eq!(world.reason("http://many.example.com:8080/").await, "io");
    assert_eq!(world.called(), ["1.1.1.1:8080", "1.0.0.1:8080"]);
}

#[tokio::test]
async fn an_endless_dns_answer_is_refused() {
    let answer = vec![PUBLIC; 65].join(",");
    let world = World::new("strict").dns("many.example.com", &answer);
    assert_eq!(
        world.reason("http://many.example.com/").await,
        "dns-resolution-failed"
    );
    assert!(world.called().is_empty());
}

#[tokio::test]
async fn a_refusal_names_host_and_rule_and_is_on_record() {
    let world = World::new("api.example.com");
    let ran = world
        .run(
            json!({"url": "https://Evil.example.com/steal", "method": "post"}),
            b"x",
        )
        .await;
    let fault = ran.outcome.unwrap_err();
    assert_eq!(
        fault.told(&Masker::none()),
        "[fetch] denied: host not in allowlist: evil.example.com"
    );
    assert_eq!(fault.helper, "fetch");
    let event = &ran.events[0];
    assert_eq!(
        (event.method.as_str(), event.host.as_str()),
        ("POST", "evil.example.com")
    );
    assert_eq!(event.refusal, Some("host-not-in-allowlist"));
    assert_eq!((event.address, event.status, event.bytes), (None, None, 0));
    // The host alone would read like a mistake where only its port is not listed.
    let world = World::new("api.example.com:8443");
    let ran = world
        .run(json!({"url": "https://api.example.com/"}), b"")
        .await;
    assert_eq!(
        ran.outcome.unwrap_err().told(&Masker::none()),
        "[fetch] denied: host not in allowlist: api.example.com:443; it is listed with another port"
    );
}

/// The lists of callers and the hosts of rules are asked on every hop, before any
/// name is looked up, and name themselves in the record.
#[tokio::test]
async fn bounds_hold_on_every_hop() {
    let lab = Lab::start(|seen| match seen.path().split_once('?') {
        Some((_, to)) => redirect(302, to),
        None => reply("200 OK", "fine"),
    })
    .await;
    let world = || {
        let world = World::new("strict").lab(&lab);
        let names = ["a.example.com", "b.example.com", "c.example.com"];
        names
            .iter()
            .fold(world, |world, name| world.dns(name, PUBLIC))
    };
    for (world, to, reason, by) in [
        (
            world().within("caller `kim`", "a.example.com"),
            "http://b.example.com/",
            "host-not-for-caller",
            "caller `kim`",
        ),
        (
            world()
                .within("everyone", "*")
                .within("group `bots`", "*.example.com:80"),
            "https://b.example.com/",
            "host-not-for-caller",
            "group `bots`",
        ),
        (
            world().never("no-b", "b.example.com"),
            "http://b.example.com/",
            "host-denied-by-rule",
            "rule `no-b`",
        ),
        (
            world().never("no-digits", "93.184.216.34"),
            "http://93.184.216.34/",
            "host-denied-by-rule",
            "rule `no-digits`",
        ),
    ] {
        let url = format!("http://a.example.com/?{to}");
        let ran = world.run(json!({ "url": url }), b"").await;
        assert_eq!(ran.outcome.unwrap_err().reason, reason, "{to}");
        assert_eq!(world.called(), [format!("{PUBLIC}:80")], "{to}");
        assert_eq!(*world.dns.asked.lock().unwrap(), ["a.example.com"], "{to}");
        let [first, second] = &ran.events[..] else {
            panic!("{:?}", ran.events);
        };
        assert_eq!((first.status, first.refusal), (Some(302), None));
        assert_eq!(second.refusal, Some(reason));
        assert_eq!(second.by.as_deref(), Some(by));
        assert_eq!(second.to_json()["by"], by);
        // The first request is asked the same.
        let ran = world.run(json!({ "url": to }), b"").await;
        assert_eq!(ran.outcome.unwrap_err().reason, reason, "{to}");
    }
    let world = world().within("caller `kim`", "a.example.com c.example.com");
    let answer = world
        .get("http://a.example.com/?http://c.example.com/")
        .await;
    assert_eq!(answer.unwrap().bytes, b"fine");
}

/// A list never adds: a host on it must still be granted, and is still guarded.
#[tokio::test]
async fn bounds_only_take() {
    let world = World::new("a.example.com").within("caller `kim`", "b.example.com 127.0.0.1");
    assert_eq!(
        world.reason("http://b.example.com/").await,
        "host-not-in-allowlist"
    );
    let world = World::new("strict").within("caller `kim`", "127.0.0.1 *.example.com");
    assert_eq!(
        world.reason("http://127.0.0.1/").await,
        "literal-private-ip"
    );
    let world = world.dns("b.example.com", "10.0.0.1");
    assert_eq!(
        world.reason("http://b.example.com/").await,
        "resolved-private-ip"
    );
    assert_eq!(
        world.reason("http://b.example.com:25/").await,
        "port-blocked"
    );
    assert!(world.called().is_empty());
}

/// Attack: the caller chooses the part of a URL before the key, and so where a
/// message about it would be cut.
#[tokio::test]
async fn no_message_or_event_shows_a_piece_of_a_key() {
    const KEY: &str = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1";
    let masker = Masker::new([KEY]).unwrap();
    for length in 0..160 {
        let filler = "x".repeat(length);
        for (url, headers) in [
            (format!("http://exa mple/{filler}?key={KEY}"), json!({})),
            (format!("{filler}{KEY}"), json!({})),
            (format!("ftp://a.example.com/{filler}?key={KEY}"), json!({})),
            (format!("http:///{filler}{KEY}"), json!({})),
            (format!("{KEY}{filler}://a.example.com/"), json!({})),
            (format!("http://{KEY}.example.com/{filler}"), json!({})),
            (
                "http://a.example.com/".to_owned(),
                json!({ format!("{filler} {KEY}"): "1" }),
            ),
        ] {
            let world = World::new("strict").secret(KEY);
            let arguments =
                json!({ "url": url, "headers": headers, "method": format!("{KEY}{filler}") });
            let ran = world.run(arguments, b"").await;
            let fault = ran.outcome.unwrap_err();
            let mut shown = vec![fault.to_json(&masker).to_string()];
            for event in &ran.events {
                let event = masker.value(event.to_json()).elided(60);
                shown.push(event.into_inner().to_string());
            }
            for shown in shown {
                let lower = shown.to_lowercase();
                let pieces = KEY.as_bytes().windows(12).map(String::from_utf8_lossy);
                let whole = url.contains(KEY) || headers.to_string().contains(KEY);
                let piece = pieces
                    .filter(|_| whole)
                    .find(|piece| lower.contains(&**piece));
                assert_eq!(piece, None, "{url}: {shown}");
            }
        }
    }
}

#[test]
fn blocked_means_there_is_no_fetch() {
    let secrets = std::sync::Arc::new(Masker::new([]).unwrap());
    let settings = FetchSettings::new(crate::world::nobody(), secrets);
    assert!(Fetch::from_grant(&NetworkGrant::Blocked, &HostBounds::default(), settings).is_none());
}

/// A call that is cut off may have reached its host.
#[tokio::test]
async fn a_dropped_request_is_on_record() {
    let lab = Lab::start(|seen| match seen.path() {
        "/" => redirect(302, "/hold"),
        _ => raw("", Ending::Hold),
    })
    .await;
    let world = World::new("open").lab(&lab).dns("example.com", PUBLIC);
    let fetch = world.fetch();
    let ask = PowerRequest {
        arguments: json!({"url": "http://example.com/"}),
        bytes: Vec::new(),
    };
    let mut running = Box::pin(fetch.run(ask));
    while lab.seen().len() < 2 {
        tokio::select! {
            biased;
            _ = &mut running => panic!("it cannot end"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(running);
    let events = fetch.take_abandoned();
    let summary: Vec<_> = events
        .iter()
        .map(|event| (event.status, event.refusal))
        .collect();
    assert_eq!(summary, [(Some(302), None), (None, Some("interrupted"))]);
    assert!(fetch.take_abandoned().is_empty());
}

/// The system's own resolver, asked only for names that never leave the machine.
#[tokio::test]
async fn the_systems_resolver_knows_this_machine() {
    let found = SystemResolver.resolve("localhost").await.unwrap();
    assert!(!found.is_empty());
    assert!(found.iter().all(std::net::IpAddr::is_loopback), "{found:?}");
    let unique: std::collections::BTreeSet<_> = found.iter().collect();
    assert_eq!(unique.len(), found.len(), "an address twice: {found:?}");
}
