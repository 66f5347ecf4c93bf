//! Native tools from outside: commands, code, jobs and local repositories in the jail.

use std::path::Path;
use std::time::{Duration, Instant};

use engine::call::{CallRequest, Progress};
use model::caller::{Caller, Origin};
use model::record::audit::{Act, Status};
use model::record::outcome::Outcome;
use serde_json::{Value, json};
use store::Filter;

use crate::toolbox_folder::Project;
use crate::world::{Home, World, error};

/// Everything enabled, and no question.
pub(crate) const OPEN: &str = "[toolbox]\nenabled = [\"terminal\", \"code\", \"git\"]\n\
    [[rule]]\nid = \"all\"\neffect = \"allow\"\n";

pub(crate) fn world(settings: &str) -> World {
    let home = Home::new();
    home.file("ringfence.toml", settings);
    World::with(home, |_| ())
}

pub(crate) async fn done(world: &World, tool: &str, arguments: Value) -> Value {
    let outcome = world.call(tool, arguments).await;
    assert_eq!(outcome.status, Status::Done, "{tool}: {outcome:?}");
    outcome.value.unwrap_or_default()
}

async fn shell(world: &World, command: &str) -> Value {
    done(world, "shell", json!({"command": command})).await
}

/// The events of a call's record.
pub(crate) fn events(world: &World, outcome: &Outcome) -> Vec<Value> {
    world.entry(outcome).closing.unwrap().events
}

/// Whether a process of this machine has a word in its command line.
fn is_running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|entry| std::fs::read(entry.path().join("cmdline")));
    lines
        .flatten()
        .any(|line| String::from_utf8_lossy(&line).contains(word))
}

/// Waits for a condition, and fails loudly if it never comes.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        // Sleeps: other processes are looked at, and nothing tells of their end.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn nothing_exists_until_it_is_enabled() {
    let world = world("");
    for tool in ["shell", "runCode", "gitStatus", "jobList"] {
        let outcome = world.call(tool, json!({})).await;
        assert_eq!(error(&outcome).0, "tool.unknown", "{tool}");
    }
    let outcome = world.own_call("shell", json!({"command": "true"})).await;
    assert!(error(&outcome).1.contains("toolbox.enabled"), "{outcome:?}");
}

#[tokio::test]
async fn a_command_runs_and_the_record_tells_it() {
    let world = world(OPEN);
    let command = "echo hello; echo oops >&2; cat; exit 3";
    let arguments = json!({"command": command, "stdin": "from stdin"});
    let outcome = world.call("shell", arguments).await;
    let value = outcome.value.clone().unwrap();
    assert_eq!(value["exitCode"], 3);
    assert_eq!(value["ended"], "exited");
    assert_eq!(value["stdout"], "hello\nfrom stdin");
    assert_eq!(value["stderr"], "oops\n");
    let events = events(&world, &outcome);
    let process = events
        .iter()
        .find(|event| event["kind"] == "process")
        .unwrap();
    assert_eq!(process["backend"], "jail");
    assert_eq!(
        (&process["exitCode"], &process["stdoutBytes"]),
        (&json!(3), &json!(16))
    );
    assert!(process["rung"].is_string(), "{process}");
    assert!(world.gates(&outcome).contains(&"powers pass".to_owned()));
    world.assert_whole();
}

#[tokio::test]
async fn a_command_sees_its_workspace_and_nothing_of_ours() {
    let world = world(OPEN);
    world.home.file("secrets.env", "TOKEN=very-secret-value\n");
    let home = world.home.path.display().to_string();
    // The positive control: what it may see it sees, and the workspace stays.
    shell(&world, "mkdir -p sub && echo kept > sub/file").await;
    let value = done(
        &world,
        "shell",
        json!({"command": "cat file", "workingDirectory": "sub"}),
    )
    .await;
    assert_eq!(value["stdout"], "kept\n");
    for command in [
        format!("cat {home}/secrets.env"),
        format!("cat {home}/ringfence.toml"),
        format!("ls {home}/tools"),
        "cat /etc/shadow".to_owned(),
        "ls /root /hom?/*".to_owned(),
        "cat /proc/1/environ".to_owned(),
        "cat ../../secrets.env".to_owned(),
    ] {
        let value = shell(&world, &command).await;
        assert_ne!(value["exitCode"], 0, "{command}: {value}");
        assert!(
            !value["stdout"].as_str().unwrap().contains("secret"),
            "{value}"
        );
    }
    // Where it has folders of its own around the workspace, nothing it leaves there is ours.
    shell(
        &world,
        &format!("echo x > {home}/planted; echo x > {home}/tools/planted.json"),
    )
    .await;
    assert!(!world.home.path.join("planted").exists());
    assert!(!world.home.path.join("tools/planted.json").exists());
}

#[tokio::test]
async fn the_environment_is_empty_but_for_a_short_list() {
    let world = world(OPEN);
    let value = shell(&world, "env | cut -d= -f1 | sort").await;
    let names: Vec<_> = value["stdout"]
        .as_str()
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let known = [
        "HOME",
        "LANG",
        "LC_ALL",
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "TMPDIR",
        "TZ",
        "_",
        "RINGFENCE_CALLER",
        "RINGFENCE_CALL_ID",
    ];
    for name in &names {
        let is_locale = name.starts_with("LC_");
        assert!(known.contains(&name.as_str()) || is_locale, "{names:?}");
    }
    assert!(names.contains(&"RINGFENCE_CALL_ID".to_owned()));
}

#[tokio::test]
async fn no_host_is_reached_where_none_is_listed() {
    let world = world(OPEN);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The positive control: the host is there.
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let code =
        format!("import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nprint('in')");
    let value = done(
        &world,
        "runCode",
        json!({"language": "python", "code": code}),
    )
    .await;
    assert_ne!(value["exitCode"], 0, "{value}");
    assert!(!value["stdout"].as_str().unwrap().contains("in"));
}

#[tokio::test]
async fn nothing_a_command_started_outlives_it() {
    let world = world(OPEN);
    let word = format!("3141.{}", std::process::id());
    let value = shell(
        &world,
        &format!("setsid sleep {word} >/dev/null 2>&1 & (setsid sleep {word} &) ; sleep 0.2; echo started"),
    )
    .await;
    assert_eq!(value["stdout"], "started\n");
    assert!(!is_running(&word));
}

#[tokio::test]
async fn a_command_is_killed_with_all_it_started_when_its_time_is_over() {
    let world = world(OPEN);
    let word = format!("2718.{}", std::process::id());
    let command = format!("echo begun; sleep {word} & sleep {word}");
    let outcome = world
        .call("shell", json!({"command": command, "timeout": 1}))
        .await;
    let value = outcome.value.clone().unwrap();
    assert_eq!(
        (&value["ended"], &value["exitCode"]),
        (&json!("timed_out"), &Value::Null)
    );
    assert_eq!(value["stdout"], "begun\n");
    assert!(!is_running(&word));
    assert_eq!(events(&world, &outcome)[0]["ended"], "timed_out");
}

#[tokio::test]
async fn a_cancelled_call_takes_its_processes_along() {
    let world = world(OPEN);
    let word = format!("1618.{}", std::process::id());
    let arguments = json!({"command": format!("sleep {word}"), "timeout": 60});
    let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "shell", arguments);
    let cancel = request.cancel.clone();
    let calling = world.made(request);
    let ending = async {
        until("the command runs", async || is_running(&word)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(calling, ending);
    assert_eq!(outcome.status, Status::Cancelled);
    until("it is gone", async || !is_running(&word)).await;
    assert_eq!(events(&world, &outcome)[0]["ended"], "interrupted");
}

#[tokio::test]
async fn a_long_output_is_cut_in_the_middle() {
    let world = world(
        "[toolbox]\nenabled = [\"terminal\"]\noutput_bytes_max = 1000\n\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n",
    );
    let value = shell(&world, "echo first; yes | head -c 5000000; echo last").await;
    let text = value["stdout"].as_str().unwrap();
    assert!(text.len() < 1_100 && text.starts_with("first\n") && text.ends_with("last\n"));
    assert_eq!(
        (&value["truncated"], &value["stdoutBytes"]),
        (&json!(true), &json!(5_000_011))
    );
}

#[tokio::test]
async fn lines_come_as_progress() {
    let world = world(OPEN);
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let telling = std::sync::Arc::clone(&told);
    let arguments = json!({"command": "echo one; echo two >&2"});
    let mut request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "shell", arguments);
    request.progress = Some(Progress::new(move |line| {
        telling.lock().unwrap().push(line.to_owned());
    }));
    world.made(request).await;
    let mut told = told.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["stderr: two", "stdout: one"]);
}

#[tokio::test]
async fn code_runs_by_its_interpreter() {
    let world = world(OPEN);
    for (language, code, expected) in [
        (
            "python",
            "import sys\nprint(sum(range(5)), sys.flags.isolated)",
            "10 1\n",
        ),
        ("bash", "a=(1 2 3); echo ${#a[@]}", "3\n"),
        (
            "javascript",
            "console.log([1, 2].map((x) => x * 2).join())",
            "2,4\n",
        ),
    ] {
        let outcome = world
            .call("runCode", json!({"language": language, "code": code}))
            .await;
        match outcome.value.as_ref() {
            Some(value) => assert_eq!(value["stdout"], expected, "{language}: {value}"),
            // One clear sentence where the interpreter is not installed.
            None => {
                assert_eq!(error(&outcome).0, "program.missing", "{language}");
                assert_ne!(language, "python");
            }
        }
    }
    let outcome = world
        .call("runCode", json!({"language": "ruby", "code": "1"}))
        .await;
    assert_eq!(error(&outcome).0, "argument.schema");
}

#[tokio::test]
async fn a_working_directory_stays_below_the_folder() {
    let world = world(OPEN);
    shell(&world, "ln -s / out; mkdir -p in; touch file").await;
    for folder in ["..", "/", "in/../..", "out", "missing", "file"] {
        let arguments = json!({"command": "pwd", "workingDirectory": folder});
        let outcome = world.call("shell", arguments).await;
        assert_eq!(error(&outcome).0, "argument.schema", "{folder}");
    }
    let value = done(
        &world,
        "shell",
        json!({"command": "pwd", "workingDirectory": "in"}),
    )
    .await;
    assert!(
        value["stdout"].as_str().unwrap().ends_with("/in\n"),
        "{value}"
    );
}

#[tokio::test]
async fn rules_see_what_a_call_does_by_its_arguments() {
    let world = world(
        "[toolbox]\nenabled = [\"terminal\", \"git\"]\n\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n\
         [[rule]]\nid = \"no-loss\"\nactions = [\"code:delete\"]\neffect = \"deny\"\n",
    );
    let refused = |outcome: Outcome| error(&outcome).0 == "rule.denied";
    assert!(refused(
        world.call("shell", json!({"command": "true"})).await
    ));
    let branch = |arguments| world.call("gitBranch", arguments);
    assert!(refused(
        branch(json!({"action": "delete", "name": "x", "force": true})).await
    ));
    for allowed in [json!({}), json!({"action": "create", "name": "x"})] {
        // It gets as far as git, which finds no repository.
        assert_eq!(error(&branch(allowed).await).0, "git.failed");
    }
}

/// Lines by which a caller who may only `ls`, `cat`, `grep`, `sort` and `git` would run `touch`.
const RUNS_MORE: [&str; 26] = [
    "touch RAN",
    "ls; touch RAN",
    "ls & touch RAN",
    "ls && touch RAN",
    "nothing || touch RAN",
    "ls | xargs touch RAN",
    "ls $(touch RAN)",
    "ls `touch RAN`",
    "ls \"$(touch RAN)\"",
    "(touch RAN)",
    "{ touch RAN; }",
    "ls\ntouch RAN",
    "ls > RAN",
    "A=b touch RAN",
    "A=$(touch RAN) ls",
    "/usr/bin/touch RAN",
    "sh -c 'touch RAN'",
    "env touch RAN",
    "exec touch RAN",
    "eval 'touch RAN'",
    "command touch RAN",
    "if ls; then touch RAN; fi",
    "t\\ouch RAN",
    "f() { touch RAN; }; f",
    "git -c alias.x='!touch RAN' x",
    "git config --file x a.b c",
];

/// The positive control of the next test: without a list, each of them does it.
#[tokio::test]
async fn lines_that_run_more_than_one_command_do() {
    let world = world(OPEN);
    for command in RUNS_MORE {
        shell(&world, "rm -f RAN x").await;
        shell(&world, command).await;
        let told = shell(&world, "ls RAN x").await;
        assert_ne!(told["stdout"], "", "{command}");
    }
}

#[tokio::test]
async fn a_level_holds_commands_to_its_list() {
    let world = world(
        "[toolbox]\nenabled = [\"terminal\"]\n\
         [callers.ann]\nlevel = \"elevated\"\nconstraints.terminal = \"restricted_commands\"\n\
         constraints.code = \"any\"\nautonomy = \"full\"\n\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n",
    );
    let value = shell(&world, "ls 'a;b' .").await;
    assert_eq!(value["ended"], "exited");
    for command in RUNS_MORE {
        for tool in ["shell", "jobStart"] {
            // Explained, not called: a caller that is denied too often is paused.
            let arguments = json!({"command": command});
            let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, tool, arguments);
            let told = world.engine.explain(&request).told.unwrap();
            assert_eq!(told.reason.code(), "level.denied", "{tool} {command}");
        }
    }
    // What only looks at jobs runs no command.
    assert_eq!(done(&world, "jobList", json!({})).await["jobs"], json!([]));
}

#[tokio::test]
async fn a_background_job_goes_on_and_is_its_callers_own() {
    let world = world(OPEN);
    let command =
        "echo begun; cat /proc/self/nothing; while [ ! -e go ]; do sleep 0.05; done; echo over";
    let started = done(&world, "jobStart", json!({"command": command})).await;
    let job = started["job"].clone();
    let status = async || done(&world, "jobStatus", json!({"job": job})).await;
    assert_eq!(status().await["state"], "running");
    until("it has begun", async || {
        done(&world, "jobOutput", json!({"job": job})).await["text"] == "begun\n"
    })
    .await;
    let row = status().await;
    assert_eq!(
        (&row["stdoutBytes"], &row["exitCode"]),
        (&json!(6), &json!(null))
    );
    // Another caller cannot tell it from one that never was.
    for tool in ["jobStatus", "jobOutput", "jobCancel"] {
        let arguments = json!({"job": job});
        let other = Caller::named("bob");
        let request = CallRequest::new(other, Origin::Mcp, tool, arguments);
        assert_eq!(error(&world.made(request).await).0, "job.unknown");
    }
    shell(&world, "touch go").await;
    until("it is done", async || status().await["state"] == "done").await;
    let rest = done(&world, "jobOutput", json!({"job": job, "from": 6})).await;
    assert_eq!(
        (&rest["text"], &rest["next"]),
        (&json!("over\n"), &json!(11))
    );
    let errors = done(&world, "jobOutput", json!({"job": job, "stream": "stderr"})).await;
    assert!(!errors["text"].as_str().unwrap().is_empty());
    let listed = done(&world, "jobList", json!({})).await;
    assert_eq!(listed["jobs"][0]["job"], job);
    assert_eq!(listed["jobs"][0]["exitCode"], 0);
    let notices = world
        .engine
        .store()
        .audit()
        .notices(&Filter::default())
        .unwrap();
    assert!(format!("{notices:?}").contains("JobEnded"), "{notices:?}");
}

#[tokio::test]
async fn jobs_are_cancelled_bounded_and_timed() {
    let world = world(
        "[toolbox]\nenabled = [\"terminal\"]\njobs_per_caller_max = 2\n\
         [[rule]]\nid = \"all\"\neffect = \"allow\"\n",
    );
    let word = format!("5772.{}", std::process::id());
    let start = async |seconds: u64| {
        let arguments = json!({"command": format!("sleep {word}"), "seconds": seconds});
        world.call("jobStart", arguments).await
    };
    let first = start(600).await.value.unwrap()["job"].clone();
    let second = start(1).await.value.unwrap()["job"].clone();
    assert_eq!(error(&start(600).await).0, "job.too_many");
    let state =
        async |job: &Value| done(&world, "jobStatus", json!({"job": job})).await["state"].clone();
    until("its time is over", async || {
        state(&second).await == "timed_out"
    })
    .await;
    assert!(is_running(&word));
    let cancelled = done(&world, "jobCancel", json!({"job": first})).await;
    assert_eq!(cancelled["state"], "cancelled");
    assert!(!is_running(&word));
    // Both places are free again.
    assert_eq!(start(600).await.status, Status::Done);
    assert_eq!(start(600).await.status, Status::Done);
}

#[tokio::test]
async fn a_job_whose_server_ended_is_orphaned() {
    let world = world(OPEN);
    let word = format!("6931.{}", std::process::id());
    let arguments = json!({"command": format!("echo kept; sleep {word}")});
    let job = done(&world, "jobStart", arguments).await["job"].clone();
    until("it runs", async || {
        done(&world, "jobOutput", json!({"job": job})).await["text"] == "kept\n"
    })
    .await;
    let world = world.again(|_| ());
    until("it is gone", async || !is_running(&word)).await;
    let mut row = Value::Null;
    until("its end is known", async || {
        row = done(&world, "jobStatus", json!({"job": job})).await;
        row["state"] != "running"
    })
    .await;
    // Stopped with its engine, or found dead: either way it is over and its output is there.
    assert!(
        row["state"] == "orphaned" || row["state"] == "cancelled",
        "{row}"
    );
    let output = done(&world, "jobOutput", json!({"job": job})).await;
    assert_eq!(output["text"], "kept\n");
}

/// Set for the process that is killed.
const KILLED_HOME: &str = "RINGFENCE_TEST_JOB_HOME";

/// The server is killed, with no time to end anything: its job is gone with it, its state is
/// `orphaned`, what it wrote is there, and its place is free.
#[tokio::test]
async fn a_job_of_a_killed_server_is_orphaned_and_nothing_of_it_runs() {
    let word = |home: &Path| format!("2718.{}", home.file_name().unwrap().to_string_lossy().len());
    if let Ok(home) = std::env::var(KILLED_HOME) {
        let home = Path::new(&home);
        let engine =
            engine::Engine::open(crate::world::settings(home, &std::sync::Arc::default())).unwrap();
        let command = format!("echo kept; setsid sleep {0} & sleep {0}", word(home));
        let arguments = json!({"command": command});
        let request = CallRequest::new(Caller::named("ann"), Origin::Mcp, "jobStart", arguments);
        let outcome = engine.call(request).await.into_inner();
        let job = outcome.value.unwrap()["job"].as_str().unwrap().to_owned();
        let output = home.join("jobs").join(&job).join("stdout");
        until("it writes", async || {
            std::fs::read_to_string(&output).is_ok_and(|text| text.contains("kept"))
        })
        .await;
        std::fs::write(home.join("job-id"), &job).unwrap();
        let this = rustix::process::getpid();
        let _ = rustix::process::kill_process(this, rustix::process::Signal::KILL);
    }
    let home = Home::new();
    let project = Project::new();
    let more = format!(
        "jobs_per_caller_max = 1\nfolder = {:?}\n[[rule]]",
        project.path
    );
    let toml = OPEN.replace("[[rule]]", &more);
    home.file("ringfence.toml", &toml);
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "toolbox::a_job_of_a_killed_server_is_orphaned_and_nothing_of_it_runs",
            "--nocapture",
        ])
        .env(KILLED_HOME, &home.path)
        .status()
        .unwrap();
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(status.signal(), Some(9));
    let job = std::fs::read_to_string(home.path.join("job-id")).unwrap();
    let word = format!("sleep\0{}", word(&home.path));
    until("nothing of it runs", async || !is_running(&word)).await;
    let changes = home.path.join("changes");
    let staged = || std::fs::read_dir(&changes).unwrap().count();
    assert_eq!(staged(), 1);
    let world = World::with(home, |_| ());
    assert_eq!(staged(), 0);
    // On record before anyone asks, and once.
    let ends = || {
        let notices = world.engine.store().audit().notices(&Filter::default());
        let notices = notices.unwrap().into_iter().map(|entry| entry.notice);
        notices
            .filter(|notice| notice.act == Act::JobEnded)
            .collect::<Vec<_>>()
    };
    let [end] = ends().try_into().unwrap();
    assert_eq!(
        (end.about.as_deref(), end.by.as_str()),
        (Some(job.as_str()), "ann")
    );
    assert_eq!(end.details["state"], "orphaned", "{end:?}");
    assert!(!end.details["callId"].is_empty(), "{end:?}");
    let row = done(&world, "jobStatus", json!({"job": job})).await;
    assert_eq!(row["state"], "orphaned", "{row}");
    assert_eq!(ends().len(), 1);
    let output = done(&world, "jobOutput", json!({"job": job})).await;
    assert_eq!(output["text"], "kept\n");
    let next = world.call("jobStart", json!({"command": "true"})).await;
    assert_eq!(next.status, Status::Done, "{next:?}");
}

/// A repository in the workspace, made by git itself.
pub(crate) async fn repository(world: &World) {
    let made = shell(
        world,
        "git init -q -b main . && git config user.name x && git config user.email x@example.com \
         && echo one > file && git add file && git commit -q -m 'first commit'",
    )
    .await;
    assert_eq!(made["exitCode"], 0, "{made}");
}

#[tokio::test]
async fn a_repository_is_read_and_changed_by_typed_tools() {
    let world = world(OPEN);
    repository(&world).await;
    shell(&world, "echo two >> file; echo new > 'a name'").await;
    let status = done(&world, "gitStatus", json!({})).await;
    assert_eq!(status["branch"], "main");
    assert_eq!(
        status["entries"],
        json!([
            {"path": "file", "staged": null, "state": "modified"},
            {"path": "a name", "state": "untracked"},
        ])
    );
    let diff = done(&world, "gitDiff", json!({})).await;
    assert!(diff["diff"].as_str().unwrap().contains("+two"), "{diff}");
    let added = done(&world, "gitAdd", json!({"paths": ["a name"]})).await;
    assert_eq!(added["added"], json!(["a name"]));
    let made = done(
        &world,
        "gitCommit",
        json!({"message": "second\n\nbody", "all": true}),
    )
    .await;
    assert_eq!(
        (&made["subject"], &made["branch"]),
        (&json!("second"), &json!("main"))
    );
    let log = done(&world, "gitLog", json!({"maxCount": 1})).await;
    assert_eq!(log["commits"][0]["commit"], made["commit"]);
    assert_eq!(log["commits"][0]["author"], "ann");
    let show = done(&world, "gitShow", json!({"ref": "HEAD~1", "path": "file"})).await;
    assert_eq!(show["text"], "one\n");
    let branches = done(
        &world,
        "gitBranch",
        json!({"action": "create", "name": "topic"}),
    )
    .await;
    assert_eq!(branches["current"], "main");
    let switched = done(
        &world,
        "gitBranch",
        json!({"action": "switch", "name": "topic"}),
    )
    .await;
    assert_eq!(switched["current"], "topic");
    let nothing = world.call("gitCommit", json!({"message": "x"})).await;
    assert_eq!(error(&nothing).0, "git.failed");
}

#[tokio::test]
async fn arguments_cannot_become_options() {
    let world = world(OPEN);
    repository(&world).await;
    for (tool, arguments) in [
        ("gitLog", json!({"ref": "--output=planted"})),
        ("gitDiff", json!({"from": "--output=planted"})),
        ("gitShow", json!({"ref": "--output=planted"})),
        ("gitLog", json!({"ref": "a b"})),
        ("gitLog", json!({"ref": "HEAD:file"})),
        ("gitBranch", json!({"action": "create", "name": "-f"})),
        ("gitBranch", json!({"action": "create", "name": "@{-1}"})),
        ("gitCommit", json!({"message": "x", "author": "--amend"})),
        ("gitAdd", json!({"paths": ["a\nb"]})),
    ] {
        let outcome = world.call(tool, arguments.clone()).await;
        assert_ne!(outcome.status, Status::Done, "{tool} {arguments}");
    }
    // A path that looks like an option is a path; magic of pathspecs is off.
    shell(&world, "echo x > ./--all; echo y > ':(top)'").await;
    let added = done(&world, "gitAdd", json!({"paths": ["--all", ":(top)"]})).await;
    assert_eq!(added["added"], json!(["--all", ":(top)"]));
    let workspace = world.home.path.join("workspace");
    assert!(!workspace.join("planted").exists());
}

/// Attack: settings, attributes and hooks that anyone wrote.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of traps")]
async fn a_hostile_repository_runs_nothing() {
    let world = world(OPEN);
    repository(&world).await;
    let workspace = world.home.path.join("workspace");
    let mark = |name: &str| format!("touch {}/ran-{name}", workspace.display());
    let hostile = [
        ("core.fsmonitor", mark("fsmonitor")),
        ("core.pager", mark("pager")),
        ("core.editor", mark("editor")),
        ("core.sshCommand", mark("ssh")),
        ("core.askPass", mark("askpass")),
        ("diff.external", mark("external")),
        ("filter.evil.clean", format!("{}; cat", mark("clean"))),
        ("filter.evil.smudge", format!("{}; cat", mark("smudge"))),
        ("filter.evil.required", "true".to_owned()),
        ("filter.proc.process", mark("process")),
        ("diff.evil.textconv", mark("textconv")),
        ("diff.evil.command", mark("command")),
        ("merge.evil.driver", mark("merge")),
        ("gpg.program", mark("gpg")),
        ("commit.gpgSign", "true".to_owned()),
        ("log.showSignature", "true".to_owned()),
        ("credential.helper", format!("!{}", mark("credential"))),
        ("alias.status", format!("!{}", mark("alias"))),
        ("core.hooksPath", "hooks".to_owned()),
        ("sequence.editor", mark("sequence")),
    ];
    for (key, value) in &hostile {
        let value = value.replace('\'', "");
        let set = shell(&world, &format!("git config {key} '{value}'")).await;
        assert_eq!(set["exitCode"], 0, "{key}: {set}");
    }
    let hooks = "mkdir -p hooks .git/hooks; for hook in pre-commit post-commit commit-msg \
        prepare-commit-msg post-checkout post-index-change reference-transaction; do \
        for place in hooks .git/hooks; do printf '#!/bin/sh\\ntouch ran-hook-%s\\n' $hook > $place/$hook; \
        chmod +x $place/$hook; done; done; \
        echo 'file filter=evil diff=evil merge=evil' > .gitattributes; \
        echo 'other filter=proc' >> .gitattributes; echo x > other; echo changed > file";
    shell(&world, hooks).await;
    let ran = || -> Vec<String> {
        let entries = std::fs::read_dir(&workspace).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("ran-")).collect()
    };
    clear(&workspace);
    done(&world, "gitStatus", json!({})).await;
    done(&world, "gitDiff", json!({})).await;
    done(&world, "gitLog", json!({})).await;
    done(&world, "gitShow", json!({})).await;
    done(&world, "gitShow", json!({"path": "file"})).await;
    done(
        &world,
        "gitAdd",
        json!({"paths": ["file", "other", ".gitattributes"]}),
    )
    .await;
    done(&world, "gitCommit", json!({"message": "all of it"})).await;
    done(
        &world,
        "gitBranch",
        json!({"action": "create", "name": "topic", "startPoint": "HEAD~1"}),
    )
    .await;
    done(
        &world,
        "gitBranch",
        json!({"action": "switch", "name": "topic"}),
    )
    .await;
    assert_eq!(ran(), Vec::<String>::new());
    // The control: plain git does run them.
    shell(
        &world,
        "git switch -q main; git status; echo again > file; git add file",
    )
    .await;
    assert!(
        ran().iter().any(|name| name == "ran-fsmonitor"),
        "{:?}",
        ran()
    );
    assert!(ran().iter().any(|name| name == "ran-clean"), "{:?}", ran());
}

fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("ran-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}
