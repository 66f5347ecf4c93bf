//! The guide's page about the catalog lists what is there.

use std::fs;

use crate::catalog::{compare, documents, presets, root};

const PAGE: &str = "docs/guide/catalog.md";
const BEGIN: &str = "<!-- written by the tests of `engine`: UPDATE_CASES=1 -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_page_lists_what_is_there() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("where the list begins");
    let (_, after) = rest.split_once(END).expect("where the list ends");
    compare(PAGE, &format!("{before}{BEGIN}{}{END}{after}", list()));
}

fn list() -> String {
    let mut all = documents();
    all.sort_by(|a, b| (&a.folder, &a.stem).cmp(&(&b.folder, &b.stem)));
    let mut text = format!("\n{} tools.\n\n## Presets\n\n", all.len());
    for (name, (description, tools)) in presets() {
        text.push_str(&format!("- `{name}` ({}): {description}\n", tools.len()));
    }
    text.push_str("\n## Tools\n\n| Tool | Category | Badge | Asks | Does | Needs |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for tool in &all {
        let description = &tool.usable.document.description;
        let first = description.split(". ").next().unwrap_or_default();
        let keys: Vec<_> = tool.keys().iter().map(|key| format!("`{key}`")).collect();
        let asks = if tool.asks() { "yes" } else { "" };
        text.push_str(&format!(
            "| `{}` | {} | {} | {asks} | {} | {} |\n",
            tool.stem,
            tool.folder,
            tool.badge(),
            first.trim_end_matches('.').replace('|', "\\|"),
            keys.join(", ")
        ));
    }
    text.push('\n');
    text
}
