//! The Wasmtime settings that decide what compiled code looks like.
//!
//! The guest's builder compiles with them and the worker loads with them; this one
//! file is part of both, because code made under other settings is refused at load.

use wasmtime::Config;

/// The stack of a guest: what native frames may use before the run ends with
/// `Breach::Stack`.
pub(crate) const STACK_BYTES_MAX: usize = 8 << 20;

/// What builder and worker agree on. The worker adds its allocator.
pub(crate) fn engine_config() -> Config {
    let mut config = Config::new();
    // Deadlines: checked at every loop and function of the guest.
    config.epoch_interruption(true);
    config.consume_fuel(false);
    // A fiber has room for the guest and for a host function on top of it.
    config.max_wasm_stack(STACK_BYTES_MAX);
    config.async_stack_size(STACK_BYTES_MAX + (512 << 10));
    // 4 GiB of address space for each memory: bounds checks fall away, because an
    // address of 32 bits cannot leave it.
    config.memory_reservation(4 << 30);
    config.memory_guard_size(32 << 20);
    config.memory_reservation_for_growth(0);
    config.memory_init_cow(true);
    config.memory_guaranteed_dense_image_size(16 << 20);
    // Nobody reads a wasm backtrace; traps have names.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    // What the guest does not use it cannot be made to use.
    config.wasm_simd(false);
    config.wasm_relaxed_simd(false);
    config.wasm_multi_memory(false);
    config.wasm_tail_call(false);
    config
}
