//! What cannot be declared, each with one sentence.

use std::os::unix::fs::symlink;
use std::path::Path;

use jail::{JailFault, JailSettings};

use crate::help::{Scratch, User, this_program};

async fn sentence(settings: JailSettings) -> String {
    match jail::spawn(settings, &this_program()).await {
        Err(JailFault::Settings(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

/// The sentence about `path` when it is declared, with the path itself left out.
async fn about(scratch: &Scratch, path: &Path) -> String {
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.read = vec![path.to_path_buf()];
    let read = sentence(settings).await;
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.write = vec![path.to_path_buf()];
    assert_eq!(sentence(settings).await, read);
    read.replace(path.to_str().unwrap(), "PATH")
}

#[tokio::test]
async fn ringfences_own_folder_stays_closed() {
    let scratch = Scratch::new(User::Same);
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.user_home = None;
    for path in ["home/.ringfence", "home", "", "home/.ringfence/key"] {
        let mut settings = settings.clone();
        settings.read = vec![scratch.path(path)];
        let sentence = sentence(settings).await;
        assert!(
            sentence.ends_with(
                "cannot be declared: it holds Ringfence's own folder or lies in it; declare a narrower folder"
            ),
            "{sentence}"
        );
    }
}

#[tokio::test]
async fn the_users_home_as_a_whole_stays_closed() {
    let scratch = Scratch::new(User::Same);
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.private = Vec::new();
    for path in [scratch.path("home"), scratch.root.clone(), "/".into()] {
        let mut settings = settings.clone();
        settings.write = vec![path];
        let sentence = sentence(settings).await;
        assert!(
            sentence.ends_with(
                "cannot be declared: it is the user's home or holds it; declare a folder in it"
            ),
            "{sentence}"
        );
    }
}

#[tokio::test]
async fn bad_paths_are_said() {
    let scratch = Scratch::new(User::Same);
    assert_eq!(
        about(&scratch, Path::new("relative")).await,
        "`PATH` is not an absolute path"
    );
    assert_eq!(
        about(&scratch, &scratch.path("nowhere")).await,
        "could not find `PATH`, which is declared: No such file or directory (os error 2); create it or take it out"
    );
    assert_eq!(
        about(&scratch, Path::new("/dev")).await,
        "`PATH` cannot be declared: it belongs to the kernel; take it out"
    );
}

#[tokio::test]
async fn a_link_the_child_could_have_made_is_not_followed() {
    let scratch = Scratch::new(User::Same);
    symlink(scratch.path("home/canary"), scratch.path("project/link")).unwrap();
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.read = vec![scratch.path("project/link")];
    // Nothing that can be written holds the link: it is the owner's.
    let mut child = jail::spawn(settings.clone(), &this_program())
        .await
        .unwrap();
    child.wait().await;
    settings.write = vec![scratch.path("project")];
    let sentence = sentence(settings).await;
    assert!(
        sentence.ends_with("is a link that the program could have made; declare what it leads to"),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_system_folder_does_not_open_a_private_one_in_it() {
    let scratch = Scratch::new(User::Same);
    // As packages do: Ringfence's folder lies below `/etc`, `/opt` or `/usr`.
    let private = Path::new("/usr/share/doc");
    let script =
        "ls /usr/share > /dev/null && echo other; ls /usr/bin/env; ls /usr/share/doc; true";
    let mut settings = scratch.settings(&["/bin/sh", "-c", script]);
    let open = output(settings.clone()).await;
    assert!(open.contains("other") && open.lines().count() > 5, "{open}");
    settings.private.push(private.to_path_buf());
    // The folder around it is there without it, or not there.
    let closed = output(settings).await;
    assert_eq!(closed.replace("other\n", ""), "/usr/bin/env\n");
}

async fn output(settings: JailSettings) -> String {
    let mut child = jail::spawn(settings, &this_program()).await.unwrap();
    let stdout = child.stdout.take().unwrap();
    child.wait().await;
    let mut all = vec![0; 64 << 10];
    stdout.readable().await.unwrap();
    let count = stdout.try_read(&mut all).unwrap();
    all.truncate(count);
    String::from_utf8(all).unwrap()
}

#[tokio::test]
async fn variables_that_are_not_the_owners_to_set_are_said() {
    let scratch = Scratch::new(User::Same);
    for (name, expected) in [
        (
            "LD_PRELOAD",
            "`LD_PRELOAD` cannot be declared: it makes the loader run other code; take it out",
        ),
        (
            "HOME",
            "`HOME` cannot be declared: it is the program's own folder; declare folders in `read` and `write`",
        ),
        ("A=B", "`A=B` is not a name of an environment variable"),
    ] {
        let mut settings = scratch.settings(&["/bin/true"]);
        settings.environment.insert(name.to_owned(), "x".to_owned());
        assert_eq!(sentence(settings).await, expected);
    }
}

#[tokio::test]
async fn sizes_are_bounded() {
    let scratch = Scratch::new(User::Same);
    let long = "x".repeat(200 << 10);
    let settings = scratch.settings(&["/bin/echo", &long]);
    assert!(
        sentence(settings)
            .await
            .starts_with("the command has 2 words and")
    );
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.environment.insert("LONG".to_owned(), long);
    assert!(sentence(settings).await.starts_with("the environment has"));
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.read = vec![scratch.path("project"); 300];
    assert_eq!(
        sentence(settings).await,
        "300 folders and files are declared; at most 256 can be"
    );
}

#[test]
fn settings_do_not_print_secrets() {
    let scratch = Scratch::new(User::Same);
    let mut settings = scratch.settings(&["/bin/true", "--token=hidden"]);
    settings
        .environment
        .insert("TOKEN".to_owned(), "hidden".to_owned());
    let printed = format!("{settings:?}");
    assert!(printed.contains("TOKEN") && printed.contains("/bin/true"));
    assert!(!printed.contains("hidden"), "{printed}");
}
