//! The parent's end of a child's network: connections of the child, one by one, on either
//! rung. What comes of them is the parent's to decide.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketType};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::limit;
use crate::line;

/// Where a child's connections come from. Each is one to the child's proxy, whatever address
/// the child named; nothing else leaves it.
#[derive(Debug)]
pub struct JailEgress {
    door: UnixStream,
    /// Inside the child's network, on the higher rung.
    listener: Option<TcpListener>,
}

impl JailEgress {
    /// The next connection. Fails when the child is gone.
    pub async fn accept(&mut self) -> io::Result<TcpStream> {
        loop {
            if let Some(listener) = &self.listener {
                tokio::select! {
                    accepted = listener.accept() => return accepted.map(|(stream, _)| stream),
                    // Nothing more is said here; its end is the supervisor's.
                    ended = receive(&self.door) => {
                        ended?;
                        return Err(io::Error::other("more than one listener was handed over"));
                    }
                }
            }
            match receive(&self.door).await? {
                (line::LISTENER, descriptor) => self.listener = Some(to_listener(descriptor)?),
                (line::STREAM, descriptor) => return to_stream(descriptor),
                (_, _) => return Err(io::Error::other("an unknown descriptor was handed over")),
            }
        }
    }
}

async fn receive(door: &UnixStream) -> io::Result<(u8, OwnedFd)> {
    loop {
        door.readable().await?;
        match door.try_io(Interest::READABLE, || line::receive_descriptor(door)) {
            Ok(Some(received)) => return Ok(received),
            Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The parent's end of what connections come through, in use.
pub(crate) fn open(door: std::os::unix::net::UnixStream) -> io::Result<JailEgress> {
    door.set_nonblocking(true)?;
    Ok(JailEgress {
        door: UnixStream::from_std(door)?,
        listener: None,
    })
}

/// Attack: a supervisor or a first process that lies. Only what is a listener of the
/// internet is listened to, and only what is a connection is spoken on.
fn to_listener(descriptor: OwnedFd) -> io::Result<TcpListener> {
    check(&descriptor, true)?;
    rustix::net::listen(&descriptor, limit::EGRESS_WAITING_MAX)?;
    let listener = std::net::TcpListener::from(descriptor);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn to_stream(descriptor: OwnedFd) -> io::Result<TcpStream> {
    check(&descriptor, false)?;
    let stream = std::net::TcpStream::from(descriptor);
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

fn check(descriptor: &OwnedFd, is_listener: bool) -> io::Result<()> {
    let descriptor = descriptor.as_fd();
    let is_internet = sockopt::socket_domain(descriptor)? == AddressFamily::INET;
    let is_stream = sockopt::socket_type(descriptor)? == SocketType::STREAM;
    let accepts = sockopt::socket_acceptconn(descriptor)?;
    match is_internet && is_stream && accepts == is_listener {
        true => Ok(()),
        false => Err(io::Error::other("a wrong descriptor was handed over")),
    }
}
