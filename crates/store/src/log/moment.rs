//! The log as it was at one moment, for reading. Its files stay open, so that what
//! is removed or added meanwhile changes nothing.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use model::record::audit::chain::{Body, Checkpoint, Ending, Head, Kind, link};

use crate::error::StoreError;
use crate::index::Place;
use crate::limit;
use crate::log::line::{self, Line};
use crate::log::{disk, lock, remove, segment};

const DOING: &str = "read";

/// All files of the log.
#[derive(Debug)]
pub(crate) struct Moment {
    /// Open records that a removal let stay.
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

/// A line and where it starts; nothing instead of one that cannot be read.
pub(crate) type Placed = (u64, Option<Line>);

impl Moment {
    /// The log as it is when nobody writes. Finishes a removal that was cut short.
    pub(crate) fn take(folder: &Path) -> Result<Moment, StoreError> {
        let moment = {
            let _lock = lock::shared(folder)?;
            Moment::of(folder)?
        };
        if moment.unfinished()?.is_none() {
            return Ok(moment);
        }
        let _lock = lock::exclusive(folder)?;
        remove::finish(folder)?;
        Moment::of(folder)
    }

    /// The same for whoever holds the lock.
    pub(crate) fn of(folder: &Path) -> Result<Moment, StoreError> {
        let mut segments = Vec::new();
        let starts = segment::starts(folder)?;
        let fail = |error| StoreError::file(DOING, folder, error);
        for (index, start) in starts.iter().enumerate() {
            let file = segment::open_to_read(folder, *start)?;
            let length = match starts.get(index + 1) {
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
        Ok(Moment {
            kept: remove::kept(folder)?,
            segments,
        })
    }

    /// Open records that a removal let stay, oldest first.
    pub(crate) fn kept(&self) -> &[Line] {
        &self.kept
    }

    /// Where the first line stands.
    pub(crate) fn start(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.start)
    }

    /// Where the next line will stand.
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

    /// The line at a place. Nothing if it was removed.
    pub(crate) fn at(&self, position: u64) -> Result<Option<Placed>, StoreError> {
        if position < self.start() {
            return Ok(None);
        }
        self.lines(position).next().transpose()
    }

    /// Whether a line starts at a place that is there.
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

    /// A record by where the index says it stands. Nothing if it was removed; an
    /// error if something else stands there.
    pub(crate) fn record(&self, place: &Place) -> Result<Option<Line>, StoreError> {
        let is_it = |line: &Line| line.record.sequence == place.sequence;
        if place.position < self.start() {
            return Ok(self.kept.iter().find(|line| is_it(line)).cloned());
        }
        match self.at(place.position)? {
            Some((_, Some(line))) if is_it(&line) => Ok(Some(line)),
            // One that stayed may have no place any more.
            Some(_) | None => match self.kept.iter().find(|line| is_it(line)) {
                Some(line) => Ok(Some(line.clone())),
                None => Err(StoreError::Damaged {
                    sequence: place.sequence,
                    what: "its line cannot be found".to_owned(),
                }),
            },
        }
    }

    /// The lines from a place on.
    pub(crate) fn lines(&self, position: u64) -> Lines<'_> {
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
        Lines { segments, reader }
    }

    /// The newest checkpoint: each begins a segment of its own.
    pub(crate) fn newest_checkpoint(&self) -> Result<Option<Line>, StoreError> {
        Ok(self.checkpoint()?.map(|(line, _)| line))
    }

    fn checkpoint(&self) -> Result<Option<(Line, &Segment)>, StoreError> {
        for segment in self.segments.iter().rev() {
            let first = segment::first(&segment.file)
                .map_err(|error| StoreError::file(DOING, "audit", error))?;
            if let Some(first) = first
                && first.record.kind == Kind::Checkpoint
            {
                return Ok(Some((first, segment)));
            }
        }
        Ok(None)
    }

    /// Sees to it that the newest checkpoint is on the disk.
    pub(crate) fn sync_checkpoint(&self) -> Result<(), StoreError> {
        match self.checkpoint()? {
            Some((_, segment)) => disk::sync(&segment.file),
            None => Ok(()),
        }
    }

    /// The checkpoint of a removal that was begun and not finished: what it says
    /// is gone is still there.
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
        let is_left = first.is_some_and(|line| line.record.sequence <= checkpoint.through.sequence);
        Ok(is_left.then_some(checkpoint))
    }
}

/// What a checkpoint says, if its own hash bears it out: nothing is removed on the
/// word of a damaged line.
pub(crate) fn believable(line: &Line) -> Option<Checkpoint> {
    let record = &line.record;
    if link(&record.previous, &record.body) != record.hash {
        return None;
    }
    match record.read::<Ending>() {
        Ok(Body::Checkpoint(it)) if it.through.sequence < record.sequence => Some(it),
        Ok(_) | Err(_) => None,
    }
}

/// Lines, one after the other, through all segments.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    segments: std::slice::Iter<'a, Segment>,
    reader: Option<SegmentReader<'a>>,
}

impl Iterator for Lines<'_> {
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

/// Reads a file without moving the place others read it at.
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
