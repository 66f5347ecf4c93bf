//! What one exchange may still use, and what it leaves in the record.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use model::sync::lock;
use tokio::time::{Instant, Sleep, sleep};

use crate::egress::event::{EgressEvent, EgressTally};
use crate::egress::limits;

/// What all connections of a child share.
#[derive(Debug)]
pub(crate) struct EgressBudget {
    bytes_left: AtomicU64,
    tally: Arc<EgressTally>,
    events: Mutex<EventList>,
}

#[derive(Debug, Default)]
struct EventList {
    kept: Vec<EgressEvent>,
    left_out: u64,
}

impl EgressBudget {
    pub(crate) fn new(bytes_max: u64, tally: &Arc<EgressTally>) -> EgressBudget {
        EgressBudget {
            bytes_left: AtomicU64::new(bytes_max),
            tally: Arc::clone(tally),
            events: Mutex::default(),
        }
    }

    /// The decisions so far, and how many more there were than are kept.
    pub(crate) fn take_events(&self) -> (Vec<EgressEvent>, u64) {
        let taken = std::mem::take(&mut *lock(&self.events));
        (taken.kept, taken.left_out)
    }

    fn push(&self, event: EgressEvent) {
        self.tally.count(&event);
        let mut events = lock(&self.events);
        match events.kept.len() < limits::EGRESS_EVENTS_MAX {
            true => events.kept.push(event),
            false => events.left_out = events.left_out.saturating_add(1),
        }
    }

    fn spend(&self, bytes: u64) -> bool {
        let spend = |left: u64| left.checked_sub(bytes);
        self.bytes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .is_ok()
    }
}

/// One exchange under way. Its event is recorded when the last that uses it is dropped.
#[derive(Debug)]
pub(crate) struct EgressMeter {
    budget: Arc<EgressBudget>,
    event: Mutex<EgressEvent>,
    started: Instant,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromChild,
    ToChild,
}

impl EgressMeter {
    pub(crate) fn open(budget: &Arc<EgressBudget>, event: EgressEvent) -> Arc<EgressMeter> {
        Arc::new(EgressMeter {
            budget: Arc::clone(budget),
            event: Mutex::new(event),
            started: Instant::now(),
        })
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut EgressEvent)) {
        change(&mut lock(&self.event));
    }

    /// Bytes that are about to go; an error when the child has used up what it may.
    pub(crate) fn count(&self, direction: Direction, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let may = self.budget.spend(bytes);
        let mut event = lock(&self.event);
        if !may {
            event.refusal = Some("egress-bytes-exceeded");
            return Err(io::Error::other("no more bytes for this program"));
        }
        let counter = match direction {
            Direction::FromChild => &mut event.sent_bytes,
            Direction::ToChild => &mut event.bytes,
        };
        *counter = counter.saturating_add(bytes);
        Ok(())
    }
}

impl Drop for EgressMeter {
    fn drop(&mut self) {
        let mut event = std::mem::take(&mut *lock(&self.event));
        event.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.budget.push(event);
    }
}

/// A body under way that is counted, and does not keep silent for longer than it may.
pub(crate) struct MeteredBody {
    incoming: Incoming,
    meter: Arc<EgressMeter>,
    direction: Direction,
    silence: Duration,
    patience: Pin<Box<Sleep>>,
}

impl MeteredBody {
    pub(crate) fn new(
        incoming: Incoming,
        meter: Arc<EgressMeter>,
        direction: Direction,
        silence: Duration,
    ) -> MeteredBody {
        MeteredBody {
            incoming,
            meter,
            direction,
            silence,
            patience: Box::pin(sleep(silence)),
        }
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Pending => {}
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(io::Error::other(error))));
            }
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                // Attack: empty frames, sent without end, must not count as progress.
                if bytes > 0 {
                    let end = Instant::now() + self.silence;
                    self.patience.as_mut().reset(end);
                }
                let counted = self.meter.count(self.direction, bytes);
                return Poll::Ready(Some(counted.map(|()| frame)));
            }
        }
        match self.patience.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.meter.note(|event| event.refusal = Some("timeout"));
                Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
