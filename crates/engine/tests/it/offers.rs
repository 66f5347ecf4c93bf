//! Lists and calls agree in worlds nobody thought of: whatever the settings say, a
//! caller is told of exactly the tools a call would find.

use std::fmt::Write as _;

use engine::approve::ApprovalAnswer;
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use serde_json::json;

use crate::world::{Clockwork, Home, Says, World, document};

const WORLDS: usize = 25;
const CALLERS: [&str; 4] = ["ann", "Bob", "carl", "owner"];
const TOOLS: [(&str, &str); 8] = [
    ("text.upper", "TEXT"),
    ("text.lower", "TEXT"),
    ("web.read", "WEB"),
    ("web.send", "WEB"),
    ("file.list", "FILE"),
    ("deploy.now", "DEPLOYMENT"),
    ("db.ask", "DATABASE"),
    ("odd", "STRANGE"),
];

/// The same worlds in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> usize {
        let state = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = state.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64)]
    }

    fn list(&mut self, of: &[&str]) -> String {
        let count = self.below(3);
        let words: Vec<_> = (0..=count)
            .map(|_| format!("\"{}\"", self.one(of)))
            .collect();
        format!("[{}]", words.join(", "))
    }
}

/// Some operator's file.
fn settings(dice: &mut Dice) -> String {
    let names = [
        "text.*", "web.*", "WEB.Read", "odd", "*.list", "db.ask", "*", "nothing",
    ];
    let levels = ["sandboxed", "restricted", "standard", "elevated", "custom"];
    let mut text =
        String::from("[expected]\ntools = [\"nothing\"]\ncallers = [\"carl\", \"b*\"]\n");
    if dice.below(3) == 0 {
        let out = dice.one(&["names = [\"odd\"]", "categories = [\"TEXT\"]"]);
        let _ = writeln!(text, "[exposure.exclude]\n{out}");
    }
    let sections = [
        "[access]",
        "[callers.ANN]",
        "[callers.bob]",
        "[groups.team]\nmembers = [\"carl\", \"b*\"]",
    ];
    for section in sections {
        if dice.below(2) == 0 {
            continue;
        }
        let _ = writeln!(text, "{section}");
        if dice.below(3) > 0 {
            let _ = writeln!(text, "allow = {}", dice.list(&names));
        }
        if dice.below(3) == 0 {
            let _ = writeln!(text, "deny = {}", dice.list(&names));
        }
        if dice.below(2) == 0 {
            let _ = writeln!(text, "level = \"{}\"", dice.one(&levels));
        }
        if dice.below(4) == 0 {
            let _ = writeln!(
                text,
                "categories = {}",
                dice.list(&["TEXT", "web", "STRANGE"])
            );
        }
    }
    if dice.below(3) == 0 {
        let strategy = dice.one(&["weighted", "milestone", "per_category"]);
        let level = dice.one(&levels[..3]);
        let _ = writeln!(
            text,
            "[trust]\nstrategy = \"{strategy}\"\ninitial_level = \"{level}\""
        );
    }
    if dice.below(3) == 0 {
        let mode = dice.one(&["codecall_only", "codecall_opt_in", "metadata_driven", "off"]);
        let _ = writeln!(text, "[codecall]\nmode = \"{mode}\"");
    }
    // Rules look at arguments: a tool they deny is there, and says no.
    if dice.below(2) == 0 {
        let _ = writeln!(
            text,
            "[[rule]]\nid = \"r\"\ntools = {}\neffect = \"deny\"",
            dice.list(&names)
        );
    }
    text
}

#[tokio::test]
async fn lists_and_calls_agree_in_random_worlds() {
    let home = Home::new();
    home.file("ringfence.toml", "");
    let clock = Clockwork::new();
    let world = World::with(home, |settings| settings.clock = Some(clock.clock()));
    for (name, category) in TOOLS {
        let more = json!({"category": category});
        world.published(&document(name, "return 1", more)).await;
    }
    let mut dice = Dice(7);
    let (mut seen, mut hidden) = (0, 0);
    for number in 0..WORLDS {
        let text = settings(&mut dice);
        world.home.file("ringfence.toml", &text);
        clock.pass_days(i64::try_from(dice.below(3) * 20).unwrap());
        for name in CALLERS {
            for origin in [Origin::Mcp, Origin::Script] {
                let caller = Caller::named(name);
                let offered = world.engine.callable_tools(&caller, origin);
                let offered: Vec<_> = offered
                    .iter()
                    .map(|one| one.usable.document.name.as_str())
                    .collect();
                for (tool, _) in TOOLS {
                    // A paused caller's list stays what it was.
                    let _ = world
                        .engine
                        .callers()
                        .resume(name, &Caller::owner())
                        .unwrap();
                    let mut request = CallRequest::new(caller.clone(), origin, tool, json!({}));
                    request.approver = Some(Says::new(ApprovalAnswer::Dismissed));
                    let told = world.engine.explain(&request).told;
                    let made = world.made(request).await;
                    let code = made.error.as_ref().map(|error| error.reason.code());
                    assert_ne!(code, Some("caller.paused"), "{number}");
                    // What a person is asked about is there as well.
                    let code = code.filter(|code| *code != "approval.dismissed");
                    let is_there = code != Some("tool.unknown");
                    let place =
                        format!("world {number}, {name}, {origin:?}, {tool}: {made:?}\n{text}");
                    assert_eq!(offered.contains(&tool), is_there, "{place}");
                    assert_eq!(told.map(|told| told.reason.code()), code, "{place}");
                    if is_there { seen += 1 } else { hidden += 1 }
                }
            }
        }
        assert_eq!(
            world
                .alarms
                .lock()
                .unwrap()
                .iter()
                .find(|said| said.contains("not in force")),
            None,
            "{text}"
        );
    }
    assert!(seen > 300 && hidden > 300, "{seen} {hidden}");
}
