//! The log at one moment, for reading. Its files stay open, so that removing or adding
//! records meanwhile changes nothing.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use model::record::audit::chain::{Body, Checkpoint, Ending, Head, RecordKind, link};

use crate::audit::index::RecordPlace;
use crate::audit::log::line::{self, Line};
use crate::audit::log::{disk, lock, remove, segment};
use crate::error::StoreError;
use crate::limit;

const DOING: &str = "read";

/// The log at one moment.
#[derive(Debug)]
pub(crate) struct LogSnapshot {
    /// Open records that a removal kept.
    kept: Vec<Line>,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    start: u64,
    /// Up to its last line feed.
    length: u64,
    file: File,
}

impl Segment {
    /// The offset of a line that is not behind a record, and close to it.
    fn near(&self, sequence: u64) -> io::Result<u64> {
        /// Bytes that are read line by line rather than halved again.
        const CLOSE: u64 = 64 * 1024;
        let (mut low, mut high) = (0, self.length);
        let mut bytes = vec![0; usize::try_from(CLOSE).unwrap_or(usize::MAX)];
        while high - low > CLOSE {
            let middle = low + (high - low) / 2;
            let read = self.file.read_at(&mut bytes, middle)?;
            let read = bytes.get(..read).unwrap_or_default();
            // The caller then reads from `low` on, which is slower and still right.
            let Some((offset, found)) = next_sequence(read) else {
                // A line longer than this, or one that cannot be read.
                break;
            };
            match found <= sequence {
                true => low = middle + offset,
                false => high = middle,
            }
        }
        Ok(low)
    }
}

/// The first line that begins within some bytes: its offset and its sequence.
fn next_sequence(bytes: &[u8]) -> Option<(u64, u64)> {
    let begin = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let line = bytes.get(begin..)?;
    let digits = line.iter().position(|byte| *byte == b' ')?;
    let sequence = std::str::from_utf8(line.get(..digits)?).ok()?;
    Some((segment::count(begin), sequence.parse().ok()?))
}

/// The position of a line, and the line, unless it cannot be read.
pub(crate) type Placed = (u64, Option<Line>);

impl LogSnapshot {
    /// Takes a snapshot between two writes. Finishes an interrupted removal first.
    pub(crate) fn take(folder: &Path) -> Result<LogSnapshot, StoreError> {
        let snapshot = {
            // Held only while files are opened. What is read later is below the lengths
            // noted here, and that does not change.
            let _lock = lock::shared(folder)?;
            LogSnapshot::of(folder)?
        };
        if snapshot.unfinished()?.is_none() {
            return Ok(snapshot);
        }
        // Checked again inside: between the two locks another process may have finished it.
        let _lock = lock::exclusive(folder)?;
        remove::finish(folder)?;
        LogSnapshot::of(folder)
    }

    /// Takes a snapshot while this process holds the lock.
    pub(crate) fn of(folder: &Path) -> Result<LogSnapshot, StoreError> {
        let mut segments = Vec::new();
        let starts = segment::starts(folder)?;
        let fail = |error| StoreError::file(DOING, folder, error);
        for (index, start) in starts.iter().enumerate() {
            let file = segment::open_to_read(folder, *start)?;
            let length = match starts.get(index + 1) {
                // A segment that has a successor is sealed, so its length is final.
                Some(_) => file.metadata().map_err(fail)?.len(),
                None => segment::end(&file).map_err(fail)?.whole,
            };
            let start = *start;
            segments.push(Segment {
                start,
                length,
                file,
            });
        }
        Ok(LogSnapshot {
            kept: remove::kept(folder)?,
            segments,
        })
    }

    /// Open records that a removal kept, oldest first.
    pub(crate) fn kept(&self) -> &[Line] {
        &self.kept
    }

    /// The position of the first line.
    pub(crate) fn start(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start)
    }

    /// The position of the next line.
    pub(crate) fn end(&self) -> u64 {
        let last = self.segments.last();
        last.map_or(0, |segment| segment.start + segment.length)
    }

    /// The last record that can be read.
    pub(crate) fn head(&self) -> Result<Head, StoreError> {
        for segment in self.segments.iter().rev() {
            let end = segment::end(&segment.file)
                .map_err(|error| StoreError::file(DOING, "audit", error))?;
            if let Some(last) = end.last {
                return Ok(last.head());
            }
        }
        Ok(Head::START)
    }

    /// The line at a position; nothing if it was removed.
    pub(crate) fn at(&self, position: u64) -> Result<Option<Placed>, StoreError> {
        if position < self.start() {
            return Ok(None);
        }
        self.lines(position).next().transpose()
    }

    /// Whether a line starts at a position that is kept.
    pub(crate) fn is_line_start(&self, position: u64) -> Result<bool, StoreError> {
        let holds = |segment: &&Segment| {
            segment.start <= position && position < segment.start + segment.length
        };
        let Some(segment) = self.segments.iter().find(holds) else {
            return Ok(false);
        };
        let Some(before) = (position - segment.start).checked_sub(1) else {
            return Ok(true);
        };
        let mut byte = [0];
        segment
            .file
            .read_exact_at(&mut byte, before)
            .map_err(|error| StoreError::file(DOING, "audit", error))?;
        Ok(byte == *b"\n")
    }

    /// A record at the place the index gives; nothing if it was removed, an error if the
    /// place holds something else.
    pub(crate) fn record(&self, place: &RecordPlace) -> Result<Option<Line>, StoreError> {
        let is_it = |line: &Line| line.record.sequence == place.sequence;
        if place.position < self.start() {
            return Ok(self.kept.iter().find(|line| is_it(line)).cloned());
        }
        match self.at(place.position)? {
            Some((_, Some(line))) if is_it(&line) => Ok(Some(line)),
            // A record that a removal kept has lost its position.
            Some(_) | None => match self.kept.iter().find(|line| is_it(line)) {
                Some(line) => Ok(Some(line.clone())),
                None => Err(StoreError::Damaged {
                    sequence: place.sequence,
                    what: "its line cannot be found".to_owned(),
                }),
            },
        }
    }

    /// The lines from a position on.
    pub(crate) fn lines(&self, position: u64) -> LogLines<'_> {
        let mut segments = self.segments.iter();
        let mut reader = None;
        while let Some(segment) = segments.clone().next() {
            if position < segment.start + segment.length {
                let offset = position.saturating_sub(segment.start);
                segments.next();
                reader = Some(SegmentReader::new(segment, offset));
                break;
            }
            segments.next();
        }
        LogLines { segments, reader }
    }

    /// The records after a sequence, oldest first. Reading begins close to the first of them:
    /// one who asks again and again must not read what went before each time.
    pub(crate) fn after(
        &self,
        sequence: u64,
    ) -> Result<impl Iterator<Item = Result<Placed, StoreError>>, StoreError> {
        let fail = |error| StoreError::file(DOING, "audit", error);
        let mut from = self.start();
        for segment in self.segments.iter().rev() {
            let first = segment::first(&segment.file).map_err(fail)?;
            if first.is_some_and(|line| line.record.sequence <= sequence.saturating_add(1)) {
                let near = segment.start + segment.near(sequence).map_err(fail)?;
                // Where numbers were changed, halving may land behind the record. Then all of
                // the segment is read.
                let next = self.lines(near).find(|placed| is_later(placed, sequence));
                let is_next = matches!(next, Some(Ok((_, Some(line))))
                    if line.record.sequence == sequence.saturating_add(1));
                from = if is_next { near } else { segment.start };
                break;
            }
        }
        let lines = self.lines(from);
        Ok(lines.skip_while(move |placed| !is_later(placed, sequence)))
    }

    /// A record by its sequence, found by halving the segment that can hold it.
    pub(crate) fn find(&self, sequence: u64) -> Result<Option<Line>, StoreError> {
        let fail = |error| StoreError::file(DOING, "audit", error);
        for segment in self.segments.iter().rev() {
            let first = segment::first(&segment.file).map_err(fail)?;
            // An unreadable first line hides where the segment begins, so the one
            // before is searched.
            if first.is_none_or(|line| line.record.sequence > sequence) {
                continue;
            }
            let from = segment.start + segment.near(sequence).map_err(fail)?;
            for placed in self.lines(from) {
                match placed? {
                    (_, Some(line)) if line.record.sequence == sequence => {
                        return Ok(Some(line));
                    }
                    (_, Some(line)) if line.record.sequence > sequence => break,
                    (_, _) => {}
                }
            }
            break;
        }
        let mut kept = self.kept.iter();
        Ok(kept.find(|line| line.record.sequence == sequence).cloned())
    }

    /// The newest checkpoint. Each is the first line of a segment.
    pub(crate) fn newest_checkpoint(&self) -> Result<Option<Line>, StoreError> {
        Ok(self.checkpoint()?.map(|(line, _)| line))
    }

    fn checkpoint(&self) -> Result<Option<(Line, &Segment)>, StoreError> {
        for segment in self.segments.iter().rev() {
            let first = segment::first(&segment.file)
                .map_err(|error| StoreError::file(DOING, "audit", error))?;
            if let Some(first) = first
                && first.record.kind == RecordKind::Checkpoint
            {
                return Ok(Some((first, segment)));
            }
        }
        Ok(None)
    }

    /// Syncs the newest checkpoint.
    pub(crate) fn sync_checkpoint(&self) -> Result<(), StoreError> {
        match self.checkpoint()? {
            Some((_, segment)) => disk::sync(&segment.file),
            None => Ok(()),
        }
    }

    /// The checkpoint of an unfinished removal: the records it says were removed are still
    /// there.
    pub(crate) fn unfinished(&self) -> Result<Option<Checkpoint>, StoreError> {
        let Some(line) = self.newest_checkpoint()? else {
            return Ok(None);
        };
        let Some(checkpoint) = believable(&line) else {
            return Ok(None);
        };
        let Some(oldest) = self.segments.first() else {
            return Ok(None);
        };
        let first = segment::first(&oldest.file)
            .map_err(|error| StoreError::file(DOING, "audit", error))?;
        // The checkpoint lies behind what it removes. If the oldest line is older, deleting
        // was interrupted.
        let is_left = first.is_some_and(|line| line.record.sequence <= checkpoint.through.sequence);
        Ok(is_left.then_some(checkpoint))
    }
}

/// Whether a line is behind a record, or cannot be read.
fn is_later(placed: &Result<Placed, StoreError>, sequence: u64) -> bool {
    match placed {
        Ok((_, Some(line))) => line.record.sequence > sequence,
        Ok((_, None)) | Err(_) => true,
    }
}

/// The checkpoint of a line, if its hash is right: a damaged line must not cause a
/// removal.
pub(crate) fn believable(line: &Line) -> Option<Checkpoint> {
    let record = &line.record;
    if link(&record.previous, &record.body) != record.hash {
        return None;
    }
    match record.read::<Ending>() {
        // A checkpoint cannot remove itself or what follows it, whatever its body claims.
        Ok(Body::Checkpoint(it)) if it.through.sequence < record.sequence => Some(it),
        Ok(_) | Err(_) => None,
    }
}

/// The lines of all segments, in order.
#[derive(Debug)]
pub(crate) struct LogLines<'a> {
    segments: std::slice::Iter<'a, Segment>,
    reader: Option<SegmentReader<'a>>,
}

impl Iterator for LogLines<'_> {
    type Item = Result<Placed, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let reader = self.reader.as_mut()?;
            match reader.next() {
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => {
                    let next = self.segments.next();
                    self.reader = next.map(|segment| SegmentReader::new(segment, 0));
                }
                Err(error) => {
                    self.reader = None;
                    return Some(Err(StoreError::file(DOING, "audit", error)));
                }
            }
        }
    }
}

#[derive(Debug)]
struct SegmentReader<'a> {
    position: u64,
    lines: BufReader<io::Take<At<'a>>>,
    line: Vec<u8>,
}

impl<'a> SegmentReader<'a> {
    fn new(segment: &'a Segment, offset: u64) -> SegmentReader<'a> {
        let at = At {
            file: &segment.file,
            offset,
        };
        let left = segment.length.saturating_sub(offset);
        SegmentReader {
            position: segment.start + offset,
            lines: BufReader::with_capacity(64 * 1024, at.take(left)),
            line: Vec::new(),
        }
    }

    fn next(&mut self) -> io::Result<Option<Placed>> {
        self.line.clear();
        let bytes_max = segment::count(limit::LINE_BYTES_MAX);
        let read = (&mut self.lines)
            // A line without end would be read into memory as a whole otherwise.
            .take(bytes_max)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        let position = self.position;
        self.position += segment::count(read);
        let line = self.line.strip_suffix(b"\n").and_then(line::read);
        Ok(Some((position, line)))
    }
}

/// Reads a file from an offset without moving its shared cursor.
#[derive(Debug)]
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += segment::count(read);
        Ok(read)
    }
}
