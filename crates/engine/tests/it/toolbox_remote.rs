//! Git over the network: a real `git http-backend` behind TLS, redirects, the dumb protocol,
//! hosts that are not listed, and repositories that were made to harm.

use std::path::Path;
use std::sync::Arc;

use engine::call::CallRequest;
use host::fetch::TlsTrust;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::toolbox::{done, events};
use crate::toolbox_forge::{CORP, DOWN, FORGE, Forge, MIRROR, OTHER, git, redirect};
use crate::world::{Home, World, error};

/// Git with the two hosts, and no question.
pub(crate) fn settings(more: &str) -> String {
    format!(
        "[toolbox]\nenabled = [\"terminal\", \"code\", \"git\", \"sql\"]\nhosts = [\"{FORGE}\", \"{MIRROR}\"]\n{more}\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n"
    )
}

pub(crate) fn url(host: &str, name: &str) -> Value {
    json!({"url": format!("https://{host}/{name}.git")})
}

pub(crate) async fn refused(world: &World, arguments: Value) -> String {
    let outcome = world.call("gitClone", arguments.clone()).await;
    assert_ne!(outcome.status, Status::Done, "{arguments}");
    let code = error(&outcome).0.to_owned();
    let egress: Vec<_> = match world.entry(&outcome).closing {
        Some(closing) => closing
            .events
            .iter()
            .filter(|event| event["kind"] == "egress")
            .map(|event| event["refusal"].clone())
            .collect(),
        None => Vec::new(),
    };
    format!("{code} {egress:?} {}", error(&outcome).1)
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, step by step")]
async fn a_repository_is_cloned_fetched_and_pushed_by_the_route_alone() {
    let forge = Forge::plain().await;
    let bare = forge.repository("project", &[("README.md", "hello\n"), ("src/a.txt", "a\n")]);
    let world = forge.world(&settings(""));
    let outcome = world.call("gitClone", url(FORGE, "project")).await;
    assert_eq!(
        outcome.status,
        Status::Done,
        "{outcome:?} {:?}",
        world.entry(&outcome)
    );
    let value = outcome.value.clone().unwrap();
    assert_eq!(
        (&value["directory"], &value["branch"]),
        (&json!("project"), &json!("main"))
    );
    assert_eq!(value["commit"], json!(git(&bare, &["rev-parse", "HEAD"])));
    assert!(value["bytesReceived"].as_u64().unwrap() > 0);
    let clone = world.home.path.join("workspace/project");
    assert_eq!(
        std::fs::read_to_string(clone.join("src/a.txt")).unwrap(),
        "a\n"
    );
    // The true address stays, and no hook was installed.
    let config = std::fs::read_to_string(clone.join(".git/config")).unwrap();
    assert!(
        config.contains(&format!("https://{FORGE}/project.git")),
        "{config}"
    );
    assert!(!clone.join(".git/hooks").exists());
    // Only the two requests of the service were made, and each is on record.
    for asked in forge.asked() {
        assert!(asked.contains("git-upload-pack"), "{asked}");
    }
    let hops = events(&world, &outcome);
    let hop = hops
        .iter()
        .find(|event| event["kind"] == "egress" && event["host"] == FORGE);
    assert_eq!(hop.unwrap()["route"], "git");
    // New commits there are fetched.
    let work = forge.root.join("project-work");
    std::fs::write(work.join("new.txt"), "new\n").unwrap();
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "-m", "second"]);
    git(&work, &["push", "-q", &bare.display().to_string(), "main"]);
    let repository = json!({"repository": "project"});
    let fetched = done(&world, "gitFetch", repository.clone()).await;
    assert_eq!(
        fetched["updated"][0]["commit"],
        json!(git(&bare, &["rev-parse", "main"]))
    );
    // A commit here is pushed, as a new branch.
    done(
        &world,
        "gitBranch",
        json!({"repository": "project", "action": "create", "name": "topic"}),
    )
    .await;
    done(
        &world,
        "gitBranch",
        json!({"repository": "project", "action": "switch", "name": "topic"}),
    )
    .await;
    done(
        &world,
        "shell",
        json!({"command": "echo changed >> README.md", "workingDirectory": "project"}),
    )
    .await;
    let made = done(
        &world,
        "gitCommit",
        json!({"repository": "project", "message": "third", "all": true}),
    )
    .await;
    let pushed = done(&world, "gitPush", json!({"repository": "project"})).await;
    assert_eq!(
        (&pushed["branch"], &pushed["pushed"]),
        (&json!("topic"), &json!(true))
    );
    assert_eq!(json!(git(&bare, &["rev-parse", "topic"])), made["commit"]);
}

#[tokio::test]
async fn hosts_that_are_not_listed_are_not_reached() {
    let forge = Forge::plain().await;
    forge.repository("project", &[("a", "a\n")]);
    let world = forge.world(&settings(""));
    let told = refused(&world, url(OTHER, "project")).await;
    assert!(
        told.contains("host-not-in-allowlist") && told.contains("`toolbox.hosts`"),
        "{told}"
    );
    assert_eq!(forge.asked(), Vec::<String>::new());
    for bad in [
        "http://git.example.com/project.git",
        "ssh://git.example.com/project.git",
        "git://git.example.com/project.git",
        "ext::sh -c touch%20x",
        "file:///etc",
        "/etc",
        "https://user:word@git.example.com/project.git",
        "https://git.example.com/",
        "https://git.example.com/p.git?x=1",
        "-oProxyCommand=x",
    ] {
        let told = refused(&world, json!({"url": bad})).await;
        assert!(told.starts_with("argument.schema"), "{bad}: {told}");
    }
    assert_eq!(forge.asked(), Vec::<String>::new());
    // Without a listed host there is no network at all.
    let closed =
        forge.world("[toolbox]\nenabled = [\"git\"]\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n");
    let told = refused(&closed, url(FORGE, "project")).await;
    assert!(told.starts_with("host.denied"), "{told}");
}

#[tokio::test]
async fn redirects_are_followed_hop_by_hop_to_listed_hosts_only() {
    let forge = Forge::start(Box::new(|host, target| {
        let rest = target.strip_prefix("/old/project")?;
        let to = match host {
            FORGE => format!("https://{MIRROR}/project.git{rest}"),
            _ => return None,
        };
        redirect(&to)
    }))
    .await;
    forge.repository("project", &[("a", "a\n")]);
    let world = forge.world(&settings(""));
    let value = done(
        &world,
        "gitClone",
        json!({"url": format!("https://{FORGE}/old/project")}),
    )
    .await;
    assert_eq!(value["directory"], "project");
    let posted = forge
        .asked()
        .into_iter()
        .filter(|asked| asked.starts_with("POST"))
        .collect::<Vec<_>>();
    assert!(
        posted.iter().all(|asked| asked.contains(MIRROR)),
        "{posted:?}"
    );
    for to in [
        format!("https://{OTHER}/project.git/info/refs?service=git-upload-pack"),
        "https://inside.example.com/project.git/info/refs?service=git-upload-pack".to_owned(),
        "http://169.254.169.254/latest/info/refs?service=git-upload-pack".to_owned(),
        format!("http://{MIRROR}/project.git/info/refs?service=git-upload-pack"),
        format!("https://{MIRROR}/project.git/info/refs?service=git-receive-pack"),
        format!("https://{MIRROR}/anything"),
        "/again/info/refs?service=git-upload-pack".to_owned(),
    ] {
        let leads = to.clone();
        let forge = Forge::start(Box::new(move |_, target| {
            (target.starts_with("/project") || target.starts_with("/again"))
                .then(|| redirect(&leads))
                .flatten()
        }))
        .await;
        let world = forge.world(&settings(""));
        let told = refused(&world, url(FORGE, "project")).await;
        assert!(told.starts_with("git.failed"), "{to}: {told}");
        assert!(
            forge
                .asked()
                .iter()
                .all(|asked| !asked.contains(OTHER) && !asked.contains("inside")),
            "{:?}",
            forge.asked()
        );
    }
}

#[tokio::test]
async fn the_dumb_protocol_and_other_requests_do_not_exist() {
    // A server that answers as dumb ones do, with alternates that lead elsewhere.
    let forge = Forge::start(Box::new(|_, target| {
        let body = match target.split('?').next().unwrap() {
            "/project.git/info/refs" => {
                "0123456789012345678901234567890123456789\trefs/heads/main\n"
            }
            "/project.git/objects/info/http-alternates" => {
                "https://evil.example.com/project.git/objects\n"
            }
            _ => "ref: refs/heads/main\n",
        };
        Some(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }))
    .await;
    let world = forge.world(&settings(""));
    let told = refused(&world, url(FORGE, "project")).await;
    assert!(told.starts_with("git.failed"), "{told}");
    assert_eq!(forge.asked().len(), 1, "{:?}", forge.asked());
}

/// Git itself only knows that its route said no. What the caller is told is the cause, with the
/// setting that would help, in the words that `fetch` has for it.
#[tokio::test]
async fn a_repository_that_is_not_reached_tells_why_and_what_helps() {
    let forge = Forge::start(Box::new(|host, path| {
        let status = path.strip_prefix("/status/")?.get(..3)?;
        (host == FORGE).then(|| format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n"))
    }))
    .await;
    forge.repository("project", &[("a", "a\n")]);
    let hosts = format!("\"{FORGE}\", \"{MIRROR}:8443\", \"{CORP}\", \"{DOWN}\"");
    let toml = settings("").replace(&format!("\"{FORGE}\", \"{MIRROR}\""), &hosts);
    let world = forge.world(&toml);
    let strict = Home::new();
    strict.file("ringfence.toml", &toml);
    let strict = forge.world_that_trusts(strict, TlsTrust::system(None));
    let not_listed =
        |host: &str| format!("`{host}:443` is not in `toolbox.hosts` (host-not-in-allowlist)");
    let at = |status: &str| format!("{FORGE} answered {status}; a repository that is not public");
    for (world, address, expected) in [
        (&world, format!("https://{OTHER}/a.git"), not_listed(OTHER)),
        // Listed with another port only.
        (
            &world,
            format!("https://{MIRROR}/a.git"),
            not_listed(MIRROR),
        ),
        (
            &world,
            format!("https://{CORP}/a.git"),
            "`network.private_hosts` (resolved-private-ip)".to_owned(),
        ),
        (
            &world,
            format!("https://{DOWN}/a.git"),
            format!("could not connect to {DOWN}: "),
        ),
        (
            &strict,
            format!("https://{FORGE}/a.git"),
            "`network.ca_file` (tls)".to_owned(),
        ),
        (
            &world,
            format!("https://{FORGE}/status/401/a.git"),
            at("401"),
        ),
        (
            &world,
            format!("https://{FORGE}/status/403/a.git"),
            at("403"),
        ),
        (
            &world,
            format!("https://{FORGE}/status/500/a.git"),
            format!("{FORGE} answered 500 (http-status)"),
        ),
    ] {
        let told = refused(world, json!({"url": address})).await;
        assert!(told.starts_with("git.failed"), "{address}: {told}");
        assert!(told.contains(&expected), "{address}: {told}");
        // What git says of it is false for most causes.
        assert!(!told.contains("unable to access"), "{address}: {told}");
    }
}

/// A call that is not made: what it would be given, the hosts it has left, and whether the one
/// it names is among them.
#[tokio::test]
async fn a_call_that_is_not_made_shows_the_hosts_it_has_left() {
    let forge = Forge::plain().await;
    let world = forge.world(&settings(&format!("[access]\nhosts = [\"{FORGE}\"]\n")));
    let powers = |tool: &str, arguments: Value| {
        let caller = model::caller::Caller::named("ann");
        let request = CallRequest::new(caller, model::caller::Origin::Mcp, tool, arguments);
        let gates = world.engine.explain(&request).closing.gates;
        let gate = gates.into_iter().rfind(|gate| gate.gate == "powers");
        gate.and_then(|gate| gate.note).unwrap_or_default()
    };
    let hosts = format!("hosts: {FORGE}, {MIRROR}; hosts held to {FORGE}");
    for (tool, arguments, given) in [
        ("shell", json!({"command": "true"}), "a jail"),
        ("gitClone", url(FORGE, "project"), "a jail"),
    ] {
        let told = powers(tool, arguments);
        assert!(
            told.starts_with(&format!("{given}; {hosts}")),
            "{tool}: {told}"
        );
        assert!(
            !told.contains("fetch") && !told.contains("not among"),
            "{tool}: {told}"
        );
    }
    for host in [OTHER, MIRROR] {
        let told = powers("gitClone", url(host, "project"));
        let expected = format!("`{host}:443` is not among them");
        assert!(told.contains(&expected), "{host}: {told}");
    }
    let status = json!({"job": "0123456789abcdef0123456789abcdef"});
    assert_eq!(powers("jobStatus", status), "no program; no network");
    assert_eq!(powers("gitStatus", json!({})), "a jail; no network");
}

#[tokio::test]
async fn a_call_that_fetches_cannot_push_and_a_program_has_no_other_way_out() {
    let forge = Forge::plain().await;
    let bare = forge.repository("project", &[("a", "a\n")]);
    let world = forge.world(&settings(""));
    done(&world, "gitClone", url(FORGE, "project")).await;
    // A rule that forbids pushing holds for the tool that pushes, not for the one that fetches.
    let world = {
        let home = world.home.path.join("ringfence.toml");
        let text = std::fs::read_to_string(&home).unwrap();
        let text = format!(
            "{text}\n[[rule]]\nid = \"no-push\"\nactions = [\"vcs:push\"]\neffect = \"deny\"\n"
        );
        std::fs::write(&home, text).unwrap();
        world
    };
    done(&world, "gitFetch", json!({"repository": "project"})).await;
    let outcome = world
        .call("gitPush", json!({"repository": "project"}))
        .await;
    assert_eq!(error(&outcome).0, "rule.denied");
    assert!(
        forge
            .asked()
            .iter()
            .all(|asked| !asked.contains("receive-pack"))
    );
    let _ = bare;
}

#[tokio::test]
async fn a_credential_goes_to_its_host_and_never_to_git() {
    let forge = Forge::start(Box::new(|host, target| {
        let rest = target.strip_prefix("/moved.git")?;
        (host == FORGE).then(|| redirect(&format!("https://{MIRROR}/project.git{rest}")))?
    }))
    .await;
    forge.repository("project", &[("a", "a\n")]);
    let connection = format!(
        "[connections.forge]\nkind = \"git\"\nhost = \"{FORGE}\"\nuser = \"bot\"\ncredential = \"FORGE_TOKEN\"\ncallers = [\"ann\"]\n\
         [callers.ann]\nanswers = \"L5\"\n"
    );
    let home = Home::new();
    home.file("ringfence.toml", &format!("{}{connection}", settings("")));
    home.file("secrets.env", "FORGE_TOKEN=token-of-the-forge\n");
    use std::os::unix::fs::PermissionsExt as _;
    let secrets = home.path.join("secrets.env");
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).unwrap();
    let world = forge.world_in(home);
    let mut arguments = url(FORGE, "project");
    arguments["connection"] = json!("forge");
    let outcome = world.call("gitClone", arguments.clone()).await;
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    let basic = "[Basic Ym90OnRva2VuLW9mLXRoZS1mb3JnZQ==]";
    assert!(
        forge.asked().iter().all(|asked| asked.ends_with(basic)),
        "{:?}",
        forge.asked()
    );
    let config =
        std::fs::read_to_string(world.home.path.join("workspace/project/.git/config")).unwrap();
    assert!(
        !config.contains("token") && !config.contains("Ym90"),
        "{config}"
    );
    assert!(!format!("{:?} {:?}", outcome, world.entry(&outcome)).contains("token-of"));
    // Elsewhere it does not go, not even by a redirect to a listed host.
    forge.asked.lock().unwrap().clear();
    done(&world, "gitClone", json!({"url": format!("https://{FORGE}/moved.git"), "directory": "moved", "connection": "forge"})).await;
    for asked in forge.asked() {
        assert_eq!(asked.contains("Basic"), asked.contains(FORGE), "{asked}");
    }
    // Another host, another caller, another name, and a push that it does not allow.
    let told = refused(
        &world,
        json!({"url": format!("https://{MIRROR}/project.git"), "directory": "m", "connection": "forge"}),
    )
    .await;
    assert!(told.contains("no connection"), "{told}");
    let bob = CallRequest::new(
        model::caller::Caller::named("bob"),
        model::caller::Origin::Mcp,
        "gitClone",
        json!({"url": format!("https://{FORGE}/project.git"), "directory": "b", "connection": "forge"}),
    );
    let outcome = world.made(bob).await;
    assert!(error(&outcome).1.contains("no connection"), "{outcome:?}");
    let outcome = world
        .call(
            "gitPush",
            json!({"repository": "project", "connection": "forge"}),
        )
        .await;
    assert!(
        error(&outcome).1.contains("does not allow pushes"),
        "{outcome:?}"
    );
}

/// One folder of cases per family of past faults: submodules, links, names, settings that a
/// repository brings, escapes in what the far side says.
#[tokio::test]
async fn hostile_repositories_run_nothing_and_leave_nothing_outside() {
    let forge = Forge::plain().await;
    let world = forge.world(&settings(""));
    let workspace = world.home.path.join("workspace");
    for (name, build) in hostile() {
        let bare = forge.root.join(format!("{name}.git"));
        build(&forge.root, &bare);
        let outcome = world.call("gitClone", url(FORGE, name)).await;
        let ran: Vec<_> = found(&workspace, "RAN");
        assert!(ran.is_empty(), "{name}: {ran:?}");
        assert!(
            found(&world.home.path.join("tools"), "").is_empty(),
            "{name}"
        );
        if outcome.status == Status::Done {
            let clone = workspace.join(name);
            assert!(!clone.join(".git/hooks/post-checkout").exists(), "{name}");
            assert!(!clone.join(".git/modules").exists(), "{name}");
            // Everything that looks at it afterwards runs nothing either.
            for tool in ["gitStatus", "gitLog", "gitDiff", "gitShow"] {
                world.call(tool, json!({"repository": name})).await;
            }
            assert!(found(&workspace, "RAN").is_empty(), "{name}");
        }
        // No other host was asked for anything, whatever the repository names.
        assert!(
            forge.asked().iter().all(|asked| asked.contains(FORGE)),
            "{name}"
        );
    }
}

/// Files below a folder whose names begin so.
pub(crate) fn found(folder: &Path, start: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(start) {
                found.push(entry.path().display().to_string());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    found
}

type Build = Arc<dyn Fn(&Path, &Path)>;

/// Makes a bare repository from a tree described to `git update-index` and `git mktree`.
fn from_index(root: &Path, bare: &Path, entries: &[(&str, &str, &str)]) {
    let work = root.join(format!("w-{}", bare.file_name().unwrap().to_string_lossy()));
    std::fs::create_dir_all(&work).unwrap();
    git(&work, &["init", "-q", "-b", "main"]);
    for (mode, path, text) in entries {
        let object = match *mode {
            "160000" => "1234567890123456789012345678901234567890".to_owned(),
            _ => {
                std::fs::write(work.join("x-blob"), text).unwrap();
                let object = git(&work, &["hash-object", "-w", "x-blob"]);
                std::fs::remove_file(work.join("x-blob")).unwrap();
                object
            }
        };
        let entry = format!("{mode},{object},{path}");
        git(
            &work,
            &[
                "-c",
                "core.protectNTFS=false",
                "-c",
                "core.protectHFS=false",
                "update-index",
                "--add",
                "--cacheinfo",
                &entry,
            ],
        );
    }
    let tree = git(&work, &["write-tree"]);
    let commit = git(&work, &["commit-tree", "-m", "hostile", &tree]);
    git(&work, &["update-ref", "refs/heads/main", &commit]);
    git(
        root,
        &[
            "clone",
            "-q",
            "--bare",
            &work.display().to_string(),
            &bare.display().to_string(),
        ],
    );
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn hostile() -> Vec<(&'static str, Build)> {
    let hook = "#!/bin/sh\ntouch RAN-hook\n";
    let case = |entries: Vec<(&'static str, &'static str, &'static str)>| -> Build {
        Arc::new(move |root: &Path, bare: &Path| from_index(root, bare, &entries))
    };
    vec![
        // A submodule whose address is an option, a command, or a path.
        (
            "submodule-option",
            case(vec![
                ("160000", "sub", ""),
                (
                    "100644",
                    ".gitmodules",
                    "[submodule \"sub\"]\n\tpath = sub\n\turl = -u./payload\n",
                ),
            ]),
        ),
        (
            "submodule-ext",
            case(vec![
                ("160000", "sub", ""),
                (
                    "100644",
                    ".gitmodules",
                    "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c 'touch RAN-ext'\n\tupdate = !touch RAN-update\n",
                ),
            ]),
        ),
        (
            "submodule-elsewhere",
            case(vec![
                ("160000", "sub", ""),
                (
                    "100644",
                    ".gitmodules",
                    "[submodule \"sub\"]\n\tpath = sub\n\turl = https://evil.example.com/x.git\n",
                ),
            ]),
        ),
        // A link that stands in the way of a submodule, with a hook behind it.
        (
            "submodule-link",
            case(vec![
                ("120000", "A/modules", ".git"),
                ("100755", "hooks/post-checkout", hook),
                ("160000", "a/modules/x", ""),
                (
                    "100644",
                    ".gitmodules",
                    "[submodule \"x/y\"]\n\tpath = a/modules/x\n\turl = https://git.example.com/x.git\n",
                ),
            ]),
        ),
        // A name that ends in a carriage return.
        (
            "submodule-return",
            case(vec![
                ("160000", "sub", ""),
                (
                    "100644",
                    ".gitmodules",
                    "[submodule \"sub\"]\n\tpath = \"sub\r\"\n\turl = https://git.example.com/x.git\n",
                ),
            ]),
        ),
        // Links out of the tree.
        (
            "links",
            case(vec![
                ("120000", "outside", "/etc"),
                ("120000", "home", "../../secrets.env"),
                ("120000", "hooks", ".git/hooks"),
            ]),
        ),
        // Attributes that ask for filters, diffs and merges by name.
        (
            "attributes",
            case(vec![
                (
                    "100644",
                    ".gitattributes",
                    "* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\n",
                ),
                ("100644", "file", "text\n"),
            ]),
        ),
        // Names that other file systems take for `.git`.
        (
            "lookalike",
            case(vec![
                ("100755", "git~1/hooks/post-checkout", hook),
                ("100755", ".git /hooks/post-checkout", hook),
            ]),
        ),
        // A repository within the tree, as ordinary files.
        (
            "bare-inside",
            case(vec![
                ("100644", "inner/HEAD", "ref: refs/heads/main\n"),
                (
                    "100644",
                    "inner/config",
                    "[core]\n\tfsmonitor = touch RAN-inner\n\tbare = true\n",
                ),
                ("100644", "inner/objects/keep", ""),
                ("100644", "inner/refs/keep", ""),
            ]),
        ),
        // Escapes in what is shown.
        (
            "escapes",
            case(vec![("100644", "\u{1b}]0;title\u{7}", "x\n")]),
        ),
    ]
}
