//! The network of the catalog's tests: names lead nowhere but here, answers are
//! those a row lists, and what a tool sends is compared to what the row expects.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use host::fetch::Tls;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Our own authority, and what it can sign. Believed by nobody else.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    tls: Tls,
}

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let pem = pem(certificate.der());
        Authority {
            issuer: Issuer::new(params, key),
            tls: Tls::only(pem.as_bytes()).unwrap(),
            pem,
        }
    })
}

/// Whom a call in these tests believes.
pub(crate) fn trust() -> Tls {
    authority().tls.clone()
}

/// The same authority, as an operator's file.
pub(crate) fn authority_pem() -> &'static str {
    &authority().pem
}

fn pem(der: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for chunk in der.chunks(48) {
        for three in chunk.chunks(3) {
            let byte = |index: usize| usize::from(three.get(index).copied().unwrap_or(0));
            let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
            for index in 0..4 {
                let letter = char::from(LETTERS[(number >> (18 - 6 * index)) & 63]);
                text.push(if index > three.len() { '=' } else { letter });
            }
        }
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// The exchanges of one row, and how they went.
#[derive(Debug, Default)]
struct Script {
    /// What is still to come.
    left: Vec<Value>,
    /// What should not have come.
    wrong: Vec<String>,
}

/// A server with the answers of one row. It ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct Lab {
    address: SocketAddr,
    hosts: Vec<String>,
    script: Arc<Mutex<Script>>,
}

impl Lab {
    /// Serves `exchanges`, each once, in any order.
    pub(crate) async fn start(exchanges: &[Value]) -> Lab {
        let mut hosts: Vec<String> = exchanges.iter().map(host_of).collect();
        hosts.sort();
        hosts.dedup();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script {
            left: exchanges.to_vec(),
            wrong: Vec::new(),
        }));
        let served = Arc::clone(&script);
        let acceptor = acceptor(&hosts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, served) = (acceptor.clone(), Arc::clone(&served));
                tokio::spawn(async move { serve(stream, acceptor, &served).await });
            }
        });
        Lab {
            address,
            hosts,
            script,
        }
    }

    /// What was asked that the row does not list, and what was not asked.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        let missed = script.left.iter();
        let missed = missed.map(|exchange| format!("never asked: {}", exchange["request"]));
        script.wrong.iter().cloned().chain(missed).collect()
    }

    /// The names it answers to.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn host_of(exchange: &Value) -> String {
    let request = exchange["request"].as_str().expect("a request");
    let after = request.split_once("https://").expect("an https address").1;
    after.split(['/', '?']).next().unwrap().to_owned()
}

pub(crate) fn acceptor(hosts: &[String]) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(hosts.to_vec()).unwrap();
    // With the name of its own issuer it would look self-signed to OpenSSL.
    params.distinguished_name.push(DnType::CommonName, "lab");
    let certificate = params.signed_by(&key, &authority().issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// One request as it arrived.
#[derive(Debug)]
struct Arrived {
    /// Method and whole address.
    request: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, script: &Mutex<Script>) -> Option<()> {
    let mut stream = acceptor.accept(stream).await.ok()?;
    let mut bytes = Vec::new();
    let head_length = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(bytes.drain(..head_length).collect()).unwrap();
    let headers = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let header = |name: &str| headers.iter().find(|(key, _)| key == name);
    let length = header("content-length").map_or(0, |(_, text)| text.parse().unwrap());
    while bytes.len() < length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let host = header("host").map_or("", |(_, host)| host);
    let arrived = Arrived {
        request: format!("{method} https://{host}{path}"),
        headers,
        body: bytes,
    };
    let reply = answer(&arrived, script);
    stream.write_all(&reply).await.ok()?;
    stream.shutdown().await.ok()
}

fn answer(arrived: &Arrived, script: &Mutex<Script>) -> Vec<u8> {
    let mut script = script.lock().unwrap();
    let fitting = |exchange: &Value| exchange["request"].as_str() == Some(&arrived.request);
    let Some(index) = script.left.iter().position(fitting) else {
        script
            .wrong
            .push(format!("unexpected: {}", arrived.request));
        return reply(599, &Map::new(), b"the row lists no such request");
    };
    let exchange = script.left.remove(index);
    script.wrong.extend(differences(&exchange, arrived));
    let status = exchange["status"].as_u64().unwrap_or(200);
    let headers = exchange["headers"].as_object().cloned().unwrap_or_default();
    let body = match &exchange["body"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        json => json.to_string(),
    };
    reply(status, &headers, body.as_bytes())
}

/// Headers and body as the row wants them, where it says.
fn differences(exchange: &Value, arrived: &Arrived) -> Vec<String> {
    let mut wrong = Vec::new();
    let wanted = exchange["requestHeaders"].as_object().into_iter().flatten();
    for (name, value) in wanted {
        let found = arrived.headers.iter().find(|(key, _)| key == name);
        if found.map(|(_, text)| text.as_str()) != value.as_str() {
            wrong.push(format!("header `{name}` is {found:?}, not {value}"));
        }
    }
    let sent = String::from_utf8_lossy(&arrived.body).into_owned();
    let sent = serde_json::from_str(&sent).unwrap_or(Value::String(sent));
    match exchange.get("requestBody") {
        Some(wanted) if *wanted != sent => wrong.push(format!("sent {sent}, not {wanted}")),
        None if !arrived.body.is_empty() => wrong.push(format!("sent {sent}, not listed")),
        Some(_) | None => {}
    }
    wrong
}

fn reply(status: u64, headers: &Map<String, Value>, body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Answer\r\n");
    if !headers.contains_key("content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap()));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}
