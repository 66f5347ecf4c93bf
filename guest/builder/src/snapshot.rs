//! Runs the guest's start-up and the prelude once, and keeps the memory they leave.

use std::future::Future;
use std::pin::pin;
use std::task::{self, Poll, Waker};

use wasmtime::error::Context as _;
use wasmtime::{
    Caller, Config, Engine, Extern, Instance, Linker, Memory, Module, Result, Store, Val, bail,
};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// Free heap left inside the image, so that small calls never grow their memory.
const SPARE_BYTES: u32 = 256 << 10;

/// Initialises the guest, evaluates the prelude and snapshots the instance.
pub(crate) fn take(wasm: &[u8], prelude: &[(String, String)]) -> Result<Vec<u8>> {
    let mut config = Config::new();
    config.max_wasm_stack(2 << 20).async_stack_size(3 << 20);
    let engine = Engine::new(&config)?;
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument(wasm)?;
    let module = Module::new(&engine, &instrumented)?;
    let mut store = Store::new(&engine, ());
    let instance = linker(&engine, &module)?.instantiate(&mut store, &module)?;
    call(&mut store, &instance, "_initialize")?;
    call(&mut store, &instance, "init")?;
    for (name, source) in prelude {
        evaluate(&mut store, &instance, source)
            .with_context(|| format!("{name} failed"))?;
    }
    instance
        .get_typed_func::<u32, ()>(&mut store, "seal")?
        .call(&mut store, SPARE_BYTES)?;
    let mut state = Snapshot { store, instance };
    Ok(block_on(wizer.snapshot(&context, &mut state))?)
}

fn call(store: &mut Store<()>, instance: &Instance, name: &str) -> Result<()> {
    Ok(instance
        .get_typed_func::<(), ()>(&mut *store, name)?
        .call(store, ())?)
}

fn evaluate(store: &mut Store<()>, instance: &Instance, source: &str) -> Result<()> {
    let memory = instance
        .get_memory(&mut *store, "memory")
        .context("no memory")?;
    let length = u32::try_from(source.len())?;
    let reserve = instance.get_typed_func::<u32, u32>(&mut *store, "reserve")?;
    let place = reserve.call(&mut *store, length + 1)?;
    memory.write(&mut *store, place as usize, source.as_bytes())?;
    memory.write(&mut *store, place as usize + source.len(), &[0])?;
    let prelude = instance.get_typed_func::<(u32, u32), u32>(&mut *store, "prelude")?;
    match prelude.call(&mut *store, (place, length))? {
        0 => Ok(()),
        _ => bail!("{}", thrown(store, instance, &memory)?),
    }
}

/// What a broken prelude threw: the mailbox's `value`, behind its 64 bytes of input.
fn thrown(store: &mut Store<()>, instance: &Instance, memory: &Memory) -> Result<String> {
    let mailbox = instance
        .get_typed_func::<(), u32>(&mut *store, "mailbox")?
        .call(&mut *store, ())?;
    let data = memory.data(&store);
    let word = |at: usize| -> Result<usize> {
        let bytes = data.get(at..at + 4).context("mailbox out of bounds")?;
        Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
    };
    let (start, length) = (word(mailbox as usize + 64)?, word(mailbox as usize + 68)?);
    let text = data
        .get(start..start + length)
        .context("message out of bounds")?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The guest's imports at build time. Time stands still at zero, so that every build
/// starts from the same state; whatever else is asked for now is a mistake.
fn linker(engine: &Engine, module: &Module) -> Result<Linker<()>> {
    let mut linker = Linker::new(engine);
    let wasi = "wasi_snapshot_preview1";
    linker.func_wrap(
        wasi,
        "clock_time_get",
        |mut caller: Caller<'_, ()>, _clock: u32, _precision: u64, out: u32| -> u32 {
            let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
                return 52;
            };
            match memory.write(&mut caller, out as usize, &0u64.to_le_bytes()) {
                Ok(()) => 0,
                Err(_) => 21,
            }
        },
    )?;
    linker.define_unknown_imports_as_traps(module)?;
    Ok(linker)
}

/// Nothing here ever waits, so one poll is the whole of it; the loop is for form.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = task::Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

struct Snapshot {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for Snapshot {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            Some(Val::V128(value)) => SnapshotVal::V128(value.as_u128()),
            other => panic!("the guest has a global of an unknown kind: {name} {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("the guest lost its memory {name}"),
        }
    }
}
