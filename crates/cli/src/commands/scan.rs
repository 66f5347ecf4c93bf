//! `ringfence scan`: looks for risks in how the MCP servers of clients are started. It
//! only reads files; no server is started and no secret is shown.

use anyhow::Context as _;
use model::text::{count, elided, one_line};
use serde_json::{Value, json};

use super::wrap::target::{ClientFile, ClientText};
use crate::arguments::ScanArguments;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use engine::server_launch::{finding_line, finding_value};

pub(crate) fn run(arguments: &ScanArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let files = match &arguments.target {
        Some(word) => vec![ClientFile::find(word)?],
        None => ClientFile::known(),
    };
    let mut exit = Exit::Done;
    let mut values = Vec::new();
    let (mut servers, mut found) = (0, 0);
    for file in &files {
        let shown = file.path.display().to_string();
        let read = match file.read() {
            Ok(Some(read)) => read,
            Ok(None) if arguments.target.is_none() => continue,
            Ok(None) => anyhow::bail!("there is no `{shown}`"),
            // Others are still looked at: one broken file must not hide them.
            Err(fault) if arguments.target.is_none() => {
                printer.error(&fault);
                exit = Exit::CouldNot;
                continue;
            }
            Err(fault) => return Err(fault).context(format!("cannot scan `{shown}`")),
        };
        let (count_here, found_here) = look(&shown, &read, printer, &mut values);
        servers += count_here;
        found += found_here;
    }
    match printer.format() {
        Format::Json => printer.json(&json!({ "files": values, "findings": found })),
        Format::Human => printer.note(&format!(
            "{}, {}",
            count(servers, "server"),
            count(found, "finding")
        )),
    }
    Ok(match found {
        0 => exit,
        _ => exit.max(Exit::No),
    })
}

/// Looks at one file. Returns how many servers and how many findings it has.
fn look(
    shown: &str,
    read: &ClientText,
    printer: &mut Printer,
    values: &mut Vec<Value>,
) -> (usize, usize) {
    let mut found = 0;
    let mut servers = Vec::new();
    if printer.format() == Format::Human {
        printer.line(&one_line(shown));
    }
    for entry in read.entries.iter().filter(|entry| !entry.is_ours()) {
        let findings = entry.launch.findings();
        found += findings.len();
        servers.push(json!({
            "name": entry.name,
            "launch": entry.launch.shown(),
            "obstacle": entry.obstacle,
            "findings": findings.iter().map(finding_value).collect::<Vec<_>>(),
        }));
        if printer.format() == Format::Json {
            continue;
        }
        let name = printer.styled(Style::Bold, &elided(&entry.name, 60));
        printer.line(&format!("  {name}  {}", entry.launch.shown()));
        for finding in &findings {
            let word = printer.styled(Style::Caution, "warn");
            printer.line(&format!("    {word}  {}", finding_line(finding)));
        }
    }
    let number = servers.len();
    values.push(json!({ "file": shown, "servers": servers }));
    (number, found)
}
