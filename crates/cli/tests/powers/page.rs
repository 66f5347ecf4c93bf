//! What the lab serves: `[[page]]` in `case.toml`.
//!
//! | Key | Means |
//! | --- | --- |
//! | `path` | which path, query left out; `*` for any |
//! | `host` | on which host; any if absent |
//! | `status` | `200 OK` if absent |
//! | `headers` | a list of `name: value` |
//! | `body` | the text of the body |
//! | `hex` | its bytes instead |
//! | `echo` | the request itself as JSON instead |
//! | `zeros` | so many bytes of nothing |
//! | `coding` | how the body is compressed |
//! | `chop` | leaves out so many bytes at the end |
//! | `ending` | `close`, `reset`, `hold`, `endless` or `drip` |
//! | `raw` | the whole reply, byte for byte, instead of all this |

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::json;
use toml::{Table, Value};

use crate::lab::{Ending, Reply, Seen, raw, reply};
use crate::world::{string, strings};

/// One page.
pub(crate) struct Page {
    path: String,
    host: Option<String>,
    table: Table,
}

impl Page {
    pub(crate) fn read(value: &Value) -> Page {
        let table = value.as_table().unwrap().clone();
        Page {
            path: string(&table, "path").unwrap(),
            host: string(&table, "host"),
            table,
        }
    }

    fn fits(&self, seen: &Seen) -> bool {
        let path = path_of(seen);
        let host = host_of(seen);
        (self.path == "*" || self.path == path)
            && self
                .host
                .as_deref()
                .is_none_or(|own| Some(own) == host.as_deref())
    }

    fn ending(&self) -> Ending {
        match string(&self.table, "ending").as_deref() {
            None | Some("close") => Ending::Close,
            Some("reset") => Ending::Reset,
            Some("hold") => Ending::Hold,
            Some("endless") => Ending::Endless(vec![b'a'; 64 * 1024]),
            Some("drip") => Ending::Drip(b"a".to_vec(), Duration::from_millis(20)),
            Some(other) => panic!("no ending {other}"),
        }
    }

    fn body(&self, seen: &Seen) -> Vec<u8> {
        let count = self.table.get("zeros").and_then(Value::as_integer);
        let plain = match (string(&self.table, "body"), string(&self.table, "hex")) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(hex)) => bytes(&hex),
            (None, None) if self.table.contains_key("echo") => echo(seen),
            (None, None) => vec![0; usize::try_from(count.unwrap_or(0)).unwrap()],
        };
        match string(&self.table, "coding").as_deref() {
            None => plain,
            Some(coding) => coded(coding, &plain),
        }
    }

    fn reply(&self, seen: &Seen) -> Reply {
        if let Some(text) = string(&self.table, "raw") {
            return raw(text, self.ending());
        }
        let status = string(&self.table, "status").unwrap_or_else(|| "200 OK".to_owned());
        let mut head = status;
        for header in strings(&self.table, "headers") {
            head.push_str(&format!("\r\n{header}"));
        }
        if let Some(coding) = string(&self.table, "coding") {
            head.push_str(&format!("\r\ncontent-encoding: {coding}"));
        }
        let mut reply = reply(&head, self.body(seen));
        let chop = self.table.get("chop").and_then(Value::as_integer);
        let chop = usize::try_from(chop.unwrap_or(0)).unwrap();
        reply.bytes.truncate(reply.bytes.len() - chop);
        reply.ending = self.ending();
        reply
    }
}

/// What the lab says to a request.
pub(crate) fn reply_from(pages: &[Page], seen: &Seen) -> Reply {
    match pages.iter().find(|page| page.fits(seen)) {
        Some(page) => page.reply(seen),
        None => reply("404 Not Found", "no such page"),
    }
}

/// Path without query; over HTTP/2 the lab sees the whole address.
fn path_of(seen: &Seen) -> String {
    let whole = seen.path();
    let path = match whole.split_once("://") {
        Some((_, rest)) => {
            let at = rest.find('/').unwrap_or(rest.len());
            rest.get(at..)
                .filter(|path| !path.is_empty())
                .unwrap_or("/")
        }
        None => whole,
    };
    path.split('?').next().unwrap_or("").to_owned()
}

fn host_of(seen: &Seen) -> Option<String> {
    seen.header("host").map(ToOwned::to_owned)
}

fn echo(seen: &Seen) -> Vec<u8> {
    let headers: serde_json::Map<_, _> = seen
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let body = String::from_utf8_lossy(&seen.body);
    let told = json!({
        "method": seen.method(),
        "path": seen.path(),
        "headers": headers,
        "body": body,
    });
    told.to_string().into_bytes()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| {
        let text: String = pair.iter().collect();
        u8::from_str_radix(&text, 16).unwrap()
    };
    digits.chunks(2).map(byte).collect()
}

fn coded(coding: &str, plain: &[u8]) -> Vec<u8> {
    let best = Compression::best();
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), best);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), best);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "deflate-raw" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), best);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut out = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 9, 22);
            encoder.write_all(plain).unwrap();
            drop(encoder);
            out
        }
        "zstd" => zstd_of_one_byte(plain),
        other => panic!("no coding {other}"),
    }
}

/// A frame of blocks that each repeat one byte: all that is needed, for bombs are
/// made of nothing else and honest texts may be sent as they are.
fn zstd_of_one_byte(plain: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 128 * 1024;
    let first = plain.first().copied().unwrap_or(0);
    let is_plain = plain.iter().any(|byte| *byte != first);
    // A frame that tells no size, with a window of 8 MiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68];
    let mut chunks = plain.chunks(BLOCK_BYTES).peekable();
    while let Some(chunk) = chunks.next() {
        let is_last = u32::from(chunks.peek().is_none());
        let kind = if is_plain { 0 } else { 1 };
        let size = u32::try_from(chunk.len()).unwrap();
        let header = is_last | (kind << 1) | (size << 3);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        match is_plain {
            true => frame.extend_from_slice(chunk),
            false => frame.push(first),
        }
    }
    frame
}
