//! People at the Studio: a code that is used once, and the session it begins. Who may do
//! what in a session is the door's to ask; what a session is, is decided here.
//!
//! Invariant 18: nothing that opens an agent's door opens a session, and no session calls
//! tools as an agent.

use model::config::StudioConfig;
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
/// Prefix of the names of people who sign in at an issuer, so that none of them is taken
/// for the owner.
pub(crate) const VOUCHED: &str = "oauth:";

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
        let message = "a sign-in code for the Studio was created";
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
        // In constant time: the delay of the answer tells nothing about a code.
        let is_it = |code: &KeyDigest| bool::from(code.as_slice().ct_eq(&typed));
        let people = self.engine.store().people();
        match people.take_code(self.engine.now_ms(), &is_it)? {
            true => self.begin(&Person::owner(), place, &[]),
            false => Err(SignInFault::Code),
        }
    }

    /// Begins the session of a person. `vouched` is what an issuer says about them.
    pub fn begin(
        &self,
        person: &Person,
        place: SessionPlace<'_>,
        vouched: &[(&str, &str)],
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
            expires_ms: now_ms.saturating_add(hours(&self.config())),
        };
        // It grants something, so it is written down first.
        let notice = Notice::new(
            Act::PersonSignedIn,
            &person.name,
            STUDIO,
            "a person signed in",
        );
        let mut notice = notice.about(&session.id).detail("role", person.role.word());
        for (name, value) in vouched {
            notice = notice.detail(name, value);
        }
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
        let Some(session) =
            found.filter(|session| is_open(session, address, now_ms, &self.config()))
        else {
            return Ok(None);
        };
        // Not at every request, because each time is a write.
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
        Ok(found.is_some_and(|session| is_open(&session, address, now_ms, &self.config())))
    }

    /// All sessions that are not over.
    pub fn sessions(&self) -> Result<Vec<OpenSession>, StoreError> {
        let now_ms = self.engine.now_ms();
        let all = self.engine.store().people().all()?.into_iter();
        let config = self.config();
        let live = all.filter(|session| is_live(session, now_ms, &config));
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

    /// The issuer whose accounts open the Studio, if there is one.
    #[must_use]
    pub fn issuer(&self) -> Option<String> {
        self.config().oauth.map(|oauth| oauth.issuer)
    }

    /// Seconds a session may be unused.
    #[must_use]
    pub fn idle_seconds(&self) -> i64 {
        i64::try_from(self.config().idle_minutes)
            .unwrap_or(1)
            .saturating_mul(60)
    }

    /// The settings in force now.
    pub(crate) fn config(&self) -> StudioConfig {
        self.engine.registry().current().config.studio.clone()
    }

    fn say_over(&self, person: &Person, message: &str, ended: usize) {
        let notice = Notice::new(Act::PersonSignedOut, &person.name, STUDIO, message);
        let notice = notice.detail("sessions", &ended.to_string());
        loudly(self.engine.store(), self.engine.alarm_of(), notice);
    }
}

fn hours(config: &StudioConfig) -> i64 {
    i64::try_from(config.session_hours)
        .unwrap_or(1)
        .saturating_mul(HOUR_MS)
}

fn is_open(session: &PersonSession, address: &str, now_ms: i64, config: &StudioConfig) -> bool {
    is_live(session, now_ms, config) && session.address == address
}

/// Whether a session is not over. Settings that became stricter count for sessions that
/// are open, and so does an issuer that no longer opens the Studio.
fn is_live(session: &PersonSession, now_ms: i64, config: &StudioConfig) -> bool {
    let idle_minutes = i64::try_from(config.idle_minutes).unwrap_or(1);
    let idle_until = session
        .seen_ms
        .saturating_add(idle_minutes.saturating_mul(MINUTE_MS));
    let over = session.started_ms.saturating_add(hours(config));
    let is_vouched = config.oauth.is_some() || !session.person.starts_with(VOUCHED);
    session.expires_ms.min(over) > now_ms && idle_until > now_ms && is_vouched
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

pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES], SignInFault> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| SignInFault::Random)?;
    Ok(bytes)
}
