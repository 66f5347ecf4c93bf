//! One run from start to end, as a future: write the job into a fresh instance, run
//! it, and while it has calls outstanding, deliver answers.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use model::sync::lock;
use wasmtime::{
    Engine, Instance, InstancePre, Memory, Result, Store, Trap, TypedFunc, WasmParams, WasmResults,
    bail,
};

use super::cache::{Cache, CacheKey, SOURCE_BYTES_MIN};
use super::exchange::{Exchange, Stop};
use super::imports::{RunContext, StoreState};
use super::mailbox::{self, BodyKind, GuestEnd};
use super::{Wall, store};
use crate::job::{Breach, Ended, Job, Rejections, StopPlace};

/// A run that is over.
pub(super) struct Finished {
    pub(super) ended: Ended,
    pub(super) work: u64,
    pub(super) memory_bytes: u64,
    pub(super) notes: String,
    pub(super) rejections: Rejections,
    pub(super) stopped_at: Option<StopPlace>,
}

/// The status that `run` and `deliver` return, as in guest/shim.c.
enum Status {
    Value,
    Undefined,
    Threw,
    Pending,
    Deadlock,
    UnknownPower,
}

impl Status {
    fn from_guest(number: u32) -> Result<Status> {
        Ok(match number {
            0 => Status::Value,
            1 => Status::Undefined,
            2 => Status::Threw,
            3 => Status::Pending,
            4 => Status::Deadlock,
            5 => Status::UnknownPower,
            _ => bail!("the guest returned an unknown status"),
        })
    }
}

/// Runs a job to its end, whatever that is.
pub(super) async fn drive(wall: Arc<Wall>, job: Job, exchange: Arc<Mutex<Exchange>>) -> Finished {
    let state = state(&wall, &job, &exchange);
    let mut store = store(&wall, Arc::clone(&exchange), state);
    let mut guest = None;
    let ended = match attempt(&wall, &job, &exchange, &mut store, &mut guest).await {
        Ok(ended) => ended,
        Err(error) => ended_by(&error),
    };
    // Also after a breach: the work and the notes of a stopped script are in its mailbox.
    let end = guest
        .as_ref()
        .and_then(|guest: &Guest| GuestEnd::read(guest.memory.data(&store), wall.mailbox));
    let work = end.as_ref().and_then(GuestEnd::work).unwrap_or(0);
    let notes = end.as_ref().and_then(GuestEnd::notes).unwrap_or_default();
    let rejections = end.as_ref().and_then(|end| end.rejections(&job.body));
    let polled_at = end.as_ref().and_then(|end| end.polled_at(&job.body));
    Finished {
        // Only these two look at where the script is; the others stop it anywhere.
        stopped_at: polled_at
            .filter(|_| matches!(ended, Ended::Breached(Breach::Work | Breach::Cpu))),
        ended,
        work,
        notes,
        rejections: rejections.unwrap_or_default(),
        memory_bytes: store.data().memory_bytes as u64,
    }
}

/// The host's side of a run.
pub(super) fn state(wall: &Arc<Wall>, job: &Job, exchange: &Arc<Mutex<Exchange>>) -> StoreState {
    let run = RunContext {
        wall: Arc::clone(wall),
        exchange: Arc::clone(exchange),
        answer: None,
        keep: None,
    };
    let memory_bytes_max = job.limits.memory_bytes_max.min(wall.memory_bytes_max) as usize;
    StoreState {
        run: Some(run),
        memory_bytes_max,
        memory_bytes: 0,
    }
}

/// Gives an error of the engine its name.
fn ended_by(error: &wasmtime::Error) -> Ended {
    match error.downcast_ref::<Stop>() {
        Some(Stop::Breached(breach)) => return Ended::Breached(*breach),
        Some(Stop::Cancelled) => return Ended::Cancelled,
        None => {}
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => Ended::Breached(Breach::Stack),
        // A trap that no bound explains is a flaw of the guest or of the engine. The parent
        // replaces the worker.
        Some(_) | None => Ended::Broken(format!("{error:#}")),
    }
}

/// The parts of an instance a run uses.
pub(super) struct Guest {
    instance: Instance,
    pub(super) memory: Memory,
}

/// A run, as far as it goes. The guest is left in `kept`, so that its mailbox can still
/// be read.
pub(super) async fn attempt(
    wall: &Wall,
    job: &Job,
    exchange: &Mutex<Exchange>,
    store: &mut Store<StoreState>,
    kept: &mut Option<Guest>,
) -> Result<Ended> {
    // Cancelled or late before its first step: then no instance is taken at all.
    lock(exchange).check()?;
    let instance = wall.guest.instantiate_async(&mut *store).await?;
    let Some(memory) = instance
        .get_module_export(&mut *store, &wall.exports.memory)
        .and_then(|e| e.into_memory())
    else {
        bail!("the guest has no memory");
    };
    let guest = kept.insert(Guest { instance, memory });
    let texts = place_job(wall, job, store, guest).await?;
    let run = function::<u32, u32>(store, guest, &wall.exports.run)?;
    let mut status = run.call_async(&mut *store, texts).await?;
    loop {
        let end = |store: &Store<StoreState>| match Status::from_guest(status)? {
            Status::Pending => Ok(None),
            Status::Undefined => Ok(Some(Ended::Undefined)),
            Status::Deadlock => Ok(Some(Ended::Breached(Breach::Deadlock))),
            // The engine made the list of powers, so a name the guest lacks
            // is our own mistake.
            Status::UnknownPower => bail!("the guest does not know a power or its globals"),
            Status::Value => read_end(wall, store, guest, |end| {
                end.value(job.limits.result_bytes_max)
            }),
            Status::Threw => read_end(wall, store, guest, |end| end.thrown(&job.body)),
        };
        if let Some(ended) = end(store)? {
            return Ok(ended);
        }
        // The guest cannot go on by itself: every promise that is left waits for an answer. Each
        // pass delivers one.
        let (id, answer) = poll_fn(|_| lock(exchange).poll_any()).await?;
        let fields = mailbox::answer_fields(&answer);
        guest
            .memory
            .write(&mut *store, wall.mailbox + mailbox::ANSWER, &fields)?;
        if let Some(run) = store.data_mut().run.as_mut() {
            run.answer = Some(answer);
        }
        let deliver = function::<u32, u32>(store, guest, &wall.exports.deliver)?;
        status = deliver.call_async(&mut *store, id.0).await?;
    }
}

fn read_end(
    wall: &Wall,
    store: &Store<StoreState>,
    guest: &Guest,
    read: impl FnOnce(GuestEnd<'_>) -> Option<Ended>,
) -> Result<Option<Ended>> {
    match GuestEnd::read(guest.memory.data(store), wall.mailbox).and_then(read) {
        Some(ended) => Ok(Some(ended)),
        None => bail!("the guest left no readable end"),
    }
}

/// Writes the job into the guest; the address of its texts.
async fn place_job(
    wall: &Wall,
    job: &Job,
    store: &mut Store<StoreState>,
    guest: &Guest,
) -> Result<u32> {
    let source = mailbox::wrap(&job.body);
    let key = (job.body.len() >= SOURCE_BYTES_MIN).then(|| CacheKey::of(&source));
    let found = key.and_then(|key| cache(wall).get(key));
    // Bytecode is made only for a body that came before: for one that never comes again it would
    // be made for nothing.
    let comes_again = |key| cache(wall).comes_again(key);
    let (kind, body) = match (&found, key) {
        (Some(bytecode), _) => (BodyKind::Bytecode, &**bytecode),
        (None, Some(key)) if comes_again(key) => (BodyKind::SourceKeep, &*source),
        (None, Some(_) | None) => (BodyKind::Source, &*source),
    };
    if let (BodyKind::SourceKeep, Some(run)) = (kind, store.data_mut().run.as_mut()) {
        run.keep = key;
    }
    let texts = mailbox::job_texts(job, body);
    let fields = mailbox::job_fields(job, kind, body.len());
    guest.memory.write(&mut *store, wall.mailbox, &fields)?;
    let input =
        GuestEnd::read(guest.memory.data(&*store), wall.mailbox).and_then(|end| end.input());
    let length = u32::try_from(texts.len())?;
    let place = match input {
        Some((place, capacity)) if length <= capacity => place,
        // The place in the image is for usual jobs; a larger one is allocated by the guest,
        // within its own memory limit.
        Some(_) | None => {
            let reserve = function::<u32, u32>(store, guest, &wall.exports.reserve)?;
            reserve.call_async(&mut *store, length).await?
        }
    };
    guest.memory.write(&mut *store, place as usize, &texts)?;
    Ok(place)
}

fn function<P: WasmParams, R: WasmResults>(
    store: &mut Store<StoreState>,
    guest: &Guest,
    export: &wasmtime::ModuleExport,
) -> Result<TypedFunc<P, R>> {
    let found = guest
        .instance
        .get_module_export(&mut *store, export)
        .and_then(|e| e.into_func());
    match found {
        Some(function) => function.typed(&*store),
        None => bail!("the guest lost an export"),
    }
}

/// The cache, whole even if a holder of its lock should have panicked: each change
/// leaves it consistent.
pub(super) fn cache(wall: &Wall) -> MutexGuard<'_, Cache> {
    lock(&wall.cache)
}

/// Asks a guest, once, where its mailbox is.
pub(super) fn mailbox(engine: &Engine, guest: &InstancePre<StoreState>) -> Result<usize> {
    let state = StoreState {
        run: None,
        memory_bytes_max: usize::MAX,
        memory_bytes: 0,
    };
    let mut store = Store::new(engine, state);
    // The ticker does not run yet. Without a deadline far away the engine
    // would trap at once.
    store.set_epoch_deadline(u64::MAX / 2);
    let mut asking = pin!(async {
        let instance = guest.instantiate_async(&mut store).await?;
        let mailbox = instance.get_typed_func::<(), u32>(&mut store, "mailbox")?;
        Ok(mailbox.call_async(&mut store, ()).await? as usize)
    });
    match asking
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(mailbox) => mailbox,
        // It asks for nothing, so there is nothing to wait for.
        Poll::Pending => bail!("the guest waits while it is loaded"),
    }
}
