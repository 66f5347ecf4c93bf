//! Lines of JSON on a socket, with descriptors beside the first.

use std::io::{self, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limit;
use crate::message::JailOrder;

/// Standard input, output and error of a child.
pub(crate) const STREAMS: usize = 3;

/// Bytes read at one time.
const CHUNK_BYTES: usize = 16 << 10;

/// Sends one value as a line.
pub(crate) fn send(socket: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut socket = socket;
    socket.write_all(&to_line(value)?)
}

/// Sends an order, and the streams of the child with its first byte.
pub(crate) fn send_order(
    socket: &UnixStream,
    order: &JailOrder,
    streams: &[BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    let line = to_line(order)?;
    if line.len() > limit::ORDER_BYTES_MAX {
        return Err(io::Error::other("the order is too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(streams)) {
        return Err(io::Error::other("no room for the descriptors"));
    }
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&line)],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    let mut socket = socket;
    socket.write_all(line.get(sent..).unwrap_or_default())
}

/// Receives an order and the streams that came with it.
pub(crate) fn receive_order(socket: &UnixStream) -> io::Result<(JailOrder, [OwnedFd; STREAMS])> {
    let mut line = Vec::new();
    let mut streams = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while line.last() != Some(&b'\n') {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut chunk)],
            &mut beside,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                streams.extend(received);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(chunk.get(..received.bytes).unwrap_or_default());
        if line.len() > limit::ORDER_BYTES_MAX {
            return Err(io::Error::other("the order is too long"));
        }
    }
    let order = serde_json::from_slice(&line)?;
    let streams = streams
        .try_into()
        .map_err(|_| io::Error::other("three descriptors were expected"))?;
    Ok((order, streams))
}

fn to_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// What has come of a line so far.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
}

impl LineBuffer {
    /// Reads once. `Ok(false)` at the end.
    pub(crate) fn read_from(&mut self, mut source: impl Read) -> io::Result<bool> {
        let mut chunk = [0; 4 << 10];
        let count = source.read(&mut chunk)?;
        self.push(chunk.get(..count).unwrap_or_default())?;
        Ok(count > 0)
    }

    /// Takes bytes that have come; fails when no line is that long.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        match self.bytes.len() > limit::REPORT_BYTES_MAX {
            true => Err(io::Error::other("a report is too long")),
            false => Ok(()),
        }
    }

    /// The next whole line as a value.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
