//! Questions to people and their answers, for all processes of a home.
//!
//! Every change is one transaction that names the state it starts from, so of two
//! processes that want the same approval one gets it. A change is on the disk before
//! the engine acts on it: a used approval stays used, whatever crashes.

use std::collections::BTreeSet;

use model::caller;
use model::govern::approval::{ApprovalScope, ApprovalState};
use model::policy::risk::Level;
use model::word::Word;
use model::{limits, text};

use crate::error::StoreError;
use crate::home::database::from_integer;
use crate::limit;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::{self, Executor, SqlRow, SqlValue, unknown, values};
#[cfg(feature = "testing")]
use crate::testing::Failing;

const READING: &str = "read the approvals";

/// A question to a person, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id, which cannot be guessed.
    pub id: String,
    /// Its state as stored: [`ApprovalState::at`] says whether it expired since.
    pub state: ApprovalState,
    /// Where it waits.
    pub place: WaitingPlace,
    /// Milliseconds since 1970.
    pub asked_at_ms: i64,
    /// When it can no longer be answered or, once approved, is no longer valid.
    pub expires_at_ms: i64,
    /// A digest of everything it is about.
    pub binding: String,
    /// A digest of everything but the arguments.
    pub tool_binding: String,
    /// A digest of the session.
    pub session: Option<String>,
    /// The call that asked first.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Who called.
    pub caller: String,
    /// Whether that was the owner.
    pub caller_is_owner: bool,
    /// The risk level.
    pub level: Level,
    /// Why that level.
    pub reasons: Vec<String>,
    /// Why a person is asked.
    pub why: String,
    /// The question in words.
    pub prompt: String,
    /// The arguments as one line of JSON: whole while it waits, with the middle left out
    /// once it is answered.
    pub arguments: String,
    /// The answer, if there is one.
    pub answer: Option<GivenAnswer>,
    /// The call that used it last, or that got the refusal.
    pub used_by_call: Option<String>,
    /// When.
    pub used_at_ms: Option<i64>,
    /// How many calls ran by it.
    pub uses: u64,
}

/// Where a question waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingPlace {
    /// At the client of the call.
    Client,
    /// At a client that will come back with the answer.
    Deferred,
    /// In the inbox.
    Inbox,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// Which calls an approval covers.
    pub scope: Option<ApprovalScope>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Who gave it.
    pub by: String,
    /// Through what.
    pub channel: String,
    /// Whether that was the caller's own client.
    pub own_client: bool,
    /// What they added.
    pub note: Option<String>,
    /// What is to run instead, if they changed the arguments.
    pub changed: Option<ChangedArguments>,
}

/// Arguments as a person changed them before they approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedArguments {
    /// As JSON.
    pub arguments: String,
    /// A digest of everything the call with them is about.
    pub binding: String,
}

/// The result of storing a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskResult {
    /// It is stored and waits.
    Written,
    /// The same question waits already; this is it.
    Joined(Box<Approval>),
    /// This caller has as many waiting questions as allowed.
    TooManyOfCaller,
    /// As many questions wait as are allowed.
    TooMany,
}

/// Which approvals a call may run by.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The call.
    pub call_id: String,
    /// The digest of all it is about.
    pub binding: String,
    /// The digest of all but the arguments.
    pub tool_binding: String,
    /// The digest of its session.
    pub session: Option<String>,
    /// Whether the caller may not approve its own calls.
    pub separate: bool,
    /// Whether an approval by the caller's own client is valid.
    pub own_client: bool,
}

/// What an id or a prefix of one finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundApproval {
    /// Nothing.
    None,
    /// This one.
    One(Box<Approval>),
    /// Several ids have this prefix; some of them.
    Several(Vec<String>),
}

/// Which ones to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Those that wait for an answer.
    Pending,
    /// Those that wait, and approvals that are still valid.
    Live,
    /// All that are stored.
    All,
}

/// The kinds of change, each one transaction. An error names the one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChange {
    /// A question is stored.
    Ask,
    /// It waits in another place.
    Wait,
    /// It is answered.
    Answer,
    /// A call looks for an answer it may run by.
    Claim,
    /// A call takes the answer to its own question.
    Take,
    /// An approval is revoked.
    Revoke,
    /// A session ends.
    EndSession,
}

/// Questions to people and their answers.
#[derive(Debug)]
pub struct Approvals {
    tables: Tables,
    #[cfg(feature = "testing")]
    failing: Failing<ApprovalChange>,
}

impl Approvals {
    pub(crate) fn new(tables: Tables) -> Approvals {
        Approvals {
            tables,
            #[cfg(feature = "testing")]
            failing: Failing::default(),
        }
    }

    /// For tests: from now on this change fails just before it commits, or none does.
    #[cfg(feature = "testing")]
    pub fn fail(&self, step: Option<ApprovalChange>) {
        self.failing.set(step);
    }

    /// Stores a question, or finds the same one that waits already. A question that
    /// another call is showing to its client right now is not joined: each of the two
    /// gets its own answer.
    pub fn ask(&self, question: &Approval, now_ms: i64) -> Result<AskResult, StoreError> {
        self.change(ApprovalChange::Ask, |change| {
            if let Some(same) = waiting_for(change, &question.binding, now_ms)? {
                return Ok(AskResult::Joined(Box::new(same)));
            }
            prune(change, now_ms)?;
            if let Some(full) = is_full(change, question, now_ms)? {
                return Ok(full);
            }
            insert(change, question)?;
            Ok(AskResult::Written)
        })
    }

    /// Moves a question from a client to the inbox, or defers it until the client comes
    /// back. Returns the id it waits under: that of another question, if the same one
    /// waits there already.
    pub fn wait_at(
        &self,
        id: &str,
        place: WaitingPlace,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        self.change(ApprovalChange::Wait, |change| {
            let sql = "SELECT binding FROM approvals WHERE id = ?1 AND state = 'pending'";
            let binding: Option<String> = change.query_first(sql, values![id], |row| row.get(0))?;
            let Some(binding) = binding else {
                return Ok(id.to_owned());
            };
            match waiting_for(change, &binding, now_ms)? {
                Some(same) if same.id != id => {
                    // The call waits under the other id from here on, so this one can never
                    // be answered.
                    change.execute("DELETE FROM approvals WHERE id = ?1", values![id])?;
                    Ok(same.id)
                }
                Some(_) | None => {
                    change.execute(
                        "UPDATE approvals SET place = ?2 WHERE id = ?1",
                        values![id, place.word()],
                    )?;
                    Ok(id.to_owned())
                }
            }
        })
    }

    /// Stores an answer if the question waits for one, and returns whether it did. An
    /// approval is valid until `expires_at_ms`.
    pub fn answer(
        &self,
        id: &str,
        state: ApprovalState,
        answer: &GivenAnswer,
        expires_at_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        self.change(ApprovalChange::Answer, |change| {
            // The statement names the state it starts from: of two answers one changes a
            // row, and the other learns that it came late.
            let changed = change.execute(
                "UPDATE approvals SET state = ?2, scope = ?3, answered_ms = ?4, answered_by = ?5,
                 channel = ?6, own_client = ?7, note = ?8, expires_ms = coalesce(?9, expires_ms),
                 changed = ?10, changed_binding = ?11
                 WHERE id = ?1 AND state = 'pending' AND expires_ms > ?4",
                values![
                    id,
                    state.word(),
                    answer.scope.map(Word::word),
                    answer.at_ms,
                    answer.by,
                    answer.channel,
                    answer.own_client,
                    answer.note,
                    expires_at_ms,
                    answer.changed.as_ref().map(|changed| &changed.arguments),
                    answer.changed.as_ref().map(|changed| &changed.binding),
                ],
            )?;
            if changed == 1 {
                shorten(change, "id = ?1", values![id])?;
            }
            Ok(changed == 1)
        })
    }

    /// Claims the answer that decides a call: an approval that covers it, otherwise a
    /// refusal that no call has got yet. A one-time approval is used up; a refusal is
    /// delivered once.
    pub fn claim(&self, claim: &Claim, now_ms: i64) -> Result<Option<Approval>, StoreError> {
        self.change(ApprovalChange::Claim, |change| {
            // Another node may take the answer that was found; then there may be a second.
            for _ in 0..limit::CLAIM_ATTEMPTS_MAX {
                let Some(found) = claimable(change, claim, now_ms)? else {
                    return Ok(None);
                };
                if let Some(taken) = take(change, &found, claim, now_ms)? {
                    return Ok(Some(taken));
                }
                // Alone there is no other node; what was found and not
                // taken may not be used.
                if !change.is_shared() {
                    break;
                }
            }
            Ok(None)
        })
    }

    /// Claims the answer to one question, if there is one and it covers the call.
    pub fn claim_one(
        &self,
        id: &str,
        claim: &Claim,
        now_ms: i64,
    ) -> Result<Option<Approval>, StoreError> {
        self.change(ApprovalChange::Take, |change| match read(change, id)? {
            Some(found) => take(change, &found, claim, now_ms),
            None => Ok(None),
        })
    }

    /// The ids of the questions that wait.
    pub fn pending_ids(&self, now_ms: i64) -> Result<BTreeSet<String>, StoreError> {
        let sql = "SELECT id FROM approvals WHERE state = 'pending' AND expires_ms > ?1";
        let read = |tables: Executor<'_>| tables.query(sql, values![now_ms], |row| row.get(0));
        let found = self.tables.read(READING, read)?;
        Ok(found.into_iter().collect())
    }

    /// The newest approval of a call of the same tool by the same caller, before a question.
    pub fn last_approved(&self, question: &Approval) -> Result<Option<Approval>, StoreError> {
        self.tables.read(READING, |tables| {
            tables.query_first(
                "SELECT * FROM approvals WHERE tool = ?1 AND caller = ?2 AND caller_owner = ?3
                 AND id <> ?4 AND state IN ('approved', 'used') AND answered_ms <= ?5
                 ORDER BY answered_ms DESC LIMIT 1",
                values![
                    question.tool,
                    question.caller,
                    question.caller_is_owner,
                    question.id,
                    question.asked_at_ms
                ],
                approval_of,
            )
        })
    }

    /// Revokes an approval. Returns whether it was still valid.
    pub fn revoke(&self, id: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.change(ApprovalChange::Revoke, |change| {
            let changed = change.execute(
                "UPDATE approvals SET state = 'revoked'
                 WHERE id = ?1 AND state = 'approved' AND expires_ms > ?2",
                values![id, now_ms],
            )?;
            Ok(changed == 1)
        })
    }

    /// Ends a session: approvals for that session are revoked.
    pub fn end_session(&self, session: &str) -> Result<usize, StoreError> {
        self.change(ApprovalChange::EndSession, |change| {
            change.execute(
                "UPDATE approvals SET state = 'revoked'
                 WHERE session = ?1 AND scope = 'session' AND state = 'approved'",
                values![session],
            )
        })
    }

    /// One by its id.
    pub fn get(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.tables.read(READING, |tables| read(tables, id))
    }

    /// The last question with this binding, in any state.
    pub fn last_about(&self, binding: &str) -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT * FROM approvals WHERE binding = ?1 ORDER BY asked_ms DESC LIMIT 1";
        self.tables.read(READING, |tables| {
            tables.query_first(sql, values![binding], approval_of)
        })
    }

    /// One by its id or a prefix of it.
    pub fn find(&self, beginning: &str) -> Result<FoundApproval, StoreError> {
        // A prefix, and not LIKE: what was typed may hold `%`. The cast gives Postgres the type
        // of the parameter.
        let sql = "SELECT * FROM approvals WHERE substr(id, 1, length(CAST(?1 AS TEXT))) = ?1
                   ORDER BY id LIMIT ?2";
        let matches_max = i64::try_from(limit::PREFIX_MATCHES_MAX).unwrap_or(i64::MAX);
        let mut found = self.tables.read(READING, |tables| {
            tables.query(sql, values![beginning, matches_max], approval_of)
        })?;
        Ok(match (found.pop(), found.is_empty()) {
            (None, _) => FoundApproval::None,
            // An empty prefix fits all, and one question would be found by saying nothing.
            (Some(_), _) if beginning.is_empty() => FoundApproval::None,
            (Some(one), true) => FoundApproval::One(Box::new(one)),
            (Some(last), false) => FoundApproval::Several(
                found
                    .into_iter()
                    .chain([last])
                    .map(|approval| approval.id)
                    .collect(),
            ),
        })
    }

    /// Several, the oldest first.
    pub fn list(&self, listing: Listing, now_ms: i64) -> Result<Vec<Approval>, StoreError> {
        let which = match listing {
            Listing::Pending => "state = 'pending' AND expires_ms > ?1",
            Listing::Live => "state IN ('pending', 'approved') AND expires_ms > ?1",
            // True of every row. It names `?1`, because Postgres cannot tell the type of a
            // parameter that nothing uses.
            Listing::All => "(expires_ms > ?1 OR state IS NOT NULL)",
        };
        // If there are too many, the newest are listed.
        let sql =
            format!("SELECT * FROM approvals WHERE {which} ORDER BY asked_ms DESC, id LIMIT ?2");
        let list_max = i64::try_from(limit::LIST_MAX).unwrap_or(i64::MAX);
        let mut listed = self.tables.read(READING, |tables| {
            tables.query(&sql, values![now_ms, list_max], approval_of)
        })?;
        listed.reverse();
        Ok(listed)
    }

    /// How many wait for an answer.
    pub fn count_pending(&self, now_ms: i64) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM approvals WHERE state = 'pending' AND expires_ms > ?1";
        let count = |tables: Executor<'_>| tables.number(sql, values![now_ms]);
        self.tables.read(READING, count).map(from_integer)
    }

    fn change<T>(
        &self,
        step: ApprovalChange,
        change: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        self.tables
            .change(step.doing(), &step.writers(), |executor| {
                let changed = change(executor)?;
                #[cfg(feature = "testing")]
                self.failing.at(step)?;
                Ok(changed)
            })
    }
}

impl ApprovalChange {
    /// Those that count before they write need the table for themselves. The others name
    /// the state they start from in the statement that changes it.
    fn writers(self) -> Writers {
        match self {
            ApprovalChange::Ask | ApprovalChange::Wait => Writers::OneOf(LockedTable::Approvals),
            ApprovalChange::Answer
            | ApprovalChange::Claim
            | ApprovalChange::Take
            | ApprovalChange::Revoke
            | ApprovalChange::EndSession => Writers::Any,
        }
    }

    fn doing(self) -> &'static str {
        match self {
            ApprovalChange::Ask => "write a question down",
            ApprovalChange::Wait => "keep a question waiting",
            ApprovalChange::Answer => "write an answer down",
            ApprovalChange::Claim => "look for an approval",
            ApprovalChange::Take => "take an answer",
            ApprovalChange::Revoke => "take an approval back",
            ApprovalChange::EndSession => "end the approvals of a session",
        }
    }
}

impl WaitingPlace {
    fn word(self) -> &'static str {
        match self {
            WaitingPlace::Client => "client",
            WaitingPlace::Deferred => "deferred",
            WaitingPlace::Inbox => "inbox",
        }
    }
}

/// The waiting question with the same binding that can be joined.
fn waiting_for(
    connection: Executor<'_>,
    binding: &str,
    now_ms: i64,
) -> sql::Result<Option<Approval>> {
    connection.query_first(
        "SELECT * FROM approvals WHERE binding = ?1 AND state = 'pending'
         AND place <> 'client' AND expires_ms > ?2 ORDER BY asked_ms LIMIT 1",
        values![binding, now_ms],
        approval_of,
    )
}

/// The answer that decides a call, if there is one.
fn claimable(
    connection: Executor<'_>,
    claim: &Claim,
    now_ms: i64,
) -> sql::Result<Option<Approval>> {
    // Where a person must be another one, the caller does not count, in any case of
    // its name. An approval comes before a refusal, and one that lasts before one
    // that this uses up.
    connection.query_first(
        "SELECT * FROM approvals WHERE expires_ms > ?1 AND (
           (state = 'approved'
            AND ((scope IN ('once', 'same-arguments') AND binding = ?2)
              OR (scope = 'session' AND tool_binding = ?3 AND session = ?4)
              OR (scope = 'until-changed' AND tool_binding = ?3))
            AND (NOT ?5 OR (NOT own_client AND lower(answered_by) <> lower(caller)))
            AND (?6 OR NOT own_client))
           OR (state IN ('declined', 'dismissed', 'malformed')
            AND used_by_call IS NULL AND binding = ?2))
         ORDER BY state = 'approved' DESC, scope <> 'once' DESC, answered_ms
         LIMIT 1",
        values![
            now_ms,
            claim.binding,
            claim.tool_binding,
            claim.session,
            claim.separate,
            claim.own_client
        ],
        approval_of,
    )
}

/// Whether there is no room. A waiting question never makes room for a new one: the
/// new one is refused.
fn is_full(
    connection: Executor<'_>,
    question: &Approval,
    now_ms: i64,
) -> sql::Result<Option<AskResult>> {
    let counted = connection.query_first(
        "SELECT count(*), count(*) FILTER (WHERE caller = ?2 AND caller_owner = ?3),
         coalesce(sum(octet_length(arguments)), 0),
         coalesce(sum(octet_length(arguments)) FILTER (WHERE caller = ?2 AND caller_owner = ?3), 0)
         FROM approvals WHERE state = 'pending' AND expires_ms > ?1",
        values![now_ms, question.caller, question.caller_is_owner],
        |row| Ok([row.count(0)?, row.count(1)?, row.count(2)?, row.count(3)?]),
    )?;
    let [all, own, all_bytes, own_bytes] = counted.ok_or_else(|| unknown("a row is missing"))?;
    let bytes = u64::try_from(question.arguments.len()).unwrap_or(u64::MAX);
    let with = |waiting: u64| waiting.saturating_add(bytes);
    if own >= limits::APPROVALS_PENDING_PER_CALLER_MAX
        || with(own_bytes) > limits::APPROVALS_WAITING_BYTES_PER_CALLER_MAX
    {
        return Ok(Some(AskResult::TooManyOfCaller));
    }
    let kept = from_integer(connection.number("SELECT count(*) FROM approvals", values![])?);
    let kept_max = limits::APPROVALS_KEPT_MAX + limits::APPROVALS_PENDING_MAX;
    let is_full = all >= limits::APPROVALS_PENDING_MAX
        || with(all_bytes) > limits::APPROVALS_WAITING_BYTES_MAX
        || kept >= kept_max;
    Ok(is_full.then_some(AskResult::TooMany))
}

/// Leaves out the middle of long arguments of answered questions: no person has to read
/// them to decide any more.
fn shorten(connection: Executor<'_>, which: &str, of: &[&dyn SqlValue]) -> sql::Result<()> {
    // The byte length comes first: SQLite knows it without reading the text.
    let kept_max = limits::APPROVAL_KEPT_CHARS_MAX;
    let sql = format!(
        "SELECT id, arguments FROM approvals WHERE octet_length(arguments) > {kept_max} AND {which}"
    );
    let long: Vec<(String, String)> =
        connection.query(&sql, of, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (id, arguments) in long {
        connection.execute(
            "UPDATE approvals SET arguments = ?2 WHERE id = ?1",
            values![id, text::elided(&arguments, kept_max)],
        )?;
    }
    Ok(())
}

/// Deletes the oldest questions that are neither waiting nor valid approvals.
fn prune(connection: Executor<'_>, now_ms: i64) -> sql::Result<()> {
    shorten(
        connection,
        "state = 'pending' AND expires_ms <= ?1",
        values![now_ms],
    )?;
    let kept = from_integer(connection.number("SELECT count(*) FROM approvals", values![])?);
    let over = kept.saturating_sub(limits::APPROVALS_KEPT_MAX);
    if over == 0 {
        return Ok(());
    }
    connection.execute(
        "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals
         WHERE expires_ms <= ?1 OR state NOT IN ('pending', 'approved')
         ORDER BY asked_ms LIMIT ?2)",
        values![now_ms, i64::try_from(over).unwrap_or(i64::MAX)],
    )?;
    Ok(())
}

/// Uses an approval, or marks a refusal as delivered. Nothing if there is neither.
fn take(
    connection: Executor<'_>,
    found: &Approval,
    claim: &Claim,
    now_ms: i64,
) -> sql::Result<Option<Approval>> {
    let Some(answer) = &found.answer else {
        return Ok(None);
    };
    // Asked again here: `claim_one` comes without the conditions of the search.
    let is_own = answer.own_client || caller::is_same(&answer.by, &found.caller);
    let may_count = !(claim.separate && is_own) && (claim.own_client || !answer.own_client);
    let next = match found.state.at(found.expires_at_ms, now_ms) {
        ApprovalState::Approved if may_count && answer.scope == Some(ApprovalScope::Once) => {
            ApprovalState::Used
        }
        ApprovalState::Approved if may_count => ApprovalState::Approved,
        no @ (ApprovalState::Declined | ApprovalState::Dismissed | ApprovalState::Malformed)
            if found.used_by_call.is_none() =>
        {
            no
        }
        ApprovalState::Pending
        | ApprovalState::Approved
        | ApprovalState::Used
        | ApprovalState::Declined
        | ApprovalState::Dismissed
        | ApprovalState::Malformed
        | ApprovalState::Revoked
        | ApprovalState::Expired => return Ok(None),
    };
    let runs = matches!(next, ApprovalState::Used | ApprovalState::Approved);
    // The state it was read in: a call that lost the race changes nothing.
    let changed = connection.execute(
        "UPDATE approvals SET state = ?3, uses = uses + ?4, used_ms = ?5, used_by_call = ?6
         WHERE id = ?1 AND state = ?2 AND (CAST(?4 AS BIGINT) = 1 OR used_by_call IS NULL)",
        values![
            found.id,
            found.state.word(),
            next.word(),
            i64::from(runs),
            now_ms,
            claim.call_id
        ],
    )?;
    if changed != 1 {
        return Ok(None);
    }
    read(connection, &found.id)
}

fn read(connection: Executor<'_>, id: &str) -> sql::Result<Option<Approval>> {
    let sql = "SELECT * FROM approvals WHERE id = ?1";
    connection.query_first(sql, values![id], approval_of)
}

fn insert(connection: Executor<'_>, question: &Approval) -> sql::Result<()> {
    let reasons = serde_json::to_string(&question.reasons).unwrap_or_default();
    connection.execute(
        "INSERT INTO approvals (id, state, place, asked_ms, expires_ms, binding, tool_binding,
         session, call_id, tool, caller, caller_owner, risk, reasons, prompt, arguments, why)
         VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        values![
            question.id,
            question.place.word(),
            question.asked_at_ms,
            question.expires_at_ms,
            question.binding,
            question.tool_binding,
            question.session,
            question.call_id,
            question.tool,
            question.caller,
            question.caller_is_owner,
            question.level.badge(),
            reasons,
            question.prompt,
            question.arguments,
            question.why,
        ],
    )?;
    Ok(())
}

fn approval_of(row: &SqlRow<'_>) -> sql::Result<Approval> {
    let reasons: String = row.get("reasons")?;
    let answered_ms: Option<i64> = row.get("answered_ms")?;
    let scope: Option<String> = row.get("scope")?;
    let scope = scope.map(|word| known(&word)).transpose()?;
    let changed: Option<String> = row.get("changed")?;
    let changed_binding: Option<String> = row.get("changed_binding")?;
    let changed = changed.zip(changed_binding);
    let changed = changed.map(|(arguments, binding)| ChangedArguments { arguments, binding });
    let answer = match answered_ms {
        None => None,
        Some(at_ms) => Some(GivenAnswer {
            scope,
            at_ms,
            by: row.get("answered_by")?,
            channel: row.get("channel")?,
            own_client: row.get("own_client")?,
            note: row.get("note")?,
            changed,
        }),
    };
    Ok(Approval {
        id: row.get("id")?,
        state: known(&row.get::<String>("state")?)?,
        place: match row.get::<String>("place")?.as_str() {
            "client" => WaitingPlace::Client,
            "deferred" => WaitingPlace::Deferred,
            _ => WaitingPlace::Inbox,
        },
        asked_at_ms: row.get("asked_ms")?,
        expires_at_ms: row.get("expires_ms")?,
        binding: row.get("binding")?,
        tool_binding: row.get("tool_binding")?,
        session: row.get("session")?,
        call_id: row.get("call_id")?,
        tool: row.get("tool")?,
        caller: row.get("caller")?,
        caller_is_owner: row.get("caller_owner")?,
        level: known(&row.get::<String>("risk")?)?,
        reasons: serde_json::from_str(&reasons).unwrap_or_default(),
        why: row.get("why")?,
        prompt: row.get("prompt")?,
        arguments: row.get("arguments")?,
        answer,
        used_by_call: row.get("used_by_call")?,
        used_at_ms: row.get("used_ms")?,
        uses: row.count("uses")?,
    })
}

/// A word of a closed set; a row with any other word is an error.
fn known<T: Word>(word: &str) -> sql::Result<T> {
    let mut all = T::ALL.iter().copied();
    let found = all.find(|known| known.word() == word);
    found.ok_or_else(|| unknown(format_args!("`{word}` is not a known word")))
}
