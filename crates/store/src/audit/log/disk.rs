//! Syncing files. All syncs of the log come through here, so that tests can make them
//! fail and know what a power cut would leave.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::error::StoreError;

/// Syncs a file. After an error the content of the disk is unknown.
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
