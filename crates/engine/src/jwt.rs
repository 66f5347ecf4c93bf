//! Signed tokens: taken apart, and their signature checked against a key of the issuer.
//! `oauth` judges the claims.
//!
//! Only algorithms with a public key exist here, so there is nothing that could
//! take `none`, or a public key for a shared secret. Keys that a token brings along
//! (`jwk`, `jku`, `x5c`, `x5u`) are never looked at.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

use crate::limit;

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA, PKCS#1 v1.5, SHA-256.
    Rs256,
    /// RSA, PKCS#1 v1.5, SHA-384.
    Rs384,
    /// RSA, PKCS#1 v1.5, SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::EdDsa,
    ];

    /// Its word in tokens and keys.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm a word means.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// A key of the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Its name in tokens (`kid`).
    pub name: Option<String>,
    /// The only algorithm it may be used with, if it says so.
    pub only: Option<Algorithm>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Reads one key of a key set. Unusable keys are ignored: other kinds, secrets,
    /// keys that only encrypt, keys of the wrong length.
    #[must_use]
    pub fn read(value: &Value) -> Option<PublicKey> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let bytes = |field: &str| URL_SAFE_NO_PAD.decode(text(field)?).ok();
        if text("use").is_some_and(|word| word != "sig") {
            return None;
        }
        if let Some(operations) = value.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|word| word == "verify")
        {
            return None;
        }
        // A key for an algorithm that does not exist here can check nothing.
        let only = match value.get("alg") {
            None => None,
            Some(word) => Some(Algorithm::from_word(word.as_str()?)?),
        };
        let name = match value.get("kid") {
            None => None,
            Some(Value::String(name)) if is_name(name) => Some(name.clone()),
            Some(_) => return None,
        };
        let point = |length: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            // The 4 marks a point that is not compressed.
            (x.len() == length && y.len() == length).then(|| [vec![4], x, y].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa {
                n: without_zeros(bytes("n")?),
                e: without_zeros(bytes("e")?),
            },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(PublicKey {
            name,
            only,
            material,
        })
    }

    /// Whether it can check this kind of signature.
    #[must_use]
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Rs256, Rs384, Rs512};
        let of_its_kind = match (&self.material, algorithm) {
            (Material::Rsa { .. }, Rs256 | Rs384 | Rs512 | Ps256)
            | (Material::P256(_), Es256)
            | (Material::P384(_), Es384)
            | (Material::Ed25519(_), EdDsa) => true,
            (Material::Rsa { .. }, Es256 | Es384 | EdDsa)
            | (Material::P256(_), Rs256 | Rs384 | Rs512 | Ps256 | Es384 | EdDsa)
            | (Material::P384(_), Rs256 | Rs384 | Rs512 | Ps256 | Es256 | EdDsa)
            | (Material::Ed25519(_), Rs256 | Rs384 | Rs512 | Ps256 | Es256 | Es384) => false,
        };
        of_its_kind && self.only.is_none_or(|only| only == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        // Asked here as well: `verified` takes any key.
        if !self.fits(algorithm) {
            return false;
        }
        let verified =
            match &self.material {
                Material::Rsa { n, e } => {
                    let Some(parameters) = rsa(algorithm) else {
                        return false;
                    };
                    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
                }
                Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature),
                Material::P384(point) => UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature),
                Material::Ed25519(point) => {
                    UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
                }
            };
        verified.is_ok()
    }
}

/// A token taken apart. Nothing in it is known to be true yet.
#[derive(Debug)]
pub struct RawToken<'a> {
    /// How it says it is signed.
    pub algorithm: Algorithm,
    /// The name of its key (`kid`).
    pub key_name: Option<String>,
    /// Whether it calls itself an access token.
    pub is_access_token: bool,
    message: &'a [u8],
    signature: Vec<u8>,
    raw_claims: &'a str,
}

impl<'a> RawToken<'a> {
    /// Takes a token apart. Nothing for anything that is not three parts with a
    /// header we understand.
    #[must_use]
    pub fn read(text: &'a str) -> Option<RawToken<'a>> {
        if text.len() > limit::TOKEN_BYTES_MAX {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (raw_header, raw_claims) = message.split_once('.')?;
        if raw_claims.contains('.') {
            return None;
        }
        let header = object(raw_header)?;
        // RFC 7515: a token with critical headers that we do not know must be refused,
        // and we know none.
        if header.contains_key("crit") {
            return None;
        }
        let kind = match header.get("typ") {
            None => None,
            Some(kind) => Some(kind.as_str()?.to_ascii_lowercase()),
        };
        let is_access_token = match kind.as_deref() {
            None | Some("jwt") => false,
            Some("at+jwt" | "application/at+jwt") => true,
            Some(_) => return None,
        };
        let key_name = match header.get("kid") {
            None => None,
            Some(Value::String(name)) if is_name(name) => Some(name.clone()),
            Some(_) => return None,
        };
        Some(RawToken {
            algorithm: Algorithm::from_word(header.get("alg")?.as_str()?)?,
            key_name,
            is_access_token,
            message: message.as_bytes(),
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            raw_claims,
        })
    }

    /// The claims of the token, if this key signed it.
    #[must_use]
    pub fn verified(&self, key: &PublicKey) -> Option<Map<String, Value>> {
        if !key.verifies(self.algorithm, self.message, &self.signature) {
            return None;
        }
        // Only now: claims without a signature are not even parsed.
        object(self.raw_claims)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= limit::KEY_NAME_BYTES_MAX
}

fn object(raw: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(raw).ok()?;
    match serde_json::from_slice(&bytes).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Some issuers write a zero before the number; the checks want none.
fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// Keys under 2048 bits are refused by each of these.
fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => None,
    }
}
