//! Resolution by example; `risk/tests.rs` has the properties.

use super::*;

fn overrides() -> Overrides {
    Overrides::default()
}

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn no_overrides_is_the_baseline() {
    let baseline = Baseline::closed();
    let policy = resolve(&baseline, &overrides()).expect("no conflict");
    assert_eq!(
        (&policy.allow_classes, &policy.deny_classes),
        (&baseline.allow_classes, &baseline.deny_classes)
    );
    assert_eq!(
        (policy.network, policy.file_read, policy.file_write),
        (NetworkMode::Blocked, false, false)
    );
    assert_eq!(
        (policy.statements_max, policy.timeout_ms),
        (500_000, 30_000)
    );
}

#[test]
fn explicit_false_clears_a_grant_and_null_keeps_it() {
    let baseline = Baseline {
        file_read: true,
        file_write: true,
        ..Baseline::closed()
    };
    let kept = resolve(&baseline, &overrides()).expect("no conflict");
    assert!(kept.file_read && kept.file_write);
    let cleared = Overrides {
        file_read: Some(false),
        file_write: Some(false),
        ..overrides()
    };
    let cleared = resolve(&baseline, &cleared).expect("no conflict");
    assert!(!cleared.file_read && !cleared.file_write);
}

#[test]
fn hosts_join_only_in_allowlist() {
    let host = HostPattern::parse("own.example").expect("host");
    let baseline = Baseline {
        hosts: vec![host],
        ..Baseline::closed()
    };
    for (mode, expected) in [
        (NetworkMode::Allowlist, &["api.example", "own.example"][..]),
        (NetworkMode::Strict, &[]),
        (NetworkMode::Open, &[]),
        (NetworkMode::Blocked, &[]),
    ] {
        let asked = Overrides {
            network_mode: Some(mode),
            hosts_allow: list(&["API.example."]),
            ..overrides()
        };
        let policy = resolve(&baseline, &asked).expect("no conflict");
        let hosts: Vec<_> = policy.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, expected, "{mode:?}");
    }
}

#[test]
fn a_class_on_both_lists_is_refused() {
    let asked = Overrides {
        add_allow_classes: list(&["java.lang.Runtime"]),
        ..overrides()
    };
    let conflict = resolve(&Baseline::closed(), &asked).expect_err("conflict");
    assert_eq!(
        conflict.to_string(),
        "sandbox policy conflict: `java.lang.Runtime` is both allowed and denied"
    );
    assert_eq!(conflict.reason(), Reason::PolicyOverlap);
    let both = Overrides {
        remove_deny_classes: list(&["java.lang.Runtime"]),
        ..asked
    };
    assert!(resolve(&Baseline::closed(), &both).is_ok());
    // Entries overlap by spelling only: the closed baseline itself allows
    // `java.lang.*` and denies `java.lang.System`.
    assert!(resolve(&Baseline::closed(), &overrides()).is_ok());
}

fn profiles(pairs: &[(&str, Option<&str>)]) -> Profiles {
    let profile = |extends: Option<&str>| Profile {
        extends: extends.map(str::to_owned),
        ..Profile::default()
    };
    pairs
        .iter()
        .map(|(name, extends)| ((*name).to_owned(), profile(*extends)))
        .collect()
}

#[test]
fn profiles_apply_root_first() {
    let mut profiles = profiles(&[("root", None), ("leaf", Some("root"))]);
    profiles.get_mut("root").expect("root").timeout_ms = Some(1_000);
    profiles.get_mut("root").expect("root").file_read = Some(true);
    profiles.get_mut("leaf").expect("leaf").timeout_ms = Some(2_000);
    let baseline =
        effective_baseline(&Baseline::closed(), &profiles, Some("leaf")).expect("a chain");
    assert_eq!((baseline.timeout_ms, baseline.file_read), (2_000, true));
}

#[test]
fn broken_chains_are_refused() {
    let refused = |profiles: &Profiles, name| {
        effective_baseline(&Baseline::closed(), profiles, Some(name)).expect_err(name)
    };
    let cycle = profiles(&[("a", Some("b")), ("b", Some("a"))]);
    assert_eq!(refused(&cycle, "a").reason(), Reason::PolicyProfileCycle);
    let unknown = profiles(&[("research", None)]);
    let conflict = refused(&unknown, "reserch");
    assert_eq!(conflict.reason(), Reason::PolicyProfileUnknown);
    assert_eq!(
        conflict.to_finding().fix.as_deref(),
        Some("did you mean `research`?")
    );
    let names: Vec<String> = (0..9).map(|index| format!("p{index}")).collect();
    let links: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), names.get(i + 1).map(String::as_str)))
        .collect();
    let long = profiles(&links);
    assert_eq!(refused(&long, "p0").reason(), Reason::PolicyProfileDepth);
    assert!(
        effective_baseline(&Baseline::closed(), &long, Some("p1")).is_ok(),
        "eight are allowed"
    );
}

#[test]
fn a_host_that_is_an_address_gets_a_suggestion() {
    let asked = Overrides {
        hosts_allow: list(&["ok.example", "https://api.example/v1"]),
        ..overrides()
    };
    let finding = resolve(&Baseline::closed(), &asked)
        .expect_err("conflict")
        .to_finding();
    assert_eq!(finding.pointer, "sandboxOverrides.hostsAllow[1]");
    assert_eq!(finding.fix.as_deref(), Some("write `api.example`"));
}
