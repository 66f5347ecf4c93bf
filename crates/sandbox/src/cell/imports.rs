//! The imports of the guest: six functions of ours, a coarse clock, and stubs for the C
//! library that answer "not supported". There is nothing else.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use wasmtime::{Caller, Extern, Linker, Memory, ResourceLimiter, Result, bail};

use super::Wall;
use super::cache::CacheKey;
use model::sync::lock;

use super::exchange::{Exchange, Stop};
use super::mailbox;
use crate::job::{Breach, ConsoleLevel, HostAnswer, HostCallId, HostCallKind, Payload};

const WASI: &str = "wasi_snapshot_preview1";
const HOST: &str = "host";

/// WASI's "function not supported".
const ERRNO_NOSYS: u32 = 52;
const ERRNO_FAULT: u32 = 21;

/// The host's state of one run, in its store.
pub(super) struct StoreState {
    /// Absent only while the guest is loaded, when nothing may be asked.
    pub(super) run: Option<RunContext>,
    pub(super) memory_bytes_max: usize,
    pub(super) memory_bytes: usize,
}

/// The parts of a run its imports need.
pub(super) struct RunContext {
    pub(super) wall: Arc<Wall>,
    pub(super) exchange: Arc<Mutex<Exchange>>,
    /// The answer the guest is about to take.
    pub(super) answer: Option<HostAnswer>,
    /// Where the compiled body goes, if it is wanted.
    pub(super) keep: Option<CacheKey>,
}

impl ResourceLimiter for StoreState {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        // An error, not a refusal: a refusal would be an exception that the script
        // can catch, and try again.
        if desired > self.memory_bytes_max {
            return Err(Stop::Breached(Breach::Memory).into());
        }
        self.memory_bytes = desired;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        // Asked once for the table the guest is born with; it never grows.
        Ok(current == 0)
    }
}

/// Defines every import of the guest.
pub(super) fn define(linker: &mut Linker<StoreState>) -> Result<()> {
    linker.func_wrap(HOST, "breach", breach)?;
    linker.func_wrap(HOST, "log", log)?;
    linker.func_wrap(HOST, "keep", keep)?;
    linker.func_wrap(HOST, "take", take)?;
    linker.func_wrap(
        HOST,
        "queued",
        |mut caller: Caller<'_, StoreState>, id, o, on, j, jn, b, bn| {
            ask(
                &mut caller,
                HostCallKind::Queued,
                &Request {
                    id,
                    operation: (o, on),
                    json: (j, jn),
                    bytes: (b, bn),
                },
            )
        },
    )?;
    linker.func_wrap_async(
        HOST,
        "direct",
        |mut caller: Caller<'_, StoreState>,
         (id, o, on, j, jn, b, bn): (u32, u32, u32, u32, u32, u32, u32)| {
            Box::new(async move {
                let request = Request {
                    id,
                    operation: (o, on),
                    json: (j, jn),
                    bytes: (b, bn),
                };
                ask(&mut caller, HostCallKind::Direct, &request)?;
                let exchange = Arc::clone(&run(&mut caller)?.exchange);
                let id = HostCallId(id);
                // No waker: the worker steps this run again when its answer or its deadline
                // comes.
                let answer = poll_fn(|_| lock(&exchange).poll_answer(id)).await?;
                set_answer(&mut caller, answer)
            })
        },
    )?;
    linker.func_wrap(WASI, "clock_time_get", clock_time_get)?;
    linker.func_wrap(WASI, "fd_close", |_: u32| ERRNO_NOSYS)?;
    linker.func_wrap(WASI, "fd_fdstat_get", |_: u32, _: u32| ERRNO_NOSYS)?;
    linker.func_wrap(WASI, "fd_seek", |_: u32, _: u64, _: u32, _: u32| {
        ERRNO_NOSYS
    })?;
    linker.func_wrap(WASI, "fd_write", |_: u32, _: u32, _: u32, _: u32| {
        ERRNO_NOSYS
    })?;
    Ok(())
}

fn breach(_: Caller<'_, StoreState>, number: u32) -> Result<()> {
    // As in the enum of guest/shim.c.
    let breach = match number {
        1 => Breach::Work,
        2 => Breach::Memory,
        3 => Breach::ResultBytes,
        4 => Breach::ResultDepth,
        5 => Breach::ConsoleBytes,
        6 => Breach::PayloadBytes,
        _ => bail!("the guest reports an unknown breach"),
    };
    Err(Stop::Breached(breach).into())
}

fn log(mut caller: Caller<'_, StoreState>, level: u32, start: u32, length: u32) -> Result<()> {
    let level = match level {
        0 => ConsoleLevel::Log,
        1 => ConsoleLevel::Info,
        2 => ConsoleLevel::Warn,
        3 => ConsoleLevel::Error,
        4 => ConsoleLevel::Debug,
        _ => bail!("the guest logs at an unknown level"),
    };
    // Before the text is copied: the guest claims this length, and it may be gigabytes.
    lock(&run(&mut caller)?.exchange).check_line(length)?;
    let memory = memory(&mut caller)?;
    let text = text(memory.data(&caller), (start, length))?;
    let run = run(&mut caller)?;
    lock(&run.exchange).log(level, text)?;
    Ok(())
}

fn keep(mut caller: Caller<'_, StoreState>, start: u32, length: u32) -> Result<()> {
    let memory = memory(&mut caller)?;
    let (data, state) = memory.data_and_store_mut(&mut caller);
    let bytecode = slice(data, (start, length))?;
    let Some(run) = state.run.as_mut() else {
        bail!("no run")
    };
    // Once, and only when it was asked for.
    // A guest that a script has taken over could otherwise offer bytecode of its own under
    // the key of a source.
    if let Some(key) = run.keep.take() {
        super::driver::cache(&run.wall).put(key, bytecode);
    }
    Ok(())
}

/// Copies the current answer into the guest.
fn take(mut caller: Caller<'_, StoreState>, json: u32, bytes: u32) -> Result<()> {
    let memory = memory(&mut caller)?;
    let (data, state) = memory.data_and_store_mut(&mut caller);
    let Some(answer) = state.run.as_mut().and_then(|run| run.answer.take()) else {
        bail!("the guest takes an answer that is not there");
    };
    let payload = match answer {
        HostAnswer::Value(payload) => payload,
        HostAnswer::Error(json) => Payload {
            json,
            bytes: Vec::new(),
        },
    };
    fill(data, json, payload.json.as_bytes())?;
    if !payload.bytes.is_empty() {
        fill(data, bytes, &payload.bytes)?;
    }
    Ok(())
}

/// Puts an answer where the guest can take it, and its sizes where it sees them.
pub(super) fn set_answer(caller: &mut Caller<'_, StoreState>, answer: HostAnswer) -> Result<()> {
    let memory = memory(caller)?;
    let mailbox = run(caller)?.wall.mailbox;
    memory.write(
        &mut *caller,
        mailbox + mailbox::ANSWER,
        &mailbox::answer_fields(&answer),
    )?;
    run(caller)?.answer = Some(answer);
    Ok(())
}

/// A request as the guest hands it over: places and lengths in its memory.
struct Request {
    id: u32,
    operation: (u32, u32),
    json: (u32, u32),
    bytes: (u32, u32),
}

fn ask(caller: &mut Caller<'_, StoreState>, kind: HostCallKind, request: &Request) -> Result<()> {
    // Before anything is copied: the guest claims these lengths.
    let size = u64::from(request.json.1) + u64::from(request.bytes.1);
    lock(&run(caller)?.exchange).check_payload(size, request.operation.1 as usize)?;
    let memory = memory(caller)?;
    let data = memory.data(&*caller);
    let operation = text(data, request.operation)?;
    let payload = Payload {
        json: text(data, request.json)?,
        bytes: slice(data, request.bytes)?.to_vec(),
    };
    let run = run(caller)?;
    let mut exchange = lock(&run.exchange);
    // The driver finds answers by this number. A repeated one would hand a script the
    // answer to another call.
    if request.id != exchange.next_id() {
        bail!("the guest counts its calls wrong");
    }
    exchange.ask(HostCallId(request.id), kind, operation, payload)?;
    Ok(())
}

/// The script's clock. Both clocks of WASI, in whole milliseconds.
fn clock_time_get(mut caller: Caller<'_, StoreState>, clock: u32, _: u64, out: u32) -> Result<u32> {
    let nanos = {
        let run = run(&mut caller)?;
        let exchange = lock(&run.exchange);
        match clock {
            // A clock before 1970 cannot be told in WASI, which counts from there.
            0 => u64::try_from(exchange.now_ms())
                .unwrap_or(0)
                .saturating_mul(1_000_000),
            _ => exchange.elapsed_ms().saturating_mul(1_000_000),
        }
    };
    let memory = memory(&mut caller)?;
    Ok(
        match memory.write(&mut caller, out as usize, &nanos.to_le_bytes()) {
            Ok(()) => 0,
            // The address is the guest's own. WASI has a number for that, so
            // the guest goes on.
            Err(_) => ERRNO_FAULT,
        },
    )
}

fn run<'a>(caller: &'a mut Caller<'_, StoreState>) -> Result<&'a mut RunContext> {
    match caller.data_mut().run.as_mut() {
        Some(run) => Ok(run),
        None => bail!("the guest asks while it is loaded"),
    }
}

fn memory(caller: &mut Caller<'_, StoreState>) -> Result<Memory> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => bail!("the guest has no memory"),
    }
}

fn slice(data: &[u8], (start, length): (u32, u32)) -> Result<&[u8]> {
    let found = data
        .get(start as usize..)
        // Two steps, so that `start + length` cannot overflow.
        .and_then(|rest| rest.get(..length as usize));
    match found {
        Some(bytes) => Ok(bytes),
        None => bail!("the guest points outside its memory"),
    }
}

fn text(data: &[u8], place: (u32, u32)) -> Result<String> {
    // A script may have half a character in a string. That is its own affair,
    // not a broken guest.
    Ok(String::from_utf8_lossy(slice(data, place)?).into_owned())
}

fn fill(data: &mut [u8], start: u32, bytes: &[u8]) -> Result<()> {
    let place = data
        .get_mut(start as usize..)
        .and_then(|rest| rest.get_mut(..bytes.len()));
    match place {
        Some(place) => place.copy_from_slice(bytes),
        None => bail!("the guest points outside its memory"),
    }
    Ok(())
}
