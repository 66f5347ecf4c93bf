//! The content of a changed file, as far as people can read it. The layer was written by a
//! program we do not trust, so a file is opened through no link and read up to a bound.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The content of one side, as far as people can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// There is no such file.
    Missing,
    /// Text.
    Text(String),
    /// What is no text.
    Binary,
    /// Text, as far as it was read, and more of it than is read.
    TooLong,
}

/// Reads one side of a change, for people.
#[must_use]
pub fn read_content(folder: &Path, path: &str, bytes_max: u64) -> FileContent {
    let Ok(file) = open_plain(&folder.join(path)) else {
        return FileContent::Missing;
    };
    let mut bytes = Vec::new();
    if file.take(bytes_max + 1).read_to_end(&mut bytes).is_err() {
        return FileContent::Missing;
    }
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|count| count <= bytes_max);
    let has_nul = bytes.contains(&0);
    match String::from_utf8(bytes) {
        Ok(text) if is_whole && !has_nul => FileContent::Text(text),
        Ok(_) if !has_nul => FileContent::TooLong,
        // The cut may lie within a character.
        Err(error) if !is_whole && !has_nul && error.utf8_error().error_len().is_none() => {
            FileContent::TooLong
        }
        Ok(_) | Err(_) => FileContent::Binary,
    }
}

/// A regular file, opened through no link.
pub(super) fn open_plain(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Attack: a pipe in the layer would hold the reader, a link would lead it elsewhere.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The digest of a regular file's content, through no link.
pub(super) fn digest_of(path: &Path) -> io::Result<String> {
    let mut file = open_plain(path)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let count = file.read(&mut chunk)?;
        match chunk.get(..count).filter(|read| !read.is_empty()) {
            Some(read) => hasher.update(read),
            None => return Ok(hex(&hasher.finalize())),
        }
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
