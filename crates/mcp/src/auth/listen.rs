//! Where a server may listen.

use std::net::{IpAddr, SocketAddr};

/// Whether requests need a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Every request needs one.
    On,
    /// No request needs one (`serve --no-auth`). Every request is made by the caller
    /// `local`.
    Off,
}

/// Whether a server may listen here. Without keys only on loopback: everywhere else
/// the whole network could call every tool.
pub fn may_listen(address: SocketAddr, mode: AuthMode) -> Result<(), String> {
    match mode {
        AuthMode::On => Ok(()),
        AuthMode::Off if is_loopback(address.ip()) => Ok(()),
        AuthMode::Off => Err(format!(
            "`--no-auth` is for loopback only, and {address} can be reached from elsewhere; leave it out, or listen on 127.0.0.1"
        )),
    }
}

/// A warning for the operator about listening here.
#[must_use]
pub fn warnings(address: SocketAddr, mode: AuthMode) -> Vec<String> {
    let mut warnings = Vec::new();
    if mode == AuthMode::Off {
        warnings.push(
            "no key is needed: every program on this machine can call the exposed tools".to_owned(),
        );
    }
    if !is_loopback(address.ip()) {
        warnings.push(format!(
            "{address} can be reached from elsewhere, and keys travel in the clear; put a proxy with TLS in front of it"
        ));
    }
    warnings
}

fn is_loopback(address: IpAddr) -> bool {
    // For the standard library `::ffff:127.0.0.1` is not loopback.
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_keys_only_on_loopback() {
        let cases = [
            ("127.0.0.1:7464", true),
            ("127.0.0.2:1", true),
            ("[::1]:7464", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:7464", false),
            ("[::]:7464", false),
            ("[::ffff:0.0.0.0]:7464", false),
            ("192.168.1.5:7464", false),
            ("10.0.0.1:7464", false),
            ("203.0.113.7:80", false),
            ("[fe80::1]:7464", false),
            ("[2001:db8::1]:7464", false),
        ];
        for (address, is_fine) in cases {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(
                may_listen(address, AuthMode::Off).is_ok(),
                is_fine,
                "{address}"
            );
            assert_eq!(may_listen(address, AuthMode::On), Ok(()), "{address}");
            let off = warnings(address, AuthMode::Off).len();
            assert_eq!(off, if is_fine { 1 } else { 2 }, "{address}");
            assert_eq!(
                warnings(address, AuthMode::On).is_empty(),
                is_fine,
                "{address}"
            );
        }
    }
}
