//! Bodies as they come over the wire, made into what the script sees.
//!
//! Attack: decompression bombs. Each piece is decoded as it arrives, into a sink
//! that stops at the first byte too many, so that neither a long body nor a short
//! one that swells is ever held.

mod inflate;
mod zstd;

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use hyper::header::{CONTENT_ENCODING, HeaderMap};

use crate::fetch::limits::FetchLimits;
use inflate::Inflater;
use zstd::ZstdDecoder;

/// Why a body cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyRefusal {
    /// More bytes than allowed, as sent or as decoded.
    TooLarge,
    /// It swells more than allowed.
    RatioTooHigh,
    /// It is not what its header says.
    Corrupt,
    /// Several codings one over the other.
    CodingUnknown,
}

/// Takes a body in pieces.
#[derive(Debug)]
pub(crate) struct BodyDecoder {
    coding: Coding,
    wire_bytes: usize,
    bytes_max: usize,
    ratio_max: usize,
    ratio_free_bytes: usize,
}

enum Coding {
    Plain(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// `deflate` before its first byte: some send it with a zlib header, as the
    /// standard says, and some without.
    DeflateUnseen(Sink),
    Deflate(Box<Inflater>),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<ZstdDecoder>),
}

impl std::fmt::Debug for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Coding::Plain(_) => "plain",
            Coding::Gzip(_) => "gzip",
            Coding::DeflateUnseen(_) | Coding::Deflate(_) => "deflate",
            Coding::Brotli(_) => "br",
            Coding::Zstd(_) => "zstd",
        })
    }
}

/// Where decoded bytes go; takes no more than it may.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_over: bool,
}

impl Write for Sink {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // Nothing is taken in part: a body at its bound is refused, never cut.
        if self.is_over || piece.len() > self.bytes_max.saturating_sub(self.bytes.len()) {
            self.is_over = true;
            return Err(io::Error::other("over the bound"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const BROTLI_BUFFER_BYTES: usize = 16 * 1024;

impl BodyDecoder {
    /// Looks at the `Content-Encoding`. An unknown one is left as it is, the
    /// way browsers do.
    pub(crate) fn new(
        headers: &HeaderMap,
        limits: &FetchLimits,
    ) -> Result<BodyDecoder, BodyRefusal> {
        let mut codings = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let text = value.to_str().map_err(|_| BodyRefusal::CodingUnknown)?;
            let words = text.split(',').map(|word| word.trim().to_ascii_lowercase());
            codings.extend(words.filter(|word| !word.is_empty() && word != "identity"));
        }
        let sink = Sink::default();
        let coding = match codings.as_slice() {
            [] => Coding::Plain(sink),
            [one] => match one.as_str() {
                "gzip" | "x-gzip" => Coding::Gzip(Box::new(MultiGzDecoder::new(sink))),
                "deflate" => Coding::DeflateUnseen(sink),
                "br" => {
                    let decoder = DecompressorWriter::new(sink, BROTLI_BUFFER_BYTES);
                    Coding::Brotli(Box::new(decoder))
                }
                "zstd" => Coding::Zstd(Box::new(ZstdDecoder::new(sink))),
                _ => Coding::Plain(sink),
            },
            // Each layer multiplies what the next may swell to, and no honest
            // server needs two.
            [_, _, ..] => return Err(BodyRefusal::CodingUnknown),
        };
        Ok(BodyDecoder {
            coding,
            wire_bytes: 0,
            bytes_max: limits.body_bytes_max,
            ratio_max: limits.ratio_max,
            ratio_free_bytes: limits.ratio_free_bytes,
        })
    }

    /// How much came over the wire so far.
    pub(crate) fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), BodyRefusal> {
        self.wire_bytes = self.wire_bytes.saturating_add(piece.len());
        // As sent, too: bytes that decode to nothing would otherwise be free.
        if self.wire_bytes > self.bytes_max {
            return Err(BodyRefusal::TooLarge);
        }
        if let Some(first) = piece.first() {
            self.coding.see(*first);
        }
        // The bound grows with what has arrived, so a bomb is noticed at its first piece.
        let bytes_max = self.decoded_max();
        self.coding.sink().bytes_max = bytes_max;
        let written = match &mut self.coding {
            Coding::Plain(sink) | Coding::DeflateUnseen(sink) => sink.write_all(piece),
            Coding::Gzip(decoder) => write_until_done(decoder, piece),
            Coding::Deflate(decoder) => decoder.push(piece),
            Coding::Brotli(decoder) => write_until_done(decoder, piece),
            Coding::Zstd(decoder) => decoder.push(piece),
        };
        self.judge(written)
    }

    /// The whole body, if this was all of it.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, BodyRefusal> {
        // A reply without a body has none to decode, whatever its headers say.
        if self.wire_bytes > 0 {
            let bytes_max = self.decoded_max();
            self.coding.sink().bytes_max = bytes_max;
            let finished = match &mut self.coding {
                Coding::Plain(_) | Coding::DeflateUnseen(_) => Ok(()),
                Coding::Gzip(decoder) => decoder.try_finish(),
                Coding::Deflate(decoder) => decoder.finish(),
                Coding::Brotli(decoder) => decoder.close(),
                Coding::Zstd(decoder) => decoder.finish(),
            };
            self.judge(finished)?;
        }
        Ok(std::mem::take(&mut self.coding.sink().bytes))
    }

    fn decoded_max(&self) -> usize {
        let by_ratio = match self.coding {
            Coding::Plain(_) => self.bytes_max,
            _ => self
                .wire_bytes
                .saturating_mul(self.ratio_max)
                .max(self.ratio_free_bytes),
        };
        by_ratio.min(self.bytes_max)
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<(), BodyRefusal> {
        // Which bound was lower decides the message; both are the same
        // refusal to the script.
        let by_ratio = self.decoded_max() < self.bytes_max;
        match (written, self.coding.sink().is_over) {
            (Ok(()), false) => Ok(()),
            (_, true) if by_ratio => Err(BodyRefusal::RatioTooHigh),
            (_, true) => Err(BodyRefusal::TooLarge),
            (Err(_), false) => Err(BodyRefusal::Corrupt),
        }
    }
}

impl Coding {
    /// Settles which `deflate` it is by its first byte: a zlib header names
    /// method 8, and no plain stream of any use starts like that.
    fn see(&mut self, first: u8) {
        if let Coding::DeflateUnseen(sink) = self {
            let sink = std::mem::take(sink);
            let has_header = first & 0x0f == 8;
            *self = Coding::Deflate(Box::new(Inflater::new(sink, has_header)));
        }
    }

    fn sink(&mut self) -> &mut Sink {
        match self {
            Coding::Plain(sink) | Coding::DeflateUnseen(sink) => sink,
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Deflate(decoder) => decoder.sink(),
            Coding::Brotli(decoder) => decoder.get_mut(),
            Coding::Zstd(decoder) => decoder.sink(),
        }
    }
}

/// Writes a piece; what follows the end of the stream is ignored.
fn write_until_done(decoder: &mut impl Write, mut piece: &[u8]) -> io::Result<()> {
    while !piece.is_empty() {
        match decoder.write(piece)? {
            // Bytes behind the end of a stream are common (padding), and harmless if they
            // are never decoded.
            0 => return Ok(()),
            count => piece = piece.get(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
