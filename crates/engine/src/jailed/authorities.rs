//! Whom programs in the jail believe: the system's certificate authorities and those of the
//! operator's `ca_file`, in one file of their own, under the names that programs look for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Where distributions keep the authorities of the system as one file.
const SYSTEM: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// The variables by which programs find a file of authorities: OpenSSL and Python, curl, git,
/// `requests`, pip, npm. Node adds its file to those it has built in.
const NAMES: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "npm_config_cafile",
    "NODE_EXTRA_CA_CERTS",
];

/// The name of the file in the program's own folder.
const FILE: &str = "authorities.pem";

/// Writes the file into `folder` and names it in `environment`.
pub(super) fn give(
    pem: &[u8],
    folder: &Path,
    environment: &mut BTreeMap<String, String>,
) -> io::Result<()> {
    let mut all = SYSTEM
        .iter()
        .find_map(|path| fs::read(path).ok())
        // Without a file of the system the program trusts the operator's authorities
        // alone.
        .unwrap_or_default();
    // The file of the system may lack its last line break.
    all.push(b'\n');
    all.extend_from_slice(pem);
    fs::create_dir_all(folder)?;
    let path = folder.canonicalize()?.join(FILE);
    fs::write(&path, all)?;
    let Some(path) = path.to_str() else {
        return Err(io::Error::other("the path of the folder is not UTF-8"));
    };
    for name in NAMES {
        environment.insert((*name).to_owned(), path.to_owned());
    }
    Ok(())
}
