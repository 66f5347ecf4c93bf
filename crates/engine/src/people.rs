//! People at the Studio: a code that is used once, and the session it begins. Who may do
//! what in a session is the door's to ask; what a session is, is decided here.
//!
//! Invariant 18: nothing that opens an agent's door opens a session, and no session calls
//! tools as an agent.

use model::govern::key::{self, KeyDigest, Secret};
use model::govern::person::{Actor, Person};
use model::record::audit::{Act, Notice};
use model::text;
use model::time::{HOUR_MS, MINUTE_MS};
use model::word::Word as _;
use store::{PersonSession, StoreError};
use subtle::ConstantTimeEq as _;

use crate::engine::Engine;
use crate::limit;
use crate::notice::loudly;

/// Through what people sign in.
const STUDIO: &str = "studio";

/// People at the Studio.
#[derive(Clone, Copy, Debug)]
pub struct PeopleAdmin<'a> {
    engine: &'a Engine,
}

/// Why no session begins.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SignInFault {
    /// It is no code, or not one that counts.
    #[error("the code is wrong, expired or used already; `ringfence studio` prints another")]
    Code,
    /// The machine gives no random numbers.
    #[error("this machine gives no random numbers")]
    Random,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Who it is.
    pub person: Person,
    /// A short name for lists.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it was last used.
    pub seen_ms: i64,
    /// When it ends, however much it is used.
    pub expires_ms: i64,
    /// The browser, as it described itself, in visible characters.
    pub browser: String,
}

/// Where a session is begun, and by what.
#[derive(Clone, Copy, Debug)]
pub struct SessionPlace<'a> {
    /// The address of the server. A session counts there and nowhere else.
    pub address: &'a str,
    /// What the browser calls itself.
    pub raw_browser: &'a str,
}

impl Engine {
    /// People at the Studio.
    #[must_use]
    pub fn people(&self) -> PeopleAdmin<'_> {
        PeopleAdmin { engine: self }
    }
}

impl PeopleAdmin<'_> {
    /// Makes a code that signs the owner in once. Only code that has the home folder can
    /// call this, and no route does.
    pub fn make_code(&self) -> Result<Secret, SignInFault> {
        let code = key::sign_in_code(random()?);
        let now_ms = self.engine.now_ms();
        let until = now_ms.saturating_add(limit::SIGN_IN_CODE_MINUTES * MINUTE_MS);
        let message = "a code for signing in at the Studio was made";
        let Actor { by, through } = Actor::OWNER_AT_TERMINAL;
        self.engine
            .notice(Notice::new(Act::PersonCodeMade, by, through, message))?;
        let people = self.engine.store().people();
        people.add_code(&code.digest(), now_ms, until)?;
        Ok(code)
    }

    /// Uses a code up and begins the owner's session. The secret is for the browser alone.
    pub fn sign_in(
        &self,
        raw_code: &str,
        place: SessionPlace<'_>,
    ) -> Result<(Secret, OpenSession), SignInFault> {
        let typed = key::read_sign_in_code(raw_code).ok_or(SignInFault::Code)?;
        let typed = typed.digest();
        let is_it = |code: &KeyDigest| bool::from(code.as_slice().ct_eq(&typed));
        let people = self.engine.store().people();
        match people.take_code(self.engine.now_ms(), &is_it)? {
            true => self.begin(&Person::owner(), place),
            false => Err(SignInFault::Code),
        }
    }

    /// Begins the session of a person that an issuer vouches for.
    pub fn begin(
        &self,
        person: &Person,
        place: SessionPlace<'_>,
    ) -> Result<(Secret, OpenSession), SignInFault> {
        let secret = key::session_secret(random()?);
        let now_ms = self.engine.now_ms();
        let session = PersonSession {
            digest: secret.digest(),
            id: key::id(random()?),
            person: person.name.clone(),
            role: person.role,
            address: place.address.to_owned(),
            browser: text::elided(&text::one_line(place.raw_browser), limit::BROWSER_CHARS_MAX),
            started_ms: now_ms,
            seen_ms: now_ms,
            expires_ms: now_ms.saturating_add(limit::PERSON_SESSION_HOURS_MAX * HOUR_MS),
        };
        // It grants something, so it is written down first.
        let notice = Notice::new(
            Act::PersonSignedIn,
            &person.name,
            STUDIO,
            "a person signed in",
        );
        let notice = notice.about(&session.id).detail("role", person.role.word());
        self.engine
            .notice(notice.detail("browser", &session.browser))?;
        self.engine.store().people().begin(&session, now_ms)?;
        Ok((secret, open(session)))
    }

    /// The session that a secret opens at this address, if it is not over. That is a use of
    /// it.
    pub fn find(&self, secret: &Secret, address: &str) -> Result<Option<OpenSession>, StoreError> {
        let people = self.engine.store().people();
        let digest = secret.digest();
        let now_ms = self.engine.now_ms();
        let found = people.find(&digest)?;
        let Some(session) = found.filter(|session| is_open(session, address, now_ms)) else {
            return Ok(None);
        };
        if now_ms.saturating_sub(session.seen_ms) >= limit::PERSON_SEEN_SECONDS * 1_000 {
            people.touch(&digest, now_ms)?;
        }
        Ok(Some(open(session)))
    }

    /// Whether a session is open, without using it: a page that only listens does not keep
    /// its person signed in.
    pub fn is_open(&self, secret: &Secret, address: &str) -> Result<bool, StoreError> {
        let now_ms = self.engine.now_ms();
        let found = self.engine.store().people().find(&secret.digest())?;
        Ok(found.is_some_and(|session| is_open(&session, address, now_ms)))
    }

    /// All sessions that are not over.
    pub fn sessions(&self) -> Result<Vec<OpenSession>, StoreError> {
        let now_ms = self.engine.now_ms();
        let all = self.engine.store().people().all()?.into_iter();
        let live = all.filter(|session| session.expires_ms > now_ms);
        Ok(live.map(open).collect())
    }

    /// Ends a session. It is over whether or not that can be written down.
    pub fn sign_out(&self, secret: &Secret, person: &Person) -> Result<bool, StoreError> {
        let was = self.engine.store().people().end(&secret.digest())?;
        if was {
            self.say_over(person, "a person signed out", 1);
        }
        Ok(was)
    }

    /// Ends every session of every person, and the codes that could begin another.
    pub fn sign_out_all(&self, person: &Person) -> Result<usize, StoreError> {
        let ended = self.engine.store().people().end_all()?;
        self.say_over(person, "every session at the Studio was ended", ended);
        Ok(ended)
    }

    fn say_over(&self, person: &Person, message: &str, ended: usize) {
        let notice = Notice::new(Act::PersonSignedOut, &person.name, STUDIO, message);
        let notice = notice.detail("sessions", &ended.to_string());
        loudly(self.engine.store(), self.engine.alarm_of(), notice);
    }
}

fn is_open(session: &PersonSession, address: &str, now_ms: i64) -> bool {
    let idle_ms = limit::PERSON_IDLE_MINUTES_MAX * MINUTE_MS;
    let idle_until = session.seen_ms.saturating_add(idle_ms);
    session.expires_ms > now_ms && idle_until > now_ms && session.address == address
}

fn open(session: PersonSession) -> OpenSession {
    OpenSession {
        person: Person {
            name: session.person,
            role: session.role,
        },
        id: session.id,
        started_ms: session.started_ms,
        seen_ms: session.seen_ms,
        expires_ms: session.expires_ms,
        browser: session.browser,
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], SignInFault> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| SignInFault::Random)?;
    Ok(bytes)
}
