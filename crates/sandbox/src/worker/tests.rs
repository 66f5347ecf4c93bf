//! A worker's command line.

use super::{WORKER_MARKER, WorkerArguments};

fn parse(arguments: &[&str]) -> Option<Option<WorkerArguments>> {
    WorkerArguments::parse(arguments.iter().map(|one| (*one).to_owned()))
}

#[test]
fn arguments_come_back() {
    let arguments = WorkerArguments {
        parent: 42,
        live_max: 256,
    };
    let parsed = WorkerArguments::parse(arguments.to_arguments().into_iter());
    assert_eq!(parsed, Some(Some(arguments)));
}

#[test]
fn an_ordinary_program_is_not_a_worker() {
    assert_eq!(parse(&[]), None);
    assert_eq!(parse(&["run", "file.json"]), None);
}

#[test]
fn a_worker_of_another_version_is_refused() {
    assert_eq!(parse(&[WORKER_MARKER, "999", "1", "1"]), Some(None));
    assert_eq!(parse(&[WORKER_MARKER]), Some(None));
    assert_eq!(parse(&[WORKER_MARKER, "1", "x", "1"]), Some(None));
}
