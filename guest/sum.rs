// The digest of a guest in the repository. Its key is of its sources and says nothing
// about its own bytes.
//
// Part of two programs, by path: `cargo xtask guest --write` writes it, the build script
// of the `sandbox` crate refuses other bytes.

use sha2::{Digest, Sha256};

/// The file beside the guest, as `sha256sum -c` reads it.
pub(crate) const SUM: &str = "guest.sha256";

/// What `SUM` holds for a guest of these bytes.
pub(crate) fn sum_of(artifact: &[u8], name: &str) -> String {
    let digest = Sha256::digest(artifact);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits}  {name}\n")
}
