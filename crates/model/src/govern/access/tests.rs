//! Lists and levels, by example.

use super::*;
use crate::document::parse;
use crate::policy::Classes;

fn lists(allow: Option<&[&str]>, deny: &[&str]) -> Lists {
    let parse = |words: &[&str]| {
        let parse = |word: &&str| NamePattern::parse(word).expect("a pattern");
        words.iter().map(parse).collect::<Vec<_>>()
    };
    Lists {
        allow: allow.map(parse),
        deny: parse(deny),
        hosts: None,
    }
}

fn tool(name: &str, category: Option<&str>) -> Document {
    let category = category.map(|category| format!(r#","category":"{category}""#));
    let category = category.unwrap_or_default();
    let text = format!(r#"{{"name":"{name}","code":"","codeType":"Javascript"{category}}}"#);
    parse(&text)
        .items
        .pop()
        .and_then(|item| item.document)
        .expect("a document")
}

#[track_caller]
fn check(everyone: &Lists, own: Option<&Lists>, expected: Result<&str, &str>) {
    let own = own.map(|lists| ("ann".to_owned(), lists.clone()));
    let access = Access {
        everyone: everyone.clone(),
        callers: own.into_iter().collect(),
        ..Access::default()
    };
    let answer = access.check(&Caller::named("Ann"), &tool("readFile", Some("FILE")));
    let answer = answer.as_deref().map_err(|denied| denied.note.as_str());
    assert_eq!(answer, expected);
}

#[test]
fn deny_wins_and_an_allow_list_is_closed() {
    let open = Lists::default();
    check(&open, None, Ok("no list names it"));
    check(
        &lists(None, &["*"]),
        Some(&lists(Some(&["*"]), &[])),
        Err("denied to everyone by `*`"),
    );
    check(
        &open,
        Some(&lists(Some(&["read*"]), &["*File"])),
        Err("denied to Ann by `*File`"),
    );
    check(
        &open,
        Some(&lists(Some(&["READ*"]), &[])),
        Ok("allowed to Ann by `READ*`"),
    );
    check(
        &lists(Some(&["web.*"]), &[]),
        None,
        Err("not among the tools allowed to everyone"),
    );
    // A caller's own list narrows what everybody has; it does not widen it.
    check(
        &lists(Some(&["web.*"]), &[]),
        Some(&lists(Some(&["read*"]), &[])),
        Err("not among the tools allowed to everyone"),
    );
    check(
        &open,
        Some(&lists(Some(&[]), &[])),
        Err("not among the tools allowed to Ann"),
    );
}

#[test]
fn categories_without_a_level_hold_too() {
    let terms = Terms {
        categories: Some(vec!["FILE".to_owned()]),
        ..Terms::default()
    };
    let access = Access {
        everyone_terms: terms,
        ..Access::default()
    };
    let check = |category| access.check(&Caller::owner(), &tool("a", category));
    assert!(check(Some("file")).is_ok());
    assert!(check(Some("WEB")).is_err());
    assert!(check(None).is_err());
}

mod narrowing {
    use proptest::prelude::*;

    use super::*;
    use crate::document::NetworkMode;
    use crate::govern::access::level::{FileScope, GitScope, NetworkScope, TerminalScope};
    use crate::network::host_pattern::HostPattern;
    use crate::policy::EffectivePolicy;
    use crate::policy::host_bound::HostBounds;

    fn policies() -> impl Strategy<Value = EffectivePolicy> {
        let hosts = ["*", "a.example", "*.b.example"];
        let hosts = prop::sample::subsequence(hosts.to_vec(), 0..=3);
        let mode = prop::sample::select(NetworkMode::ALL.to_vec());
        let folder = prop::sample::select(vec!["shared", "../out", "/srv", "a/../b", "C:\\x"]);
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (mode, hosts, flags, prop::option::of(folder)).prop_map(
            |(network, hosts, flags, folder)| {
                let listed = network == NetworkMode::Allowlist;
                let parse = |host: &str| HostPattern::parse(host).expect("a host");
                EffectivePolicy {
                    allow_classes: Classes::default(),
                    deny_classes: Classes::default(),
                    network,
                    hosts: hosts.into_iter().filter(|_| listed).map(parse).collect(),
                    bounds: HostBounds::default(),
                    file_read: flags.0,
                    file_write: flags.1,
                    fs_base_path: folder.map(str::to_owned),
                    destructive: flags.2,
                    statements_max: 1,
                    timeout_ms: 1,
                }
            },
        )
    }

    fn constraints() -> impl Strategy<Value = Constraints> {
        (
            prop::sample::select(FileScope::ALL.to_vec()),
            prop::sample::select(NetworkScope::ALL.to_vec()),
            prop::sample::select(GitScope::ALL.to_vec()),
            prop::sample::select(TerminalScope::ALL.to_vec()),
        )
            .prop_map(|(files, network, git, terminal)| Constraints {
                files,
                network,
                git,
                terminal,
                ..AccessLevel::Elevated.constraints()
            })
    }

    /// Whether everything one policy lets through, the other does too.
    fn within(one: &EffectivePolicy, two: &EffectivePolicy) -> bool {
        let hosts = || one.hosts.iter().all(|host| two.hosts.contains(host));
        let network = match (one.network, two.network) {
            (NetworkMode::Blocked, _) | (_, NetworkMode::Open) => true,
            (NetworkMode::Allowlist, NetworkMode::Allowlist) => hosts(),
            (NetworkMode::Allowlist, _) => one.hosts.is_empty(),
            (one, two) => one == two,
        };
        let files = one.file_read <= two.file_read && one.file_write <= two.file_write;
        let rest = |policy: &EffectivePolicy| {
            let EffectivePolicy {
                fs_base_path,
                destructive,
                statements_max,
                timeout_ms,
                ..
            } = policy;
            (
                fs_base_path.clone(),
                *destructive,
                *statements_max,
                *timeout_ms,
            )
        };
        network && files && rest(one) == rest(two)
    }

    proptest! {
        #[test]
        fn a_level_only_narrows(policy in policies(), constraints in constraints()) {
            let narrowed = constraints.narrow(&policy);
            prop_assert!(within(&narrowed, &policy), "{narrowed:?}");
            prop_assert_eq!(constraints.narrow(&narrowed), narrowed);
        }

        #[test]
        fn a_tighter_level_leaves_no_more(policy in policies(), one in constraints(), two in constraints()) {
            let both = one.at_most(&two).narrow(&policy);
            prop_assert!(within(&both, &one.narrow(&policy)));
            prop_assert!(within(&both, &two.narrow(&policy)));
        }

        #[test]
        fn each_level_is_within_the_next(policy in policies()) {
            for pair in AccessLevel::ALL[..4].windows(2) {
                prop_assert!(within(&narrow(&policy, pair[0]), &narrow(&policy, pair[1])));
            }
        }
    }

    /// What trust leaves is never more than what the operator gave.
    #[test]
    fn trust_never_exceeds_the_given_level() {
        let given = AccessLevel::ALL.iter().copied().map(Some).chain([None]);
        for (given, earned) in
            given.flat_map(|one| AccessLevel::ALL.iter().map(move |two| (one, *two)))
        {
            let terms = Terms {
                level: given,
                ..Terms::default()
            };
            let before = Access {
                terms: BTreeMap::from([("ann".to_owned(), terms)]),
                ..Access::default()
            };
            let earned = EarnedLevels {
                level: earned,
                categories: BTreeMap::new(),
            };
            let after = Access {
                earned: BTreeMap::from([("ann".to_owned(), earned.clone())]),
                ..before.clone()
            };
            let level = after.rights(&Caller::named("Ann"), Some("WEB")).level;
            match given {
                None => assert_eq!(level, Some(earned.level)),
                Some(_) => assert!(level <= given),
            }
            for category in ["TEXT", "WEB", "TERMINAL", "DEPLOYMENT"] {
                let doc = tool("a", Some(category));
                let may = |access: &Access| access.check(&Caller::named("ann"), &doc).is_ok();
                assert!(!may(&after) || may(&before));
            }
        }
    }

    #[test]
    fn trust_in_one_category_is_not_trust_in_another() {
        let terms = Terms {
            level: Some(AccessLevel::Elevated),
            ..Terms::default()
        };
        let earned = EarnedLevels {
            level: AccessLevel::Sandboxed,
            categories: BTreeMap::from([("FILE".to_owned(), AccessLevel::Standard)]),
        };
        let access = Access {
            terms: BTreeMap::from([("ann".to_owned(), terms)]),
            earned: BTreeMap::from([("ann".to_owned(), earned)]),
            ..Access::default()
        };
        let level = |category| access.rights(&Caller::named("ann"), Some(category)).level;
        assert_eq!(level("file"), Some(AccessLevel::Standard));
        assert_eq!(level("DEPLOYMENT"), Some(AccessLevel::Sandboxed));
    }
}

/// What is given to one subject of an issuer is not given to one whose name only looks
/// the same when it is folded: lists, levels, groups and the scope of trust.
#[test]
fn rights_of_subjects_are_case_sensitive() {
    let text = "[callers.\"oauth:kim\"]\nlevel = \"elevated\"\ndeny = [\"x*\"]\n\
                [groups.crew]\nmembers = [\"oauth:kim\", \"Ann\"]\n";
    let access = crate::config::Config::parse(text).expect("a config").access;
    let rights = |name: &str| access.rights(&Caller::named(name), None);
    assert_eq!(rights("oauth:kim").level, Some(AccessLevel::Elevated));
    assert_eq!(rights("oauth:kim").groups, ["crew"]);
    for other in ["oauth:KIM", "oauth:Kim", "oauth:\u{212a}im", "kim"] {
        let rights = rights(other);
        assert_eq!((rights.level, rights.groups.len()), (None, 0), "{other}");
        assert_eq!(access.layers(&Caller::named(other)).len(), 1, "{other}");
    }
    // Our own names are the same in either case.
    assert_eq!(rights("aNN").groups, ["crew"]);
}
