//! Where documents of issuers come from, without a packet leaving loopback.

use std::io;
use std::sync::Mutex;

use host::fetch::connect::Connecting;

use super::*;

/// Writes down where it would have gone, and goes nowhere.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<SocketAddr>>);

impl Connector for Recorder {
    fn connect(&self, address: SocketAddr) -> Connecting<'_> {
        self.0.lock().expect("a lock").push(address);
        Box::pin(async { Err(io::Error::other("nowhere")) })
    }
}

/// Where a document would be fetched from, if the operator named these addresses.
fn reached(named: &[&str], url: &str) -> Vec<String> {
    let recorder = Arc::new(Recorder::default());
    let named = named.iter().map(|named| (*named).to_owned()).collect();
    let mut courier = IssuerFetch::new(TlsTrust::system(None), named);
    courier.connector = Some(Arc::clone(&recorder) as Arc<dyn Connector>);
    let runtime = crate::wiring::runtime().expect("a runtime");
    let fetched = runtime.block_on(courier.fetch(url, 1_000));
    assert!(fetched.is_err(), "{url}");
    let seen = recorder.0.lock().expect("a lock");
    seen.iter().map(ToString::to_string).collect()
}

#[test]
fn private_addresses_only_if_the_operator_wrote_them() {
    for private in [
        "http://127.0.0.1:8080",
        "http://10.1.2.3",
        "https://192.168.7.7:8443",
        "http://[::1]:8080",
    ] {
        let document = format!("{private}/keys");
        assert!(reached(&[], &document).is_empty(), "{document}");
        assert!(!reached(&[private], &document).is_empty(), "{document}");
        assert!(!reached(&[&document], &document).is_empty(), "{document}");
        // Another port, another address, another spelling: not what was written.
        assert!(reached(&["http://127.0.0.1:9"], &document).is_empty());
        assert!(reached(&["https://issuer.example"], &document).is_empty());
    }
    for never in [
        "http://169.254.169.254/latest/meta-data",
        "http://0.0.0.0/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://localhost/",
        "file:///etc/passwd",
    ] {
        assert!(reached(&["https://issuer.example"], never).is_empty());
    }
    // A name is looked up and its addresses checked, even if it was written.
    assert!(reached(&["http://localhost:8080"], "http://localhost:8080/").is_empty());
    // A public address in digits needs no leave.
    assert_eq!(reached(&[], "http://93.184.216.34/k"), ["93.184.216.34:80"]);
}

#[test]
fn without_keys_only_loopback_is_served() {
    let home = std::env::temp_dir().join(format!("ringfence-auth-{}", std::process::id()));
    let config = Config::closed();
    let public = "0.0.0.0:7464".parse().expect("an address");
    let refused = open(&home, &config, public, AuthMode::Off).map(|_| ());
    let sentence = refused.expect_err("a public address").to_string();
    assert!(sentence.contains("--no-auth"), "{sentence}");
    // Nothing was made for a server that does not start.
    assert!(!home.exists());
    std::fs::create_dir(&home).expect("a home");
    let loopback = "127.0.0.1:7464".parse().expect("an address");
    let (auth, token) = open(&home, &config, loopback, AuthMode::On).expect("authentication");
    assert!(token.is_new);
    assert_eq!(auth.base_url(), "http://127.0.0.1:7464");
    let (_, again) = open(&home, &config, public, AuthMode::On).expect("authentication");
    assert!(!again.is_new);
    std::fs::remove_dir_all(&home).expect("removed");
}
