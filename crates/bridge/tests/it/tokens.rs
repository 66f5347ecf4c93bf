//! A process that renews tokens beside others: each round says its token was refused.
//! Arguments: the home, the address of the server, how many rounds.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a child that cannot go on should stop, and its parent sees it"
)]

use std::path::Path;

use bridge::oauth::{TokenFile, TokenSource};
use host::client::{ClientSettings, HttpClient};
use host::fetch::TlsTrust;
use model::network::host_pattern::HostPattern;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, url, count] = arguments.as_slice() else {
        panic!("home, url, count");
    };
    let mut settings = ClientSettings::new(TlsTrust::system(None).tls().unwrap());
    settings.private_hosts = [HostPattern::parse("127.0.0.1").unwrap()].into();
    let file = TokenFile::new(Path::new(home), "lab");
    let source = TokenSource::new(HttpClient::new(settings), file, url, None);
    let mut token = source.token(None).await.unwrap().unwrap();
    for _ in 0..count.parse().unwrap() {
        token = source.token(Some(&token)).await.unwrap().unwrap();
    }
    println!("done");
}
