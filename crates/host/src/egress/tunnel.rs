//! The bytes of a `CONNECT`, both ways. Between two TCP connections they stay in the kernel:
//! we see only how many they are. Anything else is copied through a buffer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use hyper::upgrade::{Parts, Upgraded};
use hyper_util::rt::TokioIo;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::egress::meter::{Direction, EgressMeter};
use crate::fetch::connect::Stream;

/// Bytes copied at once.
const COPY_BYTES: usize = 64 << 10;

/// Bytes a pipe holds. The kernel may give less: to one user it gives 64 MiB of larger pipes.
const PIPE_BYTES: usize = 256 << 10;

/// Until both sides have ended, one broke, or neither said anything for too long.
pub(crate) async fn move_bytes(
    child: Upgraded,
    mut server: Box<dyn Stream>,
    meter: &EgressMeter,
    silence: Duration,
) {
    // How it ended is in the event; a side that hung up is no fault of ours.
    let _ = match child.downcast::<TokioIo<TcpStream>>() {
        Ok(Parts { io, read_buf, .. }) => {
            // What the child sent behind its `CONNECT` was read with it.
            let first = pass_on(&read_buf, &mut server, meter, Direction::FromChild, silence);
            match first.await {
                Ok(()) => move_tcp(io.into_inner(), server, meter, silence).await,
                Err(error) => Err(error),
            }
        }
        Err(child) => copy_both(TokioIo::new(child), server, meter, silence).await,
    };
}

async fn move_tcp(
    child: TcpStream,
    server: Box<dyn Stream>,
    meter: &EgressMeter,
    silence: Duration,
) -> io::Result<()> {
    let pipes = Pipe::open().and_then(|up| Ok((up, Pipe::open()?)));
    // A machine without a descriptor left for a pipe still has the buffer.
    let (Some(server), Ok((up, down))) = ((*server).as_tcp(), pipes) else {
        return copy_both(child, server, meter, silence).await;
    };
    let up = up.splice(&child, server, meter, Direction::FromChild, silence);
    let down = down.splice(server, &child, meter, Direction::ToChild, silence);
    // One way may be over long before the other, but a broken one ends both.
    tokio::try_join!(up, down).map(drop)
}

/// A place in the kernel for bytes under way.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    fn open() -> io::Result<Pipe> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one only takes more turns.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Pipe { read, write })
    }

    async fn splice(
        self,
        from: &TcpStream,
        to: &TcpStream,
        meter: &EgressMeter,
        direction: Direction,
        silence: Duration,
    ) -> io::Result<()> {
        loop {
            // The pipe is empty here, so a call that would block waits for `from`.
            let take = || splice(from, &self.write, PIPE_BYTES);
            let count = within(silence, from.async_io(Interest::READABLE, take)).await?;
            if count == 0 {
                return Ok(rustix::net::shutdown(to, Shutdown::Write)?);
            }
            meter.count(direction, count)?;
            let mut left = count;
            while left > 0 {
                // It is not empty here, so a call that would block waits for `to`.
                let give = || splice(&self.read, to, left);
                match within(silence, to.async_io(Interest::WRITABLE, give)).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    moved => left = left.saturating_sub(moved),
                }
            }
        }
    }
}

fn splice(from: impl AsFd, to: impl AsFd, bytes_max: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(rustix::pipe::splice(
        from, None, to, None, bytes_max, flags,
    )?)
}

async fn copy_both(
    child: impl AsyncRead + AsyncWrite,
    server: Box<dyn Stream>,
    meter: &EgressMeter,
    silence: Duration,
) -> io::Result<()> {
    let (from_child, to_child) = tokio::io::split(child);
    let (from_server, to_server) = tokio::io::split(server);
    let up = copy(from_child, to_server, meter, Direction::FromChild, silence);
    let down = copy(from_server, to_child, meter, Direction::ToChild, silence);
    tokio::try_join!(up, down).map(drop)
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    meter: &EgressMeter,
    direction: Direction,
    silence: Duration,
) -> io::Result<()> {
    let mut bytes = vec![0; COPY_BYTES];
    loop {
        let count = within(silence, from.read(&mut bytes)).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        let piece = bytes.get(..count).unwrap_or_default();
        pass_on(piece, &mut to, meter, direction, silence).await?;
    }
}

async fn pass_on(
    bytes: &[u8],
    to: &mut (impl AsyncWrite + Unpin),
    meter: &EgressMeter,
    direction: Direction,
    silence: Duration,
) -> io::Result<()> {
    meter.count(direction, bytes.len())?;
    within(silence, to.write_all(bytes)).await
}

async fn within<T>(
    silence: Duration,
    action: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let in_time = timeout(silence, action).await;
    in_time.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
