//! Hostile repositories and servers. `cases/attack/git` has one folder for each family of
//! faults that git clients had, with a positive control; what takes a server of its own, or
//! two repositories on one disk, is here.

use std::path::{Path, PathBuf};
use std::process::Command;

use model::record::audit::Status;
use model::record::outcome::Outcome;
use serde_json::{Value, json};

use crate::toolbox::done;
use crate::toolbox_folder::{ALLOW, Project, settings as folder_settings};
use crate::toolbox_forge::{FORGE, Forge, OTHER, git, redirect};
use crate::toolbox_remote::{found, refused, settings, url};
use crate::world::{Home, World, error};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/attack/git")
}

/// Runs lines of a case.
fn run(folder: &Path, work: &Path, repository: &Path, lines: &str) {
    let ran = Command::new("sh")
        .args(["-c", lines])
        .current_dir(folder)
        .env("WORK", work)
        .env("REPO", repository)
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "mallory")
        .env("GIT_AUTHOR_EMAIL", "mallory@example.com")
        .env("GIT_COMMITTER_NAME", "mallory")
        .env("GIT_COMMITTER_EMAIL", "mallory@example.com")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    // A control may be stopped by what it set off.
    let is_make = lines.contains("prelude.sh");
    assert!(ran.status.success() || !is_make, "{lines}: {ran:?}");
}

/// What a caller gets has nothing in it that a terminal obeys.
fn assert_plain(name: &str, outcome: &Outcome) {
    let shown = format!(
        "{}{}",
        outcome.value.clone().unwrap_or_default(),
        outcome.error.as_ref().map_or("", |error| &error.message)
    );
    let is_plain = !shown.contains('\u{1b}') && !shown.contains("\\u001b");
    assert!(is_plain, "{name}: {shown:?}");
}

/// Every git tool that works on a repository of the workspace.
async fn try_tools(world: &World, name: &str, repository: &str) {
    for (tool, more) in [
        ("gitStatus", json!({})),
        ("gitLog", json!({})),
        ("gitDiff", json!({})),
        ("gitShow", json!({})),
        ("gitBranch", json!({"action": "create", "name": "topic"})),
        ("gitBranch", json!({"action": "switch", "name": "topic"})),
        ("gitAdd", json!({"paths": ["."]})),
        ("gitCommit", json!({"message": "mine", "all": true})),
        ("gitFetch", json!({})),
    ] {
        let mut arguments = more;
        arguments["repository"] = json!(repository);
        let outcome = world.call(tool, arguments).await;
        assert_plain(&format!("{name} {tool}"), &outcome);
    }
}

#[tokio::test]
async fn each_family_of_faults_harms_a_careless_client_and_not_ours() {
    let forge = Forge::plain().await;
    let world = forge.world(&settings(""));
    let workspace = world.home.path.join("workspace");
    let mut names: Vec<String> = std::fs::read_dir(cases())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    let aside = Home::new();
    for name in &names {
        let (case, shared) = (cases().join(name), cases());
        let bare = forge.root.join(format!("{name}.git"));
        let work = aside.path.join(format!("{name}-work"));
        let control = aside.path.join(format!("{name}-control"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir_all(&control).unwrap();
        let lines = format!(
            ". '{0}/prelude.sh'; . '{1}/make.sh'; . '{0}/finish.sh'",
            shared.display(),
            case.display()
        );
        run(&work, &work, &bare, &lines);
        // Without our protection it works.
        let lines = format!(". '{}/careless.sh'", case.display());
        run(&control, &work, &bare, &lines);
        assert!(!found(&control, "RAN").is_empty(), "{name}: the control");
        // With it, it does not.
        let outcome = world.call("gitClone", url(FORGE, name)).await;
        assert_plain(name, &outcome);
        if outcome.status == Status::Done {
            let clone = workspace.join(name);
            assert!(!clone.join(".git/hooks/post-checkout").exists(), "{name}");
            assert!(!clone.join(".git/modules").exists(), "{name}");
            assert_eq!(links(&clone), Vec::<PathBuf>::new(), "{name}");
            try_tools(&world, name, name).await;
            let more = std::fs::read_to_string(case.join("repositories.txt"));
            for folder in more.unwrap_or_default().lines() {
                try_tools(&world, name, &format!("{name}/{folder}")).await;
            }
        }
        let ran = found(&workspace, "RAN");
        assert!(ran.is_empty(), "{name}: {ran:?}");
        let asked = forge.asked();
        let only_ours = asked.iter().all(|asked| asked.contains(FORGE));
        assert!(only_ours, "{name}: {asked:?}");
    }
}

fn links(folder: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_symlink() {
                links.push(entry.path());
            } else if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    links
}

/// Git itself, at the server of the test: what a client without our route does.
fn bare_git(forge: &Forge, folder: &Path, arguments: &[&str]) -> std::process::Output {
    let port = forge.port();
    let mut command = Command::new("git");
    command.args(["-c", "http.sslVerify=false", "-c", "http.proxy="]);
    for host in [FORGE, OTHER] {
        let resolve = format!("http.curloptResolve={host}:{port}:127.0.0.1");
        command.args(["-c", &resolve]);
    }
    command
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("https_proxy")
        .env_remove("HTTPS_PROXY")
        .env_remove("ALL_PROXY")
        .output()
        .unwrap()
}

/// A redirect is followed by git's own client, to whatever host it names.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_leads_gits_own_client_elsewhere_and_not_ours() {
    let forge = Forge::start(Box::new(|host, target| {
        let name = host.split(':').next().unwrap_or_default();
        let to = match (name, host.split_once(':')) {
            (FORGE, Some((_, port))) => format!("https://{OTHER}:{port}{target}"),
            (FORGE, None) => format!("https://{OTHER}{target}"),
            _ => return None,
        };
        redirect(&to)
    }))
    .await;
    forge.repository("project", &[("a", "a\n")]);
    let aside = Home::new();
    let address = format!("https://{FORGE}:{}/project.git", forge.port());
    let control = bare_git(&forge, &aside.path, &["clone", "-q", &address, "clone"]);
    let asked = forge.asked();
    assert!(
        asked.iter().any(|asked| asked.contains(OTHER)),
        "the control: {asked:?} {control:?}"
    );
    forge.asked.lock().unwrap().clear();
    let world = forge.world(&settings(""));
    let told = refused(&world, url(FORGE, "project")).await;
    assert!(told.starts_with("git.failed"), "{told}");
    let asked = forge.asked();
    assert!(
        asked.iter().all(|asked| !asked.contains(OTHER)),
        "{asked:?}"
    );
}

/// A dumb server hands out the addresses of other servers; git's own client that follows
/// redirects goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_server_leads_gits_own_client_on_and_not_ours() {
    let forge = Forge::start(Box::new(|_, target| {
        let path = target.split('?').next().unwrap_or_default();
        let body = match path {
            "/project.git/info/refs" => {
                "0123456789012345678901234567890123456789\trefs/heads/main\n"
            }
            "/project.git/HEAD" => "ref: refs/heads/main\n",
            "/project.git/objects/info/http-alternates" => "/elsewhere.git/objects\n",
            _ => {
                let status = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                return Some(status.to_owned());
            }
        };
        Some(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }))
    .await;
    let aside = Home::new();
    let address = format!("https://{FORGE}:{}/project.git", forge.port());
    let follow = [
        "-c",
        "http.followRedirects=true",
        "clone",
        "-q",
        &address,
        "clone",
    ];
    let control = bare_git(&forge, &aside.path, &follow);
    let asked = forge.asked();
    let is_led = asked.iter().any(|asked| asked.contains("/elsewhere.git/"));
    assert!(is_led, "the control: {asked:?} {control:?}");
    forge.asked.lock().unwrap().clear();
    let world = forge.world(&settings(""));
    let told = refused(&world, url(FORGE, "project")).await;
    assert!(told.starts_with("git.failed"), "{told}");
    assert_eq!(forge.asked().len(), 1, "{:?}", forge.asked());
}

/// CVE-2024-52005: what the far side says while it works reaches the terminal as it is.
#[tokio::test]
async fn what_the_far_side_says_is_cleaned() {
    let forge = Forge::plain().await;
    let bare = forge.repository("project", &[("a", "a\n")]);
    let hook = bare.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let says = "#!/bin/sh\nprintf '\\033]0;owned\\007\\033[2Jpush refused by mallory\\n'\nexit 1\n";
    std::fs::write(&hook, says).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Git itself passes it on.
    let work = forge.root.join("project-work");
    git(&work, &["commit", "-q", "--allow-empty", "-m", "more"]);
    let control = Command::new("git")
        .args(["push", "-q", &bare.display().to_string(), "main"])
        .current_dir(&work)
        .output()
        .unwrap();
    assert!(control.stderr.contains(&0x1b), "the control: {control:?}");
    let world = forge.world(&settings(""));
    done(&world, "gitClone", url(FORGE, "project")).await;
    let repository = json!({"repository": "project", "message": "mine"});
    let change = json!({"command": "echo b > a", "workingDirectory": "project"});
    done(&world, "shell", change).await;
    let mut commit = repository.clone();
    commit["all"] = json!(true);
    done(&world, "gitCommit", commit).await;
    let outcome = world
        .call("gitPush", json!({"repository": "project"}))
        .await;
    assert_eq!(error(&outcome).0, "git.failed");
    assert!(error(&outcome).1.contains("mallory"), "{outcome:?}");
    assert_plain("push", &outcome);
}

/// CVE-2024-50349: a server that wants a password makes git ask the person for it.
#[tokio::test]
async fn a_server_that_wants_a_password_gets_none_and_no_one_is_asked() {
    let forge = Forge::start(Box::new(|_, _| {
        let realm = "WWW-Authenticate: Basic realm=\"your bank\"";
        Some(format!(
            "HTTP/1.1 401 Unauthorized\r\n{realm}\r\nContent-Length: 0\r\n\r\n"
        ))
    }))
    .await;
    let world = forge.world(&settings(""));
    let told = refused(&world, url(FORGE, "project")).await;
    assert!(told.starts_with("git.failed"), "{told}");
    let asked = forge.asked();
    assert!(asked.iter().all(|asked| !asked.contains('[')), "{asked:?}");
}

/// There is no limit in git on what a server sends.
#[tokio::test]
async fn a_pack_beyond_the_bound_is_cut_off() {
    let forge = Forge::plain().await;
    // What does not compress.
    let mut text = String::new();
    let mut state = 1_u64;
    while text.len() < 300_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(&format!("{state:x}"));
    }
    forge.repository("large", &[("a", &text)]);
    let small = forge.world(&settings("network_bytes_max = 65536\n"));
    let told = refused(&small, url(FORGE, "large")).await;
    assert!(told.starts_with("git.failed"), "{told}");
    assert!(!small.home.path.join("workspace/large/a").exists());
    // The control: within the bound it comes.
    let world = forge.world(&settings(""));
    done(&world, "gitClone", url(FORGE, "large")).await;
    assert!(world.home.path.join("workspace/large/a").exists());
}

/// What a commit holds so that a folder of it is a repository without a working tree.
fn bare_inside(folder: &str) -> [(String, &'static str); 5] {
    let settings = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\
        \tfsmonitor = \"touch RAN; false\"\n";
    [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", settings),
        ("objects/keep", "x\n"),
        ("refs/keep", "x\n"),
        ("work/keep", "x\n"),
    ]
    .map(|(name, text)| (format!("{folder}/{name}"), text))
}

fn status_in(folder: &Path) {
    let _ = Command::new("git")
        .arg("status")
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
}

/// Attack: a commit holds a repository without a working tree, whose settings git obeys in
/// its folders. The operator's folder gets one by a clone alone, and that names it.
#[tokio::test]
async fn a_repository_inside_a_repository_does_not_come_unnamed() {
    let forge = Forge::plain().await;
    let inside = bare_inside("vendor/bare");
    let mut files: Vec<_> = inside
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    files.push(("app.txt", "good\n"));
    forge.repository("app", &files);
    forge.repository("plain", &[("app.txt", "good\n")]);
    let project = Project::new();
    let home = Home::new();
    home.file("ringfence.toml", &folder_settings(&project, ALLOW));
    let world = forge.world_in(home);
    let outcome = world.call("gitClone", url(FORGE, "app")).await;
    let value = outcome.value.clone().unwrap();
    assert_eq!(value["protected"], json!(["app/vendor/bare"]), "{value}");
    let events = world.entry(&outcome).closing.unwrap().events;
    let named = events.iter().find(|event| !event["protected"].is_null());
    assert_eq!(named.unwrap()["protected"], value["protected"]);
    // The control: it works.
    status_in(&project.path.join("app/vendor/bare/work"));
    assert!(!found(&project.path, "RAN").is_empty(), "the control");
    // A switch to a branch that has one, and to one that has none.
    done(&world, "gitClone", url(FORGE, "plain")).await;
    let folder = project.path.join("plain");
    for (path, text) in &inside {
        project.write(&format!("plain/{path}"), text);
    }
    git(&folder, &["switch", "-q", "-c", "with"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", "bare"]);
    git(&folder, &["switch", "-q", "main"]);
    let switch = |name: &str| json!({"repository": "plain", "action": "switch", "name": name});
    let outcome = world.call("gitBranch", switch("with")).await;
    let (code, message) = error(&outcome);
    assert_eq!(code, "changes.protected", "{message}");
    assert!(message.contains("`plain/vendor/bare/HEAD`"), "{message}");
    assert!(!folder.join("vendor").exists());
    assert_eq!(git(&folder, &["branch", "--show-current"]), "main");
    // A clone may be the part that is missing.
    let plant = "mkdir -p pieces/objects; echo x > pieces/objects/keep; \
        echo 'ref: refs/heads/main' > pieces/HEAD";
    let value = done(&world, "shell", json!({"command": plant})).await;
    assert_eq!(value["changes"]["applied"], true, "{value}");
    let mut last = url(FORGE, "plain");
    last["directory"] = json!("pieces/refs");
    let outcome = world.call("gitClone", last.clone()).await;
    assert_eq!(error(&outcome).0, "argument.schema", "{outcome:?}");
    assert!(!project.path.join("pieces/refs").exists());
    last["directory"] = json!("pieces/other");
    done(&world, "gitClone", last).await;
}

/// CVE-2022-39253: objects of another repository of the disk, by `objects/info/alternates`.
#[tokio::test]
async fn alternates_read_nothing_beyond_the_folder() {
    let world = crate::toolbox::world(crate::toolbox::OPEN);
    let aside = Home::new();
    let secret = aside.path.join("secret");
    std::fs::create_dir_all(&secret).unwrap();
    git(&secret, &["init", "-q", "-b", "main"]);
    std::fs::write(secret.join("file"), "top secret\n").unwrap();
    git(&secret, &["add", "-A"]);
    git(&secret, &["commit", "-q", "-m", "secret"]);
    let commit = git(&secret, &["rev-parse", "HEAD"]);
    let workspace = world.home.path.join("workspace");
    let project = workspace.join("project");
    std::fs::create_dir_all(&project).unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    let objects = secret.join(".git/objects").display().to_string();
    std::fs::write(project.join(".git/objects/info/alternates"), objects).unwrap();
    // The control: git itself reads it.
    assert!(git(&project, &["show", &commit]).contains("top secret"));
    for (tool, arguments) in [
        ("gitShow", json!({"ref": commit})),
        ("gitLog", json!({"ref": commit})),
    ] {
        let mut arguments: Value = arguments;
        arguments["repository"] = json!("project");
        let outcome = world.call(tool, arguments).await;
        let shown = format!("{outcome:?}");
        assert!(!shown.contains("top secret"), "{tool}: {shown}");
        assert!(!shown.contains("\"secret"), "{tool}: {shown}");
    }
}
