//! The operator's file, by example.

use super::*;
use crate::document::NetworkMode;
use crate::policy::risk::Level;

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

/// A public key, the example of the format.
const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

#[test]
fn a_witness_has_an_address_and_keys_are_keys() {
    for (text, line) in [
        ("[audit]\nwitness = \"ftp://example.com\"", 2),
        ("[audit]\nwitness = \"nowhere\"", 2),
        ("[audit]\nwitness_of = [\n\"x\"]", 3),
        (
            "[audit]\nwitness_key = \"PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\"",
            2,
        ),
        ("[audit.peers.a]\nurl = \"https://a.example\"", 1),
        ("[audit.peers.a]\nkey = \"x\"", 2),
        ("[audit.ship]\nsync = true", 1),
        ("[audit.ship]\nurl = \"https://a.example\"", 2),
        ("[audit.ship]\nurl = \"postgres://a:b@c.example/d\"", 2),
        ("[audit]\nanchor_seconds = 0", 2),
    ] {
        let faults = Config::parse(text).expect_err("refused");
        assert_eq!(faults.first().map(|fault| fault.line), Some(line), "{text}");
    }
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
    let baseline = config.effective_baseline().expect("a baseline");
    assert_eq!(
        (baseline.network, baseline.file_read, baseline.timeout_ms),
        (NetworkMode::Strict, true, 5000)
    );
    assert_eq!(
        baseline
            .hosts
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["status.example"]
    );
    assert_eq!(baseline.deny_classes.len(), 1);
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
    // Nothing is near, so all of them are named.
    refused(
        "[progressive]\nsize = 1\n",
        &[(
            2,
            1,
            "there is no setting `size` here",
            Some("known here: enabled"),
        )],
    );
}

/// Attack on oneself: the second section would silently take the place of the first, and
/// with it of what the first denies.
#[test]
fn a_caller_or_group_in_two_spellings_is_refused() {
    refused(
        "[callers.Kim]\ndeny = [\"a\"]\n[callers.kim]\n",
        &[(
            3,
            10,
            "`[callers.kim]` is there twice, in upper and lower case",
            Some("put both into one section"),
        )],
    );
    refused(
        "[groups.Devs]\nmembers = [\"a\"]\n[groups.devs]\nmembers = [\"b\"]\n",
        &[(
            3,
            9,
            "`[groups.devs]` is there twice, in upper and lower case",
            Some("put both into one section"),
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
        when_full = "remove-oldest"
        heads_file = "/srv/heads"
        witness = "https://witness.example.com/ringfence/"
        witness_of = ["PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
        [sandbox]
        workers = 3
        sharing = "per-caller"
        [sandbox.jail]
        accept = "landlock"
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
            arguments: ArgumentRetention::Digest,
            keep_days: Some(30),
            bytes_max: 1 << 20,
            when_full: WhenFull::RemoveOldest,
            heads_file: Some("/srv/heads".to_owned()),
            witness: Some("https://witness.example.com/ringfence".to_owned()),
            witness_of: vec![KEY.parse().expect("a key")],
            ..Config::closed().audit
        }
    );
    assert_eq!(config.sandbox.workers, 3);
    assert_eq!(config.sandbox.sharing, WorkerSharing::PerCaller);
    assert_eq!(config.sandbox.jail.require, JailStrength::Landlock);
    assert_eq!(config.sandbox.jail.accept, JailStrength::Landlock);
    assert_eq!(config.files.workspace, "/srv/tools");
    assert!(config.files.per_caller);
    assert_eq!(config.network.ca_file.as_deref(), Some("ca.pem"));
}

#[test]
fn a_jail_that_is_accepted_may_start() {
    refused(
        "[sandbox.jail]\nrequire = \"namespaces\"\naccept = \"landlock\"\n",
        &[(
            3,
            10,
            "`accept` is `landlock`, and `require` lets no such jail start",
            Some("remove one of the two lines"),
        )],
    );
    refused(
        "[sandbox.jail]\nrequire = \"none\"\n",
        &[(
            2,
            11,
            "`require` is `none`; it must be landlock or namespaces",
            None,
        )],
    );
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

/// Reads a section that the whole file does not take yet.
fn section<T: serde::de::DeserializeOwned, R>(
    text: &str,
    read: impl FnOnce(&mut Faults<'_>, T) -> R,
) -> (R, Vec<String>) {
    let mut faults = Faults {
        text,
        faults: Vec::new(),
    };
    let read = read(&mut faults, toml::from_str(text).expect("TOML"));
    let said = faults.faults.iter().map(|fault| fault.message.clone());
    (read, said.collect())
}

#[test]
fn the_tables_of_trust_are_read() {
    let text = r#"
        strategy = "weighted"
        initial_level = "restricted"
        initial_levels.web = "standard"
        thresholds.restricted_to_standard = 0.65
        [weights]
        task_difficulty = 0.4
        completion_rate = 0.2
        error_rate = 0.2
        human_feedback = 0.2
        [milestones.sandboxed_to_restricted]
        tasks_completed = 7
        quality_score_min = 7.5
        [categories.deployment.sandboxed_to_restricted]
        tasks_completed = 30
        [re_verification]
        decay_on_error_rate = 0.1
        interval_days = 30
    "#;
    let (trust, said) = section(text, |faults, file| faults.trust(file, &[]));
    assert_eq!(said, [""; 0]);
    assert_eq!(trust.strategy, crate::govern::trust::Strategy::Weighted);
    assert_eq!(
        trust.initial_levels["WEB"],
        crate::govern::access::AccessLevel::Standard
    );
    let first = crate::govern::trust::Step::SandboxedToRestricted;
    let criteria = trust.milestones[&first];
    assert_eq!((criteria.tasks, criteria.quality_min), (7, 750));
    let deployment = trust.category_milestones["DEPLOYMENT"][&first];
    assert_eq!(
        (deployment.tasks, deployment.quality_min, deployment.person),
        (30, 850, true)
    );
    assert_eq!(
        (trust.weights.difficulty, trust.decay.error_rate_max),
        (4_000, 1_000)
    );
    assert_eq!(
        trust.thresholds[&crate::govern::trust::Step::RestrictedToStandard],
        6_500
    );
}

#[test]
fn trust_that_makes_no_sense_is_refused() {
    let text = r#"
        strategy = "wieghted"
        thresholds.standard_to_elevatd = 0.8
        thresholds.standard_to_elevated = 1.5
        [weights]
        task_difficulty = 0.4
        completion_rate = 0.4
        error_rate = 0.4
        human_feedback = 0.4
        [milestones.standard_to_elevated]
        requires_human_approval = false
    "#;
    let (_, said) = section(text, |faults, file| faults.trust(file, &[]));
    assert_eq!(
        said,
        [
            "`strategy` is `wieghted`; it must be disabled, weighted, per_category or milestone",
            "the weights do not add up to 1",
            "`standard_to_elevatd` is not a step; it must be sandboxed_to_restricted, restricted_to_standard or standard_to_elevated",
            "1.5 is not between 0 and 1",
            "the step to `elevated` always needs a person",
        ]
    );
}

#[test]
fn limits_trust_and_calls_are_read() {
    let text = "[[limit]]\nid = 'a'\nconcurrent = 1\n[trust]\nstrategy = 'weighted'\n\
                [calls]\nconcurrent = true\n";
    let config = Config::parse(text).expect("a file");
    assert_eq!(config.limits[0].concurrent, Some(1));
    assert_eq!(config.trust.strategy.word(), "weighted");
    assert!(config.calls.concurrent && !Config::closed().calls.concurrent);
}

#[test]
fn rules_of_another_file_know_this_one() {
    let text = "[groups.Devs]\nmembers = ['ann']\n[actions]\n'pay:refund' = 'high'\n\
                [[rule]]\nid = 'a'\neffect = 'ask'\n";
    let mut config = Config::parse(text).expect("a config");
    let more = "[[rule]]\nid = 'b'\ncallers = ['@devs']\nactions = ['pay']\neffect = 'deny'\n";
    let rules = config.parse_rules(more).expect("rules");
    config.add_rules(rules).expect("new ones");
    assert_eq!(config.rules.list.len(), 2);
    let again = "\n[[rule]]\nid = 'a'\neffect = 'ask'\n";
    let faults = config.parse_rules(again).expect_err("twice");
    let [fault] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!((fault.line, fault.column), (2, 1));
    assert_eq!(fault.message, "there are two rules `a`");
    let twice = Config::closed().parse_rules(again).expect("rules");
    let fault = config.add_rules(twice).expect_err("twice");
    assert_eq!(fault.message, "there are two rules `a`");
    assert_eq!(config.rules.list.len(), 2);
    let said = |text: &str| {
        let faults = config.parse_rules(text).expect_err("refused");
        (faults[0].line, faults[0].message.clone())
    };
    assert_eq!(
        said("[[rule]]\nid = 'c'\ncallers = ['@ops']\neffect = 'deny'").0,
        3
    );
    // Nothing but rules stands in such a file.
    assert_eq!(
        said("[access]\ndeny = []"),
        (1, "there is no setting `access` here".to_owned())
    );
    assert!(said(&" ".repeat(2 << 20)).1.contains("longer than"));
}

#[test]
fn a_candidate_is_rules_alone_or_all_settings() {
    let text = "[groups.devs]\nmembers = ['ann']\n[[rule]]\nid = 'a'\neffect = 'ask'\n";
    let config = Config::parse(text).expect("a config");
    let ids = |config: &Config| -> Vec<String> {
        let rules = config.rules.list.iter();
        rules.map(|rule| rule.id.clone()).collect()
    };
    // The same id is another rule: it stands in the place of all.
    let rules = "[[rule]]\nid = 'a'\ncallers = ['@devs']\neffect = 'deny'\n";
    let candidate = config.candidate(rules).expect("rules");
    assert_eq!(ids(&candidate), ["a"]);
    assert_eq!(candidate.access, config.access);
    assert_eq!(ids(&config.candidate("").expect("no rules")), [""; 0]);
    let whole = config.candidate("[access]\ndeny = ['x']\n").expect("all");
    assert_eq!(ids(&whole), [""; 0]);
    assert!(whole.access.groups.is_empty());
    assert!(config.candidate("x = 1").is_err());
    assert!(config.candidate("[[rule]").is_err());
}

#[test]
fn a_candidate_is_not_what_is_in_force() {
    for file in ["", "ringfence.toml", "rules/a.toml", "./rules/a.toml"] {
        let text = format!("[rules]\nshadow = '{file}'\n");
        let faults = Config::parse(&text).expect_err("refused");
        assert_eq!((faults[0].line, faults[0].column), (2, 10), "{file}");
    }
    let config = Config::parse("[rules]\nshadow = 'next.toml'\n").expect("a config");
    assert_eq!(config.shadow.as_deref(), Some("next.toml"));
}

#[test]
fn code_mode_has_words_for_mode_and_preset() {
    let config = Config::parse("[codecall]\nmode = \"off\"\npreset = \"balanced\"\n");
    let codecall = config.expect("a config").codecall;
    assert_eq!(codecall.mode, CodecallMode::Off);
    assert_eq!(codecall.preset, ScriptPreset::Balanced);
    refused(
        "[codecall]\npreset = \"locked\"\n",
        &[(
            2,
            10,
            "`preset` is `locked`; it must be locked_down, secure, balanced or experimental",
            None,
        )],
    );
}

#[test]
fn code_mode_is_set_by_name() {
    let text =
        "[codecall]\nmode = \"codecall_only\"\ntop_k = 5\ninvoke = [\"get*\"]\nblocked = []\n";
    let codecall = Config::parse(text).expect("good").codecall;
    assert_eq!(codecall.mode, CodecallMode::CodecallOnly);
    assert_eq!((codecall.top_k, codecall.invoke.len()), (5, 1));
    assert!(codecall.blocked.is_empty());
    assert_eq!(CodecallConfig::standard().blocked.len(), 3);
    refused(
        "[codecall]\nmode = \"codecall_onyl\"\ntop_k = 51\ninvoke = [\" \"]\n",
        &[
            (
                2,
                8,
                "`mode` is `codecall_onyl`; it must be off, codecall_only, codecall_opt_in or metadata_driven",
                Some("write `codecall_only`"),
            ),
            (3, 9, "`top_k` is 51; it must be between 1 and 50", None),
            (4, 11, "a name pattern is empty", None),
        ],
    );
    refused(
        "[codecall]\ntopk = 5\n",
        &[(
            2,
            1,
            "there is no setting `topk` here",
            Some("did you mean `top_k`?"),
        )],
    );
}

#[test]
fn progressive_listing_is_switched_on_by_name() {
    assert!(!Config::closed().progressive.enabled);
    let config = Config::parse("[progressive]\nenabled = true\n").expect("good");
    assert!(config.progressive.enabled);
    refused(
        "[progressive]\nenable = true\n",
        &[(
            2,
            1,
            "there is no setting `enable` here",
            Some("did you mean `enabled`?"),
        )],
    );
    assert!(config.outdated.is_empty());
    // The name before counts for one version, is said, and never stands beside the new one.
    let config = Config::parse("[disclosure]\nenabled = true\n").expect("good");
    assert!(config.progressive.enabled);
    let [said] = config.outdated.as_slice() else {
        panic!("{:?}", config.outdated);
    };
    assert!(said.contains("`[progressive]`"), "{said}");
    let both = "[progressive]\nenabled = true\n[disclosure]\nenabled = true\n";
    assert_eq!(Config::parse(both).expect_err("refused").len(), 1);
    let faults = Config::parse("[progressive]\nenabled = \"yes\"\n").expect_err("refused");
    assert_eq!((faults.len(), faults[0].line, faults[0].column), (1, 2, 11));
}

/// Whose client may answer is said for one caller at a time, by a name that an issuer
/// cannot give to another subject.
#[test]
fn answers_are_for_one_caller() {
    let text = "[callers.Cursor]\nanswers = \"L4\"\n[callers.\"oauth:Kim\"]\nanswers = \"L3\"\n";
    let config = Config::parse(text).expect("a config");
    let said: Vec<_> = config.approvals.answers.iter().collect();
    assert_eq!(
        said,
        [
            (&"cursor".to_owned(), &Level::L4),
            (&"oauth:Kim".to_owned(), &Level::L3),
        ]
    );
    assert_eq!(Config::closed().approvals.answers.len(), 0);
    let fix = Some("write it in a `[callers.NAME]`");
    let message = "only one caller's client can be let answer, not several";
    refused("[access]\nanswers = \"L4\"\n", &[(2, 11, message, fix)]);
    refused(
        "[groups.all]\nmembers = [\"*\"]\nanswers = \"L4\"\n",
        &[(3, 11, message, fix)],
    );
    refused(
        "[callers.ann]\nanswers = \"L6\"\n",
        &[(
            2,
            11,
            "`answers` is `L6`; it must be L0, L1, L2, L3, L4 or L5",
            Some("write `L0`"),
        )],
    );
}
