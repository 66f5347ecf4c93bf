//! For tests: looks for a marker in the raw memory of a sandbox.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::driver::{self, Guest};
use super::exchange::Exchange;
use super::imports::StoreState;
use super::{Cells, store};
use crate::job::{CallId, Job};

/// Grown to, so that memory beyond the image is searched as well.
const PAGES: u64 = 512;

impl Cells {
    /// Takes a fresh sandbox and counts the marker in all its memory.
    pub fn scan_next_slot(&self, needle: &[u8]) -> Option<usize> {
        let state = StoreState {
            run: None,
            memory_bytes_max: usize::MAX,
            memory_bytes: 0,
        };
        let mut store = wasmtime::Store::new(&self.wall.engine, state);
        store.set_epoch_deadline(u64::MAX / 2);
        let instance = poll_once(self.wall.guest.instantiate_async(&mut store))?.ok()?;
        let memory = instance.get_memory(&mut store, "memory")?;
        let more = PAGES.checked_sub(memory.size(&store))?;
        poll_once(memory.grow_async(&mut store, more))?.ok()?;
        Some(count(memory.data(&store), needle))
    }

    /// Runs a job that asks for nothing, and counts the marker where it ran.
    pub fn scan_after(&self, job: Job, needle: &[u8]) -> Option<usize> {
        let exchange = Arc::new(Mutex::new(Exchange::new(CallId(0), &job)));
        let state = driver::state(&self.wall, &job, &exchange);
        let mut store = store(&self.wall, Arc::clone(&exchange), state);
        let mut guest: Option<Guest> = None;
        poll_once(driver::attempt(
            &self.wall, &job, &exchange, &mut store, &mut guest,
        ))?
        .ok()?;
        Some(count(guest?.memory.data(&store), needle))
    }
}

fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Counts by the C library's search: megabytes are searched, in unoptimised tests.
#[expect(unsafe_code, reason = "the standard library has no search over bytes")]
fn count(mut memory: &[u8], needle: &[u8]) -> usize {
    let mut found = 0;
    loop {
        // Safety: both pointers come with their own lengths, and nothing is written.
        let at = unsafe {
            libc::memmem(
                memory.as_ptr().cast(),
                memory.len(),
                needle.as_ptr().cast(),
                needle.len(),
            )
        };
        if at.is_null() {
            return found;
        }
        found += 1;
        let next = at as usize - memory.as_ptr() as usize + needle.len();
        memory = memory.get(next..).unwrap_or_default();
    }
}
