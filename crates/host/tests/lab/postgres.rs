//! A real Postgres for one test program: made in a folder of its own, as a user who is
//! not root, on loopback, with TLS by an authority of ours. It ends with the program.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// The user of the server if we are root: Postgres refuses to run as root.
const NOBODY: &str = "65534";

/// The name the server's certificate is for.
pub(crate) const DATABASE_NAME: &str = "db.lab.example.com";

/// The password of every role.
pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// A server that runs.
pub(crate) struct Postgres {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Whom to believe about its certificate.
    pub(crate) authority_pem: Vec<u8>,
}

/// The server of this program, started when it is first asked for.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(start)
}

/// A name for the database of one test.
pub(crate) fn database_name() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn programs() -> PathBuf {
    let folder = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = folder.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let found = versions
        .into_iter()
        .rfind(|bin| bin.join("initdb").exists());
    found.expect("Postgres; `cargo xtask setup` installs it")
}

/// A command of Postgres, as the server's user.
fn command(program: &Path) -> Command {
    if !rustix::process::getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            NOBODY,
            "--regid",
            NOBODY,
            "--clear-groups",
            "--pdeathsig",
            "KILL",
        ])
        .arg(program);
    command
}

/// Folders of programs that were killed before they could end.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(FOLDER);
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

const FOLDER: &str = "ringfence-test-postgres-";

fn start() -> Postgres {
    let parent = std::env::temp_dir();
    sweep(&parent);
    let folder = parent.join(format!("{FOLDER}{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (authority_pem, certificate, key) = certificates();
    fs::write(folder.join("password"), PASSWORD).unwrap();
    fs::write(folder.join("server.crt"), certificate).unwrap();
    fs::write(folder.join("server.key"), key).unwrap();
    fs::set_permissions(folder.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::getuid().is_root() {
        let owned = Command::new("chown")
            .arg("-R")
            .arg(NOBODY)
            .arg(&folder)
            .status();
        assert!(owned.unwrap().success());
    }
    let bin = programs();
    let data = folder.join("data");
    let made = command(&bin.join("initdb"))
        .current_dir(&folder)
        .arg("-D")
        .arg(&data)
        .args([
            "-U",
            "postgres",
            "--auth=scram-sha-256",
            "--no-locale",
            "-E",
            "UTF8",
            "-N",
        ])
        .arg(format!("--pwfile={}", folder.join("password").display()))
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    // Another program may take the port in between, so it is tried again.
    for _ in 0..5 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        if serve(&bin, &folder, &data, address) {
            return Postgres {
                address,
                authority_pem: authority_pem.into_bytes(),
            };
        }
    }
    panic!(
        "Postgres does not start: {}",
        fs::read_to_string(folder.join("log")).unwrap_or_default()
    );
}

/// An authority that signed nothing here.
pub(crate) fn other_authority() -> Vec<u8> {
    certificates().0.into_bytes()
}

/// An authority, and a certificate of it with its key.
fn certificates() -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = armour("CERTIFICATE", params.self_signed(&key).unwrap().der());
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![DATABASE_NAME.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (
        authority,
        armour("CERTIFICATE", certificate.der()),
        armour("PRIVATE KEY", &key.serialize_der()),
    )
}

fn armour(what: &str, der: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {what}-----\n");
    for chunk in der.chunks(48) {
        for three in chunk.chunks(3) {
            let byte = |index: usize| usize::from(three.get(index).copied().unwrap_or(0));
            let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
            for index in 0..4 {
                let letter = LETTERS[(number >> (18 - 6 * index)) & 63];
                text.push(if index > three.len() {
                    '='
                } else {
                    char::from(letter)
                });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {what}-----\n")
}

/// Starts the server from a thread that stays: the signal at the parent's death is sent when
/// the thread that started the child ends.
fn serve(bin: &Path, folder: &Path, data: &Path, address: SocketAddr) -> bool {
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut server = command(&bin.join("postgres"));
    server
        .current_dir(folder)
        .arg("-D")
        .arg(data)
        .arg("-k")
        .arg(folder)
        .args(["-p", &address.port().to_string()])
        .args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "fsync=off",
            "-c",
            "ssl=on",
        ])
        .args(["-c", "max_connections=60", "-c", "log_statement=none"])
        .arg("-c")
        .arg(format!(
            "ssl_cert_file={}",
            folder.join("server.crt").display()
        ))
        .arg("-c")
        .arg(format!(
            "ssl_key_file={}",
            folder.join("server.key").display()
        ))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let started = server.spawn();
        let is_started = started.is_ok();
        let _ = tell.send(is_started);
        if let Ok(mut child) = started {
            drop(child.wait());
        }
        if is_started {
            loop {
                thread::park();
            }
        }
    });
    assert!(told.recv().unwrap(), "Postgres cannot be started");
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        let status = command(&bin.join("pg_isready"))
            .args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "-q"])
            .status();
        if status.is_ok_and(|status| status.success()) {
            return true;
        }
        if !data.join("postmaster.pid").exists()
            && folder.join("log").metadata().is_ok_and(|log| log.len() > 0)
        {
            let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
            if said.contains("FATAL") {
                return false;
            }
        }
        thread::yield_now();
    }
    false
}
