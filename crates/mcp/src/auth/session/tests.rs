//! Whose a session is, and which one gives way.

use model::caller::Caller;
use model::govern::key::Role;

use super::*;

const BOUNDS: SessionBounds = SessionBounds {
    together: 3,
    per_caller: 2,
    idle: Duration::from_secs(600),
    call: Duration::from_secs(300),
};

fn principal(name: &str) -> Principal {
    Principal {
        caller: Caller::named(name),
        id: PrincipalId::key(name),
        role: Role::Agent,
        scopes: Arc::default(),
    }
}

/// Id, caller, seconds idle, requests, streams.
type Row<'a> = (&'a str, &'a str, u64, usize, usize);

fn known(rows: &[Row<'_>]) -> Known {
    let now = Instant::now();
    let session = |(id, caller, idle, requests, streams): &Row<'_>| {
        let session = Session {
            principal: PrincipalId::key(caller),
            caller: (*caller).to_owned(),
            last: now.checked_sub(Duration::from_secs(*idle)).expect("a past"),
            requests: *requests,
            streams: *streams,
        };
        (Arc::from(*id), session)
    };
    Known {
        all: rows.iter().map(session).collect(),
    }
}

#[test]
fn a_session_is_its_owners_until_it_ends() {
    let sessions = Sessions::new(BOUNDS);
    let (one, two) = (principal("one"), principal("two"));
    let id: Arc<str> = Arc::from("s1");
    assert_eq!(sessions.begin(&id, &one), Ok(Vec::new()));
    assert!(sessions.is_owned("s1", &one.id));
    assert!(!sessions.is_owned("s1", &two.id));
    assert!(!sessions.is_owned("s2", &one.id));
    // No other principal can take it over.
    let _ = sessions.begin(&id, &two);
    assert!(sessions.is_owned("s1", &one.id));
    sessions.end("s1");
    assert!(!sessions.is_owned("s1", &one.id));
    assert_eq!(sessions.count(), 0);
}

#[test]
fn every_end_is_told_once() {
    let sessions = Sessions::new(BOUNDS);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = Arc::clone(&told);
    sessions.on_end(move |id| into.lock().expect("a list").push(id.to_owned()));
    let ann = principal("ann");
    for id in ["a", "b", "c"] {
        let _ = sessions.begin(&Arc::from(id), &ann);
    }
    assert_eq!(*told.lock().expect("a list"), ["a"], "it gave way");
    sessions.end("b");
    sessions.end("b");
    sessions.end("never-was");
    assert_eq!(*told.lock().expect("a list"), ["a", "b"]);
}

#[test]
fn the_longest_idle_session_gives_way_and_never_a_busy_one() {
    let after = |id: &str| Room::After(Arc::from(id));
    let cases = [
        (vec![("a", "ann", 9, 0, 0)], Room::Free),
        (
            vec![("a", "ann", 9, 0, 0), ("b", "ann", 5, 0, 0)],
            after("a"),
        ),
        (
            vec![("a", "ann", 9, 1, 0), ("b", "ann", 5, 0, 0)],
            after("b"),
        ),
        // A client still listens at the first.
        (
            vec![("a", "ann", 9, 0, 1), ("b", "ann", 5, 0, 0)],
            after("b"),
        ),
        (
            vec![("a", "ann", 9, 0, 1), ("b", "ann", 5, 0, 1)],
            after("a"),
        ),
        (
            vec![("a", "ann", 9, 1, 0), ("b", "ann", 5, 2, 0)],
            Room::None,
        ),
        // All places are taken: the own ones first, then anybody's.
        (
            vec![
                ("a", "ann", 1, 0, 0),
                ("b", "bob", 9, 0, 0),
                ("c", "bob", 8, 0, 0),
            ],
            after("a"),
        ),
        (
            vec![
                ("a", "ann", 9, 1, 0),
                ("b", "bob", 7, 0, 0),
                ("c", "bob", 8, 0, 0),
            ],
            after("c"),
        ),
        // Her own share is used up: no other caller's session gives way for that.
        (
            vec![
                ("a", "ann", 9, 1, 0),
                ("b", "ann", 9, 1, 0),
                ("c", "bob", 8, 0, 0),
            ],
            Room::None,
        ),
    ];
    for (rows, room) in cases {
        assert_eq!(known(&rows).room("ann", &BOUNDS), room, "{rows:?}");
    }
}

#[test]
fn a_session_counts_from_the_moment_it_begins() {
    let mut known = known(&[("a", "ann", 9, 1, 0)]);
    let mut begin = |id: &str, caller: &str| {
        let begun = known.begin(&Arc::from(id), &principal(caller), &BOUNDS);
        if let Some(session) = known.all.get_mut(id) {
            session.requests = 1;
        }
        begun
    };
    assert_eq!(begin("b", "ann"), Ok(Vec::new()));
    assert_eq!(begin("c", "ann"), Err(NoRoom), "her share is used up");
    assert_eq!(begin("d", "carol"), Ok(Vec::new()));
    assert_eq!(begin("e", "bob"), Err(NoRoom), "all places are taken");
}

#[test]
fn a_caller_without_room_is_told_how_long_to_wait() {
    let known = known(&[
        ("a", "ann", 100, 1, 0),
        ("b", "ann", 250, 1, 0),
        ("c", "bob", 290, 1, 0),
    ]);
    let near = |wait: Duration, seconds: u64| {
        let seconds = Duration::from_secs(seconds);
        wait <= seconds && wait + Duration::from_secs(1) > seconds
    };
    assert!(near(known.wait("ann", &BOUNDS), 50));
    assert!(near(known.wait("carol", &BOUNDS), 10));
}
