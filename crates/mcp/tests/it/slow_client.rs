//! Clients that are slow on purpose: with the head of a request, with its body, and in
//! reading what they are told. Each is hung up on, and its place is free again.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::{LEGACY, MODERN, call, meta, request};
use crate::world::{Server, World, document};

/// What the servers here wait.
const PATIENCE: Duration = Duration::from_millis(400);
/// What comes later than this does not come.
const LONG: Duration = Duration::from_secs(20);

async fn serve(world: &World) -> Server {
    serve_with(world, PATIENCE).await
}

async fn serve_with(world: &World, write_max: Duration) -> Server {
    world
        .serve_within(|bounds| {
            bounds.head_max = PATIENCE;
            bounds.body_max = PATIENCE;
            bounds.write_max = write_max;
        })
        .await
}

/// Sends a byte now and then, as long as the server takes them; what it said, and after
/// how long it was over.
async fn drip(server: &Server, start: &str) -> (String, Duration) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(start.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let dripping = async {
        while write.write_all(b"x").await.is_ok() {
            // Sleeps: a client that is slow.
            tokio::time::sleep(PATIENCE / 8).await;
        }
        std::future::pending::<()>().await;
    };
    let mut said = Vec::new();
    let hearing = async {
        tokio::select! {
            // A connection that is reset has said what it had to say.
            _ = read.read_to_end(&mut said) => {}
            () = dripping => {}
        }
    };
    let over = timeout(LONG, hearing).await;
    over.expect("the server never ends");
    (String::from_utf8(said).unwrap(), began.elapsed())
}

#[tokio::test]
async fn slow_heads_time_out() {
    let world = World::with("[serve]\nconnections_max = 1\n").await;
    let server = serve(&world).await;
    for start in [
        "",
        "POST /mc",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
    ] {
        let (said, took) = drip(&server, start).await;
        assert!(took >= PATIENCE, "{start}: {took:?}");
        assert!(!said.contains("200 OK"), "{said}");
    }
    // Nor for the next request of a connection.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut said = String::new();
    let over = timeout(LONG, stream.read_to_string(&mut said)).await;
    over.expect("the server never ends").unwrap();
    assert!(said.contains("200 OK"), "{said}");
    server.end().await;
}

#[tokio::test]
async fn slow_bodies_time_out() {
    let world = World::with("[serve]\nconnections_max = 1\n").await;
    let server = serve(&world).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        accept: application/json, text/event-stream\r\n";
    for start in [
        format!("{head}content-length: 100000\r\n\r\n{{"),
        format!("{head}transfer-encoding: chunked\r\n\r\nfffff\r\n{{"),
    ] {
        let (said, took) = drip(&server, &start).await;
        assert!(took >= PATIENCE, "{took:?}");
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
        assert!(said.contains("connection: close"), "{said}");
        assert!(
            said.contains("the request took too long to arrive"),
            "{said}"
        );
    }
    assert_eq!(world.door.calls_under_way(), 0);
    server.end().await;
}

/// A client with little room of its own, so that the kernel does not read for it.
async fn narrow(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// The place of a connection is free as soon as another one is served.
async fn until_free(server: &Server) {
    let began = Instant::now();
    while began.elapsed() < LONG {
        let mut next = TcpStream::connect(server.address).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let mut said = String::new();
        if next.write_all(request).await.is_ok()
            && next.read_to_string(&mut said).await.is_ok()
            && said.contains("200 OK")
        {
            return;
        }
        // Sleeps: the server has not noticed yet.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the place is not given back");
}

/// Asks and asks, and reads no answer: the server stops reading, then it hangs up.
#[tokio::test]
async fn connections_with_unread_answers_are_dropped() {
    let world = World::with("[serve]\nconnections_max = 1\n").await;
    let server = serve(&world).await;
    let mut stream = narrow(&server).await;
    let mut message = call(1, "echo", json!({"text": "x".repeat(20_000)}));
    message["params"]["_meta"] = meta(json!({}));
    let body = message.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {MODERN}\r\n\
         mcp-method: tools/call\r\nmcp-name: echo\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut taken = 0;
    let asking = async {
        while let Ok(written @ 1..) = stream
            .write(&request.as_bytes()[taken % request.len()..])
            .await
        {
            taken += written;
        }
    };
    timeout(LONG, asking)
        .await
        .expect("the server never stops reading");
    // What the two kernels hold, and no more.
    assert!(taken < 8 << 20, "{taken} bytes were taken");
    until_free(&server).await;
    server.end().await;
}

/// A server whose tool says more than the kernels keep, and what a session of it sends.
async fn talkative(settings: &str, write_max: Duration) -> (World, Server, String) {
    let world = World::with(settings).await;
    let long = document("long", "return 'x'.repeat(3000000)", json!({}));
    world.publish(&long).await;
    let server = serve_with(&world, write_max).await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let header = |(name, value): &(String, String)| format!("{name}: {value}\r\n");
    let headers = client.headers.iter().map(header).collect();
    (world, server, headers)
}

/// Calls the tool, and reads the first byte of its answer.
async fn streaming(server: &Server, headers: &str, id: u64) -> TcpStream {
    let mut stream = narrow(server).await;
    let body = call(id, "long", json!({})).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
    stream
}

/// The same in a session.
#[tokio::test]
async fn connections_of_a_session_with_unread_answers_are_dropped() {
    let (_world, server, headers) = talkative("[serve]\nconnections_max = 2\n", PATIENCE).await;
    until_free(&server).await;
    let began = Instant::now();
    let first = streaming(&server, &headers, 1).await;
    let second = streaming(&server, &headers, 2).await;
    until_free(&server).await;
    assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    drop((first, second));
    server.end().await;
}

/// To read slowly is allowed: what takes longer than the bound, but never stands still
/// for as long, arrives whole.
#[tokio::test]
async fn a_slow_reader_gets_everything() {
    // Long enough for a busy machine, and shorter than the whole takes.
    let patience = Duration::from_secs(2);
    let (_world, server, headers) = talkative("", patience).await;
    let began = Instant::now();
    let mut stream = streaming(&server, &headers, 1).await;
    let (mut bytes, mut piece) = (0, vec![0; 16 << 10]);
    loop {
        let read = timeout(LONG, stream.read(&mut piece))
            .await
            .unwrap()
            .unwrap();
        bytes += read;
        // The connection ends with the answer, or because it was hung up on.
        if read == 0 {
            break;
        }
        // Sleeps: a client that is slow.
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    assert!(bytes > 3_000_000, "{bytes}");
    assert!(began.elapsed() > patience, "{:?}", began.elapsed());
    server.end().await;
}

/// A client at a pipe that asks and asks, and reads no answer.
#[tokio::test]
async fn an_unread_pipe_is_closed() {
    let world = World::new().await;
    let (mut pipe, serving, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    // From here on nothing but the pipe takes time, so a minute need not be one.
    tokio::time::pause();
    // More answers than the pipe holds.
    for id in 0..4_000 {
        pipe.say(&request(id, "ping", json!({}))).await;
    }
    timeout(LONG * 10, serving)
        .await
        .expect("the server never ends")
        .unwrap();
}
