//! The rights of a caller: everything the settings say about it beside rules.

use model::caller::Caller;
use model::config::Config;
use model::govern::access::level::Constraints;
use model::govern::access::quota::RateLimit;
use model::govern::access::{CallerRights, Lists};
use model::govern::pattern::NamePattern;
use model::network::host_pattern::HostPattern;
use model::text::one_line;
use model::word::Word as _;
use serde_json::{Value, json};

use crate::output::printer::{Printer, Style};

/// What applies to one caller.
pub(super) struct Stands<'a> {
    pub(super) caller: &'a str,
    pub(super) rights: CallerRights,
    /// Whose lists, and the lists: those for all callers, those of groups, the caller's own.
    lists: Vec<(&'a str, &'a Lists)>,
    limits: Vec<&'a RateLimit>,
}

impl<'a> Stands<'a> {
    pub(super) fn of(config: &'a Config, caller: &'a Caller) -> Stands<'a> {
        let rights = config.access.rights(caller, None);
        let limits = config.limits.iter();
        let limits = limits.filter(|limit| limit.concerns(&caller.name, &rights.groups));
        let layers = config.access.layers(caller).into_iter();
        Stands {
            caller: &caller.name,
            limits: limits.collect(),
            lists: layers
                .filter(|(_, lists)| **lists != Lists::default())
                .collect(),
            rights,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let CallerRights {
            level,
            given,
            earned,
            categories,
            constraints,
            autonomy,
            groups,
            hosts,
        } = &self.rights;
        let lists = self.lists.iter().map(|(whose, lists)| {
            let allow = lists.allow.as_deref().map(words);
            json!({"whose": whose, "allow": allow, "deny": words(&lists.deny)})
        });
        json!({
            "caller": self.caller,
            "level": level.map(|level| level.word()),
            "given": given.map(|level| level.word()),
            "earned": earned.map(|level| level.word()),
            "autonomy": autonomy.word(),
            "groups": groups,
            "categories": categories,
            "hosts": hosts.iter().map(|list| json!({
                "by": list.by.to_string(),
                "hosts": list.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "constraints": constraints.as_ref().map(constraints_json),
            "lists": lists.collect::<Vec<_>>(),
            "limits": self.limits.iter().map(|limit| json!({
                "id": limit.id,
                "tools": words(&limit.tools),
                "callsPerMinute": limit.calls_per_minute,
                "concurrent": limit.concurrent,
                "unitsPerDay": limit.units_per_day,
            })).collect::<Vec<_>>(),
        })
    }

    pub(super) fn show(&self, printer: &mut Printer) {
        let CallerRights {
            level,
            given,
            earned,
            ..
        } = &self.rights;
        let word =
            |level: &Option<_>| level.map_or("none", model::govern::access::AccessLevel::word);
        let how = match earned {
            None => String::new(),
            Some(_) => format!(" (given {}, earned {})", word(given), word(earned)),
        };
        printer.line(&format!(
            "{}  level {}{how}, autonomy {}, groups: {}",
            printer.styled(Style::Bold, &one_line(self.caller)),
            word(level),
            self.rights.autonomy.word(),
            or_none(&self.rights.groups),
        ));
        let row = |printer: &mut Printer, name: &str, text: &str| {
            let name = printer.styled(Style::Dim, &format!("  {name:<11}"));
            printer.line(&format!("{name} {}", one_line(text)));
        };
        let categories = match &self.rights.categories {
            None => "all".to_owned(),
            Some(categories) => or_none(categories).to_lowercase(),
        };
        row(printer, "categories", &categories);
        for (whose, lists) in &self.lists {
            if let Some(allow) = &lists.allow {
                let text = format!("{whose}: {}", or_none(&words(allow)));
                row(printer, "allowed", &text);
            }
            if !lists.deny.is_empty() {
                let text = format!("{whose}: {}", words(&lists.deny).join(", "));
                row(printer, "denied", &text);
            }
        }
        for list in &self.rights.hosts {
            let hosts: Vec<_> = list.hosts.iter().map(HostPattern::shown).collect();
            row(
                printer,
                "hosts",
                &format!("{}: {}", list.by, or_none(&hosts)),
            );
        }
        if let Some(constraints) = &self.rights.constraints {
            row(printer, "constraints", &in_words(constraints));
        }
        for limit in &self.limits {
            row(printer, "limit", &limit.words());
        }
    }
}

fn words(patterns: &[NamePattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn or_none(words: &[String]) -> String {
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

fn in_words(constraints: &Constraints) -> String {
    let Constraints {
        files,
        code,
        network,
        git,
        terminal,
        commands,
        requires_approval,
    } = constraints;
    let mut words = format!(
        "files {}, network {}, git {}, terminal {}, code {}",
        files.word(),
        network.word(),
        git.word(),
        terminal.word(),
        code.word()
    );
    if *terminal == model::govern::access::level::TerminalScope::RestrictedCommands {
        let commands: Vec<_> = commands.iter().cloned().collect();
        words.push_str(&format!(" ({})", or_none(&commands)));
    }
    if !requires_approval.is_empty() {
        let asked: Vec<_> = requires_approval.iter().map(|it| it.word()).collect();
        words.push_str(&format!("; asks before {}", asked.join(", ")));
    }
    words
}

fn constraints_json(constraints: &Constraints) -> Value {
    json!({
        "files": constraints.files.word(),
        "code": constraints.code.word(),
        "network": constraints.network.word(),
        "git": constraints.git.word(),
        "terminal": constraints.terminal.word(),
        "commands": constraints.commands,
        "requiresApproval": constraints.requires_approval.iter().map(|it| it.word()).collect::<Vec<_>>(),
    })
}
