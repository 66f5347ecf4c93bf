//! A text as it reads when it is decoded, with the way back to its own places.
//!
//! Escapes of URLs (`%2F`), of JSON and JavaScript (`\u0026`, `\"`) and of HTML
//! (`&amp;`) are decoded together, again and again; base64, base32 and lists of
//! bytes by themselves, so that one inside the other comes out too. Where a text has
//! several kinds of escapes each is also decoded alone: the backslash of `C:\new` is
//! not the start of an escape because a `%20` follows. A short text is read in every such
//! way at every depth, a long one only at its top: that would cost too much.
//!
//! Only what stands near something decoded is kept: a text without escapes costs a
//! look at each byte. The way back is worked out only for a text in which something
//! was found. All is bounded: the depth, the number of readings, their bytes.

mod base;
mod escape;
mod list;

pub(super) use base::unbased;
pub(super) use escape::{ESCAPE_BYTES_MAX, hex, is_mark};

use escape::{Kinds, escape, next_mark};

/// How deep encodings are undone, one inside the other.
const DEPTH_MAX: usize = 4;
/// Readings of one text.
const VIEWS_MAX: usize = 16;
/// A text of so many bytes has more readings: escapes of each kind are undone alone at
/// every depth.
const SHORT_BYTES_MAX: usize = 1024;
/// Readings of a short text. All of them together fit into the free bytes.
const SHORT_VIEWS_MAX: usize = 64;
/// Bytes of all readings of a text, for each of its own.
const VIEW_BYTES_RATIO_MAX: usize = 8;
/// Bytes of all readings that any text may have.
const VIEW_BYTES_FREE: usize = 64 * 1024;
/// Bytes that one byte of the longest spelling, which has two for each of the secret, takes
/// up below the encodings around it: base64 and base32 make up to 1.6 of it, a list of
/// bytes 2.5, an escape below base64 up to 4.
const ENCODED_RATIO_MAX: usize = 4;
/// Letters from which every run is read as base64 and base32.
const LETTERS_MIN: usize = 16;
/// Between pieces that do not belong together. A secret that holds it is found all the
/// same, and perhaps once too often.
const GAP: u8 = 0;

/// What could be a secret, or something that decodes to one.
pub(super) struct Wanted {
    /// The longest spelling.
    pub(super) bytes_max: usize,
    /// The shortest.
    pub(super) bytes_min: usize,
    /// How far around something decoded a secret can reach, in whatever it is written.
    pub(super) near: usize,
    /// Letters of base64 and base32 that can hold a secret.
    letters_min: usize,
    bytes: [bool; 256],
}

impl Wanted {
    /// What is looked for: all spellings, and the bytes of the shortest secret that may
    /// be escaped below base64.
    pub(super) fn of<'a>(
        spellings: impl Iterator<Item = &'a [u8]>,
        escaped_min: Option<usize>,
    ) -> Wanted {
        // Whatever is encoded once more is written in these.
        let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        // An escape is a byte longer than what it stands for, at least.
        let letters = escaped_min.map(|bytes| (bytes + 1) * 8 / 6);
        let mut wanted = Wanted {
            bytes_max: 0,
            bytes_min: usize::MAX,
            near: 0,
            letters_min: letters.map_or(LETTERS_MIN, |letters| letters.min(LETTERS_MIN)),
            bytes: std::array::from_fn(|byte| u8::try_from(byte).is_ok_and(is_text)),
        };
        for spelling in spellings {
            wanted.bytes_max = wanted.bytes_max.max(spelling.len());
            wanted.bytes_min = wanted.bytes_min.min(spelling.len());
            for byte in spelling {
                if let Some(is_wanted) = wanted.bytes.get_mut(usize::from(*byte)) {
                    *is_wanted = true;
                }
            }
        }
        wanted.near = wanted.bytes_max.saturating_mul(ENCODED_RATIO_MAX);
        wanted
    }

    fn has(&self, byte: u8) -> bool {
        let is_wanted = self.bytes.get(usize::from(byte));
        is_wanted.copied().unwrap_or(true)
    }
}

/// Whether the way back to the text is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    Kept,
    Dropped,
}

/// One decoded reading.
#[derive(Debug)]
pub(super) struct View {
    bytes: Vec<u8>,
    /// Where the bytes come from, in order.
    pieces: Vec<Piece>,
    places: Places,
    /// Whether there was anything to decode.
    is_decoded: bool,
    /// The reading it was made from; the text itself if there is none.
    from: Option<usize>,
    depth: usize,
}

/// Some bytes of a reading and the place they come from.
#[derive(Clone, Copy, Debug)]
struct Piece {
    out: usize,
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Byte for byte.
    Same,
    /// Each byte stands for the whole place.
    Whole,
    /// Letters of some bits each without line breaks; the first bytes left out.
    Bits { width: usize, skipped: usize },
}

/// Every decoded reading of a text.
pub(super) fn of(text: &[u8], wanted: &Wanted, places: Places) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    let mut left = text
        .len()
        .saturating_mul(VIEW_BYTES_RATIO_MAX)
        .max(VIEW_BYTES_FREE);
    let is_short = text.len() <= SHORT_BYTES_MAX;
    let views_max = match is_short {
        true => SHORT_VIEWS_MAX,
        false => VIEWS_MAX,
    };
    let mut next: Option<usize> = None;
    loop {
        let (bytes, depth) = match next {
            None => (text, 0),
            Some(index) => match views.get(index) {
                Some(view) => (view.bytes.as_slice(), view.depth),
                None => return views,
            },
        };
        let mut made = Vec::new();
        if depth < DEPTH_MAX {
            let empty = || View::empty(places, next, depth + 1);
            let (together, seen) = unescape(bytes, Kinds::ALL, wanted.near, empty());
            made.extend(together);
            made.extend(base::unbase(bytes, wanted, empty()));
            made.extend(list::unlist(bytes, wanted, empty()));
            let kinds = Kinds::EACH.into_iter().filter(|kind| seen.has(*kind));
            // A `%a0` of the secret itself must not be taken for an escape when only the
            // JSON around it is undone. In a long text that is looked for near its top.
            let kinds = kinds.filter(|_| (is_short || depth <= 1) && seen.are_several());
            let alone = || match is_short {
                true => empty(),
                false => View::empty(places, next, DEPTH_MAX),
            };
            made.extend(kinds.filter_map(|kind| unescape(bytes, kind, wanted.near, alone()).0));
        }
        for view in made {
            let size = view.bytes.len();
            if views.len() == views_max || size > left {
                return views;
            }
            // Several ways lead to one reading.
            if is_short && views.iter().any(|known| known.bytes == view.bytes) {
                continue;
            }
            left -= size;
            views.push(view);
        }
        next = Some(next.map_or(0, |index| index + 1));
    }
}

/// Where a place of a reading stands in the text.
pub(super) fn in_text(views: &[View], index: usize, place: (usize, usize)) -> (usize, usize) {
    let (mut place, mut next) = (place, Some(index));
    while let Some(view) = next.and_then(|index| views.get(index)) {
        place = view.in_source(place);
        next = view.from;
    }
    place
}

/// Bytes with their escapes decoded once, if they have any. They stay bytes: what `%a0`
/// stands for is no text, and a reading has it as it is.
pub(super) fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let empty = View::empty(Places::Dropped, None, 1);
    let (view, _) = unescape(bytes, Kinds::ALL, bytes.len(), empty);
    view.map(|view| view.bytes)
}

impl View {
    fn empty(places: Places, from: Option<usize>, depth: usize) -> View {
        View {
            bytes: Vec::new(),
            pieces: Vec::new(),
            places,
            is_decoded: false,
            from,
            depth,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn in_source(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let piece = |at: usize| {
            let after = self.pieces.partition_point(|piece| piece.out <= at);
            self.pieces.get(after.saturating_sub(1)).copied()
        };
        let last = end.saturating_sub(1);
        match (piece(start), piece(last)) {
            (Some(first), Some(final_piece)) => (first.first(start), final_piece.last(last)),
            (_, _) => (0, 0),
        }
    }

    fn maps(&mut self, piece: impl FnOnce(&View) -> Piece) {
        if self.places == Places::Kept {
            let piece = piece(self);
            self.pieces.push(piece);
        }
    }

    /// What follows does not belong to what stands before.
    fn apart(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.push(GAP);
        }
    }

    fn same(&mut self, source: &[u8], start: usize, end: usize) {
        let bytes = source.get(start..end).unwrap_or_default();
        if !bytes.is_empty() {
            self.maps(|view| Piece {
                out: view.bytes.len(),
                start,
                end,
                kind: Kind::Same,
            });
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn whole(&mut self, bytes: &[u8], (start, end): (usize, usize)) {
        self.is_decoded = true;
        self.maps(|view| Piece {
            out: view.bytes.len(),
            start,
            end,
            kind: Kind::Whole,
        });
        self.bytes.extend_from_slice(bytes);
    }
}

impl Piece {
    /// Where the first bit of a byte stands.
    fn first(self, at: usize) -> usize {
        let byte = at.saturating_sub(self.out);
        let start = match self.kind {
            Kind::Same => self.start + byte,
            Kind::Whole => self.start,
            Kind::Bits { width, skipped } => self.start + (skipped + byte) * 8 / width,
        };
        start.min(self.end)
    }

    /// Where its last bit ends.
    fn last(self, at: usize) -> usize {
        let byte = at.saturating_sub(self.out);
        let end = match self.kind {
            Kind::Same => self.start + byte + 1,
            Kind::Whole => self.end,
            Kind::Bits { width, skipped } => {
                let bit = (skipped + byte) * 8 + 7;
                self.start + bit / width + 1
            }
        };
        end.min(self.end)
    }
}

/// The text around its escapes, decoded; and which kinds there were. `near` is how far
/// around something decoded the text is kept.
fn unescape(source: &[u8], kinds: Kinds, near: usize, mut view: View) -> (Option<View>, Kinds) {
    let mut seen = Kinds::NONE;
    let (mut kept, mut at) = (0, 0);
    while let Some(start) = next_mark(source, at, kinds) {
        let rest = source.get(start..).unwrap_or_default();
        let Some((decoded, length)) = escape(rest, kinds) else {
            at = start + 1;
            continue;
        };
        // Also the kind that a backslash takes the mark of: in `\&quot;` the text may be
        // `&quot;` behind a backslash of its own.
        let marks = rest.iter().take(if length == 2 { 2 } else { 1 });
        seen = marks.fold(seen, |seen, mark| seen.and(Kinds::of(*mark)));
        let is_first = !view.is_decoded;
        // Between two escapes something is kept on both sides, so the gap must exceed
        // both.
        if start - kept > near.saturating_mul(if is_first { 1 } else { 2 }) {
            if !is_first {
                view.same(source, kept, kept + near);
                view.apart();
            }
            view.same(source, start.saturating_sub(near), start);
        } else {
            view.same(source, kept, start);
        }
        kept = start + length;
        view.whole(decoded.bytes(), (start, kept));
        at = kept;
    }
    if !view.is_decoded {
        return (None, seen);
    }
    view.same(source, kept, kept.saturating_add(near).min(source.len()));
    (Some(view), seen)
}
