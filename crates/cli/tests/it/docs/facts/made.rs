//! Tables that are made from the code, whole.

use model::config::ScriptPreset;
use model::govern::access::AccessLevel;
use model::govern::approval::{ApprovalScope, scopes};
use model::govern::trust::{Criteria, Step, TrustConfig};
use model::policy::risk::Level;
use model::word::Word as _;
use upstream::finding::FindingCode;

use super::{bytes, count, length};
use crate::docs::source;

/// The table of a name, if it is made.
pub(crate) fn made(name: &str) -> Option<String> {
    match name {
        "levels" => Some(levels()),
        "milestones" => Some(milestones()),
        "categories" => Some(categories()),
        "scopes" => Some(approval_scopes()),
        "script-limits" => Some(script_limits()),
        "server-findings" => Some(server_findings()),
        _ => limits(name.strip_prefix("limits ")?),
    }
}

/// The bounds of one crate, or of a part of it.
fn limits(whose: &str) -> Option<String> {
    let all = match whose {
        "model" => model::limits::ALL,
        "find" => find::limit::ALL,
        "engine" => engine::limit::ALL,
        "sandbox" => sandbox::limit::ALL,
        "jail" => jail::limit::ALL,
        "bridge" => bridge::limit::ALL,
        "fetch" => host::fetch::limits::ALL,
        "sql" => host::sql::limit::ALL,
        "page" => host::page::ALL,
        "egress" => host::egress::limits::ALL,
        "studio" => studio::limit::ALL,
        "client" => host::client::limits::ALL,
        "files" => host::files::limit::ALL,
        "store" => store::limit::ALL,
        "upstream" => upstream::limit::ALL,
        "mcp" => mcp::limit::ALL,
        "auth" => mcp::auth::limit::ALL,
        _ => return None,
    };
    let mut table = String::from("| Name | Value | Bounds |\n| --- | --- | --- |\n");
    for limit in all {
        let what = limit.what.trim().trim_end_matches('.');
        let what = what.replace("[`", "`").replace("`]", "`");
        table.push_str(&format!(
            "| `{}` | {} | {what} |\n",
            limit.name, limit.value
        ));
    }
    Some(table)
}

fn server_findings() -> String {
    let mut table = String::from("| Code | Effect | Means |\n| --- | --- | --- |\n");
    for code in FindingCode::ALL {
        let (word, effect, meaning) = (code.word(), code.weight().word(), code.meaning());
        table.push_str(&format!("| `{word}` | {effect} | {meaning} |\n"));
    }
    table
}

fn approval_scopes() -> String {
    let mut table =
        String::from("| Scope | Valid for | At most | Risk level |\n| --- | --- | --- | --- |\n");
    for scope in ApprovalScope::ALL {
        let valid = match scope {
            ApprovalScope::Once => "this call, or the next one with the same arguments",
            ApprovalScope::SameArguments => "the same tool and arguments",
            ApprovalScope::Session => "the same tool in the same session, until the session ends",
            ApprovalScope::UntilChanged => "the same tool",
        };
        let highest = Level::ALL
            .into_iter()
            .rfind(|level| scopes(*level).contains(scope));
        let risk = match highest.expect("a risk") {
            Level::L5 => "any".to_owned(),
            level => format!("up to {}", level.badge()),
        };
        let (word, lasts) = (scope.word(), length(*scope));
        table.push_str(&format!("| `{word}` | {valid} | {lasts} | {risk} |\n"));
    }
    table
}

/// The limits of a script under each preset, as the table in the engine has them.
fn script_limits() -> String {
    let text = source::of("engine");
    let presets: Vec<_> = ScriptPreset::ALL
        .iter()
        .map(|preset| {
            let open = format!("ScriptPreset::{preset:?} => ScriptLimits {{");
            source::between(&text, &open, "},").to_owned()
        })
        .collect();
    let number = |preset: &str, name: &str| -> u64 {
        let written = source::between(preset, &format!(" {name}: "), ",");
        source::value(written)
    };
    let seconds = |ms: u64| format!("{} s", ms as f64 / 1000.0);
    let mut table = String::from("| |");
    for preset in ScriptPreset::ALL {
        table.push_str(&format!(" `{}` |", preset.word()));
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(presets.len()));
    table.push('\n');
    let mut row = |head: &str, cell: &dyn Fn(&str) -> String| {
        let cells: Vec<_> = presets.iter().map(|preset| cell(preset)).collect();
        table.push_str(&format!("| {head} | {} |\n", cells.join(" | ")));
    };
    row("time of the script", &|it| {
        seconds(number(it, "script_ms_max"))
    });
    row("time of its tools", &|it| {
        seconds(number(it, "tools_ms_max"))
    });
    row("loop iterations, all loops", &|it| {
        count(number(it, "iterations_max"))
    });
    row("tool calls", &|it| count(number(it, "tool_calls_max")));
    row("log: bytes, lines", &|it| {
        let lines = count(number(it, "console_lines_max"));
        format!("{}, {lines}", bytes(number(it, "console_bytes_max")))
    });
    row("result: depth, properties", &|it| {
        let properties = count(number(it, "properties_max"));
        format!("{}, {properties}", number(it, "depth_max"))
    });
    row("memory", &|it| bytes(number(it, "memory_bytes_max")));
    table
}

fn levels() -> String {
    let mut table = String::from(
        "| Level | Categories | `files` | `network` | `git` | `terminal` | `requires_approval` |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut before: Vec<&str> = Vec::new();
    for level in AccessLevel::ALL {
        let constraints = level.constraints();
        let categories = match level.categories() {
            None => "all, and tools of none".to_owned(),
            Some([]) => "none".to_owned(),
            Some(all) => {
                let more: Vec<_> = all.iter().filter(|it| !before.contains(it)).collect();
                let names: Vec<_> = more
                    .iter()
                    .map(|it| format!("`{}`", it.to_lowercase()))
                    .collect();
                let and = if before.is_empty() { "" } else { "and " };
                before = all.to_vec();
                format!("{and}{}", names.join(", "))
            }
        };
        let asked = match level {
            AccessLevel::Restricted => "`deployment`, `database_write`",
            _ => "",
        };
        assert_eq!(asked.is_empty(), constraints.requires_approval.is_empty());
        let cells = [
            format!("`{}`", level.word()),
            categories,
            format!("`{}`", constraints.files.word()),
            format!("`{}`", constraints.network.word()),
            format!("`{}`", constraints.git.word()),
            format!("`{}`", constraints.terminal.word()),
            asked.to_owned(),
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}

fn milestones() -> String {
    let mut table = String::from(
        "| Step | `tasks_completed` | `quality_score_min` | `time_active_days` | `clean_history_days` | `requires_human_approval` |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let trust = TrustConfig::standard();
    let row = |table: &mut String, what: &str, step: Step, criteria: &Criteria| {
        let Criteria {
            tasks,
            quality_min,
            active_days,
            clean_days,
            person,
        } = criteria;
        let quality = f64::from(*quality_min) / 100.0;
        let step = step.word();
        table.push_str(&format!(
            "| `{step}`{what} | {tasks} | {quality} | {active_days} | {clean_days} | {person} |\n"
        ));
    };
    for (step, criteria) in &trust.milestones {
        row(&mut table, "", *step, criteria);
    }
    for (category, steps) in &trust.category_milestones {
        let what = format!(", `{}`", category.to_lowercase());
        for (step, criteria) in steps {
            row(&mut table, &what, *step, criteria);
        }
    }
    table
}

/// Which bundled tools have which category: the names that lists of categories take.
fn categories() -> String {
    let mut table = String::from("| Category | Bundled tools |\n| --- | --- |\n");
    let folder = crate::root().join("catalog");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    names.sort();
    for path in names {
        let category = path.file_name().unwrap().to_string_lossy().into_owned();
        let known =
            model::govern::access::level::CATEGORIES.contains(&category.to_uppercase().as_str());
        assert!(
            known,
            "{category} means nothing to levels, actions or trust"
        );
        let count = std::fs::read_dir(&path).unwrap().count();
        table.push_str(&format!("| `{category}` | {count} |\n"));
    }
    table
}

#[test]
fn every_bound_of_a_table_is_on_the_page() {
    let page = std::fs::read_to_string(crate::root().join("docs/reference/limits.md")).unwrap();
    let line = regex::Regex::new(r"^    ([A-Z][A-Z0-9_]+): [iu](?:8|16|32|64|size) = ").unwrap();
    let crates = std::fs::read_dir(crate::root().join("crates")).unwrap();
    let mut names = Vec::new();
    for name in crates.map(|entry| entry.unwrap().file_name()) {
        let text = source::of(&name.to_string_lossy());
        for table in text.split("\nmodel::limits! {").skip(1) {
            let lines = table.lines().take_while(|line| *line != "}");
            names.extend(lines.filter_map(|it| Some(line.captures(it)?[1].to_owned())));
        }
    }
    assert!(names.len() > 300, "{}", names.len());
    names.retain(|name| !page.contains(&format!("| `{name}` |")));
    assert_eq!(names, [""; 0]);
}
