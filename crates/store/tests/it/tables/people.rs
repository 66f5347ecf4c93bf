//! Codes and sessions of people, across processes.

use model::govern::person::PersonRole;
use store::PersonSession;

use super::Home;

fn session(number: u8, seen_ms: i64) -> PersonSession {
    PersonSession {
        digest: [number; 32],
        id: format!("session-{number}"),
        person: "ann".to_owned(),
        role: PersonRole::Approver,
        address: "127.0.0.1".to_owned(),
        browser: "a browser".to_owned(),
        started_ms: i64::from(number),
        seen_ms,
        expires_ms: 1_000,
    }
}

/// One of many who type the same code gets in, wherever they type it.
#[test]
fn a_code_is_taken_once() {
    let home = Home::new("codes");
    let stores = [home.store(), home.store()];
    stores[0].people().add_code(&[7; 32], 1, 100).unwrap();
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..10)
            .map(|number: usize| {
                let people = stores[number % 2].people();
                scope.spawn(move || people.take_code(5, &|digest| *digest == [7; 32]).unwrap())
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.filter(|taken| *taken).count()
    });
    assert_eq!(taken, 1);
    stores[1].people().add_code(&[8; 32], 1, 100).unwrap();
    let late = stores[0].people().take_code(100, &|_| true).unwrap();
    assert!(!late, "it expired");
}

#[test]
fn a_session_ended_by_one_process_is_gone_for_all() {
    let home = Home::new("sessions");
    let (here, there) = (home.store(), home.store());
    here.people().begin(&session(1, 5), 5).unwrap();
    let found = there.people().find(&[1; 32]).unwrap();
    assert_eq!(found, Some(session(1, 5)));
    there.people().touch(&[1; 32], 9).unwrap();
    there.people().touch(&[1; 32], 7).unwrap();
    assert_eq!(here.people().find(&[1; 32]).unwrap().unwrap().seen_ms, 9);
    assert!(there.people().end(&[1; 32]).unwrap());
    assert!(!here.people().end(&[1; 32]).unwrap());
    assert_eq!(here.people().find(&[1; 32]).unwrap(), None);
    for number in 0..=64 {
        let seen = i64::from(number);
        here.people().begin(&session(number, seen), 5).unwrap();
    }
    assert_eq!(there.people().all().unwrap().len(), 64, "bounded");
    assert_eq!(
        there.people().find(&[0; 32]).unwrap(),
        None,
        "unused longest"
    );
    assert!(
        home.try_sql("UPDATE person_sessions SET role = 'owner'")
            .is_err(),
        "a session never becomes more"
    );
    assert_eq!(there.people().end_all().unwrap(), 64);
    assert!(here.people().all().unwrap().is_empty());
}
