//! The guest's mailbox: a struct in its memory that both sides read and write between
//! calls. The offsets are those of `struct mailbox` in guest/shim.c. The guest wrote
//! what is read here, so it is trusted only within its bounds.

use crate::job::{
    Ended, HostAnswer, Job, NOTES_BYTES_MAX, REJECTIONS_TOLD_MAX, Rejections, StopPlace, Thrown,
};

/// The text before the body. The author's lines begin after it, at 1.
const HEAD: &str = "(async function () {\n";
/// The text after it, on a line of its own, because the body may end in a comment.
const TAIL: &str = "\n})";

/// The most of an error's message that is passed on.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
const NAME_BYTES_MAX: usize = 256;

/// Where the answer's three fields begin.
pub(super) const ANSWER: usize = 52;

/// Where the guest's own fields begin, and how many bytes they take.
const END: usize = 64;
const END_BYTES: usize = 84;
/// The size of `struct thrown`.
const THROWN_BYTES: usize = 32;

/// How the body is handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// To be compiled.
    Source = 0,
    /// To be compiled and offered for the cache.
    SourceKeep = 1,
    /// Out of the cache.
    Bytecode = 2,
}

/// The body inside its wrapper.
pub(super) fn wrap(body: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(HEAD.len() + body.len() + TAIL.len());
    text.extend_from_slice(HEAD.as_bytes());
    text.extend_from_slice(body.as_bytes());
    text.extend_from_slice(TAIL.as_bytes());
    text
}

/// The job's fixed fields, as they lie at the mailbox's start; without the answer.
pub(super) fn job_fields(job: &Job, kind: BodyKind, body_length: usize) -> Vec<u8> {
    let limits = &job.limits;
    let mut fields = Vec::with_capacity(ANSWER);
    fields.extend_from_slice(&limits.work_max.to_le_bytes());
    fields.extend_from_slice(&job.seed.to_le_bytes());
    for word in [
        kind as u32,
        word(body_length),
        word(job.globals.len()),
        word(job.declared.len()),
        word(job.powers.len()),
        limits.result_bytes_max,
        limits.result_depth_max,
        limits.console_bytes_max,
        limits.payload_bytes_max,
    ] {
        fields.extend_from_slice(&word.to_le_bytes());
    }
    fields
}

/// The job's texts, one behind the other.
pub(super) fn job_texts(job: &Job, body: &[u8]) -> Vec<u8> {
    let mut texts = Vec::with_capacity(body.len() + job.globals.len() + 64);
    texts.extend_from_slice(body);
    // The interpreter's parser reads up to a zero byte.
    texts.push(0);
    texts.extend_from_slice(job.globals.as_bytes());
    texts.push(0);
    for name in job.declared.iter().chain(&job.powers) {
        texts.extend_from_slice(&word(name.len()).to_le_bytes());
        texts.extend_from_slice(name.as_bytes());
    }
    texts
}

/// An answer's fields, for [`ANSWER`].
pub(super) fn answer_fields(answer: &HostAnswer) -> [u8; 12] {
    let (is_error, json, bytes) = match answer {
        HostAnswer::Value(payload) => (0, payload.json.len(), payload.bytes.len()),
        HostAnswer::Error(json) => (1, json.len(), 0),
    };
    let mut fields = [0; 12];
    let words = [is_error, word(json), word(bytes)];
    for (field, word) in fields.chunks_exact_mut(4).zip(words) {
        field.copy_from_slice(&word.to_le_bytes());
    }
    fields
}

/// A text too long for 32 bits cannot come from a frame; if it did, the guest finds
/// no such length in its memory and traps.
fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The guest's fields of the mailbox.
pub(super) struct GuestEnd<'a> {
    memory: &'a [u8],
    fields: &'a [u8],
}

impl<'a> GuestEnd<'a> {
    pub(super) fn read(memory: &'a [u8], mailbox: usize) -> Option<GuestEnd<'a>> {
        // Checked, because the place comes from the guest that was loaded.
        let fields = memory.get(mailbox.checked_add(END)?..)?.get(..END_BYTES)?;
        Some(GuestEnd { memory, fields })
    }

    /// The address and size of the place for a job's texts.
    pub(super) fn input(&self) -> Option<(u32, u32)> {
        Some((self.word(44)?, self.word(48)?))
    }

    /// Backward jumps and calls so far.
    pub(super) fn work(&self) -> Option<u64> {
        let granted = u64::from_le_bytes(self.fields.get(32..40)?.try_into().ok()?);
        let left_at = self.word(40)? as usize;
        let left = self.memory.get(left_at..left_at.checked_add(4)?)?;
        let left = i32::from_le_bytes(left.try_into().ok()?);
        // The counter may be below nought when a poll is due; then nothing is left.
        Some(granted.saturating_sub(u64::from(left.max(0).unsigned_abs())))
    }

    /// Its notes beside the result.
    pub(super) fn notes(&self) -> Option<String> {
        Some(cut(self.text(52)?, NOTES_BYTES_MAX))
    }

    pub(super) fn value(&self, bytes_max: u32) -> Option<Ended> {
        let bytes = self.text(0)?;
        if bytes.len() > bytes_max as usize {
            return None;
        }
        Some(Ended::Value(String::from_utf8(bytes.to_vec()).ok()?))
    }

    pub(super) fn thrown(&self, body: &str) -> Option<Ended> {
        let thrown = self.fields.get(..THROWN_BYTES)?;
        Some(Ended::Threw(self.read_thrown(thrown, body)?))
    }

    /// Promises that were rejected and that nothing handled.
    pub(super) fn rejections(&self, body: &str) -> Option<Rejections> {
        let (start, told, count) = (self.word(60)?, self.word(64)?, self.word(68)?);
        let told = (told as usize).min(REJECTIONS_TOLD_MAX);
        let list = self.memory.get(start as usize..)?;
        let told = list.chunks_exact(THROWN_BYTES).take(told);
        let told = told.map(|thrown| self.read_thrown(thrown, body));
        Some(Rejections {
            told: told.collect::<Option<_>>()?,
            count,
        })
    }

    /// Where the script was when it was last polled.
    pub(super) fn polled_at(&self, body: &str) -> Option<StopPlace> {
        let (line, column) = (self.word(72)?, self.word(76)?);
        let in_regex = self.word(80)? != 0;
        let (line, column) = position(body, line, column);
        (line > 0).then_some(StopPlace {
            line,
            column,
            in_regex,
        })
    }

    /// A `struct thrown` of the guest.
    fn read_thrown(&self, fields: &[u8], body: &str) -> Option<Thrown> {
        let helper = self.text_of(fields, 16)?;
        let helper = (!helper.is_empty()).then(|| String::from_utf8_lossy(helper).into_owned());
        let (line, column) = position(body, word_of(fields, 24)?, word_of(fields, 28)?);
        Some(Thrown {
            name: named(self.text_of(fields, 8)?),
            message: cut(self.text_of(fields, 0)?, MESSAGE_BYTES_MAX),
            line,
            column,
            helper,
        })
    }

    fn word(&self, at: usize) -> Option<u32> {
        word_of(self.fields, at)
    }

    fn text(&self, at: usize) -> Option<&'a [u8]> {
        self.text_of(self.fields, at)
    }

    fn text_of(&self, fields: &[u8], at: usize) -> Option<&'a [u8]> {
        let start = word_of(fields, at)? as usize;
        let length = word_of(fields, at + 4)? as usize;
        self.memory.get(start..start.checked_add(length)?)
    }
}

fn word_of(fields: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(fields.get(at..at + 4)?.try_into().ok()?))
}

/// The name of an error. One that is too long is not cut: half a secret could not be
/// masked any more.
fn named(bytes: &[u8]) -> String {
    let name = String::from_utf8_lossy(bytes);
    match name.len() <= NAME_BYTES_MAX {
        true => name.into_owned(),
        false => "Error".to_owned(),
    }
}

/// Text of at most so many bytes, cut at a character. The code that masks it knows that its
/// end may be missing.
fn cut(bytes: &[u8], bytes_max: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// A position inside the body. An error after its last line, such as a missing brace,
/// is shown at its end; the wrapper is not the author's.
fn position(body: &str, line: u32, column: u32) -> (u32, u32) {
    let last = body.split('\n').next_back().unwrap_or_default();
    let lines = word(body.matches('\n').count()).saturating_add(1);
    if line > lines {
        return (lines, word(last.chars().count()).saturating_add(1));
    }
    (line, column)
}

/// Reads the end out of any bytes at all, as if a guest had left them. Panics on a broken
/// promise: what is handed on is within its bounds. For fuzzing and its seeds.
#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
pub(super) fn fuzz(data: &[u8]) {
    const BYTES_MAX: u32 = 64;
    const BODY: &str = "one\ntwo";
    let Some(([low, high], memory)) = data.split_first_chunk::<2>() else {
        return;
    };
    let at = usize::from(u16::from_le_bytes([*low, *high]));
    // A mailbox at the end of all addresses must not wrap around.
    if GuestEnd::read(memory, usize::MAX - at).is_some() {
        panic!("an end was read outside of memory");
    }
    let Some(end) = GuestEnd::read(memory, at) else {
        return;
    };
    let _ = (end.input(), end.work());
    if end
        .notes()
        .is_some_and(|notes| notes.len() > NOTES_BYTES_MAX)
    {
        panic!("notes out of bounds were taken");
    }
    if let Some(Ended::Value(text)) = end.value(BYTES_MAX)
        && text.len() > BYTES_MAX as usize
    {
        panic!("a result of {} bytes was taken", text.len());
    }
    let rejections = end.rejections(BODY).unwrap_or_default();
    if rejections.told.len() > REJECTIONS_TOLD_MAX {
        panic!("too many rejections were taken");
    }
    if end.polled_at(BODY).is_some_and(|place| place.line > 2) {
        panic!("a place outside the body was taken");
    }
    for thrown in rejections.told {
        check_thrown(&thrown);
    }
    if let Some(Ended::Threw(thrown)) = end.thrown(BODY) {
        check_thrown(&thrown);
    }
}

#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
fn check_thrown(thrown: &Thrown) {
    let fits = thrown.name.len() <= NAME_BYTES_MAX
        && thrown.message.len() <= MESSAGE_BYTES_MAX
        && thrown.line <= 2;
    if !fits {
        panic!("an error out of bounds was taken: {thrown:?}");
    }
}

#[cfg(test)]
mod tests;
