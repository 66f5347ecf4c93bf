//! The background jobs that run in this process. A job belongs to the caller that started
//! it; its state is in the store, what it writes is in the home. When the engine goes, its
//! jobs go with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::files::remove_folder;
use model::config::ToolboxConfig;
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice};
use model::record::job::JobState;
use model::record::mask::Masker;
use model::sync::lock;
use model::text;
use model::word::Word as _;
use store::{JobEnd, Store, WithOrphans};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::changes::{ChangeRecord, KeptChanges, KeptSet, Staging};
use crate::jailed::{JailedCommand, JailedRun, Jailer, OutputSink, OutputStream, ProcessEnd};
use crate::limit;
use crate::notice::{loudly, with_connections};
use crate::services::{Alarm, Clock};

mod log;

pub(crate) use log::{log_bytes, read_log};

/// The folder of what jobs write, in the home.
const FOLDER: &str = "jobs";

/// The background jobs that run in this process.
#[derive(Debug)]
pub(crate) struct RunningJobs {
    home: PathBuf,
    store: Store,
    clock: Clock,
    alarm: Alarm,
    changes: KeptChanges,
    running: Arc<Mutex<BTreeMap<String, RunningJob>>>,
    /// Ends every job when it is dropped.
    stop: CancellationToken,
}

#[derive(Debug)]
struct RunningJob {
    cancel: CancellationToken,
    /// Whether it is over.
    over: watch::Receiver<bool>,
}

/// A job that is about to start: its row is written.
#[derive(Debug)]
pub(crate) struct JobOrder {
    pub(crate) id: String,
    pub(crate) caller: String,
    /// The call that starts it.
    pub(crate) call_id: String,
    pub(crate) origin: &'static str,
    /// Its end is put on record long after its call.
    pub(crate) masker: Arc<Masker>,
    pub(crate) jailer: Jailer,
    pub(crate) command: JailedCommand,
    pub(crate) limits: ToolboxConfig,
    /// Where its changes of an operator's folder go.
    pub(crate) aside: Option<(KeptChanges, Staging, ChangeRecord)>,
}

impl RunningJobs {
    pub(crate) fn new(
        home: &Path,
        (store, clock, alarm): (&Store, &Clock, &Alarm),
        changes: &KeptChanges,
    ) -> RunningJobs {
        let jobs = RunningJobs {
            home: home.to_owned(),
            store: store.clone(),
            clock: clock.clone(),
            alarm: alarm.clone(),
            changes: changes.clone(),
            running: Arc::default(),
            stop: CancellationToken::new(),
        };
        jobs.sweep();
        jobs.find_orphans();
        jobs
    }

    /// How many run.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(lock(&self.running).len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.home.join(FOLDER).join(id)
    }

    /// Starts a job whose row is written.
    pub(crate) fn start(&self, order: JobOrder) {
        let cancel = self.stop.child_token();
        let (over, watching) = watch::channel(false);
        let job = RunningJob {
            cancel: cancel.clone(),
            over: watching,
        };
        // Before the task starts: its end must find the entry.
        lock(&self.running).insert(order.id.clone(), job);
        let end = JobEnding {
            id: order.id.clone(),
            caller: order.caller.clone(),
            call_id: order.call_id.clone(),
            program: order.command.command.first().cloned().unwrap_or_default(),
            origin: order.origin,
            masker: Arc::clone(&order.masker),
            store: self.store.clone(),
            clock: self.clock.clone(),
            alarm: self.alarm.clone(),
            running: Arc::clone(&self.running),
            over,
        };
        let folder = self.folder(&order.id);
        tokio::spawn(async move {
            let ended = run(order, &folder, cancel).await;
            end.write(ended);
        });
    }

    /// Ends a job that runs here, and waits until nothing of it is left. `false` if no such
    /// job runs here.
    pub(crate) async fn cancel(&self, id: &str) -> bool {
        let found = lock(&self.running)
            .get(id)
            .map(|job| (job.cancel.clone(), job.over.clone()));
        let Some((cancel, mut over)) = found else {
            return false;
        };
        cancel.cancel();
        let wait = Duration::from_secs(limit::JOB_CANCEL_SECONDS_MAX);
        // If the time is over, it is still ending, and its row says how it stands.
        let _ = tokio::time::timeout(wait, over.wait_for(|is_over| *is_over)).await;
        true
    }

    /// The answer; what was found dead on the way to it is put on record, and what it left half
    /// made is removed.
    pub(crate) fn tell<T>(&self, looked: WithOrphans<T>) -> T {
        for row in &looked.orphans {
            let Some(end) = &row.end else { continue };
            let job = &row.job;
            let mut notice = end_notice((&job.caller, SERVER), &job.id, &job.call_id, end);
            if let Some(why) = &end.why {
                notice = notice.detail("why", why);
            }
            loudly(&self.store, &self.alarm, notice);
            self.changes.forget_unfinished(&job.call_id);
        }
        looked.found
    }

    /// Puts the end of jobs on record that a process of this home did not live to see.
    fn find_orphans(&self) {
        // Where no job ever ran there is nothing to ask for.
        if !self.home.join(FOLDER).exists() {
            return;
        }
        match self.store.jobs().find_orphans(self.clock.now_ms()) {
            Ok(looked) => self.tell(looked),
            Err(fault) => self.alarm.raise(&format!(
                "background jobs of earlier processes could not be looked for: {}",
                crate::error::causes(&fault)
            )),
        }
    }

    /// Removes what jobs of long ago wrote.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(self.home.join(FOLDER)) else {
            return;
        };
        let age_max = Duration::from_secs(limit::JOB_FILES_SECONDS_MAX);
        for entry in entries.flatten().take(limit::SWEEP_ENTRIES_MAX) {
            let age = entry.metadata().and_then(|about| about.modified());
            let age = age.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > age_max) {
                let _ = remove_folder(&entry.path());
            }
        }
    }
}

impl Drop for RunningJobs {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What came of a job.
struct EndedJob {
    state: JobState,
    ran: Option<JailedRun>,
    stdout_bytes: u64,
    stderr_bytes: u64,
    why: Option<String>,
    /// What was kept of its changes.
    kept: Option<KeptSet>,
}

async fn run(order: JobOrder, folder: &Path, cancel: CancellationToken) -> EndedJob {
    let JobOrder {
        jailer,
        mut command,
        limits,
        aside,
        ..
    } = order;
    command.stop = Some(cancel);
    let mut stdout_log = log::JobLog::new(folder, OutputStream::Stdout, limits.output_bytes_max);
    let mut stderr_log = log::JobLog::new(folder, OutputStream::Stderr, limits.output_bytes_max);
    let mut write_stdout = |bytes: &[u8]| stdout_log.append(bytes);
    let mut write_stderr = |bytes: &[u8]| stderr_log.append(bytes);
    // Logs keep the output. The sinks only count it.
    let masker = Masker::none();
    let mut stdout = OutputSink::watched(1, &masker, &mut write_stdout);
    let mut stderr = OutputSink::watched(1, &masker, &mut write_stderr);
    let own = command.own_folder.clone();
    let ran = jailer.run(command, &limits, &mut stdout, &mut stderr).await;
    let (stdout_bytes, stderr_bytes) = (stdout.bytes(), stderr.bytes());
    // What cannot be removed now is removed when an engine is next opened.
    let _ = remove_folder(&own);
    let (kept, lost) = match keep_changes(aside).await {
        Ok(kept) => (kept, None),
        Err(why) => (None, Some(format!("what the job changed is lost: {why}"))),
    };
    match ran {
        Ok(ran) => {
            let state = match &ran.end {
                ProcessEnd::Exited(0) => JobState::Done,
                ProcessEnd::TimedOut => JobState::TimedOut,
                ProcessEnd::Stopped => JobState::Cancelled,
                ProcessEnd::Exited(_)
                | ProcessEnd::Signal(_)
                | ProcessEnd::Bound(_)
                | ProcessEnd::Unknown(_) => JobState::Failed,
            };
            EndedJob {
                state,
                why: ran.end.why().or(lost),
                ran: Some(ran),
                stdout_bytes,
                stderr_bytes,
                kept,
            }
        }
        Err(fault) => EndedJob {
            state: JobState::Failed,
            ran: None,
            stdout_bytes,
            stderr_bytes,
            why: Some(crate::error::causes(&fault)),
            kept,
        },
    }
}

/// Keeps what a job changed beside the operator's folder, if it changed anything.
async fn keep_changes(
    aside: Option<(KeptChanges, Staging, ChangeRecord)>,
) -> Result<Option<KeptSet>, String> {
    let Some((keeper, staging, record)) = aside else {
        return Ok(None);
    };
    let keeping = move || keeper.keep_program(staging, record);
    let kept = tokio::task::spawn_blocking(keeping).await;
    kept.unwrap_or_else(|_| Err("it could not be looked at".to_owned()))
}

/// Writes the end of a job down, whatever it was.
struct JobEnding {
    id: String,
    caller: String,
    call_id: String,
    program: String,
    origin: &'static str,
    masker: Arc<Masker>,
    store: Store,
    clock: Clock,
    alarm: Alarm,
    running: Arc<Mutex<BTreeMap<String, RunningJob>>>,
    over: watch::Sender<bool>,
}

impl JobEnding {
    fn write(self, ended: EndedJob) {
        let end = JobEnd {
            state: ended.state,
            ended_at_ms: self.clock.now_ms(),
            exit_code: ended.ran.as_ref().and_then(|ran| ran.end.exit_code()),
            stdout_bytes: ended.stdout_bytes,
            stderr_bytes: ended.stderr_bytes,
            why: ended.why,
            changes: ended.kept.as_ref().map(|kept| kept.id.clone()),
        };
        if let Err(fault) = self.store.jobs().end(&self.id, &end) {
            let why = crate::error::causes(&fault);
            self.alarm.raise(&format!(
                "the end of job {} could not be kept: {why}",
                self.id
            ));
        }
        let left_out = ended.kept.map(|kept| kept.record.collected.left_out);
        let notice = self.notice(&end, ended.ran.as_ref(), &left_out.unwrap_or_default());
        loudly(&self.store, &self.alarm, notice);
        lock(&self.running).remove(&self.id);
        // Last, so that what waits for the end finds its row written.
        let _ = self.over.send(true);
    }

    /// What is on record of it: the record of its call was closed long ago.
    fn notice(
        &self,
        end: &JobEnd,
        ran: Option<&JailedRun>,
        left_out: &BTreeMap<String, String>,
    ) -> Notice {
        let mut notice = end_notice((&self.caller, self.origin), &self.id, &self.call_id, end)
            .detail("program", &self.program);
        if let Some(why) = &end.why {
            notice = notice.detail("why", self.masker.text(why).get());
        }
        // Few of them: connections need their places too.
        if !left_out.is_empty() {
            notice = notice.detail("leftOut", &left_out.len().to_string());
        }
        for (path, why) in left_out.iter().take(limit::JOB_LEFT_OUT_MAX) {
            // Attack: a program that puts a secret into the name of a file.
            let path = text::one_line(self.masker.text(path).get());
            notice = notice.detail(&format!("left out {path}"), why);
        }
        let Some(ran) = ran else {
            return notice;
        };
        notice = notice
            .detail("backend", "jail")
            .detail("rung", ran.rung)
            .detail("ms", &ran.wall.as_millis().to_string());
        if let Some(cpu_ms) = ran.cpu_ms {
            notice = notice.detail("cpuMs", &cpu_ms.to_string());
        }
        with_connections(notice, &ran.egress, &self.masker)
    }
}

/// The end of a job, as far as its row knows it.
fn end_notice((caller, origin): (&str, &str), job: &str, call_id: &str, end: &JobEnd) -> Notice {
    let message = format!("a background job ended: {}", end.state.word());
    let mut notice = Notice::new(Act::JobEnded, caller, origin, &message)
        .about(job)
        .detail("state", end.state.word())
        .detail("callId", call_id)
        .detail("stdoutBytes", &end.stdout_bytes.to_string())
        .detail("stderrBytes", &end.stderr_bytes.to_string());
    if let Some(code) = end.exit_code {
        notice = notice.detail("exitCode", &code.to_string());
    }
    if let Some(changes) = &end.changes {
        notice = notice.detail("changes", changes);
    }
    notice
}
