//! Examples of every command: the line and its purpose. Help and the manual pages show
//! them; a test gives each line to a shell and to the parser.

/// An example: the line and its purpose.
pub(crate) type ExampleLine = (&'static str, &'static str);

/// Examples of a group that has none of its own: so many, one of each command.
const GROUP_EXAMPLES_MAX: usize = 3;

/// By command; a group without a row shows the first examples of its commands.
pub(crate) const EXAMPLES: &[(&str, &[ExampleLine])] = &[
    (
        "",
        &[
            ("ringfence demo", "see it at work in one minute"),
            ("ringfence init", "set up: four questions"),
            ("ringfence audit --help", "examples of one command"),
        ],
    ),
    (
        "new",
        &[(
            "ringfence new countVowels",
            "write a tool that passes its test",
        )],
    ),
    (
        "check",
        &[
            ("ringfence check hello.json", "validate a file"),
            ("ringfence check countWords --json", "a tool, as JSON"),
        ],
    ),
    (
        "test",
        &[
            ("ringfence test countWords", "one tool"),
            ("ringfence test --offline", "every tool without network"),
            (
                "ringfence test hello.json --yes",
                "a file; grant what it needs",
            ),
        ],
    ),
    (
        "import",
        &[
            ("ringfence import tools.json", "every document of a file"),
            (
                "ringfence import tools.json --prefix team_",
                "with new names",
            ),
        ],
    ),
    (
        "export",
        &[
            ("ringfence export countWords", "to standard output"),
            ("ringfence export countWords -o tool.json", "to a file"),
        ],
    ),
    (
        "publish",
        &[("ringfence publish countVowels", "test it, then publish")],
    ),
    (
        "unpublish",
        &[("ringfence unpublish countVowels", "clients lose it at once")],
    ),
    (
        "delete",
        &[("ringfence delete countVowels", "the trash folder keeps it")],
    ),
    (
        "demo",
        &[("ringfence demo", "in a temporary home; nothing is changed")],
    ),
    (
        "run",
        &[
            (
                "ringfence run countWords --args '{\"text\":\"one two\"}'",
                "a tool",
            ),
            (
                "ringfence run hello.json --args '{\"who\":\"Ada\"}'",
                "a file",
            ),
        ],
    ),
    (
        "script check",
        &[("ringfence script check plan.js", "nothing runs")],
    ),
    (
        "script run",
        &[
            (
                "ringfence script run plan.js",
                "with all tools you may call",
            ),
            (
                "ringfence script run plan.js --allow countWords",
                "with one",
            ),
        ],
    ),
    (
        "init",
        &[
            ("ringfence init", "asks four questions"),
            ("ringfence init --yes --preset developer", "asks none"),
        ],
    ),
    (
        "connect",
        &[
            ("ringfence connect", "entries to copy"),
            ("ringfence connect claude-code", "change its settings"),
            ("ringfence connect cursor --remove", "and take them back"),
        ],
    ),
    (
        "expose",
        &[
            ("ringfence expose", "show what clients can call"),
            ("ringfence expose countWords readTextFile", "add two tools"),
            ("ringfence expose readTextFile --exclude", "never this one"),
        ],
    ),
    (
        "serve",
        &[
            ("ringfence serve", "at the address in the settings"),
            ("ringfence serve --listen 127.0.0.1:0", "at any free port"),
        ],
    ),
    (
        "stdio",
        &[("ringfence stdio", "clients run it; you rarely do")],
    ),
    (
        "scan",
        &[
            ("ringfence scan", "every client of this machine"),
            ("ringfence scan .mcp.json --json", "one file"),
        ],
    ),
    (
        "wrap",
        &[
            ("ringfence wrap cursor --dry-run", "what would change"),
            ("ringfence wrap cursor", "then review and accept"),
        ],
    ),
    (
        "unwrap",
        &[("ringfence unwrap cursor", "the file as it was")],
    ),
    (
        "studio",
        &[
            ("ringfence studio", "opens the page, prints a code"),
            ("ringfence studio --no-open", "prints both"),
        ],
    ),
    (
        "servers",
        &[
            ("ringfence servers list", "what is accepted or held"),
            ("ringfence servers review github", "what changed"),
            ("ringfence servers accept github", "shows it, then asks"),
        ],
    ),
    (
        "servers list",
        &[("ringfence servers list", "what is accepted, what is held")],
    ),
    ("servers show", &[("ringfence servers show github", "")]),
    (
        "servers add",
        &[
            (
                "ringfence servers add files --read ~/notes -- mcp-files ~/notes",
                "",
            ),
            ("ringfence servers add docs https://mcp.example.com/mcp", ""),
        ],
    ),
    (
        "servers remove",
        &[("ringfence servers remove github", "its secrets stay")],
    ),
    (
        "servers review",
        &[("ringfence servers review github", "what changed, and how")],
    ),
    (
        "servers accept",
        &[
            ("ringfence servers accept github", "shows it, then asks"),
            (
                "ringfence servers accept github search_code",
                "one of its tools",
            ),
        ],
    ),
    (
        "servers block",
        &[
            ("ringfence servers block github", "all of it"),
            ("ringfence servers block github delete_repo", "one tool"),
        ],
    ),
    (
        "servers restart",
        &[("ringfence servers restart github", "after a failure")],
    ),
    (
        "servers login",
        &[("ringfence servers login tickets", "prints the page to open")],
    ),
    (
        "servers logs",
        &[("ringfence servers logs github", "why it does not start")],
    ),
    (
        "servers verify",
        &[
            ("ringfence servers verify", "in CI"),
            ("ringfence servers verify --write", "after a review"),
        ],
    ),
    (
        "approvals list",
        &[("ringfence approvals list", "what waits for an answer")],
    ),
    (
        "approvals show",
        &[("ringfence approvals show 3f2a", "by the start of its id")],
    ),
    (
        "approvals approve",
        &[
            ("ringfence approvals approve 3f2a", "asks for the scope"),
            (
                "ringfence approvals approve 3f2a --scope session",
                "this session",
            ),
        ],
    ),
    (
        "approvals deny",
        &[(
            "ringfence approvals deny 3f2a --note 'use the test folder'",
            "",
        )],
    ),
    (
        "approvals revoke",
        &[(
            "ringfence approvals revoke 3f2a",
            "the next call asks again",
        )],
    ),
    (
        "approvals watch",
        &[(
            "ringfence approvals watch",
            "keep it open while agents work",
        )],
    ),
    (
        "policy show",
        &[
            ("ringfence policy show", "every rule"),
            ("ringfence policy show --caller cursor", "those of a caller"),
        ],
    ),
    (
        "policy lint",
        &[
            ("ringfence policy lint", "what is in force"),
            ("ringfence policy lint rules.toml", "a file"),
        ],
    ),
    (
        "policy test",
        &[(
            "ringfence policy test rules.toml --since 7d",
            "on a week of calls",
        )],
    ),
    (
        "explain",
        &[
            ("ringfence explain 0198c0de", "a recorded call"),
            (
                "ringfence explain --tool readTextFile --caller cursor",
                "one not made",
            ),
        ],
    ),
    (
        "secrets list",
        &[("ringfence secrets list", "which variables tools use")],
    ),
    (
        "secrets grant",
        &[("ringfence secrets grant myTool API_KEY", "")],
    ),
    (
        "secrets revoke",
        &[("ringfence secrets revoke myTool API_KEY", "")],
    ),
    (
        "keys add",
        &[
            (
                "ringfence keys add ci --expires 90",
                "an agent, for 90 days",
            ),
            (
                "ringfence keys add ada --role operator",
                "answers questions",
            ),
        ],
    ),
    (
        "keys list",
        &[("ringfence keys list", "never the keys themselves")],
    ),
    (
        "keys revoke",
        &[("ringfence keys revoke ci", "from the next request on")],
    ),
    (
        "store status",
        &[("ringfence store status", "is the shared store there?")],
    ),
    (
        "store migrate",
        &[("ringfence store migrate", "after every node was upgraded")],
    ),
    (
        "store copy",
        &[
            (
                "ringfence store copy --to postgres",
                "from one machine to several",
            ),
            (
                "ringfence store copy --to home --replace",
                "and back, where it began",
            ),
        ],
    ),
    (
        "keys rotate",
        &[("ringfence keys rotate ci", "the old key stops at once")],
    ),
    (
        "callers list",
        &[("ringfence callers list", "who was denied or is paused")],
    ),
    ("callers show", &[("ringfence callers show cursor", "")]),
    (
        "callers pause",
        &[(
            "ringfence callers pause cursor --note 'loops'",
            "refuse its calls",
        )],
    ),
    (
        "callers resume",
        &[("ringfence callers resume cursor", "reset its denials")],
    ),
    (
        "trust show",
        &[("ringfence trust show cursor", "its level and why")],
    ),
    (
        "trust feedback",
        &[(
            "ringfence trust feedback cursor 8 --note 'good summaries'",
            "",
        )],
    ),
    (
        "list",
        &[
            ("ringfence list", "every tool"),
            ("ringfence list --exposed", "those that clients can call"),
            ("ringfence list --own --state draft", "your drafts"),
        ],
    ),
    (
        "show",
        &[("ringfence show countWords", "document, policy and risk")],
    ),
    (
        "audit list",
        &[
            ("ringfence audit list --since 2h", "the last two hours"),
            ("ringfence audit list --status refused", "refused calls"),
            (
                "ringfence audit list --kind notice",
                "changes outside of calls",
            ),
        ],
    ),
    (
        "audit show",
        &[("ringfence audit show 0198c0de", "by the start of its id")],
    ),
    (
        "audit verify",
        &[
            ("ringfence audit verify", "note the head"),
            (
                "ringfence audit verify --file audit.jsonl --key KEY",
                "an export",
            ),
            (
                "ringfence audit verify --nodes home-a home-b",
                "against each other",
            ),
        ],
    ),
    (
        "audit export",
        &[
            (
                "ringfence audit export --since 30d > audit.jsonl",
                "a month",
            ),
            (
                "ringfence audit export --format proofs > audit.jsonl",
                "for an auditor",
            ),
        ],
    ),
    (
        "audit tail",
        &[("ringfence audit tail", "stop with Ctrl-C")],
    ),
    (
        "audit prune",
        &[("ringfence audit prune --before 90d", "keep 90 days")],
    ),
    (
        "audit acknowledge",
        &[
            (
                "ringfence audit acknowledge 0198c0de --note 'disk was full'",
                "",
            ),
            (
                "ringfence audit acknowledge 0198c0de --note 'old head' --replayed",
                "",
            ),
        ],
    ),
    (
        "top",
        &[
            ("ringfence top", "stop with Ctrl-C"),
            ("ringfence top --once --json", "once, for a script"),
        ],
    ),
    (
        "audit key",
        &[("ringfence audit key", "hand it to your auditor")],
    ),
    (
        "audit checkpoint",
        &[(
            "ringfence audit checkpoint > head.txt",
            "then keep it elsewhere",
        )],
    ),
    (
        "audit prove",
        &[
            ("ringfence audit prove 0198c0de > proof.jsonl", "one call"),
            (
                "ringfence audit prove --since head.txt",
                "grown since, not changed",
            ),
        ],
    ),
    (
        "audit witness",
        &[
            (
                "ringfence audit witness https://b.example/witness",
                "another Ringfence cosigns",
            ),
            ("ringfence audit witness --key", "hand it to an auditor"),
            ("ringfence audit witness --list", "logs seen by this one"),
        ],
    ),
    (
        "config",
        &[("ringfence config", "each with the file and line it is from")],
    ),
    (
        "doctor",
        &[("ringfence doctor", "each check, and what to do about it")],
    ),
    (
        "completions",
        &[
            ("ringfence completions bash >> ~/.bash_completion", ""),
            ("ringfence completions zsh > ~/.zfunc/_ringfence", ""),
            (
                "ringfence completions fish > ~/.config/fish/completions/ringfence.fish",
                "",
            ),
        ],
    ),
    (
        "man",
        &[
            (
                "ringfence man > ringfence.1 && man ./ringfence.1",
                "read it",
            ),
            (
                "ringfence man --output ~/.local/share/man/man1",
                "install all",
            ),
        ],
    ),
];

/// The examples of a command.
pub(crate) fn of(path: &str) -> Vec<ExampleLine> {
    let own = EXAMPLES.iter().find(|(known, _)| *known == path);
    if let Some((_, examples)) = own {
        return examples.to_vec();
    }
    let below = format!("{path} ");
    let below = EXAMPLES
        .iter()
        .filter(|(known, _)| known.starts_with(&below));
    let first = below.filter_map(|(_, examples)| examples.first().copied());
    first.take(GROUP_EXAMPLES_MAX).collect()
}

/// The examples of a command as help shows them. The purpose of a line follows `#`, so
/// that the whole line can be pasted into a shell.
pub(crate) fn block(path: &str) -> String {
    let examples = of(path);
    let widths = examples.iter().map(|(line, _)| line.chars().count());
    let width = widths.max().unwrap_or_default();
    let lines = examples.iter().map(|(line, words)| match *words {
        "" => format!("\n  {line}"),
        words => format!("\n  {line:<width$}  # {words}"),
    });
    format!("Examples:{}", lines.collect::<String>())
}
