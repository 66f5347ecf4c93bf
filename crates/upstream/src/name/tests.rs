//! Names fit every client and belong to one tool.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn server(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

#[track_caller]
fn check(name: &str, tool: &str, expected: &str) {
    assert_eq!(BridgedName::new(&server(name), tool).as_str(), expected);
}

#[test]
fn names_of_servers_are_small() {
    for name in ["github", "g", "my-files2", &"a".repeat(24)] {
        assert!(ServerName::parse(name).is_ok(), "{name}");
    }
    for name in [
        "",
        "2a",
        "-a",
        "A",
        "a_b",
        "a.b",
        "ä",
        "a b",
        &"a".repeat(25),
    ] {
        assert!(ServerName::parse(name).is_err(), "{name}");
    }
}

#[test]
fn a_bad_name_comes_with_a_good_one() {
    let near = |name: &str| ServerName::parse(name).unwrap_err().suggestion;
    assert_eq!(near("GitHub").as_deref(), Some("github"));
    assert_eq!(near("My Files (local)").as_deref(), Some("my-files-local"));
    assert_eq!(near("server_sqlite").as_deref(), Some("server-sqlite"));
    assert_eq!(near("fetch").as_deref(), Some("my-fetch"));
    assert_eq!(near("__"), None);
    let fault = ServerName::parse("fetch").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "`fetch` is reserved; choose another name for the server"
    );
}

#[test]
fn a_name_that_fits_stays() {
    check("github", "create_issue", "github__create_issue");
    check("github", "list_projects", "github__list_projects");
    check(
        "context7",
        "resolve-library-id",
        "context7__resolve-library-id",
    );
}

#[test]
fn a_name_that_does_not_fit_keeps_its_head() {
    check("a", "files.read", "a__files_read_MAPE5NQI");
    let long = BridgedName::new(&server("github"), &"x".repeat(100));
    assert_eq!(long.as_str().len(), 64);
    assert_eq!(long.tool_part().len(), 56);
}

/// Attack: a tool that is called like the shortened name of another.
#[test]
fn a_shortened_name_cannot_be_taken() {
    let taken = BridgedName::new(&server("a"), "files.read");
    let thief = BridgedName::new(&server("a"), taken.tool_part());
    assert_ne!(taken, thief);
}

#[test]
fn names_for_scripts_are_identifiers() {
    let tools = ["get-docs", "get_docs", "find-all", "2nd", "plain"];
    let table = NameTable::new(&server("my-docs"), tools);
    let expected = [
        ("find-all", "my_docs.find_all"),
        ("get_docs", "my_docs.get_docs"),
        ("plain", "my_docs.plain"),
    ];
    let expected = expected.map(|(tool, code)| (tool.to_owned(), code.to_owned()));
    assert_eq!(table.code_names, BTreeMap::from(expected));
}

#[test]
fn skeletons_compare_by_look() {
    let alike = |a: &str, b: &str| assert_eq!(skeleton(a), skeleton(b), "{a} {b}");
    alike("github", "gіthub");
    alike("github", "g1thub");
    alike("github", "git-hub");
    alike("github", "ＧitHub");
    alike("modern", "modem");
    alike("paypal", "раураӏ");
    alike("files", "fi\u{200b}les");
    alike("slack", "𝐬𝐥𝐚𝐜𝐤");
    assert_ne!(skeleton("github"), skeleton("gitlab"));
    assert_ne!(skeleton("files"), skeleton("fires"));
}

#[test]
fn mixed_scripts_are_seen() {
    for name in ["gіthub", "раypal", "𝐬end", "ｓend", "sеnd_mail", "ɡet"] {
        assert!(is_mixed_script(name), "{name}");
    }
    for name in [
        "github",
        "größe",
        "имя",
        "数据_get",
        "café_search",
        "αβγ",
        "get_データ",
    ] {
        assert!(!is_mixed_script(name), "{name}");
    }
}

proptest! {
    #[test]
    fn every_name_fits_every_client(tool in ".{0,130}", name in "[a-z][a-z0-9-]{0,23}") {
        prop_assume!(ServerName::parse(&name).is_ok());
        let bridged = BridgedName::new(&server(&name), &tool);
        prop_assert!(bridged.as_str().len() <= 64);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        prop_assert!(bridged.as_str().chars().all(fits));
        prop_assert_eq!(bridged.as_str().split("__").next(), Some(name.as_str()));
        prop_assert!(!bridged.tool_part().is_empty());
    }

    /// Names are drawn from few letters, so that heads and lengths meet.
    #[test]
    fn two_tools_have_two_names(
        a in "[aA_.é-]{0,70}", b in "[aA_.é-]{0,70}", one in "[a-b]-?[a-b]", other in "[a-b]-?[a-b]",
    ) {
        let (x, y) = (BridgedName::new(&server(&one), &a), BridgedName::new(&server(&other), &b));
        prop_assert_eq!(x == y, (&one, &a) == (&other, &b));
        // A tool named as the result of another is no second way to it.
        let again = BridgedName::new(&server(&one), x.tool_part());
        prop_assert_eq!(again == x, x.tool_part() == a);
    }

    #[test]
    fn a_table_has_every_tool_once(tools in proptest::collection::vec("[a-c_.-]{1,4}", 0..20)) {
        let table = NameTable::new(&server("a"), tools.iter().map(String::as_str));
        let mut backwards: Vec<_> = tools.iter().map(String::as_str).collect();
        backwards.reverse();
        prop_assert_eq!(&table, &NameTable::new(&server("a"), backwards));
        for tool in &tools {
            prop_assert!(table.names.contains_key(tool) != table.clashes.contains(tool));
        }
        let mut codes: Vec<_> = table.code_names.values().collect();
        let count = codes.len();
        codes.sort();
        codes.dedup();
        prop_assert_eq!(codes.len(), count);
    }
}
