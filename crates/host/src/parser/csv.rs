//! CSV by RFC 4180. Written here rather than taken from a crate, because scripts
//! may name any character as delimiter and a quote left open must be an error.

use serde_json::{Value, json};

use crate::compute::Turn;
use crate::message::{PowerFault, PowerReply, PowerRequest};
use crate::parser::{Meter, ParseError, text};

const HELPER: &str = "safety.parser.csv";

/// Parses `arguments.text` into `{rows}`, every cell a string, or with
/// `arguments.header` into `{columns, rows}`. `arguments.delimiter` is a string
/// of which the first character counts; a comma if there is none.
///
/// # Errors
/// `missing-input`, `parse-failed`, `too-large`.
pub fn csv(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let text = text(ask, HELPER)?;
    let delimiter = ask.arguments.get("delimiter").and_then(Value::as_str);
    let delimiter = delimiter
        .and_then(|text| text.chars().next())
        .unwrap_or(',');
    let has_header = ask.arguments.get("header") == Some(&Value::Bool(true));
    let mut rows = parse(text, delimiter, turn).map_err(|error| error.into_fault(HELPER))?;
    let value = match has_header {
        false => json!({ "rows": rows }),
        true if rows.is_empty() => json!({ "columns": [], "rows": [] }),
        true => {
            let columns = rows.remove(0);
            json!({ "columns": columns, "rows": rows })
        }
    };
    Ok(PowerReply {
        value,
        bytes: Vec::new(),
    })
}

/// What the reader is in the middle of.
enum State {
    /// At the start of a cell.
    Start,
    /// In a cell without quotes.
    Bare,
    /// Between quotes.
    Quoted,
    /// Behind a quote, which ends the cell or is half of a quote in the text.
    Closing,
}

struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: String,
    meter: Meter,
}

fn parse(text: &str, delimiter: char, turn: &Turn) -> Result<Vec<Vec<String>>, ParseError> {
    // Programs that export tables write a byte order mark; left in, it would be part
    // of the first cell.
    let text = text.trim_start_matches('\u{feff}');
    let mut table = Table {
        rows: Vec::new(),
        row: Vec::new(),
        cell: String::new(),
        meter: Meter::new(turn),
    };
    let mut state = State::Start;
    let mut line = 1;
    let mut quote_line = 1;
    for mark in text.chars() {
        line += usize::from(mark == '\n');
        state = match (state, mark) {
            (State::Start, '"') => {
                quote_line = line;
                State::Quoted
            }
            (State::Quoted, '"') => State::Closing,
            (State::Quoted, mark) | (State::Closing, mark @ '"') => {
                table.cell.push(mark);
                State::Quoted
            }
            (State::Start | State::Bare | State::Closing, mark) if mark == delimiter => {
                table.end_cell()?;
                State::Start
            }
            // The second half of a CRLF, and empty lines, are no rows.
            (State::Start, '\r' | '\n') if table.row.is_empty() => State::Start,
            (State::Start | State::Bare | State::Closing, '\r' | '\n') => {
                table.end_row()?;
                State::Start
            }
            // Blanks behind a closing quote are common; anything else is a misplaced quote.
            (State::Closing, ' ' | '\t') => State::Closing,
            (State::Closing, _) => {
                let message = format!("text behind a closing quote, in line {line}");
                return Err(ParseError::Malformed(message));
            }
            (State::Start | State::Bare, mark) => {
                table.cell.push(mark);
                State::Bare
            }
        };
    }
    match state {
        State::Quoted => Err(ParseError::Malformed(format!(
            "the quote in line {quote_line} is not closed"
        ))),
        State::Start if table.row.is_empty() => Ok(table.rows),
        State::Start | State::Bare | State::Closing => {
            table.end_row()?;
            Ok(table.rows)
        }
    }
}

impl Table {
    fn end_cell(&mut self) -> Result<(), ParseError> {
        // Counted as it ends, so that one endless cell is bounded by the text itself.
        self.meter.node(self.cell.len())?;
        self.row.push(std::mem::take(&mut self.cell));
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), ParseError> {
        self.end_cell()?;
        self.rows.push(std::mem::take(&mut self.row));
        Ok(())
    }
}
