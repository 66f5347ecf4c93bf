//! `ringfence config`: every setting, its value and where it comes from.

use engine::registry::CONFIG_FILE;
use engine::settings::{folder_faults, read};
use model::config::SettingSource;
use serde_json::{Value, json};

use crate::arguments::HomeArguments;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::wiring;

/// Columns of the keys; the few longer ones push their values.
const KEY_COLUMNS_MAX: usize = 32;

pub(crate) fn run(arguments: &HomeArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(arguments)?;
    let from = settings::home_source(arguments.home.as_deref());
    let read = read(&home)?;
    let settings = read.config.settings(&read.text, &read.rule_texts());
    for fault in folder_faults(&home, &read.config) {
        printer.note(&format!("warning: {}: {}", fault.setting, fault.why));
    }
    if printer.format() == Format::Json {
        let entry = |key: &str, value: &str, source: &str| json!({"key": key, "value": value, "source": source});
        let mut entries = vec![entry("home", &home.display().to_string(), from)];
        for setting in &settings {
            entries.push(entry(&setting.key, &setting.value, &place(&setting.source)));
        }
        printer.json(&Value::Array(entries));
        return Ok(Exit::Done);
    }
    let columns = settings.iter().map(|setting| setting.key.len()).max();
    let columns = columns.unwrap_or(0).min(KEY_COLUMNS_MAX);
    let line = |printer: &mut Printer, key: &str, value: &str, source: &str| {
        let source = printer.styled(Style::Dim, &format!("# {source}"));
        let value = if value.is_empty() { "(not set)" } else { value };
        printer.line(&format!("{key:columns$}  {value}  {source}"));
    };
    line(printer, "home", &home.display().to_string(), from);
    for setting in &settings {
        let source = place(&setting.source);
        line(printer, &setting.key, &setting.value, &source);
    }
    Ok(Exit::Done)
}

/// Where a value comes from, as people write it.
pub(crate) fn place(source: &SettingSource) -> String {
    match source {
        SettingSource::Default => "default".to_owned(),
        SettingSource::Line(line) => format!("{CONFIG_FILE}:{line}"),
        SettingSource::File(file, line) => format!("{file}:{line}"),
    }
}
