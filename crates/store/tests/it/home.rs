//! A home for one test, and things to write into it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use model::audit::{Closing, Opening, Status};
use model::caller::Origin;
use store::{Store, StoreSettings};

/// Removed with everything in it when the test is over.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("store-{name}-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = fs::remove_dir_all(&path);
        Home { path }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path, StoreSettings::standard()).unwrap()
    }

    /// A hand that writes past the store.
    pub(crate) fn sql(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path.join("ringfence.db")).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn opening(number: usize) -> Opening {
    Opening {
        call_id: format!("{number:08x}-0000-7000-8000-000000000000"),
        parent_id: None,
        at_ms: 1_700_000_000_000 + i64::try_from(number).unwrap(),
        origin: Origin::ALL[number % 5],
        caller: format!("caller-{}", number % 7),
        tool: format!("tool-{}", number % 10),
        arguments_digest: "00".repeat(32),
    }
}

pub(crate) fn closing(status: Status) -> Closing {
    Closing::bare(1_700_000_100_000, status, None)
}

/// Runs a future to its end.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// Opens and closes so many entries.
pub(crate) fn fill(store: &Store, numbers: std::ops::Range<usize>) {
    wait(async {
        for number in numbers {
            let row = store.audit().open(opening(number)).await.unwrap();
            let status = if number % 11 == 0 {
                Status::Failed
            } else {
                Status::Done
            };
            store.audit().close(row, closing(status)).await.unwrap();
        }
    });
}
