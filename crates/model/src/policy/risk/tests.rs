//! The badge against a second, deliberately naive implementation, and the
//! properties the design promises.

use proptest::prelude::*;

use super::*;
use crate::policy::resolve;

fn badge(overrides: &Overrides) -> Level {
    let baseline = Baseline::closed();
    match resolve(&baseline, overrides) {
        Ok(policy) => rate(&baseline, overrides, &policy).level,
        // Such a document never runs; give it a level so that cases can say so.
        Err(_) => Level::L5,
    }
}

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[track_caller]
fn dropping(classes: &[&str], expected: Level) {
    let overrides = Overrides {
        remove_deny_classes: list(classes),
        ..Overrides::default()
    };
    assert_eq!(badge(&overrides), expected, "{classes:?}");
}

#[track_caller]
fn adding(class: &str, expected: Level) {
    let remove_deny_classes = list(&[class]);
    let without = Overrides {
        add_allow_classes: list(&[class]),
        ..Overrides::default()
    };
    let overrides = match resolve(&Baseline::closed(), &without) {
        Ok(_) => without,
        Err(_) => Overrides {
            remove_deny_classes,
            ..without
        },
    };
    assert_eq!(badge(&overrides), expected, "{class}");
}

#[track_caller]
fn network_is(mode: NetworkMode, hosts: &[&str], expected: Level) {
    let overrides = Overrides {
        network_mode: Some(mode),
        hosts_allow: list(hosts),
        ..Overrides::default()
    };
    assert_eq!(badge(&overrides), expected, "{mode:?} {hosts:?}");
}

#[test]
fn network_modes() {
    network_is(NetworkMode::Blocked, &[], Level::L0);
    network_is(NetworkMode::Allowlist, &["api.example"], Level::L3);
    network_is(NetworkMode::Allowlist, &["*"], Level::L4);
    network_is(NetworkMode::Allowlist, &["api.example", " * "], Level::L4);
    network_is(NetworkMode::Allowlist, &[], Level::L0);
    network_is(NetworkMode::Strict, &[], Level::L3);
    network_is(NetworkMode::Open, &[], Level::L4);
}

#[test]
fn files_and_destruction() {
    let files = |file_read, file_write| {
        badge(&Overrides {
            file_read,
            file_write,
            ..Overrides::default()
        })
    };
    assert_eq!(files(None, None), Level::L0);
    assert_eq!(files(Some(true), None), Level::L3);
    assert_eq!(files(None, Some(true)), Level::L4);
    assert_eq!(files(Some(true), Some(true)), Level::L4);
    assert_eq!(
        badge(&Overrides {
            destructive: Some(true),
            ..Overrides::default()
        }),
        Level::L5
    );
}

#[test]
fn dropped_denials() {
    dropping(&["java.lang.Thread"], Level::L3);
    dropping(&["java.lang.Thread", "java.lang.ThreadGroup"], Level::L3);
    dropping(
        &["java.lang.Thread", "java.lang.Thread", "java.lang.Thread"],
        Level::L3,
    );
    dropping(
        &[
            "java.lang.Thread",
            "java.lang.ThreadGroup",
            "java.util.spi.*",
        ],
        Level::L4,
    );
    dropping(&["java.lang.System"], Level::L5);
    dropping(&["java.lang.Runtime"], Level::L5);
    dropping(&["java.lang.Process"], Level::L5);
    dropping(&["java.lang.ProcessBuilder"], Level::L5);
    dropping(&["no.such.Entry"], Level::L0);
}

#[test]
fn added_permissions() {
    adding("com.example.Thing", Level::L3);
    adding("java.lang.*", Level::L0);
    adding("org.jsoup.*", Level::L4);
    adding("java.lang.reflect.Method", Level::L4);
    adding("java.lang.Class", Level::L4);
    adding("java.lang.ClassValue", Level::L3);
    adding("java.net.http.HttpClient", Level::L4);
    adding("java.io.File", Level::L4);
    adding("java.io.File*", Level::L4);
    adding("java.io.FileWriter", Level::L5);
    adding("java.io.FileWriter*", Level::L5);
    adding("java.nio.file.Files", Level::L4);
    adding("java.lang.System", Level::L5);
    adding("java.lang.ProcessHandle", Level::L5);
}

/// A pattern is at least as dangerous as what it covers.
#[test]
fn patterns_are_rated_by_what_they_cover() {
    adding("java.io.*", Level::L5);
    adding("java.*", Level::L5);
    adding("*", Level::L5);
    adding("java.net.*", Level::L4);
    adding("java.nio.file.*", Level::L4);
    adding("com.example.*", Level::L3);
}

#[test]
fn every_reason_is_told_worst_first() {
    let overrides = Overrides {
        network_mode: Some(NetworkMode::Allowlist),
        hosts_allow: list(&["a.example", "b.example"]),
        file_write: Some(true),
        fs_base_path: Some("notes".to_owned()),
        ..Overrides::default()
    };
    let baseline = Baseline::closed();
    let policy = resolve(&baseline, &overrides).expect("no conflict");
    let risk = rate(&baseline, &overrides, &policy);
    let words: Vec<_> = risk
        .signals
        .iter()
        .map(|signal| (signal.level.badge(), signal.words.as_str()))
        .collect();
    assert_eq!(
        words,
        [
            ("L4", "files: writes in `notes`"),
            ("L3", "network: 2 hosts listed (a.example, b.example)")
        ]
    );
}

#[test]
fn a_widened_baseline_shows_on_the_badge() {
    let baseline = Baseline {
        network: NetworkMode::Strict,
        ..Baseline::closed()
    };
    let overrides = Overrides::default();
    let policy = resolve(&baseline, &overrides).expect("no conflict");
    assert_eq!(rate(&baseline, &overrides, &policy).level, Level::L3);
}

const DENIED: [&str; 12] = [
    "java.lang.System",
    "java.lang.Runtime",
    "java.lang.ProcessBuilder",
    "java.lang.Process",
    "java.lang.Class",
    "java.lang.invoke.*",
    "java.lang.reflect.*",
    "java.lang.Thread",
    "java.lang.ThreadGroup",
    "java.lang.ClassLoader",
    "java.util.ServiceLoader",
    "java.util.spi.*",
];
const ALLOWED: [&str; 5] = [
    "java.lang.*",
    "java.math.*",
    "java.time.*",
    "java.util.*",
    "java.text.*",
];
/// Of [`CLASSES`], those that are critical or write files, by eye.
const FIVES: [&str; 8] = [
    "java.lang.System",
    "java.lang.Runtime",
    "java.lang.Process",
    "java.lang.ProcessBuilder",
    "java.*",
    "java.io.FileWriter",
    "java.io.FileOutputStream",
    "java.io.*",
];
/// Of [`CLASSES`], those that reflect, connect or read files, by eye.
const FOURS: [&str; 8] = [
    "java.lang.reflect.Method",
    "java.lang.Class",
    "java.lang.invoke.*",
    "java.lang.reflect.*",
    "java.net.URL",
    "org.jsoup.*",
    "java.io.File",
    "java.nio.file.Paths",
];

/// The algorithm of section 10.6 as a person would do it with a pencil: numbers
/// and tables, none of the production code.
fn by_hand(overrides: &Overrides) -> u8 {
    let star = overrides.hosts_allow.iter().any(|host| host == "*");
    let mut risk = match overrides.network_mode {
        Some(NetworkMode::Allowlist) if star => 4,
        Some(NetworkMode::Allowlist) if overrides.hosts_allow.is_empty() => 0,
        Some(NetworkMode::Allowlist | NetworkMode::Strict) => 3,
        Some(NetworkMode::Open) => 4,
        Some(NetworkMode::Blocked) | None => 0,
    };
    let mut raise = |level: u8| risk = risk.max(level);
    if overrides.file_write == Some(true) {
        raise(4);
    } else if overrides.file_read == Some(true) {
        raise(3);
    }
    if overrides.destructive == Some(true) {
        raise(5);
    }
    let mut removed = 0;
    for class in DENIED {
        if overrides
            .remove_deny_classes
            .iter()
            .any(|entry| entry == class)
        {
            removed += 1;
            if FIVES.contains(&class) {
                raise(5);
            }
        }
    }
    match removed {
        0 => {}
        1 | 2 => raise(3),
        _ => raise(4),
    }
    for class in overrides.add_allow_classes.iter().map(String::as_str) {
        if ALLOWED.contains(&class) {
            continue;
        }
        match class {
            five if FIVES.contains(&five) => raise(5),
            four if FOURS.contains(&four) => raise(4),
            _ => raise(3),
        }
    }
    risk
}

const CLASSES: &[&str] = &[
    "java.lang.System",
    "java.lang.Runtime",
    "java.lang.ProcessBuilder",
    "java.lang.Process",
    "java.lang.Class",
    "java.lang.invoke.*",
    "java.lang.reflect.*",
    "java.lang.Thread",
    "java.lang.ThreadGroup",
    "java.lang.ClassLoader",
    "java.util.ServiceLoader",
    "java.util.spi.*",
    "java.lang.*",
    "java.math.*",
    "java.util.*",
    "java.io.FileWriter",
    "java.io.FileOutputStream",
    "java.io.*",
    "java.*",
    "java.lang.reflect.Method",
    "java.net.URL",
    "org.jsoup.*",
    "java.io.File",
    "java.nio.file.Paths",
    "com.example.Thing",
    "com.example.*",
];

fn some_classes() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(CLASSES).prop_map(str::to_owned), 0..5)
}

prop_compose! {
    fn any_overrides()(
        add_allow_classes in some_classes(),
        remove_allow_classes in some_classes(),
        add_deny_classes in some_classes(),
        remove_deny_classes in some_classes(),
        network_mode in prop::option::of(prop::sample::select(
            &[NetworkMode::Blocked, NetworkMode::Allowlist, NetworkMode::Strict, NetworkMode::Open][..])),
        hosts_allow in prop::collection::vec(prop::sample::select(&["a.example", "*.b.example", "*"][..]).prop_map(str::to_owned), 0..3),
        file_read in any::<Option<bool>>(),
        file_write in any::<Option<bool>>(),
        destructive in prop::option::weighted(0.2, any::<bool>()),
    ) -> Overrides {
        Overrides { add_allow_classes, remove_allow_classes, add_deny_classes, remove_deny_classes,
            network_mode, hosts_allow, file_read, file_write, fs_base_path: None, destructive }
    }
}

/// How permissive a mode is, for the property below.
fn width(mode: Option<NetworkMode>) -> u8 {
    match mode {
        None | Some(NetworkMode::Blocked) => 0,
        Some(NetworkMode::Allowlist) => 1,
        Some(NetworkMode::Strict) => 2,
        Some(NetworkMode::Open) => 3,
    }
}

fn number(level: Level) -> u8 {
    match level {
        Level::L0 => 0,
        Level::L1 => 1,
        Level::L2 => 2,
        Level::L3 => 3,
        Level::L4 => 4,
        Level::L5 => 5,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn risk_agrees_with_a_naive_computation(overrides in any_overrides()) {
        let baseline = Baseline::closed();
        if let Ok(policy) = resolve(&baseline, &overrides) {
            let risk = rate(&baseline, &overrides, &policy);
            prop_assert_eq!(number(risk.level), by_hand(&overrides));
            prop_assert!(risk.level != Level::L1 && risk.level != Level::L2);
            let worst = risk.signals.iter().map(|signal| signal.level).max();
            prop_assert_eq!(worst.unwrap_or(Level::L0), risk.level);
            prop_assert_eq!(&rate(&baseline, &overrides, &policy), &risk);
        }
    }

    #[test]
    fn widening_never_lowers_the_badge(narrow in any_overrides(), more in any_overrides()) {
        let mut wide = narrow.clone();
        wide.add_allow_classes.extend(more.add_allow_classes);
        wide.remove_deny_classes.extend(more.remove_deny_classes);
        wide.file_read = Some(narrow.file_read == Some(true) || more.file_read == Some(true));
        wide.file_write = Some(narrow.file_write == Some(true) || more.file_write == Some(true));
        wide.destructive = Some(narrow.destructive == Some(true) || more.destructive == Some(true));
        // Within one mode more hosts are wider; `allowlist` with `*` is wider than
        // `strict` with its checks, so modes are only compared without hosts.
        if narrow.hosts_allow.is_empty() && width(more.network_mode) > width(narrow.network_mode) {
            wide.network_mode = more.network_mode;
        } else {
            wide.hosts_allow.extend(more.hosts_allow);
        }
        let baseline = Baseline::closed();
        if let (Ok(narrow_policy), Ok(wide_policy)) = (resolve(&baseline, &narrow), resolve(&baseline, &wide)) {
            let before = rate(&baseline, &narrow, &narrow_policy).level;
            let after = rate(&baseline, &wide, &wide_policy).level;
            prop_assert!(after >= before, "{:?} {:?}", narrow, wide);
        }
    }

    /// A pattern rates no lower than anything it covers.
    #[test]
    fn a_pattern_is_no_safer_than_its_members(class in "java\\.(io|net|nio|lang)\\.(File|FileWriter|URL|System|Class|Thing|channels\\.FileChannel)") {
        let package = format!("{}.*", class.rsplit_once('.').map_or("", |(package, _)| package));
        prop_assert!(Family::of(&package) <= Family::of(&class), "{} {}", package, class);
    }
}

#[test]
fn an_all_null_block_is_no_block() {
    let read = |block: &str| {
        let text = format!(r#"{{"name":"a","code":"1","codeType":"Javascript"{block}}}"#);
        let item = crate::document::parse(&text).items.pop().expect("one");
        item.document.expect("a document").sandbox_overrides
    };
    let absent = read("");
    let all_null = read(
        r#","sandboxOverrides":{"addAllowClasses":null,"removeAllowClasses":null,"addDenyClasses":null,
        "removeDenyClasses":null,"networkMode":null,"hostsAllow":null,"fileRead":null,"fileWrite":null,
        "fsBasePath":null,"destructive":null}"#,
    );
    assert_eq!(absent, all_null);
    assert_eq!(read(r#","sandboxOverrides":null"#), absent);
    assert_eq!(badge(&absent), Level::L0);
}
