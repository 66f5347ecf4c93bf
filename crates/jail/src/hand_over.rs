//! Gives a supervisor its order: one that is ready, or a new one.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use sandbox::pool::WorkerProgram;

use crate::fault::JailFault;
use crate::limit;
use crate::line;
use crate::message::JailOrder;
use crate::order;
use crate::role;
use crate::settings::{JailNetwork, JailSettings};
use crate::supervisor_process::{ReadySupervisor, Supervisor};

/// What exists once the supervisor has its order.
pub(crate) struct Ordered {
    // First, so that the lifeline ends before the supervisor is waited for.
    pub(crate) control: StdStream,
    pub(crate) supervisor: Supervisor,
    pub(crate) streams: OurStreams,
    /// Whether the supervisor was ready before.
    pub(crate) was_ready: bool,
}

/// The parent's ends of what a child reads, writes and connects through.
pub(crate) struct OurStreams {
    pub(crate) input: PipeWriter,
    pub(crate) output: PipeReader,
    pub(crate) error: PipeReader,
    pub(crate) door: Option<StdStream>,
}

/// Gives the order for a child to `ready`, or to a new supervisor if there is none or it has died.
pub(crate) fn hand_over(
    settings: &JailSettings,
    program: &WorkerProgram,
    ready: Option<ReadySupervisor>,
) -> Result<Ordered, JailFault> {
    let order = order::make_order(settings)?;
    if let Some(ready) = ready
        && let Some(ordered) = give(&order, ready)?
    {
        return Ok(ordered);
    }
    start_with(&order, program)
}

/// `None` if the supervisor ended before it had the whole order, of which nothing came about.
fn give(order: &JailOrder, ready: ReadySupervisor) -> Result<Option<Ordered>, JailFault> {
    let (streams, theirs) = make_streams(order.network)?;
    let Ok(rest) = line::begin_order(&ready.control, order, &theirs.descriptors()) else {
        ready.end();
        return Ok(None);
    };
    // The child's ends are on their way; ours would keep the pipes open.
    drop(theirs);
    match send_rest(&ready.control, &rest) {
        Ok(()) => Ok(Some(Ordered {
            control: ready.control,
            supervisor: ready.supervisor,
            streams,
            was_ready: true,
        })),
        Err(error) if is_gone(&error) => {
            ready.end();
            Ok(None)
        }
        Err(error) => Err(not_taken(&error, ready.supervisor)),
    }
}

fn start_with(order: &JailOrder, program: &WorkerProgram) -> Result<Ordered, JailFault> {
    let (streams, theirs) = make_streams(order.network)?;
    let (control, its_control) = StdStream::pair().map_err(JailFault::setup(PIPES))?;
    // Before there is a supervisor, so that it finds its order when it begins.
    let rest = line::begin_order(&control, order, &theirs.descriptors())
        .map_err(JailFault::setup("write the order of the program"))?;
    let process = role::start_supervisor(program, OwnedFd::from(its_control))
        .map_err(JailFault::setup("start the program's supervisor"))?;
    drop(theirs);
    let supervisor = Supervisor::new(process);
    match send_rest(&control, &rest) {
        Ok(()) => Ok(Ordered {
            control,
            supervisor,
            streams,
            was_ready: false,
        }),
        Err(error) => Err(not_taken(&error, supervisor)),
    }
}

fn send_rest(control: &StdStream, rest: &[u8]) -> io::Result<()> {
    let limit = Duration::from_millis(limit::START_MS_MAX);
    control.set_write_timeout(Some(limit))?;
    io::Write::write_all(&mut &*control, rest)?;
    control.set_nonblocking(true)
}

/// Whether the other end of a socket is closed.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// It may hang as well as have ended.
fn not_taken(error: &io::Error, supervisor: Supervisor) -> JailFault {
    let end = supervisor.kill_and_reap();
    let sentence = format!("the program's supervisor took no order ({error}); it {end}");
    JailFault::Ended(sentence)
}

/// What is attempted where the streams are made.
const PIPES: &str = "make the pipes of the program";

/// The child's ends.
struct TheirStreams {
    input: PipeReader,
    output: PipeWriter,
    error: PipeWriter,
    door: Option<StdStream>,
}

impl TheirStreams {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut descriptors = vec![self.input.as_fd(), self.output.as_fd(), self.error.as_fd()];
        descriptors.extend(self.door.as_ref().map(|door| door.as_fd()));
        descriptors
    }
}

fn make_streams(network: JailNetwork) -> Result<(OurStreams, TheirStreams), JailFault> {
    let (their_input, input) = io::pipe().map_err(JailFault::setup(PIPES))?;
    let (output, their_output) = io::pipe().map_err(JailFault::setup(PIPES))?;
    let (error, their_error) = io::pipe().map_err(JailFault::setup(PIPES))?;
    let (door, their_door) = match network {
        JailNetwork::Proxy => {
            let (ours, theirs) = StdStream::pair().map_err(JailFault::setup(PIPES))?;
            (Some(ours), Some(theirs))
        }
        JailNetwork::None | JailNetwork::Open => (None, None),
    };
    let ours = OurStreams {
        input,
        output,
        error,
        door,
    };
    let theirs = TheirStreams {
        input: their_input,
        output: their_output,
        error: their_error,
        door: their_door,
    };
    Ok((ours, theirs))
}
