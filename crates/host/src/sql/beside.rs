//! The files of one SQLite database: the file itself and what SQLite keeps beside it. In a
//! folder of the operator's the process that opens a database may change these and nothing
//! else, so they are made before it starts: it can make none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::sql::SqlMode;

/// Where the header of a database says whether it has a write-ahead log.
const LOG_MARK_AT: usize = 18;
/// What it says then.
const LOG_MARK: u8 = 2;

/// The files of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqliteFiles {
    /// What the process may change.
    pub paths: Vec<PathBuf>,
    /// Those that were made, if the database itself is among them.
    made: Vec<PathBuf>,
}

impl SqliteFiles {
    /// Makes what is missing. A database that is not there is made for `Admin` alone; without
    /// one there are no files, and the process says so. Blocks on the disk.
    ///
    /// # Errors
    /// One of them is a link or something else that is no file, or cannot be made.
    pub fn prepare(path: &Path, mode: SqlMode) -> io::Result<SqliteFiles> {
        let mut files = SqliteFiles::default();
        let is_there = fs::symlink_metadata(path).is_ok();
        match mode {
            SqlMode::Read => return Ok(files),
            SqlMode::Write if !is_there => return Ok(files),
            SqlMode::Write | SqlMode::Admin => {}
        }
        if !is_there {
            make(path)?;
            files.made.push(path.to_owned());
        }
        let ends: &[&str] = match has_log(path)? {
            true => &["-wal", "-shm"],
            false => &["-journal"],
        };
        files.paths.push(path.to_owned());
        for end in ends {
            let mut beside = path.as_os_str().to_owned();
            beside.push(end);
            let beside = PathBuf::from(beside);
            if fs::symlink_metadata(&beside).is_err() {
                make(&beside)?;
                if !is_there {
                    files.made.push(beside.clone());
                }
            } else {
                drop(open(&beside)?);
            }
            files.paths.push(beside);
        }
        Ok(files)
    }

    /// Removes a database whose statement failed. One that was there before stays as it is, with
    /// its empty journal: another program may be about to use it.
    pub fn remove_empty(self) {
        let is_empty = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() == 0);
        if self.made.iter().all(is_empty) {
            for path in self.made {
                // What stays is an empty file.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn make(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path);
    made.map(drop)
}

/// A regular file, through no link.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn has_log(path: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    let most = u64::try_from(LOG_MARK_AT + 1).unwrap_or(u64::MAX);
    open(path)?.take(most).read_to_end(&mut header)?;
    Ok(header.get(LOG_MARK_AT) == Some(&LOG_MARK))
}
