//! `crypto`: random bytes, digests, HMAC, AES-GCM, and keys made from secrets.
//!
//! Several buffers travel as one: `bytes` is their concatenation, and
//! `arguments.parts` their lengths. Keys are bytes the script already had, so
//! nothing here keeps any.

mod gcm;

use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::cipher::{BlockCipherEncrypt, BlockSizeUser};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{AesGcm, Nonce};
use hmac::digest::block_api::EagerHash;
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::compute::{Stopped, Turn};
use crate::crypto::gcm::Gcm;
use crate::message::{FaultKind, PowerFault, PowerReply, PowerRequest};

/// Bytes of randomness in one call, as browsers have it.
pub const RANDOM_BYTES_MAX: usize = 65_536;
/// Rounds of PBKDF2 in one call, over all blocks of its output.
pub const ROUNDS_MAX: u64 = 2_000_000;
/// Bytes of key that one call derives.
pub const DERIVED_BYTES_MAX: usize = 4_096;

/// Rounds of PBKDF2 between two questions whether to go on: well below a millisecond.
const ROUNDS_AT_ONCE: u32 = 512;
/// Bytes of a digest between two such questions.
const DIGEST_BYTES_AT_ONCE: usize = 256 << 10;

const DIGEST: &str = "crypto.subtle.digest";
const SIGN: &str = "crypto.subtle.sign";
const VERIFY: &str = "crypto.subtle.verify";
const ENCRYPT: &str = "crypto.subtle.encrypt";
const DECRYPT: &str = "crypto.subtle.decrypt";
const DERIVE: &str = "crypto.subtle.deriveBits";

/// A version 4 UUID.
///
/// # Errors
/// Never.
pub fn random_uuid(random: &mut dyn FnMut(&mut [u8])) -> Result<PowerReply, PowerFault> {
    let mut bytes = [0; 16];
    random(&mut bytes);
    let number = u128::from_be_bytes(bytes);
    // Version 4 in the seventh byte, the variant of RFC 9562 in the ninth.
    let number = number & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{number:032x}");
    let mut text = String::with_capacity(36);
    for (index, digit) in hex.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    Ok(PowerReply {
        value: Value::from(text),
        bytes: Vec::new(),
    })
}

/// `arguments.count` random bytes.
///
/// # Errors
/// `array-too-large` above [`RANDOM_BYTES_MAX`].
pub fn random_bytes(
    ask: &PowerRequest,
    random: &mut dyn FnMut(&mut [u8]),
) -> Result<PowerReply, PowerFault> {
    let helper = "crypto.getRandomValues";
    let count = ask.arguments.get("count").and_then(Value::as_u64);
    let Some(count) = count.and_then(|count| usize::try_from(count).ok()) else {
        return Err(invalid(
            "missing-args",
            helper,
            "an array to fill is missing",
        ));
    };
    if count > RANDOM_BYTES_MAX {
        let message = format!("more than {RANDOM_BYTES_MAX} bytes asked for at once");
        return Err(invalid("array-too-large", helper, message));
    }
    let mut bytes = vec![0; count];
    random(&mut bytes);
    Ok(answer(bytes))
}

/// The digest of `bytes`.
///
/// # Errors
/// `unsupported-algorithm`, `invalid-algorithm`; `stopped`, `compute-budget`.
pub fn digest(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let raw = ask.arguments.get("algorithm").unwrap_or(&Value::Null);
    let hash = Hash::read(raw, "unsupported-algorithm", DIGEST)?;
    let digested = match hash {
        Hash::Sha1 => digested::<Sha1>(&ask.bytes, turn),
        Hash::Sha256 => digested::<Sha256>(&ask.bytes, turn),
        Hash::Sha384 => digested::<Sha384>(&ask.bytes, turn),
        Hash::Sha512 => digested::<Sha512>(&ask.bytes, turn),
    };
    digested
        .map(answer)
        .map_err(|stopped| stopped.into_fault(DIGEST))
}

fn digested<H: Digest>(bytes: &[u8], turn: &Turn) -> Result<Vec<u8>, Stopped> {
    let mut digest = H::new();
    for chunk in bytes.chunks(DIGEST_BYTES_AT_ONCE) {
        turn.check()?;
        digest.update(chunk);
    }
    Ok(digest.finalize().to_vec())
}

/// The HMAC over parts key, data.
///
/// # Errors
/// `unsupported-hash`, `invalid-key`, `missing-args`.
pub fn hmac(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let hash = Hash::read_argument(ask, SIGN)?;
    let [key, data] = parts(ask, SIGN)?;
    if key.is_empty() {
        return Err(invalid("invalid-key", SIGN, "the key is empty"));
    }
    let tag = match hash {
        Hash::Sha1 => mac::<Sha1>(key, data).map(|mac| mac.finalize().into_bytes().to_vec()),
        Hash::Sha256 => mac::<Sha256>(key, data).map(|mac| mac.finalize().into_bytes().to_vec()),
        Hash::Sha384 => mac::<Sha384>(key, data).map(|mac| mac.finalize().into_bytes().to_vec()),
        Hash::Sha512 => mac::<Sha512>(key, data).map(|mac| mac.finalize().into_bytes().to_vec()),
    };
    let tag = tag.ok_or_else(|| invalid("invalid-key", SIGN, "the key does not fit"))?;
    Ok(answer(tag))
}

/// Whether the HMAC over parts key, signature, data is the signature. The time
/// it takes does not depend on where they differ.
///
/// # Errors
/// `unsupported-hash`, `invalid-key`, `missing-args`.
pub fn hmac_verify(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let hash = Hash::read_argument(ask, VERIFY)?;
    let [key, signature, data] = parts(ask, VERIFY)?;
    if key.is_empty() {
        return Err(invalid("invalid-key", VERIFY, "the key is empty"));
    }
    let verified = match hash {
        Hash::Sha1 => mac::<Sha1>(key, data).map(|mac| mac.verify_slice(signature).is_ok()),
        Hash::Sha256 => mac::<Sha256>(key, data).map(|mac| mac.verify_slice(signature).is_ok()),
        Hash::Sha384 => mac::<Sha384>(key, data).map(|mac| mac.verify_slice(signature).is_ok()),
        Hash::Sha512 => mac::<Sha512>(key, data).map(|mac| mac.verify_slice(signature).is_ok()),
    };
    let verified =
        verified.ok_or_else(|| invalid("invalid-key", VERIFY, "the key does not fit"))?;
    Ok(PowerReply {
        value: Value::Bool(verified),
        bytes: Vec::new(),
    })
}

/// AES-GCM over parts key, iv, additional data, data; the tag comes last.
///
/// # Errors
/// `invalid-key`, `invalid-iv`, `missing-args`.
pub fn encrypt(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let sealed = aes(ask, Direction::Seal, ENCRYPT)?;
    sealed.map(answer).ok_or_else(|| {
        let message = "the data could not be encrypted";
        PowerFault::new(FaultKind::HelperRuntime, "encrypt-failed", ENCRYPT, message)
    })
}

/// The reverse of [`encrypt`].
///
/// # Errors
/// `decrypt-failed` if key, iv, additional data and data do not belong
/// together; `invalid-key`, `invalid-iv`, `missing-args`.
pub fn decrypt(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let opened = aes(ask, Direction::Open, DECRYPT)?;
    opened.map(answer).ok_or_else(|| {
        let message = "the data was changed, or the key or iv is another";
        PowerFault::new(FaultKind::HelperRuntime, "decrypt-failed", DECRYPT, message)
    })
}

/// A key of `arguments.length` bytes from parts password, salt, by
/// `arguments.iterations` rounds.
///
/// # Errors
/// `unsupported-hash`, `invalid-iterations`, `too-many-iterations`,
/// `invalid-length`, `missing-args`; `stopped`, `compute-budget`.
pub fn pbkdf2(ask: &PowerRequest, turn: &Turn) -> Result<PowerReply, PowerFault> {
    let hash = Hash::read_argument(ask, DERIVE)?;
    let [password, salt] = parts(ask, DERIVE)?;
    let mut key = vec![0; length(ask)?];
    let rounds = ask.arguments.get("iterations").and_then(Value::as_u64);
    let Some(rounds) = rounds.filter(|rounds| *rounds > 0) else {
        return Err(invalid(
            "invalid-iterations",
            DERIVE,
            "iterations must be one or more",
        ));
    };
    // Each block costs all rounds, so a long key is as dear as many passwords.
    let blocks = key.len().div_ceil(hash.bytes_count()).max(1);
    let rounds_all = rounds.saturating_mul(u64::try_from(blocks).unwrap_or(u64::MAX));
    let rounds = u32::try_from(rounds)
        .ok()
        .filter(|_| rounds_all <= ROUNDS_MAX);
    let Some(rounds) = rounds else {
        let message = format!("more than {ROUNDS_MAX} rounds over all blocks");
        return Err(invalid("too-many-iterations", DERIVE, message));
    };
    let stretched = match hash {
        Hash::Sha1 => stretch::<Sha1>(password, salt, rounds, &mut key, turn),
        Hash::Sha256 => stretch::<Sha256>(password, salt, rounds, &mut key, turn),
        Hash::Sha384 => stretch::<Sha384>(password, salt, rounds, &mut key, turn),
        Hash::Sha512 => stretch::<Sha512>(password, salt, rounds, &mut key, turn),
    };
    stretched.map_err(|stopped| stopped.into_fault(DERIVE))?;
    Ok(answer(key))
}

/// PBKDF2 of RFC 8018, written out so that it can stop between rounds.
fn stretch<H: EagerHash>(
    password: &[u8],
    salt: &[u8],
    rounds: u32,
    key: &mut [u8],
    turn: &Turn,
) -> Result<(), Stopped>
where
    Hmac<H>: Mac + KeyInit + Clone,
{
    // HMAC takes a key of any length.
    let Ok(keyed) = <Hmac<H> as KeyInit>::new_from_slice(password) else {
        return Ok(());
    };
    let block_bytes = <Hmac<H> as Mac>::finalize(keyed.clone()).into_bytes().len();
    for (number, block) in (1_u32..).zip(key.chunks_mut(block_bytes)) {
        let mut first = keyed.clone();
        first.update(salt);
        first.update(&number.to_be_bytes());
        let mut last = Mac::finalize(first).into_bytes();
        let mut sum = last.clone();
        for round in 1..rounds {
            if round.is_multiple_of(ROUNDS_AT_ONCE) {
                turn.check()?;
            }
            let mut next = keyed.clone();
            next.update(&last);
            last = Mac::finalize(next).into_bytes();
            for (byte, other) in sum.iter_mut().zip(&last) {
                *byte ^= other;
            }
        }
        for (byte, made) in block.iter_mut().zip(&sum) {
            *byte = *made;
        }
    }
    Ok(())
}

/// A key of `arguments.length` bytes from parts key, salt, info.
///
/// # Errors
/// `unsupported-hash`, `invalid-length`, `missing-args`.
pub fn hkdf(ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
    let hash = Hash::read_argument(ask, DERIVE)?;
    let [secret, salt, info] = parts(ask, DERIVE)?;
    let mut key = vec![0; length(ask)?];
    let salt = Some(salt);
    let expanded = match hash {
        Hash::Sha1 => hkdf::Hkdf::<Sha1>::new(salt, secret).expand(info, &mut key),
        Hash::Sha256 => hkdf::Hkdf::<Sha256>::new(salt, secret).expand(info, &mut key),
        Hash::Sha384 => hkdf::Hkdf::<Sha384>::new(salt, secret).expand(info, &mut key),
        Hash::Sha512 => hkdf::Hkdf::<Sha512>::new(salt, secret).expand(info, &mut key),
    };
    match expanded {
        Ok(()) => Ok(answer(key)),
        Err(_) => Err(invalid(
            "invalid-length",
            DERIVE,
            "the key asked for is too long for the hash",
        )),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// Reads `"SHA-256"` or `{name: "SHA-256"}`. SHA-1 is broken for most of
    /// what it is still used for, so it has to be asked for: `legacy: true`.
    fn read(raw: &Value, reason: &'static str, helper: &str) -> Result<Hash, PowerFault> {
        let name = raw
            .as_str()
            .or_else(|| raw.get("name").and_then(Value::as_str));
        let Some(name) = name else {
            return Err(invalid(
                "invalid-algorithm",
                helper,
                "the algorithm has no name",
            ));
        };
        let is_legacy = raw.get("legacy") == Some(&Value::Bool(true));
        match name.to_ascii_uppercase().as_str() {
            "SHA-256" => Ok(Hash::Sha256),
            "SHA-384" => Ok(Hash::Sha384),
            "SHA-512" => Ok(Hash::Sha512),
            "SHA-1" if is_legacy => Ok(Hash::Sha1),
            "SHA-1" => {
                let message = "SHA-1 is not safe; where an old protocol needs it, write {name: 'SHA-1', legacy: true}";
                Err(invalid(reason, helper, message))
            }
            _ => Err(invalid(
                reason,
                helper,
                format!("unsupported algorithm `{name}`"),
            )),
        }
    }

    fn read_argument(ask: &PowerRequest, helper: &str) -> Result<Hash, PowerFault> {
        match ask.arguments.get("hash") {
            None | Some(Value::Null) => Ok(Hash::Sha256),
            Some(raw) => Hash::read(raw, "unsupported-hash", helper),
        }
    }

    fn bytes_count(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Seal,
    Open,
}

fn mac<H: EagerHash>(key: &[u8], data: &[u8]) -> Option<Hmac<H>>
where
    Hmac<H>: Mac + KeyInit,
{
    let mut mac = <Hmac<H> as KeyInit>::new_from_slice(key).ok()?;
    mac.update(data);
    Some(mac)
}

fn aes(
    ask: &PowerRequest,
    direction: Direction,
    helper: &str,
) -> Result<Option<Vec<u8>>, PowerFault> {
    let [key, iv, aad, data] = parts(ask, helper)?;
    let text = Text {
        aad,
        data,
        direction,
    };
    if iv.is_empty() {
        return Err(invalid("invalid-iv", helper, "the iv is empty"));
    }
    match key.len() {
        16 => Ok(text.processed::<Aes128>(key, iv)),
        24 => Ok(text.processed::<Aes192>(key, iv)),
        32 => Ok(text.processed::<Aes256>(key, iv)),
        _ => Err(invalid(
            "invalid-key",
            helper,
            "the key must have 16, 24 or 32 bytes",
        )),
    }
}

/// What is sealed or opened, and what goes with it.
struct Text<'a> {
    aad: &'a [u8],
    data: &'a [u8],
    direction: Direction,
}

impl Text<'_> {
    /// Nothing if it cannot be opened.
    fn processed<C>(&self, key: &[u8], iv: &[u8]) -> Option<Vec<u8>>
    where
        C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
    {
        // Other lengths go to our own code, because the crate's are types.
        let Ok(nonce) = <&Nonce<U12>>::try_from(iv) else {
            let gcm = Gcm::<C>::new(key, iv)?;
            return match self.direction {
                Direction::Seal => gcm.seal(self.data, self.aad),
                Direction::Open => gcm.open(self.data, self.aad),
            };
        };
        let cipher = AesGcm::<C, U12>::new_from_slice(key).ok()?;
        let payload = Payload {
            msg: self.data,
            aad: self.aad,
        };
        match self.direction {
            Direction::Seal => cipher.encrypt(nonce, payload).ok(),
            Direction::Open => cipher.decrypt(nonce, payload).ok(),
        }
    }
}

/// The buffers of a call, by the lengths in `arguments.parts`.
fn parts<'ask, const N: usize>(
    ask: &'ask PowerRequest,
    helper: &str,
) -> Result<[&'ask [u8]; N], PowerFault> {
    let missing = || invalid("missing-args", helper, format!("{N} buffers are needed"));
    let lengths = ask
        .arguments
        .get("parts")
        .and_then(Value::as_array)
        .ok_or_else(missing)?;
    if lengths.len() != N {
        return Err(missing());
    }
    let mut rest = ask.bytes.as_slice();
    let mut parts = [rest; N];
    for (part, length) in parts.iter_mut().zip(lengths) {
        let length = length
            .as_u64()
            .and_then(|length| usize::try_from(length).ok());
        let split = length.and_then(|length| rest.split_at_checked(length));
        (*part, rest) = split.ok_or_else(missing)?;
    }
    match rest.is_empty() {
        true => Ok(parts),
        // Bytes that belong to no part are a mistake in the call, which could be a key in
        // the wrong place.
        false => Err(missing()),
    }
}

fn length(ask: &PowerRequest) -> Result<usize, PowerFault> {
    let length = ask.arguments.get("length").and_then(Value::as_u64);
    let length = length.and_then(|length| usize::try_from(length).ok());
    length
        .filter(|length| (1..=DERIVED_BYTES_MAX).contains(length))
        .ok_or_else(|| {
            let message = format!("the length must be 1 to {DERIVED_BYTES_MAX} whole bytes");
            invalid("invalid-length", DERIVE, message)
        })
}

fn answer(bytes: Vec<u8>) -> PowerReply {
    PowerReply {
        value: json!(null),
        bytes,
    }
}

fn invalid(reason: &'static str, helper: &str, message: impl Into<String>) -> PowerFault {
    PowerFault::new(FaultKind::InvalidInput, reason, helper, message)
}
