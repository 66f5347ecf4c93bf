//! Native tools on both rungs of the jail: commands, code and repositories do the same with
//! namespaces and without, and what they refuse is the same. SQLite files are tried with the
//! program itself, in `crates/cli/tests/it/first_hour.rs`: it executes itself in the jail.

use std::path::Path;

use model::record::audit::Status;
use serde_json::{Value, json};

use crate::toolbox::events;
use crate::toolbox_egress::{RUNGS, Rung, world};
use crate::toolbox_forge::{FORGE, Forge};
use crate::toolbox_remote::url;
use crate::world::World;

/// A call whose programs must have run on a rung: its value.
async fn done(world: &World, rung: Rung, tool: &str, arguments: Value) -> Value {
    let outcome = world.call(tool, arguments).await;
    assert_eq!(
        outcome.status,
        Status::Done,
        "{} {tool}: {outcome:?}",
        rung.name()
    );
    let events = events(world, &outcome);
    let ran: Vec<_> = events
        .iter()
        .filter(|event| event["kind"] == "process")
        .collect();
    assert!(!ran.is_empty(), "{tool}: {events:?}");
    for process in ran {
        assert_eq!(process["rung"], rung.name(), "{tool}: {process}");
    }
    outcome.value.unwrap_or_default()
}

/// Commands and code: the workspace is theirs, the home and the system are not.
async fn run_programs(world: &World, rung: Rung) {
    let home = &world.home.path;
    world.home.file("secrets.env", "TOKEN=very-secret-value\n");
    let secret = home.join("secrets.env").display().to_string();
    // The control: it is there, and this process reads it.
    assert!(std::fs::read_to_string(&secret).is_ok());
    let planted = home.join("planted");
    let line = format!(
        "echo made > made; cat made; cat {secret}; echo x > {}; echo x > /etc/planted",
        planted.display()
    );
    let value = done(world, rung, "shell", json!({"command": line})).await;
    assert_eq!(value["stdout"], "made\n", "{value}");
    assert_ne!(value["exitCode"], 0, "{value}");
    assert!(!planted.exists() && !Path::new("/etc/planted").exists());
    for (language, needs, code) in [
        (
            "python",
            "/usr/bin/python3",
            format!(
                "print(open('made').read().strip())\n\
                 try:\n    print(open({secret:?}).read())\n\
                 except OSError:\n    print('closed')\n"
            ),
        ),
        (
            "bash",
            "/bin/bash",
            format!("cat made; cat {secret} 2>/dev/null || echo closed"),
        ),
        (
            "javascript",
            "/usr/bin/node",
            format!(
                "const fs = require('fs'); console.log(fs.readFileSync('made', 'utf8').trim()); \
                 try {{ console.log(fs.readFileSync({secret:?}, 'utf8')) }} \
                 catch {{ console.log('closed') }}"
            ),
        ),
    ] {
        if !Path::new(needs).exists() {
            continue;
        }
        let arguments = json!({"language": language, "code": code});
        let value = done(world, rung, "runCode", arguments).await;
        assert_eq!(value["stdout"], "made\nclosed\n", "{language}: {value}");
    }
}

/// A repository from another host, changed and committed; a hook in it does not run.
async fn use_git(world: &World, rung: Rung) {
    let cloned = done(world, rung, "gitClone", url(FORGE, "project")).await;
    assert_eq!(cloned["directory"], "project");
    let line = "cd project && echo more >> README.md && mkdir -p .git/hooks && \
        printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit";
    let value = done(world, rung, "shell", json!({"command": line})).await;
    assert_eq!(value["exitCode"], 0, "{value}");
    let here = json!({"repository": "project"});
    let status = done(world, rung, "gitStatus", here.clone()).await;
    assert!(status.to_string().contains("README.md"), "{status}");
    let add = json!({"repository": "project", "paths": ["README.md"]});
    done(world, rung, "gitAdd", add).await;
    let commit = json!({"repository": "project", "message": "more"});
    let made = done(world, rung, "gitCommit", commit).await;
    let log = done(world, rung, "gitLog", here).await;
    let shown = log.to_string();
    assert!(
        shown.contains(made["commit"].as_str().unwrap()) && shown.contains("\"more\""),
        "{log}"
    );
    let ran = world.home.path.join("workspace/project/ran");
    assert!(!ran.exists(), "the hook ran");
    // The control: git alone runs it.
    let folder = world.home.path.join("workspace/project");
    let bare = std::process::Command::new("git")
        .args(["-c", "safe.directory=*", "-c", "user.name=x"])
        .args(["-c", "user.email=x@example.com", "commit", "-q"])
        .args(["--allow-empty", "-m", "control"])
        .current_dir(&folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(bare.status.success() && ran.exists(), "{bare:?}");
}

#[tokio::test]
async fn native_tools_do_and_refuse_the_same_on_both_rungs() {
    let forge = Forge::plain().await;
    forge.repository("project", &[("README.md", "hello\n")]);
    for rung in RUNGS {
        let world = world(&forge, rung);
        run_programs(&world, rung).await;
        use_git(&world, rung).await;
        world.assert_whole();
    }
}
