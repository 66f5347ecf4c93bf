//! A second Ringfence as the witness of a log: it cosigns growth, and notices a log that
//! was rolled back although nothing in that log's own home can show it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::limit::OVERTAKEN_HEAD_SECONDS_MAX;

use crate::ringfence;
use crate::run::scratch;
use crate::serve::{command, first_line, send, terminate};

fn run(home: &Path, words: &[&str]) -> String {
    let place = home.display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--home", &place]).collect();
    ringfence(&words).shown()
}

/// Makes a call in a home, which becomes two records or more.
fn make_call(home: &Path) {
    let done = run(home, &["run", "countWords", "--args", r#"{"text": "a"}"#]);
    assert!(done.starts_with("exit 0"), "{done}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

/// A log, and a second Ringfence that is its witness.
struct Scene {
    folder: PathBuf,
    log: PathBuf,
    witness: PathBuf,
    server: Child,
    /// Where the witness answers.
    url: String,
    /// The name of the log.
    name: String,
}

impl Scene {
    fn new(folder: &str) -> Scene {
        let folder = scratch(folder);
        let (log, witness) = (folder.join("log"), folder.join("witness"));
        make_call(&log);
        let key = named_line(&run(&log, &["audit", "key"]));
        fs::create_dir_all(&witness).unwrap();
        let settings = format!("[audit]\nwitness_of = [\"{key}\"]\n");
        fs::write(witness.join("ringfence.toml"), settings).unwrap();
        let mut server = command(&["serve", "--json", "--listen", "127.0.0.1:0"], &witness);
        let ready: Value = serde_json::from_str(&first_line(&mut server)).unwrap();
        let url = ready.get("url").unwrap().as_str().unwrap();
        Scene {
            url: url.replace("/mcp", "/witness"),
            name: key.split('+').next().unwrap().to_owned(),
            folder,
            log,
            witness,
            server,
        }
    }

    /// Shows a log to the witness.
    fn show(&self, log: &Path) -> String {
        run(log, &["audit", "witness", &self.url])
    }

    /// Posts what `audit witness` would, with another proof.
    fn post(&self, body: &str) -> String {
        let address = self.url.strip_prefix("http://").unwrap();
        let (address, _) = address.split_once('/').unwrap();
        send(address, "POST /witness/add-checkpoint HTTP/1.1\r\n", body)
    }

    /// What the witness said while it ran, and the notices about contradictions.
    fn end(&mut self) -> (String, String) {
        assert_eq!(terminate(&mut self.server), Some(0));
        let mut said = String::new();
        let mut errors = self.server.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        (
            said,
            run(&self.witness, &["audit", "list", "--kind", "notice"]),
        )
    }
}

/// The line of an answer that names a key.
fn named_line(said: &str) -> String {
    let line = said.lines().find(|line| line.starts_with("ringfence/"));
    line.unwrap().to_owned()
}

#[test]
fn a_second_ringfence_cosigns_growth() {
    let mut scene = Scene::new("witness");
    let other = scene.folder.join("other");
    make_call(&other);
    let first = scene.show(&scene.log);
    assert!(first.contains("cosigned  "), "{first}");
    make_call(&scene.log);
    let grown = scene.show(&scene.log);
    assert!(grown.contains("cosigned  "), "{grown}");
    assert_ne!(first, grown, "more records");
    // The same head again.
    assert_eq!(scene.show(&scene.log), grown);
    // The key of the witness, pinned: its own is taken, another is not.
    let shown_with = |home: &Path| {
        let key = named_line(&run(home, &["audit", "witness", "--key"]));
        let words = ["audit", "witness", &scene.url, "--witness-key", &key];
        run(&scene.log, &words)
    };
    assert_eq!(shown_with(&scene.witness), grown);
    let refused = shown_with(&other);
    assert!(refused.starts_with("exit 2"), "{refused}");
    assert!(refused.contains("the cosignature is not by"), "{refused}");
    assert!(
        refused.contains("the witness that `--witness-key` names"),
        "{refused}"
    );
    let whole = run(&scene.log, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
    // A log that the witness was not told of.
    let unknown = scene.show(&other);
    assert!(unknown.starts_with("exit 2"), "{unknown}");
    assert!(unknown.contains("the witness answers 404"), "{unknown}");
    let (said, _) = scene.end();
    assert!(!said.contains("in doubt"), "{said}");
    let list = run(&scene.witness, &["audit", "witness", "--list"]);
    assert!(list.contains(&scene.name), "{list}");
}

/// Attack: heads are public and proofs are not signed, so anyone can send a sound head of an
/// honest log with a proof that is none.
#[test]
fn a_made_up_proof_says_nothing_against_a_log() {
    let mut scene = Scene::new("witness-proof");
    scene.show(&scene.log);
    let shown = scene.show(&scene.log);
    assert!(shown.contains("cosigned  "), "{shown}");
    let head = |home: &Path| {
        let head = run(home, &["audit", "checkpoint"]);
        let (_, head) = head.split_once("ringfence/").unwrap();
        format!("ringfence/{head}")
    };
    let seen = head(&scene.log);
    let size = seen.lines().nth(1).unwrap().to_owned();
    make_call(&scene.log);
    let newer = head(&scene.log);
    let hash = seen.lines().nth(2).unwrap();
    for (head, hashes) in [
        (&seen, format!("{hash}\n")),
        (&newer, String::new()),
        (&newer, format!("{hash}\n{hash}\n")),
    ] {
        let answer = scene.post(&format!("old {size}\n{hashes}\n{head}"));
        assert!(answer.contains(" 422 "), "{answer}");
    }
    // The control: the log itself goes on.
    let grown = scene.show(&scene.log);
    assert!(grown.contains("cosigned  "), "{grown}");
    let (said, notices) = scene.end();
    assert!(!said.contains("in doubt"), "{said}");
    assert!(!notices.contains("audit.contradicted"), "{notices}");
    assert!(!scene.witness.join("audit/conflicts").exists());
}

/// Attack: an old head of a log that goes on, shown again by somebody without its key, so that
/// the owner of the witness makes it forget the newer one.
#[test]
fn an_old_head_that_is_shown_again_makes_no_witness_forget() {
    let mut scene = Scene::new("witness-replay");
    scene.show(&scene.log);
    let before = scene.folder.join("before");
    copy(&scene.log, &before);
    make_call(&scene.log);
    let grown = scene.show(&scene.log);
    assert!(grown.contains("cosigned  "), "{grown}");
    // It counts once it cannot have been overtaken on its way.
    let conflicts = scene.witness.join("audit/conflicts");
    let until = Instant::now() + Duration::from_secs(6 * OVERTAKEN_HEAD_SECONDS_MAX);
    while !conflicts.exists() {
        assert!(Instant::now() < until, "the old head was never told");
        let rolled = scene.show(&before);
        assert!(rolled.contains("the log was rolled back"), "{rolled}");
    }
    let (said, notices) = scene.end();
    assert!(said.contains("rolled back"), "{said}");
    let id = notices.split("  ").find(|word| word.len() == 36).unwrap();
    let note = ["--note", "shown again", "--replayed"];
    let known = run(
        &scene.witness,
        &[&["audit", "acknowledge", id][..], &note].concat(),
    );
    assert!(known.starts_with("exit 0"), "{known}");
    assert_eq!(fs::read_to_string(conflicts).unwrap(), "");
    let list = run(&scene.witness, &["audit", "witness", "--list"]);
    assert!(list.contains(&scene.name), "{list}");
}

#[test]
fn a_witness_notices_a_roll_back_and_a_fork() {
    let mut scene = Scene::new("witness-fork");
    let before = scene.folder.join("before");
    scene.show(&scene.log);
    copy(&scene.log, &before);
    make_call(&scene.log);
    let grown = scene.show(&scene.log);
    assert!(grown.contains("cosigned  "), "{grown}");
    // The whole home of an hour ago: it is whole in itself.
    let whole = run(&before, &["audit", "verify"]);
    assert!(whole.contains("whole  "), "{whole}");
    let rolled = scene.show(&before);
    assert!(rolled.starts_with("exit 2"), "{rolled}");
    assert!(rolled.contains("the log was rolled back"), "{rolled}");
    // It goes on to the same length with other records.
    make_call(&before);
    let forked = scene.show(&before);
    assert!(forked.starts_with("exit 2"), "{forked}");
    assert!(forked.contains("the witness answers 422"), "{forked}");
    assert!(!forked.contains("\\n"), "{forked}");
    // It goes on to a greater length than the witness saw: the same fork, told once.
    make_call(&before);
    make_call(&before);
    let longer = scene.show(&before);
    assert!(longer.contains("the witness answers 422"), "{longer}");
    // The witness raised the alarm, wrote it down, and kept both heads.
    let (said, notices) = scene.end();
    assert_eq!(said.matches("its log was forked").count(), 1, "{said}");
    let told = notices.matches("audit.contradicted").count();
    assert_eq!(told, 1, "{notices}");
    acknowledge(&scene, &before, &notices);
}

/// Anyone who has the key can hold the evidence against the log, until its owner says why.
fn acknowledge(scene: &Scene, forked: &Path, notices: &str) {
    let evidence = scene.witness.join("audit/conflicts");
    let kept = fs::read_to_string(&evidence).unwrap();
    let heads = kept.matches(&format!("\u{2014} {} ", scene.name)).count();
    assert_eq!(heads, 2, "{kept}");
    let path = evidence.display().to_string();
    let found = run(forked, &["audit", "verify", "--checkpoint", &path]);
    assert!(found.starts_with("exit 1"), "{found}");
    let id = notices.split("  ").find(|word| word.len() == 36).unwrap();
    let words = ["audit", "acknowledge", id, "--note", "old", "--replayed"];
    let refused = run(&scene.witness, &words);
    assert!(refused.contains("this log was forked"), "{refused}");
    // When the owner knows why, the log counts again from its next head.
    let note = "a backup was put back";
    let known = run(
        &scene.witness,
        &["audit", "acknowledge", id, "--note", note],
    );
    assert!(known.starts_with("exit 0"), "{known}");
    assert_eq!(fs::read_to_string(&evidence).unwrap(), "");
    let list = run(&scene.witness, &["audit", "witness", "--list"]);
    assert!(!list.contains(&scene.name), "{list}");
}
