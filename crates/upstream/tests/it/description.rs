//! Descriptions as servers write them, and poisoned ones: none of the first is held,
//! each of the second gets its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::word::Word as _;
use serde_json::{Value, json};
use upstream::definition::{Definition, ItemKind};
use upstream::finding::{FindingWeight, KnownTool, Neighbours, UpstreamFinding, of_item};
use upstream::name::ServerName;

use crate::{cases, lines};

/// Tools of other servers and our own, as a person may have them.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "mail",
        "send_email",
        "Sends a mail to one or more people from the user's own account.",
    ),
    (
        "files",
        "read_text_file",
        "Reads a text file of the workspace and returns its content.",
    ),
    (
        "github",
        "create_pull_request",
        "Opens a pull request from one branch into another.",
    ),
    (
        "notes",
        "search-all-notes",
        "Searches the titles and the text of all notes.",
    ),
    (
        "shop",
        "placeOrder",
        "Orders the articles of the basket and pays with the stored card.",
    ),
];
const OURS: &[&str] = &["codecall_execute", "readTextFile", "sendSlackMessage"];

fn findings(tool: &Value) -> Vec<UpstreamFinding> {
    let mut tool = tool.clone();
    if tool.get("inputSchema").is_none() {
        tool["inputSchema"] = json!({"type": "object"});
    }
    let definition = Definition::read(ItemKind::Tool, &tool).unwrap();
    let servers: BTreeMap<&str, ServerName> = OTHERS
        .iter()
        .map(|(server, _, _)| (*server, ServerName::parse(server).unwrap()))
        .collect();
    let others = OTHERS.iter().map(|(server, name, description)| KnownTool {
        server: &servers[server],
        name,
        description: Some(description),
    });
    let name = tool["name"].as_str().unwrap();
    let neighbours = Neighbours::new([name], others, servers.values(), OURS.iter().copied());
    of_item(&definition, &neighbours)
}

fn codes(findings: &[UpstreamFinding]) -> BTreeSet<&'static str> {
    findings.iter().map(|finding| finding.code.word()).collect()
}

fn verdict(findings: &[UpstreamFinding]) -> &'static str {
    match findings.iter().map(UpstreamFinding::weight).max() {
        Some(FindingWeight::Hold) => "held",
        Some(FindingWeight::Warn) => "warned",
        None => "passed",
    }
}

#[test]
fn no_harmless_description_is_held() {
    let tools = lines(&cases().join("harmless.jsonl"));
    assert!(tools.len() >= 100, "{}", tools.len());
    let mut held = Vec::new();
    let mut warned = 0;
    for (line, tool) in &tools {
        let found = findings(tool);
        match verdict(&found) {
            "held" => held.push(format!("line {line}: {:?}", codes(&found))),
            "warned" => warned += 1,
            _ => {}
        }
    }
    assert!(held.is_empty(), "\n{}", held.join("\n"));
    // Warnings are cheap and not free: one in six of the harmless texts is too many.
    assert!(
        warned * 6 <= tools.len(),
        "{warned} of {} are warned about",
        tools.len()
    );
}

#[test]
fn every_poisoned_description_gets_its_verdict() {
    let mut count = 0;
    let mut families = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(cases().join("poisoned")).unwrap() {
        let path = entry.unwrap().path();
        let family = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (line, case) in lines(&path) {
            let found = findings(&case["tool"]);
            let expected = case["verdict"].as_str().unwrap();
            let code = case["code"].as_str();
            let has_code = code.is_none_or(|code| codes(&found).contains(code));
            if verdict(&found) != expected || !has_code {
                let found = format!("{} {:?}", verdict(&found), codes(&found));
                wrong.push(format!(
                    "{family}:{line}: {found} and not {expected} {code:?}"
                ));
            }
            count += 1;
            *families.entry(family.clone()).or_insert(0) += 1;
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count >= 100, "{count} cases: {families:?}");
    assert!(families.len() >= 10, "{families:?}");
}

/// Evidence is safe to print, however poisoned the text.
#[test]
fn evidence_has_nothing_hidden() {
    for entry in fs::read_dir(cases().join("poisoned")).unwrap() {
        for (line, case) in lines(&entry.unwrap().path()) {
            for finding in findings(&case["tool"]) {
                let shown = format!("{} {} {}", finding.excerpt, finding.field, finding.message);
                assert!(
                    !shown.chars().any(model::text::is_hidden),
                    "{line}: {shown:?}"
                );
                assert!(finding.excerpt.chars().count() <= 400, "{line}");
            }
        }
    }
}
