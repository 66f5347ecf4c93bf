//! What a person is told before changes come into their folder, what is refused before they
//! are asked, and what the record says of every file.

use engine::approve::{ApprovalAnswer, Listing, Question};
use engine::call::CallRequest;
use engine::inquiry::Standing;
use model::caller::{Caller, Origin};
use model::govern::approval::{ApprovalScope, ShownChanges};
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::toolbox::done;
use crate::toolbox_folder::{ALLOW, Project, settings, world};
use crate::toolbox_forge::{FORGE, Forge, git};
use crate::world::{Home, Says, World, error};

const ASK_COPY: &str = "[approvals]\nwait_seconds = 1\n[[rule]]\nid = \"rest\"\neffect = \"allow\"\n\
    [[rule]]\nid = \"copies\"\ntools = [\"applyChanges\"]\neffect = \"ask\"\n";

/// Runs a command whose copy is asked about; what the person was asked, and the result.
async fn asked(world: &World, answer: ApprovalAnswer, command: &str) -> (Vec<Question>, Value) {
    let person = Says::new(answer);
    let arguments = json!({"command": command});
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "shell", arguments);
    request.approver = Some(person.clone());
    let outcome = world.made(request).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    let asked = person.asked.lock().unwrap().clone();
    (asked, outcome.value.clone().unwrap()["changes"].clone())
}

const YES: ApprovalAnswer = ApprovalAnswer::Approved(ApprovalScope::Once);

fn has_lines(wanted: &[&str], all: &[String]) {
    for line in wanted {
        assert!(all.iter().any(|one| one == line), "{line}: {all:#?}");
    }
}

fn line_with<'a>(all: &'a [String], words: &str) -> &'a str {
    let found = all.iter().find(|line| line.contains(words));
    found.unwrap_or_else(|| panic!("{words}: {all:#?}"))
}

/// Attack: a large file in front of a small one that does harm.
#[tokio::test]
async fn a_question_names_every_file_and_shows_each_a_part() {
    let project = Project::new();
    project.write("ends.txt", "one\ntwo\n");
    project.write("run.sh", "true\n");
    project.write("gone.txt", "bye\n");
    project.write("blob", "a\0b");
    let world = world(&settings(&project, ASK_COPY));
    let command = "seq 1 9000 > a-large.txt; printf 'one\\r\\ntwo\\n' > ends.txt; chmod +x run.sh; \
        rm gone.txt; printf 'c\\0dd' > blob; printf 'if x:\\n        evil()\\n\\tlast\\n' > z.py; \
        ln -s /etc link; mkdir __pycache__; echo evil > __pycache__/z.cpython-312.pyc; echo x > y.pyc";
    let (asked, value) = asked(&world, YES, command).await;
    assert_eq!(value["applied"], true, "{value}");
    assert_eq!(asked.len(), 1);
    let question = &asked[0];
    assert!(
        question.prompt.contains("\"6 files: a-large.txt, blob,")
            && !question.prompt.contains("0123456789abcdef"),
        "{}",
        question.prompt
    );
    let shown = ShownChanges::read(&question.tool, &question.arguments).unwrap();
    has_lines(
        &[
            "created, 43893 bytes, mode 100644: a-large.txt",
            "modified, 8 -> 9 bytes, mode 100644: ends.txt",
            "deleted, 4 bytes, mode 100644: gone.txt",
            "modified, 5 bytes, mode 100644 -> 100755: run.sh",
            "created, 27 bytes, mode 100644: z.py",
        ],
        &shown.files,
    );
    assert_eq!(shown.files.len(), 6);
    let blob = line_with(&shown.files, ": blob");
    assert!(
        blob.starts_with("modified, 3 -> 4 bytes, mode 100644, BINARY, content not shown, sha256 ")
            && blob.contains(" -> "),
        "{blob}"
    );
    has_lines(
        &[
            "left out, links are not copied: link",
            "left out, compiled code of Python: __pycache__",
            "left out, compiled code of Python: y.pyc",
        ],
        &shown.left_out,
    );
    has_lines(
        &[
            "new file mode 100644",
            "deleted file mode 100644",
            "old mode 100644",
            "new mode 100755",
            "-one",
            "+one\\r",
            "+        evil()",
            "+⇥   last",
        ],
        &shown.diff,
    );
    let cut = line_with(&shown.diff, "not shown: a-large.txt");
    assert!(cut.contains("lines of the patch of this file"), "{cut}");
    // A client that asks in its own form gets all of it too, behind bars.
    let text = question.text();
    for line in shown.files.iter().chain(&shown.left_out).chain(&shown.diff) {
        assert!(text.contains(&format!("\n| {line}")), "{line}");
    }
    assert!(
        project.read("__pycache__/z.cpython-312.pyc").is_none() && project.read("y.pyc").is_none()
    );
}

/// The question stands in the inbox as it was asked, and counts for no other changes.
#[tokio::test]
async fn a_question_about_changes_can_be_answered_but_not_changed() {
    let project = Project::new();
    let world = world(&settings(&project, ASK_COPY));
    done(&world, "shell", json!({"command": "echo a > a"})).await;
    let rows = world.engine.approvals().list(Listing::Pending).unwrap();
    let inquiry = world.engine.inquiry(&rows[0].id).unwrap();
    assert_eq!(inquiry.standing, Standing::AsAsked);
    let arguments = inquiry.arguments.clone().unwrap();
    assert_eq!(arguments.as_object().unwrap().len(), 1, "{arguments}");
    let changes = inquiry.changes.unwrap();
    assert_eq!(changes.files, ["created, 2 bytes, mode 100644: a"]);
    let person = model::govern::person::Person::owner();
    let other = json!({"changes": "0".repeat(64)});
    let changed = world.engine.approve_changed(
        &rows[0].id,
        &person,
        engine::approve::Channel::Studio,
        &other,
        None,
    );
    assert!(changed.unwrap_err().to_string().contains("no others"));
}

/// No person is asked about what is not there, and the answer does not tell why.
#[tokio::test]
async fn unknown_changes_are_refused_before_a_person_is_asked() {
    let project = Project::new();
    let world = world(&settings(&project, ASK_COPY));
    let (_, value) = asked(&world, ApprovalAnswer::Declined, "echo a > a").await;
    let mut answers = Vec::new();
    for (caller, id) in [
        ("bob", value["id"].clone()),
        ("bob", json!("0".repeat(64))),
        ("ann", json!("0".repeat(64))),
    ] {
        let person = Says::new(YES);
        let arguments = json!({"changes": id});
        let caller = Caller::named(caller);
        let mut request = CallRequest::new(caller, Origin::Mcp, "applyChanges", arguments);
        request.approver = Some(person.clone());
        let outcome = world.made(request).await;
        let (code, message) = error(&outcome);
        answers.push((code, message.to_owned()));
        assert!(person.asked.lock().unwrap().is_empty());
    }
    assert_eq!(answers[0].0, "changes.unknown");
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let waiting = world.engine.approvals().list(Listing::Pending).unwrap();
    assert!(waiting.iter().all(|row| row.caller != "bob"), "{waiting:?}");
}

/// Nothing is agreed to that is not named.
#[tokio::test]
async fn too_many_files_to_name_are_not_asked_about() {
    let project = Project::new();
    let world = world(&settings(&project, ASK_COPY));
    let command = "d=$(printf 'a%.0s' $(seq 1 200)); mkdir $d; cd $d; \
        for n in $(seq 1 700); do echo $n > $n; done";
    let (asked, value) = asked(&world, YES, command).await;
    assert!(asked.is_empty());
    assert_eq!(value["why"]["code"], "changes.too_many", "{value}");
    assert_eq!(std::fs::read_dir(&project.path).unwrap().count(), 0);
    // A rule that allows the copy needs no question.
    world
        .home
        .file("ringfence.toml", &settings(&project, ALLOW));
    let id = json!({"changes": value["id"]});
    let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "applyChanges", id);
    let outcome = world.made(request).await;
    assert_eq!(
        outcome.value.as_ref().unwrap()["applied"],
        701,
        "{outcome:?}"
    );
    // The record names as many as it has room for, and stands for all of them.
    let events = world.entry(&outcome).closing.unwrap().events;
    let last = events.last().unwrap();
    assert_eq!(
        (&last["changes"], &last["unnamed"]),
        (&json!(701), &json!(201))
    );
    assert_eq!(last["digest"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn the_record_has_digest_and_mode_of_every_copied_file() {
    let project = Project::new();
    let world = world(&settings(&project, ALLOW));
    let command = "printf 'one\\n' > run; chmod +x run";
    let value = done(&world, "shell", json!({"command": command})).await;
    assert_eq!(value["changes"]["applied"], true, "{value}");
    let entries = world
        .engine
        .store()
        .audit()
        .list(&store::Filter::default())
        .unwrap();
    let copy = entries
        .iter()
        .find(|entry| entry.opening.tool == "applyChanges")
        .unwrap();
    let event = &copy.closing.as_ref().unwrap().events[0];
    let digest = "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806";
    assert_eq!(
        *event,
        json!({
            "kind": "file", "function": "applyChanges", "path": "run", "change": "created",
            "bytes": 4, "digest": digest, "base": null, "mode": "100755", "refusal": null,
        })
    );
    // A refusal says how far it came.
    project.write("run", "edited\n");
    let value = done(&world, "shell", json!({"command": "echo x > run; sleep 1"}));
    let value = value.await;
    assert_eq!(value["changes"]["applied"], true, "{value}");
    world.home.file(
        "ringfence.toml",
        &settings(&project, &ASK_COPY.replace("\"ask\"", "\"deny\"")),
    );
    let value = done(&world, "shell", json!({"command": "echo y > run"})).await;
    world
        .home
        .file("ringfence.toml", &settings(&project, ALLOW));
    project.write("run", "edited\n");
    let stale = world
        .call("applyChanges", json!({"changes": value["changes"]["id"]}))
        .await;
    let (code, message) = error(&stale);
    assert_eq!(code, "changes.stale");
    assert!(message.starts_with("nothing was copied: "), "{message}");
}

/// A switch that would leave a protected file behind is none: the next commit of all changes
/// would delete it.
#[tokio::test]
async fn a_branch_with_other_protected_files_is_not_switched_to() {
    let project = Project::new();
    let folder = &project.path;
    git(folder, &["init", "-q", "-b", "main"]);
    project.write("file", "one\n");
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "first"]);
    git(folder, &["branch", "plain"]);
    git(folder, &["switch", "-q", "-c", "tasks"]);
    project.write(".vscode/tasks.json", "{}\n");
    project.write("file", "two\n");
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "tasks"]);
    git(folder, &["switch", "-q", "plain"]);
    let world = world(&settings(&project, ALLOW));
    let switch = |name: &str| json!({"action": "switch", "name": name});
    let refused = world.call("gitBranch", switch("tasks")).await;
    let (code, message) = error(&refused);
    assert_eq!(code, "changes.protected", "{message}");
    assert!(message.contains("`.vscode/tasks.json`"), "{message}");
    assert_eq!(git(folder, &["branch", "--show-current"]), "plain");
    assert_eq!(git(folder, &["status", "--porcelain"]), "");
    assert_eq!(project.read("file").unwrap(), "one\n");
    // Where they do not differ, also with such a file in both.
    done(&world, "gitBranch", switch("main")).await;
    assert_eq!(git(folder, &["branch", "--show-current"]), "main");
    git(folder, &["switch", "-q", "tasks"]);
    done(
        &world,
        "gitBranch",
        json!({"action": "create", "name": "more"}),
    )
    .await;
    done(&world, "gitBranch", switch("more")).await;
    // The file is gone for another reason: all changes are not committed.
    std::fs::remove_dir_all(folder.join(".vscode")).unwrap();
    project.write("file", "three\n");
    let all = json!({"message": "all", "all": true});
    let everywhere = json!({"message": "all", "paths": ["."]});
    let attempts = [("gitCommit", all.clone()), ("gitCommit", everywhere)];
    let staged = ("gitAdd", json!({"paths": ["."]}));
    for (tool, arguments) in attempts.into_iter().chain([staged]) {
        let refused = world.call(tool, arguments).await;
        let (code, message) = error(&refused);
        assert_eq!(code, "changes.protected", "{message}");
        assert_eq!(git(folder, &["log", "-1", "--format=%s"]), "tasks");
        assert_eq!(git(folder, &["diff", "--cached", "--name-only"]), "");
    }
    // What a person added is not committed either, and other files are.
    git(folder, &["rm", "-q", "--cached", ".vscode/tasks.json"]);
    let refused = world.call("gitCommit", json!({"message": "added"})).await;
    assert_eq!(error(&refused).0, "changes.protected");
    git(folder, &["reset", "-q"]);
    let one = json!({"message": "one", "paths": ["file"]});
    done(&world, "gitCommit", one).await;
    assert_eq!(git(folder, &["show", "HEAD:file"]), "three");
    project.write("file", "four\n");
    git(folder, &["restore", ".vscode"]);
    done(&world, "gitCommit", all).await;
    assert_eq!(git(folder, &["show", "HEAD:.vscode/tasks.json"]), "{}");
    assert_eq!(git(folder, &["show", "HEAD:file"]), "four");
}

/// A clone has what its commits have; what of it other programs obey is named.
#[tokio::test]
async fn a_clone_names_what_other_programs_obey() {
    let forge = Forge::plain().await;
    let files = [
        (".envrc", "evil\n"),
        ("sub/.mcp.json", "{}\n"),
        ("app.txt", "good\n"),
    ];
    forge.repository("app", &files);
    let project = Project::new();
    let home = Home::new();
    home.file("ringfence.toml", &settings(&project, ALLOW));
    let world = forge.world_in(home);
    let url = json!({"url": format!("https://{FORGE}/app.git")});
    let outcome = world.call("gitClone", url).await;
    let value = outcome.value.clone().unwrap();
    assert_eq!(
        value["protected"],
        json!(["app/.envrc", "app/sub/.mcp.json"]),
        "{value}"
    );
    let events = world.entry(&outcome).closing.unwrap().events;
    let named = events
        .iter()
        .find(|event| !event["protected"].is_null())
        .unwrap();
    assert_eq!(named["protected"], value["protected"]);
    let file = events
        .iter()
        .find(|event| event["path"] == "app/app.txt")
        .unwrap();
    assert_eq!(
        (&file["function"], &file["mode"], &file["bytes"]),
        (&json!("gitClone"), &json!("100644"), &json!(5))
    );
    assert_eq!(file["digest"].as_str().unwrap().len(), 64);
}
