//! Records as the rows of a COPY, in Postgres's binary form. They are written where the log
//! is read, on a thread for slow work, so that the task that sends them only sends.

use model::record::audit::chain::{Body, Ending, Record};

use super::database::integer;
use crate::limit;

/// What a COPY in binary form begins with: a signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// The columns of a row.
const COLUMNS: i16 = 13;

/// Rows to be sent, in pieces of bounded size.
#[derive(Debug, Default)]
pub(super) struct ShippedRows {
    pub(super) pieces: Vec<Vec<u8>>,
}

impl ShippedRows {
    /// The rows of a log's records.
    pub(super) fn of(node: &str, records: &[Record]) -> ShippedRows {
        let mut rows = ShippedRows::default();
        let mut piece = HEADER.to_vec();
        for record in records {
            add(&mut piece, node, record);
            if piece.len() >= limit::SHIP_PIECE_BYTES {
                rows.pieces.push(std::mem::take(&mut piece));
            }
        }
        piece.extend_from_slice(&TRAILER);
        rows.pieces.push(piece);
        rows
    }
}

fn add(row: &mut Vec<u8>, node: &str, record: &Record) {
    let shown = Shown::of(record);
    row.extend_from_slice(&COLUMNS.to_be_bytes());
    add_text(row, Some(node));
    add_number(row, Some(integer(record.sequence)));
    add_text(row, Some(record.kind.word()));
    add_bytes(row, Some(record.previous.bytes().as_slice()));
    add_bytes(row, Some(record.hash.bytes().as_slice()));
    add_text(row, Some(&record.body));
    add_number(row, shown.at_ms);
    add_text(row, shown.id.as_deref());
    add_text(row, shown.caller.as_deref());
    add_text(row, shown.tool.as_deref());
    add_text(row, shown.status.as_deref());
    add_bytes(
        row,
        shown
            .differs
            .map(|differs| [u8::from(differs)])
            .as_ref()
            .map(<[u8; 1]>::as_slice),
    );
    add_number(row, shown.opened);
}

fn add_text(row: &mut Vec<u8>, text: Option<&str>) {
    add_bytes(row, text.map(str::as_bytes));
}

fn add_number(row: &mut Vec<u8>, number: Option<i64>) {
    add_bytes(
        row,
        number
            .map(i64::to_be_bytes)
            .as_ref()
            .map(<[u8; 8]>::as_slice),
    );
}

/// A value with its length; nothing has the length -1.
fn add_bytes(row: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    row.extend_from_slice(&length.to_be_bytes());
    row.extend_from_slice(bytes.unwrap_or_default());
}

/// What lists filter by. A record whose body cannot be read has none of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) at_ms: Option<i64>,
    pub(super) id: Option<String>,
    pub(super) caller: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) status: Option<String>,
    pub(super) differs: Option<bool>,
    pub(super) opened: Option<i64>,
}

impl Shown {
    /// The columns that are not what the body of a record says, by name. No hash covers them.
    pub(super) fn differing(&self, record: &Record) -> Vec<&'static str> {
        let own = Shown::of(record);
        let columns = [
            ("at_ms", self.at_ms == own.at_ms),
            ("id", self.id == own.id),
            ("caller", self.caller == own.caller),
            ("tool", self.tool == own.tool),
            ("status", self.status == own.status),
            ("differs", self.differs == own.differs),
            ("opened", self.opened == own.opened),
        ];
        let differing = columns.into_iter().filter(|(_, is_same)| !is_same);
        differing.map(|(name, _)| name).collect()
    }

    fn of(record: &Record) -> Shown {
        match record.read::<Ending>() {
            Ok(Body::Open(opening)) => Shown {
                at_ms: Some(opening.at_ms),
                id: Some(opening.call_id),
                caller: Some(opening.caller),
                tool: Some(opening.tool),
                ..Shown::default()
            },
            Ok(Body::Close(close)) => Shown {
                id: Some(close.call_id),
                status: Some(close.closing.status.word().to_owned()),
                differs: Some(close.closing.differs),
                opened: Some(integer(close.opened)),
                ..Shown::default()
            },
            Ok(Body::Notice(notice)) => Shown {
                at_ms: Some(notice.at_ms),
                id: Some(notice.id),
                caller: Some(notice.by),
                ..Shown::default()
            },
            Ok(Body::Checkpoint(_) | Body::Anchor(_)) | Err(_) => Shown::default(),
        }
    }
}
