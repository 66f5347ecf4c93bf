//! Lines of JSON on a socket, with descriptors beside the first.

use std::io::{self, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// Descriptors that go with one message: the streams and the way of connections.
const DESCRIPTORS_MAX: usize = STREAMS + 1;

/// Bytes read at one time.
const CHUNK_BYTES: usize = 16 << 10;

/// Sends one value as a line.
pub(crate) fn send(socket: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut socket = socket;
    socket.write_all(&to_line(value)?)
}

/// Begins to send an order, and the descriptors of the child with its first byte: its streams,
/// then the way connections come to the parent, if there is one. Does not wait: the rest, which
/// the socket had no room for, is still to be written.
pub(crate) fn begin_order(
    socket: &UnixStream,
    order: &JailOrder,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<Vec<u8>> {
    let mut line = to_line(order)?;
    if line.len() > limit::ORDER_BYTES_MAX {
        return Err(io::Error::other("the order is too long"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = send_beside(socket, &line, descriptors, flags)?;
    Ok(line.split_off(sent.min(line.len())))
}

/// What came with an order.
pub(crate) type OrderedDescriptors = ([OwnedFd; STREAMS], Option<OwnedFd>);

/// Receives an order and the descriptors that came with it.
pub(crate) fn receive_order(socket: &UnixStream) -> io::Result<(JailOrder, OrderedDescriptors)> {
    let mut line = Vec::new();
    let mut descriptors = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    // An order ends where a chunk ends: the parent sends nothing more before the child runs.
    while line.last() != Some(&b'\n') {
        let count = receive_beside(
            socket.as_fd(),
            &mut chunk,
            &mut descriptors,
            RecvFlags::empty(),
        )?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if line.len() > limit::ORDER_BYTES_MAX {
            return Err(io::Error::other("the order is too long"));
        }
    }
    let order = serde_json::from_slice(&line)?;
    let door = match descriptors.len() > STREAMS {
        true => descriptors.pop(),
        false => None,
    };
    let streams = descriptors
        .try_into()
        .map_err(|_| io::Error::other("three descriptors were expected"))?;
    Ok((order, (streams, door)))
}

/// The descriptor is a listener inside the child's network.
pub(crate) const LISTENER: u8 = b'L';
/// The descriptor is a connection of the child.
pub(crate) const STREAM: u8 = b'S';
/// The descriptor answers system calls of the child.
pub(crate) const HANDED: u8 = b'H';

/// Sends one descriptor, and what it is, at once or not at all.
pub(crate) fn send_descriptor(
    socket: impl AsFd,
    kind: u8,
    descriptor: BorrowedFd<'_>,
) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    send_beside(socket, &[kind], &[descriptor], flags).map(drop)
}

/// Receives one descriptor, and what it is. `None` at the end.
pub(crate) fn receive_descriptor(socket: impl AsFd) -> io::Result<Option<(u8, OwnedFd)>> {
    let mut descriptors = Vec::new();
    let mut kind = [0];
    let flags = RecvFlags::DONTWAIT;
    if receive_beside(socket.as_fd(), &mut kind, &mut descriptors, flags)? == 0 {
        return Ok(None);
    }
    let [kind] = kind;
    match (descriptors.pop(), descriptors.is_empty()) {
        (Some(descriptor), true) => Ok(Some((kind, descriptor))),
        (_, _) => Err(io::Error::other("one descriptor was expected")),
    }
}

fn send_beside(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("no room for the descriptors"));
    }
    let bytes = [IoSlice::new(bytes)];
    Ok(rustix::net::sendmsg(socket, &bytes, &mut beside, flags)?)
}

fn receive_beside(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
    flags: RecvFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut beside,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(received.bytes)
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

    /// Whether nothing has come that was not taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
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
