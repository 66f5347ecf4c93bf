//! Asking the disk to confirm. One place, so that tests can be a disk that does
//! not, and can know what a power cut would leave.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::error::StoreError;

/// Resolves when everything written to a file is on the disk.
pub(crate) fn sync(file: &File) -> Result<(), StoreError> {
    confirmed(file).map_err(|error| StoreError::Unconfirmed {
        source: Arc::new(error),
    })
}

#[cfg(not(feature = "testing"))]
fn confirmed(file: &File) -> io::Result<()> {
    file.sync_data()
}

#[cfg(feature = "testing")]
fn confirmed(file: &File) -> io::Result<()> {
    crate::testing::confirmed(file)
}
