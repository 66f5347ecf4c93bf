//! A real git server for tests: `git http-backend` behind TLS on loopback, with ways to
//! misbehave. Names lead here, to a public address by their own word, and nowhere else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use host::fetch::TlsTrust;
use host::fetch::connect::{Connecting, Connector, Stream};
use host::fetch::resolve::{Lookup, Resolve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::catalog_lab::{acceptor, trust};
use crate::world::{Home, World};

/// The host that is allowed.
pub(crate) const FORGE: &str = "git.example.com";
/// A host that the operator lists too.
pub(crate) const MIRROR: &str = "mirror.example.com";
/// A host that exists and is not listed.
pub(crate) const OTHER: &str = "evil.example.com";
/// A host whose name leads to a private address.
pub(crate) const CORP: &str = "git.corp.example.com";
/// A host where nothing listens.
pub(crate) const DOWN: &str = "down.example.com";

/// Any address that is on the public network.
const PUBLIC: &str = "93.184.215.14";
/// One where nothing listens.
const UNUSED: &str = "93.184.215.99";

/// What the server does with a request before git sees it.
pub(crate) type Answer = Box<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// The server, its repositories, and what it was asked.
pub(crate) struct Forge {
    pub(crate) root: PathBuf,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    wire: Arc<Wire>,
}

#[derive(Debug)]
struct Wire {
    address: SocketAddr,
}

impl Resolve for Wire {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let address = match name {
            "inside.example.com" => "169.254.169.254",
            CORP => "10.1.2.3",
            DOWN => UNUSED,
            _ => PUBLIC,
        };
        let address: IpAddr = address.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

impl Connector for Wire {
    fn connect(&self, asked: SocketAddr) -> Connecting<'_> {
        let address = self.address;
        Box::pin(async move {
            if asked.ip().to_string() == UNUSED {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let stream: Box<dyn Stream> = Box::new(TcpStream::connect(address).await?);
            Ok(stream)
        })
    }
}

/// Runs git outside of every fence, for what a test prepares.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let ran = std::process::Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "forge")
        .env("GIT_AUTHOR_EMAIL", "forge@example.com")
        .env("GIT_COMMITTER_NAME", "forge")
        .env("GIT_COMMITTER_EMAIL", "forge@example.com")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
}

impl Forge {
    /// Starts it. `answer` gets the host and the path with its query, and may give a whole
    /// reply of its own.
    pub(crate) async fn start(answer: Answer) -> Forge {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let root = Home::new();
        let path = root.path.join("forge");
        std::mem::forget(root);
        std::fs::create_dir_all(&path).unwrap();
        let hosts = [FORGE, MIRROR, OTHER, "inside.example.com"].map(str::to_owned);
        let acceptor = acceptor(&hosts);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, served, answer) = (Arc::clone(&asked), path.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                let (root, answer) = (served.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        let _ = serve(&mut stream, &root, &seen, &answer).await;
                        let _ = stream.shutdown().await;
                    }
                });
            }
        });
        Forge {
            root: path,
            asked,
            wire: Arc::new(Wire { address }),
        }
    }

    /// A server that behaves.
    pub(crate) async fn plain() -> Forge {
        Forge::start(Box::new(|_, _| None)).await
    }

    /// A repository with one commit of these files, served at `/NAME.git`.
    pub(crate) fn repository(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let work = self.root.join(format!("{name}-work"));
        std::fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        for (path, text) in files {
            let path = work.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", "first"]);
        let bare = self.root.join(format!("{name}.git"));
        let from = work.display().to_string();
        git(
            &self.root,
            &["clone", "-q", "--bare", &from, &bare.display().to_string()],
        );
        git(&bare, &["config", "http.receivepack", "true"]);
        bare
    }

    /// A world whose names lead here.
    pub(crate) fn world(&self, settings: &str) -> World {
        let home = Home::new();
        home.file("ringfence.toml", settings);
        self.world_in(home)
    }

    pub(crate) fn world_in(&self, home: Home) -> World {
        self.world_that_trusts(home, TlsTrust::fixed(trust()))
    }

    pub(crate) fn world_that_trusts(&self, home: Home, trust: TlsTrust) -> World {
        let wire = Arc::clone(&self.wire);
        let workspace = home.path.join("workspace");
        World::with(home, move |settings| {
            let mut powers = engine::powers::PowerSettings::new(workspace);
            powers.trust = trust;
            powers.resolver = Arc::clone(&wire) as _;
            powers.connector = wire;
            settings.powers = Some(powers);
        })
    }

    /// Who looks names up and connects, for an engine that is made elsewhere.
    pub(crate) fn wire(&self) -> Arc<impl Resolve + Connector + 'static> {
        Arc::clone(&self.wire)
    }

    /// Where it listens, on loopback.
    pub(crate) fn port(&self) -> u16 {
        self.wire.address.port()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers requests on one connection until it ends.
async fn serve<S: Stream>(
    stream: &mut S,
    root: &Path,
    seen: &Mutex<Vec<String>>,
    answer: &Answer,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let Some(end) = until(stream, &mut bytes, b"\r\n\r\n").await? else {
            return Ok(());
        };
        let head = String::from_utf8_lossy(&bytes.drain(..end).collect::<Vec<_>>()).into_owned();
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let header = |name: &str| {
            let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
            lines
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
        };
        let host = header("host").unwrap_or_default();
        seen.lock().unwrap().push(format!(
            "{method} {host}{target}{}",
            header("authorization").map_or_else(String::new, |value| format!(" [{value}]"))
        ));
        let body = body(stream, &mut bytes, &header).await?;
        // Files that are served as they are: what a test puts below `static/HOST`.
        let path = target.split('?').next().unwrap_or_default();
        let place = |ending: &str| root.join(format!("static/{host}{path}{ending}"));
        let mut places = ["", "index.html", ".json"].iter().map(|one| place(one));
        let file = places.find_map(|place| std::fs::read(place).ok());
        let reply = match (answer(&host, target), file) {
            (Some(reply), _) => reply.into_bytes(),
            (None, Some(file)) => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", file.len());
                let kind = match path.ends_with('/') || path.ends_with(".html") {
                    true => "Content-Type: text/html\r\n\r\n",
                    false => "Content-Type: application/octet-stream\r\n\r\n",
                };
                [head.as_bytes(), kind.as_bytes(), &file].concat()
            }
            (None, None) => backend(root, method, target, &header, &body).await?,
        };
        stream.write_all(&reply).await?;
        stream.flush().await?;
    }
}

async fn until<S: Stream>(
    stream: &mut S,
    bytes: &mut Vec<u8>,
    mark: &[u8],
) -> io::Result<Option<usize>> {
    loop {
        if let Some(at) = bytes.windows(mark.len()).position(|part| part == mark) {
            return Ok(Some(at + mark.len()));
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

async fn body<S: Stream>(
    stream: &mut S,
    bytes: &mut Vec<u8>,
    header: &impl Fn(&str) -> Option<String>,
) -> io::Result<Vec<u8>> {
    if header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        let mut whole = Vec::new();
        loop {
            let end = until(stream, bytes, b"\r\n").await?.unwrap_or(0);
            let line: Vec<u8> = bytes.drain(..end).collect();
            let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).unwrap();
            while bytes.len() < size + 2 {
                stream.read_buf(bytes).await?;
            }
            whole.extend(bytes.drain(..size));
            bytes.drain(..2);
            if size == 0 {
                return Ok(whole);
            }
        }
    }
    let length = header("content-length").map_or(0, |text| text.parse().unwrap());
    while bytes.len() < length {
        if stream.read_buf(bytes).await? == 0 {
            break;
        }
    }
    Ok(bytes.drain(..length.min(bytes.len())).collect())
}

/// One request, answered by git's own program.
async fn backend(
    root: &Path,
    method: &str,
    target: &str,
    header: &impl Fn(&str) -> Option<String>,
    body: &[u8],
) -> io::Result<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut command = std::process::Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("REMOTE_USER", "tester")
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(protocol) = header("git-protocol") {
        command.env("GIT_PROTOCOL", protocol);
    }
    if let Some(coding) = header("content-encoding") {
        command.env("HTTP_CONTENT_ENCODING", coding);
    }
    let owned = body.to_vec();
    let running = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn()?;
        let mut input = child.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            let _ = io::Write::write_all(&mut input, &owned);
        });
        let output = child.wait_with_output();
        let _ = feeding.join();
        output
    });
    let output = running.await.unwrap()?;
    let end = output
        .stdout
        .windows(4)
        .position(|four| four == b"\r\n\r\n");
    let end = end.map_or(output.stdout.len(), |end| end + 4);
    let (head, rest) = output.stdout.split_at(end);
    let head = String::from_utf8_lossy(head);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: "));
    let mut reply = format!("HTTP/1.1 {}\r\n", status.unwrap_or("200 OK"));
    for line in head
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("Status:"))
    {
        reply.push_str(&format!("{line}\r\n"));
    }
    reply.push_str(&format!("Content-Length: {}\r\n\r\n", rest.len()));
    Ok([reply.as_bytes(), rest].concat())
}

/// A redirect.
pub(crate) fn redirect(to: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 301 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
    ))
}
