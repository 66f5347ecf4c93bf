//! Waiting for a future on a thread of any kind, for a bounded time. Another thread drives
//! the connections, so this one only sleeps until it is woken. A future that is not done in
//! time is dropped.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// The future's result; nothing if it is not there in time.
pub(crate) fn wait_until<T>(until: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        let left = until.checked_duration_since(Instant::now())?;
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::{Duration, Instant};

    use super::wait_until;

    #[test]
    fn a_future_that_never_ends_is_given_up() {
        let start = Instant::now();
        let until = start + Duration::from_millis(30);
        assert_eq!(wait_until(until, pending::<()>()), None);
        assert!(start.elapsed() >= Duration::from_millis(30));
        assert_eq!(wait_until(start, ready(7)), Some(7));
    }
}
