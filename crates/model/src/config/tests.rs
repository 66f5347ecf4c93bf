//! The operator's file, by example.

use super::*;
use crate::document::NetworkMode;

#[track_caller]
fn refused(text: &str, expected: &[(usize, usize, &str, Option<&str>)]) {
    let faults = Config::parse(text).expect_err("refused");
    let seen: Vec<_> = faults
        .iter()
        .map(|fault| {
            (
                fault.line,
                fault.column,
                fault.message.as_str(),
                fault.fix.as_deref(),
            )
        })
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn an_empty_file_is_closed() {
    assert_eq!(Config::parse("").expect("empty"), Config::closed());
}

#[test]
fn a_whole_file_is_read() {
    let config = Config::parse(
        r#"
        profile = "research"
        [baseline]
        hosts = ["Status.Example"]
        timeout_ms = 5000
        deny_classes = ["java.lang.System"]
        [profiles.web]
        network = "strict"
        [profiles.research]
        extends = "web"
        file_read = true
        "#,
    )
    .expect("a config");
    let ground = config.ground().expect("a ground");
    assert_eq!(
        (ground.network, ground.file_read, ground.timeout_ms),
        (NetworkMode::Strict, true, 5000)
    );
    assert_eq!(
        ground
            .hosts
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["status.example"]
    );
    assert_eq!(ground.deny_classes.len(), 1);
}

#[test]
fn unknown_keys_name_the_nearest() {
    refused(
        "[baseline]\nnetwrok = \"strict\"\n",
        &[(
            2,
            1,
            "there is no setting `netwrok` here",
            Some("did you mean `network`?"),
        )],
    );
    refused(
        "basline = 1",
        &[(
            1,
            1,
            "there is no setting `basline` here",
            Some("did you mean `baseline`?"),
        )],
    );
}

#[test]
fn problems_of_meaning_come_together() {
    refused(
        "profile = \"x\"\n[baseline]\nextends = \"y\"\nnetwork = \"Strict\"\nhosts = [\"https://a.example/\"]\ntimeout_ms = 0\n",
        &[
            (
                3,
                11,
                "the baseline extends nothing",
                Some("remove the line"),
            ),
            (
                4,
                11,
                "`network` is `Strict`; it must be blocked, allowlist, strict or open",
                Some("write `strict`"),
            ),
            (
                5,
                10,
                "`https://a.example/` is an address; a host pattern has no scheme and no path",
                Some("write `a.example`"),
            ),
            (
                6,
                14,
                "`timeout_ms` is 0; it must be between 1 and 3600000",
                None,
            ),
            (1, 11, "there is no profile `x`", None),
        ],
    );
}

#[test]
fn broken_profiles_are_found_at_load() {
    refused(
        "[profiles.a]\nextends = \"b\"\n[profiles.b]\nextends = \"a\"\n[profiles.c]\nextends = \"d\"\n",
        &[
            (0, 0, "the profile `a` extends itself", None),
            (0, 0, "the profile `b` extends itself", None),
            (0, 0, "there is no profile `d`", None),
        ],
    );
}

#[test]
fn syntax_errors_have_a_place() {
    let faults = Config::parse("[baseline\nnetwork = 1").expect_err("syntax");
    assert_eq!(faults[0].line, 1);
    let faults = Config::parse("[baseline]\nfile_read = \"yes\"").expect_err("type");
    assert_eq!((faults[0].line, faults[0].column), (2, 13));
}

#[test]
fn exposure_access_audit_and_the_rest_are_read() {
    let config = Config::parse(
        r#"
        [exposure]
        preset = "none"
        auto = false
        include.names = ["uuid"]
        exclude.categories = ["FILE"]
        [access]
        deny = ["shell.*"]
        [callers.Researcher]
        allow = ["web.*"]
        [approvals]
        ask_from = "L4"
        [audit]
        durability = "full"
        arguments = "digest"
        keep_days = 30
        bytes_max = 1048576
        [sandbox]
        workers = 3
        sharing = "per-caller"
        [files]
        workspace = "/srv/tools"
        per_caller = true
        [network]
        ca_file = "ca.pem"
        "#,
    )
    .expect("a config");
    assert_eq!(config.exposure.preset, None);
    assert!(!config.exposure.auto);
    assert!(config.exposure.include.names.contains("uuid"));
    assert!(config.exposure.exclude.categories.contains("FILE"));
    assert_eq!(config.access.everyone.deny.len(), 1);
    assert!(config.access.callers.contains_key("researcher"));
    assert_eq!(config.rules.ask_from.badge(), "L4");
    assert_eq!(
        config.audit,
        AuditConfig {
            durability: AuditDurability::Full,
            arguments: AuditArguments::Digest,
            keep_days: Some(30),
            bytes_max: 1 << 20,
        }
    );
    assert_eq!(config.sandbox.workers, 3);
    assert_eq!(config.sandbox.sharing, WorkerSharing::PerCaller);
    assert_eq!(config.files.workspace, "/srv/tools");
    assert!(config.files.per_caller);
    assert_eq!(config.network.ca_file.as_deref(), Some("ca.pem"));
}

#[test]
fn words_patterns_and_numbers_are_checked_together() {
    refused(
        "[audit]\ndurability = \"ful\"\nbytes_max = 5\n[access]\ndeny = [\"\"]\n[approvals]\nask_from = \"L9\"\n",
        &[
            (5, 9, "a name pattern is empty", None),
            (
                7,
                12,
                "`ask_from` is `L9`; it must be L0, L1, L2, L3, L4 or L5",
                Some("write `L0`"),
            ),
            (
                2,
                14,
                "`durability` is `ful`; it must be standard or full",
                Some("write `full`"),
            ),
            (
                3,
                13,
                "`bytes_max` is 5; it must be between 1048576 and 17592186044416",
                None,
            ),
        ],
    );
}
