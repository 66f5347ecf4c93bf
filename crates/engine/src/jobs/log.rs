//! What a job writes, in a file of its own: the newest part of it, with the place where it
//! begins, so that a reader who comes back finds where to go on.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::record::mask::Masker;

use crate::jailed::OutputStream;

/// Digits of the place that stands at the head of the file.
const PLACE_DIGITS: usize = 20;

/// The file that one stream of a job is written to. What cannot be written is lost: the
/// job goes on, and a reader sees how much is missing.
#[derive(Debug)]
pub(super) struct JobLog {
    path: PathBuf,
    file: Option<File>,
    /// Bytes that stand in the file.
    kept: u64,
    /// Bytes that came in all.
    total: u64,
    bytes_max: u64,
}

/// A part of what a job wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobText {
    pub(crate) text: String,
    /// Where it begins in the stream.
    pub(crate) from: u64,
    /// Where to go on.
    pub(crate) next: u64,
    /// Bytes between what was asked for and where it begins.
    pub(crate) missing: u64,
}

fn file_of(folder: &Path, stream: OutputStream) -> PathBuf {
    folder.join(stream.word())
}

impl JobLog {
    pub(super) fn new(folder: &Path, stream: OutputStream, bytes_max: u64) -> JobLog {
        // Passable, not readable: the program's own folder lies in it, and a server that is
        // root runs the program as another user. The files are closed to others.
        let _ = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(folder);
        let mut log = JobLog {
            path: file_of(folder, stream),
            file: None,
            kept: 0,
            total: 0,
            bytes_max,
        };
        log.restart(&[]);
        log
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.total = self.total.saturating_add(count);
        // Rewritten at twice the bound, so that each byte is copied at most once.
        if self.kept.saturating_add(count) > self.bytes_max.saturating_mul(2) {
            let mut newest = self.read_kept();
            newest.extend_from_slice(bytes);
            let most = usize::try_from(self.bytes_max).unwrap_or(usize::MAX);
            let over = newest.len().saturating_sub(most);
            self.restart(newest.get(over..).unwrap_or_default());
            return;
        }
        let written = self.file.as_mut().map(|file| file.write_all(bytes));
        if matches!(written, Some(Ok(()))) {
            self.kept = self.kept.saturating_add(count);
        }
    }

    fn read_kept(&self) -> Vec<u8> {
        let mut bytes = fs::read(&self.path).unwrap_or_default();
        bytes.drain(..PLACE_DIGITS.min(bytes.len()));
        bytes
    }

    /// A new file with the newest bytes, in the place of the old one.
    fn restart(&mut self, newest: &[u8]) {
        let count = u64::try_from(newest.len()).unwrap_or(u64::MAX);
        let begins = self.total.saturating_sub(count);
        // Renamed over the old file: a reader sees one of both, whole.
        let aside = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let made = options.open(&aside).and_then(|mut file| {
            file.write_all(format!("{begins:0width$}", width = PLACE_DIGITS).as_bytes())?;
            file.write_all(newest)?;
            fs::rename(&aside, &self.path)?;
            Ok(file)
        });
        self.file = made.ok();
        self.kept = count;
    }
}

/// How many bytes a job has written so far; nothing if its file is not on this machine.
pub(crate) fn log_bytes(folder: &Path, stream: OutputStream) -> Option<u64> {
    let mut file = File::open(file_of(folder, stream)).ok()?;
    let mut place = [0; PLACE_DIGITS];
    file.read_exact(&mut place).ok()?;
    let begins: u64 = String::from_utf8_lossy(&place).parse().ok()?;
    let digits = u64::try_from(PLACE_DIGITS).ok()?;
    let kept = file.metadata().ok()?.len().checked_sub(digits)?;
    begins.checked_add(kept)
}

/// What a job wrote from a byte on, at most so many bytes. Nothing is there of a job that
/// wrote nothing, or whose files are gone.
pub(crate) fn read_log(
    folder: &Path,
    stream: OutputStream,
    (from, bytes_max): (u64, u64),
    masker: &Masker,
) -> JobText {
    let empty = JobText {
        text: String::new(),
        from,
        next: from,
        missing: 0,
    };
    let Ok(file) = File::open(file_of(folder, stream)) else {
        return empty;
    };
    let mut bytes = Vec::new();
    // Twice the bound is kept, and the place before it.
    let most = bytes_max.saturating_mul(2).saturating_add(1 << 10);
    if file.take(most).read_to_end(&mut bytes).is_err() || bytes.len() < PLACE_DIGITS {
        return empty;
    }
    let kept = bytes.split_off(PLACE_DIGITS);
    let begins: u64 = String::from_utf8_lossy(&bytes).parse().unwrap_or(0);
    let count = u64::try_from(kept.len()).unwrap_or(u64::MAX);
    // Attack: the first bytes after a cut may be the end of a secret that nothing tells of.
    let unsure = match begins {
        0 => 0,
        _ => u64::try_from(masker.reach()).unwrap_or(u64::MAX).min(count),
    };
    let first = from.clamp(begins.saturating_add(unsure), begins.saturating_add(count));
    let skipped = usize::try_from(first - begins).unwrap_or(usize::MAX);
    let most = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let end = skipped.saturating_add(most).min(kept.len());
    JobText {
        // With what stands around it: a reader chooses where it begins.
        text: masker.part(&kept, skipped..end).into_inner(),
        from: first,
        next: begins.saturating_add(u64::try_from(end).unwrap_or(u64::MAX)),
        missing: first.saturating_sub(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_part_is_kept_and_its_place_is_told() {
        let folder = std::env::temp_dir().join(format!("ringfence-joblog-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let mut log = JobLog::new(&folder, OutputStream::Stdout, 4);
        let read = |from| read_log(&folder, OutputStream::Stdout, (from, 4), &Masker::none());
        assert_eq!((read(0).text.as_str(), read(0).next), ("", 0));
        log.append(b"abcdef");
        assert_eq!((read(0).text.as_str(), read(0).next), ("abcd", 4));
        assert_eq!((read(4).text.as_str(), read(4).next), ("ef", 6));
        log.append(b"ghi");
        // Nine bytes are more than twice four: the last four are left.
        let part = read(0);
        assert_eq!(
            (part.text.as_str(), part.from, part.missing),
            ("fghi", 5, 5)
        );
        log.append(&[b'x'; 100]);
        let part = read(6);
        assert_eq!((part.from, part.next, part.missing), (105, 109, 99));
        // Beyond the end there is nothing, and nothing is missing.
        assert_eq!((read(500).text.as_str(), read(500).from), ("", 109));
        let _ = fs::remove_dir_all(&folder);
    }

    /// Attack: a reader who begins in the middle of a secret, or after what is kept of it.
    #[test]
    fn no_part_of_a_secret_is_read() {
        let folder = std::env::temp_dir().join(format!("ringfence-jobmask-{}", std::process::id()));
        let secret = "Tr0ub4dor&3-horse";
        let masker = Masker::new([secret]).unwrap();
        for written in [20, 1_000, 3_000] {
            let _ = fs::remove_dir_all(&folder);
            let mut log = JobLog::new(&folder, OutputStream::Stdout, 1_000);
            // So that the log is cut in the middle of one.
            let text = secret.repeat(written / secret.len() + 1);
            for piece in text.as_bytes().chunks(7) {
                log.append(piece);
            }
            for from in 0..40 {
                for bytes_max in [10, 1_000] {
                    let part = (from, bytes_max);
                    let part = read_log(&folder, OutputStream::Stdout, part, &masker);
                    let shown = part.text.replace('*', "");
                    assert_eq!(shown, "", "{written} {from} {bytes_max}");
                }
            }
            log.append(b" and the end of it");
            let whole = read_log(&folder, OutputStream::Stdout, (0, 10_000), &masker);
            assert!(whole.text.ends_with(" and the end of it"), "{}", whole.text);
        }
        let _ = fs::remove_dir_all(&folder);
    }
}
