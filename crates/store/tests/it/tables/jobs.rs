//! Background jobs, across processes and their deaths.

use model::record::job::JobState;
use store::{JobEnd, NewJob};

use super::Home;

fn job(id: &str, caller: &str, started_at_ms: i64) -> NewJob {
    NewJob {
        id: id.to_owned(),
        caller: caller.to_owned(),
        call_id: "call".to_owned(),
        command: "make".to_owned(),
        started_at_ms,
    }
}

fn end(state: JobState, ended_at_ms: i64) -> JobEnd {
    JobEnd {
        state,
        ended_at_ms,
        exit_code: Some(0),
        stdout_bytes: 3,
        stderr_bytes: 4,
        why: None,
        changes: None,
    }
}

#[test]
fn a_caller_has_so_many_jobs_and_sees_no_others() {
    let home = Home::new("jobs-caps");
    let store = home.store();
    let jobs = store.jobs();
    assert!(jobs.start(&job("a", "ann", 1), 2).unwrap().found);
    assert!(jobs.start(&job("b", "ann", 2), 2).unwrap().found);
    assert!(!jobs.start(&job("c", "ann", 3), 2).unwrap().found);
    assert!(jobs.start(&job("d", "bob", 3), 2).unwrap().found);
    assert_eq!(jobs.get("d", "ann", 4).unwrap().found, None);
    assert!(jobs.get("c", "ann", 4).unwrap().found.is_none());
    assert!(jobs.end("a", &end(JobState::Done, 5)).unwrap());
    // It ends once.
    assert!(!jobs.end("a", &end(JobState::Failed, 6)).unwrap());
    let row = jobs.get("a", "ann", 7).unwrap().found.unwrap();
    assert_eq!(row.end, Some(end(JobState::Done, 5)));
    assert!(jobs.start(&job("c", "ann", 8), 2).unwrap().found);
    let ids: Vec<_> = jobs
        .of("ann", 9)
        .unwrap()
        .found
        .into_iter()
        .map(|row| row.job.id)
        .collect();
    assert_eq!(ids, ["c", "b", "a"]);
}

#[test]
fn a_job_of_a_dead_process_is_orphaned_and_gives_its_place_back() {
    let home = Home::new("jobs-orphan");
    let first = home.store();
    assert!(first.jobs().start(&job("a", "ann", 1), 1).unwrap().found);
    let second = home.store();
    // While its process lives it runs, whoever looks.
    assert_eq!(
        second.jobs().get("a", "ann", 2).unwrap().found.unwrap().end,
        None
    );
    assert!(!second.jobs().start(&job("b", "ann", 2), 1).unwrap().found);
    // Another process cannot end it.
    assert!(!second.jobs().end("a", &end(JobState::Done, 3)).unwrap());
    drop(first);
    let looked = second.jobs().get("a", "ann", 4).unwrap();
    let row = looked.found.unwrap();
    // It is told once, by whom it was found first.
    assert_eq!(looked.orphans, std::slice::from_ref(&row));
    assert!(second.jobs().find_orphans(5).unwrap().orphans.is_empty());
    let ended = row.end.unwrap();
    assert_eq!((ended.state, ended.ended_at_ms), (JobState::Orphaned, 4));
    assert!(second.jobs().start(&job("b", "ann", 5), 1).unwrap().found);
}

#[test]
fn orphans_of_all_callers_are_found_once() {
    let home = Home::new("jobs-orphans");
    let first = home.store();
    assert!(first.jobs().start(&job("a", "ann", 1), 1).unwrap().found);
    assert!(first.jobs().start(&job("b", "bob", 2), 1).unwrap().found);
    assert!(first.jobs().end("b", &end(JobState::Done, 3)).unwrap());
    assert!(first.jobs().start(&job("c", "bob", 4), 1).unwrap().found);
    let second = home.store();
    assert!(second.jobs().find_orphans(5).unwrap().orphans.is_empty());
    drop(first);
    let found = second.jobs().find_orphans(6).unwrap().orphans;
    let mut ids: Vec<_> = found.iter().map(|row| row.job.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "c"]);
    let states = found.iter().map(|row| row.end.as_ref().unwrap().state);
    assert!(states.eq([JobState::Orphaned, JobState::Orphaned]));
    assert!(second.jobs().find_orphans(7).unwrap().orphans.is_empty());
}

#[test]
fn old_jobs_are_forgotten_and_running_ones_are_not() {
    let home = Home::new("jobs-old");
    let store = home.store();
    let jobs = store.jobs();
    assert!(jobs.start(&job("first", "ann", 0), 10).unwrap().found);
    for number in 1..150 {
        let id = format!("job-{number}");
        assert!(jobs.start(&job(&id, "ann", number), 10).unwrap().found);
        assert!(jobs.end(&id, &end(JobState::Done, number)).unwrap());
    }
    assert!(
        jobs.get("first", "ann", 200)
            .unwrap()
            .found
            .unwrap()
            .end
            .is_none()
    );
    assert_eq!(jobs.get("job-1", "ann", 200).unwrap().found, None);
    assert!(jobs.get("job-149", "ann", 200).unwrap().found.is_some());
}
