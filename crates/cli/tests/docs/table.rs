//! Tables that say what the code says.

use model::access::AccessLevel;
use model::document::Word as _;
use model::trust::{Criteria, Step, TrustConfig};

const OPEN: &str = "<!-- table: ";

/// The text with every table it marks written from the code, and how many there are.
pub(crate) fn held(text: &str) -> Result<(String, usize), String> {
    let mut held = String::new();
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        held.push_str(line);
        held.push('\n');
        let name = line.trim().strip_prefix(OPEN);
        let Some(name) = name.and_then(|name| name.strip_suffix("-->")) else {
            continue;
        };
        while lines
            .next_if(|line| line.is_empty() || line.starts_with('|'))
            .is_some()
        {}
        count += 1;
        held.push('\n');
        held.push_str(&made(name.trim())?);
        held.push('\n');
    }
    Ok((held, count))
}

fn made(name: &str) -> Result<String, String> {
    match name {
        "levels" => Ok(levels()),
        "milestones" => Ok(milestones()),
        "categories" => Ok(categories()),
        other => Err(format!("there is no table `{other}`")),
    }
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
    let folder = super::root().join("catalog");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    names.sort();
    for path in names {
        let category = path.file_name().unwrap().to_string_lossy().into_owned();
        let known = model::access::level::CATEGORIES.contains(&category.to_uppercase().as_str());
        assert!(
            known,
            "{category} means nothing to levels, actions or trust"
        );
        let count = std::fs::read_dir(&path).unwrap().count();
        table.push_str(&format!("| `{category}` | {count} |\n"));
    }
    table
}
