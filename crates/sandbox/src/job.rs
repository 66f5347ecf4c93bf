//! The messages between the parent and a worker, as plain types.
//!
//! The parent sends `Down`, the worker sends `Up`; `frame` turns both into
//! bytes and back, `cell` runs a `Job` inside wall one, `pool` is the parent's
//! side. Nothing here says what a host call means: operation and payload are
//! text and bytes, given meaning by the implementor of `HostCalls`.

/// Names one call between a parent and one worker. Never reused in a worker's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Names one host call inside one call, counted by the guest from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostCallId(pub u32);

/// One script to run, once, in a sandbox of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The body of an async function, as its author wrote it.
    pub body: String,
    /// A JSON object: each member becomes a property of the global object.
    pub globals: String,
    /// Names that must read as `undefined` when `globals` lacks them.
    pub declared: Vec<String>,
    /// The faces the prelude installs (`fetch`, `fs.read`, …). A power not named
    /// here does not exist for the script.
    pub powers: Vec<String>,
    /// Every bound of this run. Nothing is global.
    pub limits: JobLimits,
    /// Seeds `Math.random`. The parent draws it; a snapshot must not repeat itself.
    pub seed: u64,
    /// What the script's clock says at the start, milliseconds since 1970.
    pub now_ms: i64,
}

/// The bounds of one run. Each has its own [`Breach`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Jumps and calls of the interpreter, and steps of the regular expression engine
    /// in lots of 10,000: the same on every machine. An empty `for` loop spends two
    /// each time round, a function call one.
    pub work_max: u64,
    /// Processor time; not counted while a host call is awaited.
    pub cpu_ms_max: u32,
    /// Time on the wall, waiting included.
    pub wall_ms_max: u32,
    /// The sandbox's whole linear memory, its 2 MiB image included.
    pub memory_bytes_max: u32,
    /// The serialised result.
    pub result_bytes_max: u32,
    /// Nesting of the result.
    pub result_depth_max: u32,
    /// Lines given to `console`.
    pub console_lines_max: u32,
    /// Bytes given to `console`.
    pub console_bytes_max: u32,
    /// Host calls over the whole run.
    pub host_calls_max: u32,
    /// Host calls waiting at one time.
    pub host_outstanding_max: u32,
    /// One host call's payload, and one answer's.
    pub payload_bytes_max: u32,
}

/// How a host call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCallKind {
    /// The script continues, and a promise settles later.
    Queued,
    /// The script blocks inside the call until the answer is there.
    Direct,
}

/// A script's request to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Which of this run's host calls.
    pub id: HostCallId,
    /// How it was made.
    pub kind: HostCallKind,
    /// What is asked for, such as `fetch`.
    pub operation: String,
    /// JSON text, then optionally raw bytes; see `frame`.
    pub payload: Payload,
}

/// Data in either direction: JSON text and, beside it, bytes that JSON would bloat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// JSON text.
    pub json: String,
    /// A body, file or digest. Reaches the script as a `Uint8Array`.
    pub bytes: Vec<u8>,
}

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAnswer {
    /// The call's value.
    Value(Payload),
    /// An error the script can catch: JSON `{kind, reason, helper, message}`.
    Error(String),
}

/// One line given to `console`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestLine {
    /// Which function was called.
    pub level: ConsoleLevel,
    /// Its arguments, joined by one space.
    pub text: String,
}

/// The five functions of `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleLevel {
    /// `console.log`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
    /// `console.debug`
    Debug,
}

/// How a run ended, and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// How it ended.
    pub ended: Ended,
    /// What it used.
    pub usage: RunUsage,
    /// Warnings for the reader of the result, a line for each: a promise nothing
    /// waited for, half a character, what was cut. Empty when there is nothing.
    pub notes: String,
    /// Promises that were rejected and that nothing handled.
    pub rejections: Rejections,
    /// Where the script was when [`JobLimits::work_max`] or [`JobLimits::cpu_ms_max`] stopped
    /// it, if that is known.
    pub stopped_at: Option<StopPlace>,
}

impl RunReport {
    /// An end that used nothing and has nothing beside it.
    pub fn new(ended: Ended) -> RunReport {
        RunReport {
            ended,
            usage: RunUsage::default(),
            notes: String::new(),
            rejections: Rejections::default(),
            stopped_at: None,
        }
    }
}

/// Promises that were rejected and that nothing handled until the run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    /// The errors of the first of them, at most [`REJECTIONS_TOLD_MAX`].
    pub told: Vec<Thrown>,
    /// How many there are.
    pub count: u32,
}

/// The most rejections that are told one by one.
pub const REJECTIONS_TOLD_MAX: usize = 8;
/// The most bytes all of them have.
pub const REJECTIONS_BYTES_MAX: usize = 128 << 10;

/// Where a script was when it was stopped: exact for the work budget, the last place the
/// sandbox looked at for processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopPlace {
    /// The author's own line, from 1.
    pub line: u32,
    /// The author's own column, from 1.
    pub column: u32,
    /// A regular expression was at work.
    pub in_regex: bool,
}

/// The most that notes have.
pub const NOTES_BYTES_MAX: usize = 2 << 10;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The body returned; JSON text.
    Value(String),
    /// The body returned `undefined`, which is not `null`.
    Undefined,
    /// The body threw, or did not parse.
    Threw(Thrown),
    /// A bound was reached. Final: the script could not catch it.
    Breached(Breach),
    /// The parent cancelled it.
    Cancelled,
    /// The sandbox itself failed (a trap that no bound explains). The worker is no
    /// longer trusted and is replaced. The text is for the operator only.
    Broken(String),
}

/// An error that a script threw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thrown {
    /// `TypeError`, or `Error` without a name.
    pub name: String,
    /// Its message.
    pub message: String,
    /// The author's own line, from 1; 0 when unknown.
    pub line: u32,
    /// The author's own column, from 1; 0 when unknown.
    pub column: u32,
    /// For errors made by a power: JSON `{kind, reason, helper, message}`.
    pub helper: Option<String>,
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// [`JobLimits::work_max`].
    Work,
    /// [`JobLimits::cpu_ms_max`].
    Cpu,
    /// [`JobLimits::wall_ms_max`].
    Wall,
    /// [`JobLimits::memory_bytes_max`].
    Memory,
    /// The native stack; ordinary recursion is a catchable `RangeError` instead.
    Stack,
    /// [`JobLimits::result_bytes_max`].
    ResultBytes,
    /// [`JobLimits::result_depth_max`].
    ResultDepth,
    /// [`JobLimits::console_lines_max`].
    ConsoleLines,
    /// [`JobLimits::console_bytes_max`].
    ConsoleBytes,
    /// [`JobLimits::host_calls_max`].
    HostCalls,
    /// [`JobLimits::host_outstanding_max`].
    HostOutstanding,
    /// [`JobLimits::payload_bytes_max`].
    PayloadBytes,
    /// Nothing is outstanding and the promise can never settle.
    Deadlock,
}

/// The resources a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUsage {
    /// Counted as [`JobLimits::work_max`] is; exact.
    pub work: u64,
    /// Processor microseconds inside the guest.
    pub cpu_us: u64,
    /// Microseconds from start to end.
    pub wall_us: u64,
    /// The linear memory at its largest.
    pub memory_bytes: u64,
    /// Host calls made.
    pub host_calls: u32,
}

/// Parent to worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Down {
    /// Run this.
    Start(CallId, Box<Job>),
    /// Answer one host call.
    Answer(CallId, HostCallId, HostAnswer),
    /// Stop, drop the sandbox, and say [`Ended::Cancelled`].
    Cancel(CallId),
}

/// Worker to parent.
#[derive(Clone, Debug, PartialEq)]
pub enum Up {
    /// A line for the call's record.
    Console(CallId, GuestLine),
    /// A request to the host.
    Host(CallId, HostRequest),
    /// The last word about a call.
    Ended(CallId, Box<RunReport>),
}
