//! `ringfence check`: validates documents. For each it prints the state, the risk level
//! with its reasons, and the findings.

use std::path::Path;

use engine::Engine;
use engine::catalog::Catalog;
use engine::checkup::{CheckInputs, Checkup, TextPlace};
use model::Environment;
use model::document::FileShape;
use model::document::finding::{Code, Finding, Severity, any_error};
use model::document::json::Lines;
use model::policy::Baseline;
use model::policy::assessment::{Assessment, UsableDocument};
use model::policy::risk::Level;
use model::text::{count, elided, one_line};
use serde_json::{Value, json};

use crate::arguments::{Check, Common};
use crate::output::badge;
use crate::output::excerpt;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::source::{self, SourceText};
use crate::wiring;

/// A file and everything found in it.
struct Checked {
    path: String,
    text: String,
    shape: FileShape,
    documents: Vec<Checkup>,
}

pub(crate) fn run(arguments: &Check, printer: &mut Printer) -> anyhow::Result<Exit> {
    let environment = settings::environment_with(arguments.common.env_file.as_deref())?;
    let home = settings::home(arguments.common.home.home.as_deref());
    let environment = settings::with_secrets(home.as_deref(), environment)?;
    let baseline = settings::config(home.as_deref())?.effective_baseline()?;
    let mut exit = Exit::Done;
    let mut entries = Vec::new();
    let mut shown = Vec::new();
    let mut is_list = false;
    let known = Known::of(&arguments.common, home.as_deref())?;
    for path in &arguments.files {
        let checked = match name_of(path) {
            Some(name) => check_tool(name, &arguments.common, &environment),
            None => check(path, &baseline, &environment, &known),
        };
        match checked {
            Ok(checked) => {
                let no = checked
                    .documents
                    .iter()
                    .any(|document| any_error(&document.assessed.findings));
                exit = exit.max(if no { Exit::No } else { Exit::Done });
                match printer.format() {
                    Format::Json => {
                        entries.extend(checked.documents.iter().map(|one| entry(&checked, one)))
                    }
                    Format::Human => show(&checked, printer),
                }
                is_list |= checked.shape == FileShape::Many;
                shown.extend(checked.documents);
            }
            Err(error) => {
                printer.error(&error);
                exit = Exit::CouldNot;
            }
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    } else if is_list || shown.len() > 1 {
        printer.line(&summary(&shown));
    }
    Ok(exit)
}

/// Names and grants, from the home folder and the binary.
struct Known {
    catalog: Catalog,
    /// Absent without a home: `check` never creates one.
    engine: Option<Engine>,
}

impl Known {
    fn of(common: &Common, home: Option<&Path>) -> anyhow::Result<Known> {
        let has_home = home.is_some_and(|home| home.join("ringfence.db").is_file());
        Ok(Known {
            catalog: Catalog::bundled()?,
            engine: has_home.then(|| wiring::engine(common)).transpose()?,
        })
    }
}

/// A bare word that is not a file is the name of a tool.
fn name_of(path: &Path) -> Option<&str> {
    let word = path.to_str()?;
    let is_bare = word != "-" && !word.contains('/') && path.extension().is_none();
    (is_bare && !path.exists()).then_some(word)
}

/// A tool by name, with its state.
fn check_tool(name: &str, common: &Common, environment: &Environment) -> anyhow::Result<Checked> {
    let engine = wiring::engine(common)?;
    let (tool, checkup) = engine.check_tool(name, environment)?;
    let path = match &tool.file {
        Some(stem) => engine.registry().folder().path(stem).display().to_string(),
        None => "bundled".to_owned(),
    };
    Ok(Checked {
        path,
        text: tool.usable.document.to_text(),
        shape: FileShape::One,
        documents: vec![checkup],
    })
}

fn check(
    path: &Path,
    baseline: &Baseline,
    environment: &Environment,
    known: &Known,
) -> anyhow::Result<Checked> {
    let shown = if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let text = match source::documents(path)? {
        SourceText::Text(text) => text,
        SourceText::Unusable(message) => {
            let findings = vec![Finding::error(Code::SpecParse, "", message)];
            let assessed = Assessment {
                name: None,
                usable: None,
                findings,
            };
            let documents = vec![Checkup {
                assessed,
                variables: Vec::new(),
                is_taken: false,
            }];
            return Ok(Checked {
                path: shown,
                text: String::new(),
                shape: FileShape::Unreadable,
                documents,
            });
        }
    };
    let inputs = CheckInputs {
        baseline,
        environment,
        catalog: &known.catalog,
        engine: known.engine.as_ref(),
    };
    let file = path.canonicalize();
    let place = match &file {
        _ if path == Path::new("-") => TextPlace::Stream,
        Ok(file) => TextPlace::File(file),
        Err(_) => TextPlace::File(path),
    };
    let checked = inputs.check(&text, place);
    Ok(Checked {
        path: shown,
        shape: checked.shape,
        documents: checked.documents,
        text,
    })
}

/// One document in the shape scripts rely on.
fn entry(file: &Checked, document: &Checkup) -> Value {
    let Checkup {
        assessed: document,
        variables,
        is_taken,
    } = document;
    let usable = document.usable.as_ref();
    let risk = usable.map(|usable| {
        let reasons: Vec<_> = usable
            .facts
            .risk
            .signals
            .iter()
            .map(|signal| signal.words.as_str())
            .collect();
        json!({ "level": usable.facts.risk.level, "reasons": reasons })
    });
    json!({
        "file": file.path,
        "name": document.name,
        "toolId": usable.map(|usable| usable.facts.tool_id.as_str()),
        "digest": usable.map(|usable| usable.facts.digest.to_string()),
        "state": usable.map(|usable| usable.facts.state),
        "missing": usable.map(|usable| usable.facts.missing.as_slice()).unwrap_or_default(),
        "variables": variables,
        "nameTaken": is_taken,
        "risk": risk,
        "toolSafety": usable.map(UsableDocument::safety),
        "findings": document.findings,
    })
}

fn show(file: &Checked, printer: &mut Printer) {
    let lines = Lines::new(&file.text);
    for (index, checkup) in file.documents.iter().enumerate() {
        let document = &checkup.assessed;
        let name = match (&document.name, file.shape) {
            (Some(name), _) => elided(name, 60),
            (None, FileShape::Many) => format!("document {} of {}", index + 1, file.path),
            (None, FileShape::One | FileShape::Unreadable) => file.path.clone(),
        };
        match &document.usable {
            Some(usable) => show_usable(&name, usable, printer),
            None => {
                let line = format!(
                    "{}  {}",
                    printer.styled(Style::Bold, &name),
                    printer.styled(Style::Bad, "cannot be used")
                );
                printer.line(&line);
            }
        }
        if checkup.is_taken {
            printer.line(&format!(
                "  name taken by a bundled tool; import it with `--rename {name}=NEW` or `--prefix`"
            ));
        }
        for variable in &checkup.variables {
            printer.line(&format!("  variable {}", variable.words()));
        }
        for finding in &document.findings {
            show_finding(file, finding, &lines, printer);
        }
    }
}

fn show_usable(name: &str, usable: &UsableDocument, printer: &mut Printer) {
    let line = format!(
        "{}  {}  {}",
        printer.styled(Style::Bold, name),
        badge::level(printer, usable.facts.risk.level),
        badge::state(printer, usable.facts.state)
    );
    printer.line(&line);
    for signal in &usable.facts.risk.signals {
        printer.line(&format!("  {}  {}", signal.level.badge(), signal.words));
    }
}

fn show_finding(file: &Checked, finding: &Finding, lines: &Lines<'_>, printer: &mut Printer) {
    let style = match finding.severity {
        Severity::Error => Style::Bad,
        Severity::Warning => Style::Caution,
    };
    let head = printer.styled(
        style,
        &format!("{}[{}]", finding.severity.word(), finding.code.word()),
    );
    printer.line(&format!("  {head}: {}", one_line(&finding.message)));
    let pointer = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!("  {}", elided(pointer, 100)),
    };
    let place = match finding.position.line {
        0 => file.path.clone(),
        line => format!("{}:{line}:{}", file.path, finding.position.column),
    };
    printer.line(&format!(
        "  {} {place}{pointer}",
        printer.styled(Style::Dim, "-->")
    ));
    if let Some(excerpt) = excerpt::of(finding, lines) {
        let number = finding.position.line.to_string();
        let gutter = " ".repeat(number.len());
        let bar = printer.styled(Style::Dim, "|");
        printer.line(&format!(
            "  {} {bar} {}",
            printer.styled(Style::Dim, &number),
            excerpt.source
        ));
        printer.line(&format!(
            "  {gutter} {bar} {}",
            printer.styled(style, &excerpt.caret)
        ));
    }
    if let Some(fix) = &finding.fix {
        printer.line(&format!(
            "  {}: {}",
            printer.styled(Style::Good, "fix"),
            one_line(fix)
        ));
    }
}

/// `3 documents: 2 usable (L0 1, L3 1), 1 with errors`
fn summary(documents: &[Checkup]) -> String {
    let levels: Vec<_> = documents
        .iter()
        .filter_map(|one| one.assessed.usable.as_ref())
        .map(|s| s.facts.risk.level)
        .collect();
    let with = |level: &Level| levels.iter().filter(|other| *other == level).count();
    let badges: Vec<_> = Level::ALL
        .iter()
        .filter(|level| with(level) > 0)
        .map(|level| format!("{} {}", level.badge(), with(level)))
        .collect();
    let badges = if badges.is_empty() {
        String::new()
    } else {
        format!(" ({})", badges.join(", "))
    };
    let broken = documents.len() - levels.len();
    let broken = if broken == 0 {
        String::new()
    } else {
        format!(", {broken} with errors")
    };
    format!(
        "{}: {} usable{badges}{broken}",
        count(documents.len(), "document"),
        levels.len()
    )
}
