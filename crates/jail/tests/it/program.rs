//! Real programs start, with the environment they were given and no other.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jail::{JailFault, resolve_program};
use serde_json::json;

use crate::help::{Scratch, User, is_closed};

#[test]
fn shells_interpreters_and_scripts_start() {
    for user in User::all() {
        let scratch = Scratch::new(user);
        let script = scratch.path("project/script");
        fs::write(&script, "#!/usr/bin/env python3\nprint('a script')\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        scratch.give("project/script");
        let mut commands = vec![
            (vec!["/bin/sh", "-c", "echo $0 | tr a b", "a"], "b\n"),
            (
                vec!["/usr/bin/python3", "-c", "import ssl, json; print(1)"],
                "1\n",
            ),
            (vec![script.to_str().unwrap()], "a script\n"),
        ];
        // Not on every machine.
        if resolve_program("node", "/usr/local/bin:/usr/bin").is_ok() {
            let line = "console.log(process.memoryUsage().rss > 0, os.cpus().length > 0)";
            commands.push((vec!["node", "-e", line], "true true\n"));
        }
        for (command, expected) in commands {
            let mut request = scratch.request(&command);
            request["environment"] = json!({"PATH": "/usr/local/bin:/usr/bin:/bin"});
            assert_eq!(scratch.run(&request).done(), expected, "{command:?}");
        }
    }
}

#[test]
fn a_program_that_starts_programs_hears_of_their_end() {
    let scratch = Scratch::new(User::Same);
    let script = "import subprocess as s\n\
                  print(s.run(['/bin/sh', '-c', 'echo $((1+2)); exit 3'], capture_output=True))";
    let ran = scratch.run(&scratch.attack(script, &[]));
    assert!(
        ran.done().contains("returncode=3, stdout=b'3\\n'"),
        "{ran:?}"
    );
}

#[test]
fn an_installation_in_the_home_is_given_but_not_what_lies_beside() {
    let scratch = Scratch::new(User::Same);
    for folder in [
        "home/.runtime",
        "home/.runtime/bin",
        "home/.runtime/lib",
        "home/bin",
    ] {
        fs::create_dir(scratch.path(folder)).unwrap();
    }
    fs::write(scratch.path("home/.runtime/lib/library"), "library\n").unwrap();
    fs::write(scratch.path("home/.runtime/credentials"), "secret\n").unwrap();
    fs::write(scratch.path("home/bin/other"), "other\n").unwrap();
    let program = scratch.path("home/.runtime/bin/program");
    let script = "#!/bin/sh\ncat \"${0%/bin/*}/lib/library\" \"$1\"\nexit 0\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (name, file) in [
        (".runtime/bin/program", "home/.runtime/credentials"),
        (".runtime/bin/program", "home/canary"),
        (".runtime/bin/program", "home/bin/other"),
    ] {
        let program = scratch.path("home").join(name);
        let file = scratch.text(file);
        let ran = scratch.run(&scratch.request(&[program.to_str().unwrap(), &file]));
        assert_eq!(ran.done(), "library\n", "{file}");
        assert!(ran.stderr.contains("No such file"), "{ran:?}");
    }
    // A link in `~/bin` leads to the installation, and `~/bin` opens nothing beside it.
    std::os::unix::fs::symlink(&program, scratch.path("home/bin/program")).unwrap();
    let line = scratch.text("home/bin/program");
    let canary = scratch.text("home/canary");
    let ran = scratch.run(&scratch.request(&[&line, &canary]));
    assert!(ran.stderr.contains("canary: No such file"), "{ran:?}");
}

#[test]
fn the_environment_is_the_list() {
    let scratch = Scratch::new(User::Same);
    let mut request = scratch.request(&["/usr/bin/env"]);
    request["environment"] = json!({"TOKEN": "declared", "PYTHONUNBUFFERED": "1"});
    let mut parent = scratch.user.command(crate::help::PROGRAM);
    parent.arg("run").env_clear().envs([
        ("PATH", "/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("LC_TIME", "C"),
        ("TZ", "UTC"),
        ("HOME", "/root"),
        ("LD_LIBRARY_PATH", "/nowhere"),
        ("NODE_OPTIONS", "--require=/nowhere"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("SSH_AUTH_SOCK", "/nowhere"),
        ("BASH_ENV", "/nowhere"),
    ]);
    let own = scratch.text("home/.ringfence/own");
    let ran = scratch.run_by(&request, parent);
    let mut found: Vec<&str> = ran.done().lines().collect();
    found.sort_unstable();
    let expected = [
        format!("HOME={own}"),
        "LANG=C.UTF-8".to_owned(),
        "LC_TIME=C".to_owned(),
        "PATH=/usr/bin:/bin".to_owned(),
        "PYTHONUNBUFFERED=1".to_owned(),
        format!("TMPDIR={own}/tmp"),
        "TOKEN=declared".to_owned(),
        "TZ=UTC".to_owned(),
    ];
    assert_eq!(found, expected);
    assert!(is_closed(&scratch.path("home/.ringfence/own")));
}

#[test]
fn the_streams_are_the_childs_own() {
    let scratch = Scratch::new(User::Same);
    let mut request = scratch.request(&["/bin/sh", "-c", "cat; echo wrong >&2; exit 3"]);
    request["input"] = json!("in and out");
    let ran = scratch.run(&request);
    assert_eq!(
        (ran.exit.as_str(), ran.stdout.as_str()),
        ("Code(3)", "in and out")
    );
    assert_eq!(ran.stderr, "wrong\n");
}

#[test]
fn a_program_that_is_not_there_is_one_sentence() {
    let sentence = |name: &str| match resolve_program(name, "/usr/bin:relative:/bin") {
        Err(JailFault::Program(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        sentence("no-such-program"),
        "there is no program `no-such-program` in PATH; install it, or give its absolute path"
    );
    assert_eq!(
        sentence("./server"),
        "`./server` is a relative path; give the absolute one"
    );
    assert_eq!(
        sentence("/etc/passwd"),
        "`/etc/passwd` is not an executable file"
    );
    assert_eq!(sentence(""), "the command is empty; name a program");
    assert_eq!(
        sentence("/no/such"),
        "could not find the program `/no/such`: No such file or directory (os error 2)"
    );
    let found = resolve_program("sh", "/usr/bin:/bin").unwrap();
    assert_eq!(found.to_str(), Some("/usr/bin/sh"));
}

#[test]
fn a_file_that_cannot_be_executed_is_said() {
    let scratch = Scratch::new(User::Same);
    let broken = scratch.path("project/broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = scratch.run(&scratch.request(&[broken.to_str().unwrap()]));
    assert!(
        ran.fault.starts_with("could not execute `") && ran.fault.contains("No such file"),
        "{}",
        ran.fault
    );
}
