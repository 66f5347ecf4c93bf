//! This home as a witness of other logs. A head that a log signed and that contradicts
//! what was seen of it is evidence, not only a refusal: it is kept, recorded and told.

use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice};
use model::record::note::{NoteSignature, SignedNote};
use model::record::witness::{HeadConflict, WitnessRefusal, WitnessRequest};
use model::text::{elided, one_line};
use store::limit::OVERTAKEN_HEAD_SECONDS_MAX;
use store::{KeptConflict, StoreError};

use crate::engine::Engine;
use crate::error::causes;

/// What the notices of a witness come through.
const THROUGH: &str = "witness";

impl Engine {
    /// Cosigns a head that extends what was seen of its log. One that its log signed and that
    /// contradicts what was seen is refused, kept as evidence, and told once.
    pub fn witness(
        &self,
        request: &WitnessRequest,
    ) -> Result<Result<NoteSignature, WitnessRefusal>, StoreError> {
        let config = self.registry().current().config.clone();
        let seconds = u64::try_from(self.now_ms() / 1_000).unwrap_or(0);
        let witnessed = self.store().witnessed();
        let answer = witnessed.add(request, &config.audit.witnessed_keys(), seconds)?;
        if let Err(refusal) = answer
            && let Err(error) = self.keep_evidence(request, refusal, seconds)
        {
            // The refusal stands in any case.
            let why = causes(&error);
            let what = "another log may contradict itself, and the evidence was not kept";
            self.alarm_of().raise(&format!("{what}: {why}"));
        }
        Ok(answer)
    }

    fn keep_evidence(
        &self,
        request: &WitnessRequest,
        refusal: WitnessRefusal,
        seconds: u64,
    ) -> Result<(), StoreError> {
        // Only these come after the signature was checked.
        if !matches!(refusal, WitnessRefusal::Fork | WitnessRefusal::Conflict(_)) {
            return Ok(());
        }
        let Ok(shown) = request.note.head() else {
            return Ok(());
        };
        let known = self.store().witnessed().list()?;
        let Some(known) = known.into_iter().find(|it| it.origin == shown.origin) else {
            return Ok(());
        };
        let Ok(seen) = known.note.parse::<SignedNote>() else {
            return Ok(());
        };
        let Ok(head) = seen.head() else {
            return Ok(());
        };
        let Some(conflict) = request.conflict(refusal, &head) else {
            return Ok(());
        };
        // Two requests can overtake each other on their way; a log that was rolled back shows
        // the old head again and again.
        let is_recent = seconds.saturating_sub(known.seen_at) < OVERTAKEN_HEAD_SECONDS_MAX;
        if conflict == HeadConflict::RolledBack && is_recent {
            return Ok(());
        }
        let Some(kept) = KeptConflict::new(seen, request.note.clone()) else {
            return Ok(());
        };
        if self.store().audit().keep_conflict(&kept)? {
            self.tell(&kept, head.size, shown.size);
        }
        Ok(())
    }

    /// Records a contradiction and raises the alarm.
    fn tell(&self, kept: &KeptConflict, seen: u64, shown: u64) {
        let name = elided(&one_line(&kept.origin), 80);
        let message = match kept.conflict {
            HeadConflict::Forked => format!(
                "`{name}` signed a head over {shown} records that was not shown to extend its head \
                 over {seen} records, which this node saw before: its log was forked"
            ),
            HeadConflict::RolledBack => format!(
                "`{name}` shows a head over {shown} records after one over {seen}: its log was \
                 rolled back, or an old head is replayed"
            ),
        };
        let sentence = format!("the audit of another node is in doubt: {message}");
        self.alarm_of().raise(&sentence);
        let notice = Notice::new(Act::AuditContradicted, SERVER, THROUGH, &message);
        let notice = notice.about(&kept.origin);
        let notice = notice.detail("seenRecords", &seen.to_string());
        let notice = notice.detail("shownRecords", &shown.to_string());
        // The first lines of both heads are in the chain; the notes themselves lie beside it.
        let notice = notice.detail("seen", kept.seen.text());
        self.noticed(notice.detail("shown", kept.shown.text()));
    }
}
