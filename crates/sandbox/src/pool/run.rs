//! One run, from its place in a worker to its end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, Stream};
use tokio::runtime::Handle;
use tokio::time::{self, Instant};

use crate::frame::{FRAME_BYTES_MAX, FRAME_OVERHEAD_BYTES};
use crate::job::{Breach, CallId, Ended, HostAnswer, HostCallId, Job, JobLimits};

use super::call::{Call, Event};
use super::checker::{REPORT_BYTES_MAX, THROWN_BYTES_MAX};
use super::error::RunError;
use super::json::RESULT_DEPTH_MAX;
use super::link::{Link, Loss};
use super::roster::WorkerSlot;
use super::{FinishedRun, HostCalls, Shared};

/// Why a run's task wakes.
enum Turn {
    Worker(Event),
    Answer(HostCallId, HostAnswer),
    Late,
}

pub(super) async fn run(
    shared: &Arc<Shared>,
    place: WorkerSlot,
    mut job: Job,
    host: &dyn HostCalls,
) -> Result<FinishedRun, RunError> {
    fit_frames(&mut job.limits);
    let payload_bytes_max = job.limits.payload_bytes_max as usize;
    let grace = Duration::from_millis(u64::from(shared.settings.deadline_grace_ms));
    let limit = Duration::from_millis(u64::from(job.limits.wall_ms_max)) + grace;
    let mut late = pin!(time::sleep(limit));
    // A worker whose pipe is full has not read for a while. The job waits for room under
    // the call's own time, so that a stopped worker cannot hold it longer.
    let room = poll_fn(|context| match place.link.poll_room(context) {
        Poll::Ready(()) => Poll::Ready(Ok(())),
        Poll::Pending => late.as_mut().poll(context).map(|()| Err(RunError::Hung)),
    });
    if let Err(error) = room.await {
        // It has not read for as long as the whole call may take.
        place.link.doom(Loss::Hung);
        return Err(error);
    }
    let mut running = Running::start(shared, place, job, host)?;
    // The time of the call begins now; waiting for the pipe was not the script's doing.
    late.as_mut().reset(Instant::now() + limit);

    let mut answers = FuturesUnordered::new();
    loop {
        let turn = poll_fn(|context| {
            // The end first. Else a call whose host answers quickly could be kept alive by
            // its own answers.
            if let Poll::Ready(event) = running.call.poll_event(context) {
                return Poll::Ready(Turn::Worker(event));
            }
            // Back-pressure: no answer is taken while the pipe is full.
            if !answers.is_empty()
                && running.link.poll_room(context).is_ready()
                && let Poll::Ready(Some((id, answer))) = poll_next(&mut answers, context)
            {
                return Poll::Ready(Turn::Answer(id, answer));
            }
            late.as_mut().poll(context).map(|()| Turn::Late)
        })
        .await;
        match turn {
            Turn::Worker(Event::Asked(request)) => {
                let id = request.id;
                let answer = host.call(request);
                answers.push(async move { (id, answer.await) });
            }
            Turn::Worker(Event::Ended(ended)) => {
                host.unasked(running.call.unasked());
                return running.finish(ended);
            }
            Turn::Answer(id, answer) => {
                if answer_bytes(&answer) > payload_bytes_max {
                    // The sandbox would end with this breach anyway, so the answer is
                    // not sent.
                    running.breach(Breach::PayloadBytes);
                    // Dropped, so that no power goes on working for a call
                    // that is being ended.
                    answers.clear();
                } else {
                    running.answer(id, answer);
                }
            }
            Turn::Late => {
                // Wall one failed to keep the time, so the process around it is not trusted
                // to do so either.
                running.link.doom(Loss::Hung);
                return running.finish(Err(RunError::Hung));
            }
        }
    }
}

fn poll_next<S: Stream + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(context)
}

fn answer_bytes(answer: &HostAnswer) -> usize {
    match answer {
        HostAnswer::Value(payload) => payload.json.len().saturating_add(payload.bytes.len()),
        HostAnswer::Error(error) => error.len(),
    }
}

/// Lowers limits that no frame, or no JSON parser, could carry.
fn fit_frames(limits: &mut JobLimits) {
    const TEXT_BYTES_MAX: u32 =
        FRAME_BYTES_MAX - FRAME_OVERHEAD_BYTES - THROWN_BYTES_MAX - REPORT_BYTES_MAX;
    for bound in [
        &mut limits.result_bytes_max,
        &mut limits.payload_bytes_max,
        &mut limits.console_bytes_max,
    ] {
        *bound = (*bound).min(TEXT_BYTES_MAX);
    }
    limits.result_depth_max = limits.result_depth_max.min(RESULT_DEPTH_MAX);
}

/// A started call. Dropped before its end, it is cancelled.
struct Running<'a> {
    host: &'a dyn HostCalls,
    link: Arc<Link>,
    call: Arc<Call>,
    id: CallId,
    cancel_grace: Duration,
    runtime: Handle,
    /// The bound the parent saw reached before the worker could.
    breach: Option<Breach>,
    finished: bool,
}

impl<'a> Running<'a> {
    fn start(
        shared: &Shared,
        place: WorkerSlot,
        job: Job,
        host: &'a dyn HostCalls,
    ) -> Result<Running<'a>, RunError> {
        let link = Arc::clone(&place.link);
        let (id, call) = link.start(job)?;
        place.hand_over();
        Ok(Running {
            host,
            link,
            call,
            id,
            cancel_grace: Duration::from_millis(u64::from(shared.settings.cancel_grace_ms)),
            // Dropping happens outside of any task at times, and still has to spawn the
            // watch over the cancellation.
            runtime: Handle::current(),
            breach: None,
            finished: false,
        })
    }

    fn answer(&self, id: HostCallId, answer: HostAnswer) {
        // Before sending: the worker may use the free place at once.
        self.call.count_answer();
        if self.link.answer(self.id, id, answer).is_err() {
            // Bounded by `fit_frames`, so it fits; if not, the deadline ends the call.
            self.link.cancel(self.id);
        }
    }

    fn breach(&mut self, breach: Breach) {
        if self.breach.is_none() {
            self.breach = Some(breach);
            self.cancel();
        }
    }

    fn finish(mut self, ended: Result<FinishedRun, RunError>) -> Result<FinishedRun, RunError> {
        self.finished = true;
        let mut run = ended?;
        if let Some(breach) = self.breach {
            // The parent's finding wins: what the worker reports is only the cancellation
            // that followed.
            run.report.ended = Ended::Breached(breach);
        }
        Ok(run)
    }

    /// Asks the worker to end the call, and kills the worker if it does not.
    fn cancel(&self) {
        self.call.cancel();
        self.link.cancel(self.id);
        let (link, id, grace) = (Arc::clone(&self.link), self.id, self.cancel_grace);
        // On a task of its own, because the run itself may be dropped at this moment.
        self.runtime.spawn(async move {
            time::sleep(grace).await;
            if link.is_running(id) {
                link.doom(Loss::Hung);
            }
        });
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let said = self.call.abandon();
            self.cancel();
            self.host.left(said);
        }
    }
}
