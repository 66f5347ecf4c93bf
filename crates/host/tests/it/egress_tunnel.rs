//! Tunnels, on both ways their bytes can go: through the kernel, where child and server are
//! TCP, and through a buffer. The server is on loopback and sends back what it gets.

use std::net::SocketAddr;
use std::time::Duration;

use host::egress::Egress;
use host::fetch::connect::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::egress::{Net, one};
use crate::wire::Ends;

/// More than any buffer on the way holds.
const MANY: usize = 5_000_003;

const CONNECT: &[u8] = b"CONNECT api.acme.com:8080 HTTP/1.1\r\n\r\n";

/// How the child's connection reaches the proxy.
#[derive(Clone, Copy, Debug)]
enum Way {
    Kernel,
    Buffer,
}

const WAYS: [Way; 2] = [Way::Kernel, Way::Buffer];

async fn connect(egress: &Egress, way: Way) -> Box<dyn Stream> {
    match way {
        Way::Buffer => {
            let (child, ours) = tokio::io::duplex(64 << 10);
            egress.admit(ours);
            Box::new(child)
        }
        Way::Kernel => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (child, ours) = tokio::join!(TcpStream::connect(address), listener.accept());
            egress.admit(ours.unwrap().0);
            Box::new(child.unwrap())
        }
    }
}

/// Sends back what it gets; after the other side's last byte it ends, too.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

/// Reads the answer to `CONNECT`.
async fn read_head(child: &mut Box<dyn Stream>) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(child.read_u8().await.unwrap());
    }
    head
}

/// Bytes that differ from place to place, so that a lost or repeated piece shows.
fn bytes(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}

#[tokio::test]
async fn every_byte_arrives_once_in_order_and_is_counted() {
    for way in WAYS {
        let net = Net::new(Ends::Lab(echo().await));
        let egress = net.egress();
        let mut child = connect(&egress, way).await;
        let sent = bytes(MANY);
        // A part of it right behind the request, in the same packet.
        child
            .write_all(&[CONNECT, &sent[..100]].concat())
            .await
            .unwrap();
        let head = read_head(&mut child).await;
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"), "{way:?}");
        let (mut read, mut write) = tokio::io::split(child);
        let rest = sent[100..].to_vec();
        let writer = tokio::spawn(async move {
            write.write_all(&rest).await.unwrap();
            // One side ends; the other still has something to say.
            write.shutdown().await.unwrap();
        });
        let mut heard = Vec::new();
        read.read_to_end(&mut heard).await.unwrap();
        writer.await.unwrap();
        assert!(heard == sent, "{way:?}: {} of {MANY} bytes", heard.len());
        let events = egress.finish().await;
        let event = one(&events);
        let counted = (event.sent_bytes, event.bytes, event.refusal);
        assert_eq!(counted, (MANY as u64, MANY as u64, None), "{way:?}");
    }
}

#[tokio::test]
async fn a_tunnel_ends_where_the_bytes_of_the_child_end() {
    for way in WAYS {
        let mut net = Net::new(Ends::Lab(echo().await));
        net.settings.limits.bytes_max = 1_000_000;
        let egress = net.egress();
        let mut child = connect(&egress, way).await;
        child.write_all(CONNECT).await.unwrap();
        read_head(&mut child).await;
        let (mut read, mut write) = tokio::io::split(child);
        // It breaks off when the tunnel does.
        let writer = tokio::spawn(async move { write.write_all(&bytes(MANY)).await });
        let mut heard = Vec::new();
        let _ = read.read_to_end(&mut heard).await;
        drop(read);
        let _ = writer.await.unwrap();
        let events = egress.finish().await;
        let event = one(&events);
        assert_eq!(event.refusal, Some("egress-bytes-exceeded"), "{way:?}");
        let moved = event.sent_bytes + event.bytes;
        assert!((1..=1_000_000).contains(&moved), "{way:?}: {moved}");
    }
}

#[tokio::test]
async fn a_tunnel_in_which_neither_side_says_anything_ends() {
    for way in WAYS {
        let mut net = Net::new(Ends::Lab(echo().await));
        net.settings.limits.silence = Duration::from_millis(100);
        let egress = net.egress();
        let mut child = connect(&egress, way).await;
        child.write_all(CONNECT).await.unwrap();
        read_head(&mut child).await;
        let mut heard = Vec::new();
        let _ = child.read_to_end(&mut heard).await;
        assert!(heard.is_empty(), "{way:?}");
    }
}

/// A child that reads nothing holds its own tunnel only, and only for the time of silence.
#[tokio::test]
async fn a_child_that_does_not_read_holds_no_tunnel() {
    for way in WAYS {
        let mut net = Net::new(Ends::Lab(echo().await));
        net.settings.limits.silence = Duration::from_millis(100);
        let egress = net.egress();
        let mut child = connect(&egress, way).await;
        child.write_all(CONNECT).await.unwrap();
        read_head(&mut child).await;
        // More than fits into everything on the way: it must break off.
        let many = bytes(64 << 20);
        let written = child.write_all(&many).await;
        assert!(written.is_err(), "{way:?}");
        // The control: the next tunnel works.
        let mut next = connect(&egress, way).await;
        next.write_all(&[CONNECT, b"hello"].concat()).await.unwrap();
        read_head(&mut next).await;
        let mut heard = [0; 5];
        next.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello", "{way:?}");
    }
}
