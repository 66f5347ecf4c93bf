//! Attack: a program in the jail writes what would run later, as the person, outside of every
//! fence. Each case is tried twice: by the same program without a fence, where the person's
//! next command does run it, and in the jail, where it does not come to the folder.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::toolbox::done;
use crate::toolbox_folder::{ALLOW, Project, settings, world};
use crate::world::error;

/// One way to plant something.
struct Planted {
    name: &'static str,
    /// What the person has set up.
    before: &'static str,
    /// What the program does.
    plant: &'static str,
    /// What the person does next; `pwned` is there if it ran what was planted.
    after: &'static str,
}

/// A program that leaves a mark.
const MARK: &str = "#!/bin/sh\ntouch \"$MARK\"\n";

const COMMIT: &str = "git commit -q --allow-empty -m x";

const CASES: [Planted; 19] = [
    Planted {
        name: "hook",
        before: "git init -q",
        plant: "mkdir -p .git/hooks; mark .git/hooks/post-commit",
        after: COMMIT,
    },
    Planted {
        name: "hooks-path",
        before: "git init -q; git config core.hooksPath team/hooks",
        plant: "mkdir -p team/hooks; mark team/hooks/pre-commit",
        after: COMMIT,
    },
    Planted {
        name: "hooks-path-absolute",
        before: "git init -q; mkdir team; git config core.hooksPath \"$PWD/team\"",
        plant: "mark team/pre-commit",
        after: COMMIT,
    },
    Planted {
        name: "hooks-path-by-link",
        before: "git init -q; git config core.hooksPath hooks; mkdir real; ln -s real hooks",
        plant: "mark real/pre-commit",
        after: COMMIT,
    },
    Planted {
        name: "hooks-path-of-the-repository-around",
        before: "git -C .. init -q; git config core.hooksPath project/team",
        plant: "mkdir -p team; mark team/pre-commit",
        after: COMMIT,
    },
    Planted {
        name: "hooks-path-of-a-working-tree",
        before: "git init -q; git commit -q --allow-empty -m x; git worktree add -q tree; \
                 git config core.hooksPath team",
        plant: "mkdir -p tree/team; mark tree/team/pre-commit",
        after: "cd tree; git commit -q --allow-empty -m x",
    },
    Planted {
        name: "hooks-path-of-a-submodule",
        before: "git init -q ../part; git -C ../part commit -q --allow-empty -m x; git init -q; \
                 git -c protocol.file.allow=always submodule --quiet add ../part part; \
                 git -C part config core.hooksPath team",
        plant: "mkdir -p part/team; mark part/team/pre-commit",
        after: "cd part; git commit -q --allow-empty -m x",
    },
    Planted {
        name: "settings",
        before: "git init -q",
        plant: "printf '[core]\\n\\tfsmonitor = touch \\\\\"$MARK\\\\\"; false\\n' >> .git/config",
        after: "git status",
    },
    Planted {
        name: "included-settings",
        before: "git init -q; git config include.path ../team.gitconfig; touch team.gitconfig",
        plant: "printf '[core]\\n\\tfsmonitor = touch \\\\\"$MARK\\\\\"; false\\n' > team.gitconfig",
        after: "git status",
    },
    Planted {
        name: "monitor",
        before: "git init -q; git config core.fsmonitor tools/watch",
        plant: "mkdir -p tools; mark tools/watch",
        after: "git status",
    },
    Planted {
        name: "ssh-command",
        before: "git init -q; git config core.sshCommand 'sh tools/ssh'",
        plant: "mkdir -p tools; mark tools/ssh",
        after: "git fetch ssh://git.example.com/x",
    },
    Planted {
        name: "filter",
        before: "git init -q; git config filter.tidy.clean 'sh tools/tidy.sh'",
        plant: "mkdir -p tools; mark tools/tidy.sh; echo '* filter=tidy' > .gitattributes",
        after: "touch file; git add -A",
    },
    Planted {
        name: "filter-and-settings",
        before: "git init -q",
        plant: "printf '[filter \"x\"]\\n\\tclean = touch \\\\\"$MARK\\\\\"\\n' >> .git/config; \
                echo '* filter=x' > .gitattributes",
        after: "touch file; git add -A",
    },
    Planted {
        name: "textconv",
        before: "git init -q; git config diff.show.textconv tools/show; echo a > file; \
                 git add file; git commit -q -m x; echo b > file",
        plant: "mkdir -p tools; mark tools/show; echo '* diff=show' > .gitattributes",
        after: "git diff",
    },
    Planted {
        name: "repository-file",
        before: "mkdir sub",
        plant: "git init -q --bare data; git --git-dir=data config core.bare false; \
                git --git-dir=data config core.fsmonitor 'touch \"$MARK\"; false'; \
                echo 'gitdir: ../data' > sub/.git",
        after: "cd sub; git status",
    },
    Planted {
        name: "submodule-file",
        before: "git init -q ../part; git -C ../part commit -q --allow-empty -m x; git init -q; \
                 git -c protocol.file.allow=always submodule --quiet add ../part part",
        plant: "git init -q --bare data; git --git-dir=data config core.bare false; \
                git --git-dir=data config core.fsmonitor 'touch \"$MARK\"; false'; \
                echo 'gitdir: ../data' > part/.git",
        after: "cd part; git status",
    },
    Planted {
        name: "nested-repository",
        before: "mkdir sub",
        plant: "git init -q sub; git -C sub config core.fsmonitor 'touch \"$MARK\"; false'",
        after: "cd sub; git status",
    },
    Planted {
        name: "bare-repository",
        before: "mkdir sub",
        plant: "git init -q --bare bare; mkdir -p bare/hooks; mark bare/hooks/reference-transaction",
        after: "cd bare; git update-ref refs/heads/x $(git commit-tree -m x $(git mktree </dev/null))",
    },
    Planted {
        name: "startup-file",
        before: "touch file",
        plant: "mark .profile",
        after: "HOME=\"$PWD\" bash -lc true",
    },
];

/// Runs a line as the person would, in the folder.
fn person(folder: &Path, mark: &Path, line: &str) -> Output {
    Command::new("bash")
        .args(["-c", &format!("{}{line}", functions(mark))])
        .current_dir(folder)
        .env("HOME", folder.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "ann")
        .env("GIT_AUTHOR_EMAIL", "ann@example.com")
        .env("GIT_COMMITTER_NAME", "ann")
        .env("GIT_COMMITTER_EMAIL", "ann@example.com")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap()
}

/// What lines may use: the place of the mark, and a program that leaves it.
fn functions(mark: &Path) -> String {
    format!(
        "export MARK='{}'; mark() {{ printf '%s' '{MARK}' > \"$1\"; chmod +x \"$1\"; }}\n",
        mark.display()
    )
}

fn prepared(case: &Planted) -> Project {
    let project = Project::new();
    let set_up = person(&project.path, Path::new("/dev/null"), case.before);
    assert!(set_up.status.success(), "{}: {set_up:?}", case.name);
    project
}

#[tokio::test]
async fn what_a_program_plants_runs_without_the_fence_and_not_with_it() {
    let world = world("");
    for case in &CASES {
        let name = case.name;
        // Without: the attack works.
        let project = prepared(case);
        let mark = project.path.join("../mark");
        let mark = mark.parent().unwrap().canonicalize().unwrap().join("mark");
        let planted = person(&project.path, &mark, case.plant);
        assert!(planted.status.success(), "{name}: {planted:?}");
        assert!(
            !mark.exists(),
            "{name}: it runs before the person does anything"
        );
        let next = person(&project.path, &mark, case.after);
        assert!(mark.exists(), "{name}: the attack does not work: {next:?}");
        // With: it does not.
        let project = prepared(case);
        let mark = project.path.parent().unwrap().join("mark");
        let toml = settings(&project, ALLOW);
        world.home.file("ringfence.toml", &toml);
        let line = format!("{}{}; echo fine > ordinary", functions(&mark), case.plant);
        let value = done(&world, "shell", json!({"command": line})).await;
        assert_eq!(value["changes"]["applied"], true, "{name}: {value}");
        assert!(
            value["changes"]["leftOut"]
                .as_object()
                .is_some_and(|out| !out.is_empty())
        );
        assert_eq!(
            project.read("ordinary").as_deref(),
            Some("fine\n"),
            "{name}"
        );
        let next = person(&project.path, &mark, case.after);
        assert!(!mark.exists(), "{name}: {value} {next:?}");
    }
}

/// The settings of the repository as they are when the changes are copied, not as they were
/// when the changes were listed.
#[tokio::test]
async fn a_folder_that_became_one_of_hooks_meanwhile_is_not_written() {
    let project = Project::new();
    assert!(
        person(&project.path, Path::new("/dev/null"), "git init -q")
            .status
            .success()
    );
    let denied = ALLOW.replace("\"all\"\neffect", "\"all\"\ntools = [\"shell\"]\neffect");
    let world = world(&settings(&project, &denied));
    let line = "mkdir team; echo x > team/pre-commit";
    let value = done(&world, "shell", json!({"command": line})).await;
    let id = &value["changes"]["id"];
    let toml = settings(&project, ALLOW);
    world.home.file("ringfence.toml", &toml);
    let config = person(
        &project.path,
        Path::new("/dev/null"),
        "git config core.hooksPath team",
    );
    assert!(config.status.success());
    let outcome = world.call("applyChanges", json!({"changes": id})).await;
    assert!(
        error(&outcome).1.contains("hooks of a repository"),
        "{outcome:?}"
    );
    assert!(!project.path.join("team/pre-commit").exists());
    // Without that setting it is copied.
    let config = person(
        &project.path,
        Path::new("/dev/null"),
        "git config --unset core.hooksPath",
    );
    assert!(config.status.success());
    done(&world, "applyChanges", json!({"changes": id})).await;
    assert!(project.path.join("team/pre-commit").exists());
}
