//! `ringfence man`: prints a manual page, or writes all of them to a folder.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use model::text::one_line;
use serde_json::json;

use crate::arguments::ManArguments;
use crate::arguments::manual;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer};

pub(crate) fn run(arguments: &ManArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    if let Some(folder) = &arguments.output {
        return write_all(folder, printer);
    }
    let page = manual::page(&arguments.command)?;
    let page = page.with_context(|| {
        let words = one_line(&arguments.command.join(" "));
        format!("there is no command `{words}`; `ringfence --help` lists them")
    })?;
    printer.text(&page);
    Ok(Exit::Done)
}

fn write_all(folder: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let pages = manual::pages()?;
    for (name, text) in &pages {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
    }
    let count = pages.len();
    match printer.format() {
        Format::Json => printer.json(&json!({ "folder": folder, "pages": count })),
        Format::Human => printer.line(&format!("wrote {count} pages to {}", folder.display())),
    }
    Ok(Exit::Done)
}
