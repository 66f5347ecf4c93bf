//! Returning freed memory to the system. This is the one crate that may say `unsafe`,
//! and the two calls have no wrapper elsewhere; the processes that serve use them, the
//! workers do not.

/// Bytes from which a piece of memory is the system's own and goes back to it when it
/// is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_PIECE_BYTES: libc::c_int = 256 << 10;

/// Large pieces of memory go back to the system as soon as they are freed. Left to
/// itself the allocator raises this bound to the largest piece it has seen, and keeps
/// whatever is below it.
pub fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the allocator's settings have no wrapper")]
        // Safety: sets one number of the allocator, which takes its own lock.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PIECE_BYTES);
        }
    }
}

/// Gives whatever is freed back to the system. Walks the allocator's memory, so not to
/// be called often.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the allocator's own tidying has no wrapper")]
        // Safety: touches only what is free, under the allocator's own locks.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
