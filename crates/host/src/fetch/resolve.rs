//! From a name to addresses, behind a trait so that tests can make DNS lie.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// What a lookup gives, in time.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names to addresses.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Every address of a name, best first. The name is ASCII, without a
    /// trailing dot, and never an address.
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found.map(|found| found.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        })
    }
}
