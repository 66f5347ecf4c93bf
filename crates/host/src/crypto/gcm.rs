//! AES-GCM for initialisation vectors of any length, which WebCrypto allows and
//! the `aes-gcm` crate, whose lengths are types, cannot offer. Twelve bytes, the
//! usual length, stay with the crate; `crypto` tests compare the two.
//!
//! After NIST SP 800-38D: the first counter block is GHASH over the vector, the
//! text is encrypted with a 32-bit counter from there, the tag covers both.

use aes_gcm::aead::KeyInit;
use aes_gcm::aes::cipher::consts::U16;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, BlockSizeUser};
use ghash::GHash;
use ghash::universal_hash::UniversalHash as _;

const BLOCK_BYTES: usize = 16;

type Block = [u8; BLOCK_BYTES];

/// One key and one vector, ready to seal or open one text.
pub(super) struct Gcm<C> {
    cipher: C,
    hash: GHash,
    /// The counter block of the tag; the text starts at the next.
    first: Block,
}

impl<C> Gcm<C>
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    /// Nothing if the key does not fit the cipher, or the vector is empty.
    pub(super) fn new(key: &[u8], iv: &[u8]) -> Option<Gcm<C>> {
        if iv.is_empty() {
            return None;
        }
        let cipher = C::new_from_slice(key).ok()?;
        let hash = GHash::new(&encrypted(&cipher, [0; BLOCK_BYTES]).into());
        let mut of_iv = hash.clone();
        of_iv.update_padded(iv);
        of_iv.update(&[lengths(0, iv.len())?.into()]);
        let first = of_iv.finalize().into();
        Some(Gcm {
            cipher,
            hash,
            first,
        })
    }

    /// The encrypted text and behind it the tag.
    pub(super) fn seal(&self, text: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = text.to_vec();
        self.apply(&mut sealed);
        let tag = self.tag(&sealed, aad)?;
        sealed.extend_from_slice(&tag);
        Some(sealed)
    }

    /// The text, if the tag is right.
    pub(super) fn open(&self, sealed: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        let (text, tag) = sealed.split_last_chunk::<BLOCK_BYTES>()?;
        // Before anything is decrypted: text that was changed is never given out.
        let expected = self.tag(text, aad)?;
        // Every byte is looked at, so that the time tells nothing.
        let wrong = expected
            .iter()
            .zip(tag)
            .fold(0, |wrong, (one, other)| wrong | (one ^ other));
        if wrong != 0 {
            return None;
        }
        let mut text = text.to_vec();
        self.apply(&mut text);
        Some(text)
    }

    fn apply(&self, text: &mut [u8]) {
        let mut counter = u128::from_be_bytes(self.first);
        for chunk in text.chunks_mut(BLOCK_BYTES) {
            counter = next(counter);
            let stream = encrypted(&self.cipher, counter.to_be_bytes());
            for (byte, mask) in chunk.iter_mut().zip(stream) {
                *byte ^= mask;
            }
        }
    }

    fn tag(&self, sealed: &[u8], aad: &[u8]) -> Option<Block> {
        let mut hash = self.hash.clone();
        hash.update_padded(aad);
        hash.update_padded(sealed);
        hash.update(&[lengths(aad.len(), sealed.len())?.into()]);
        let hashed: Block = hash.finalize().into();
        let mask = encrypted(&self.cipher, self.first);
        let tag = u128::from_be_bytes(hashed) ^ u128::from_be_bytes(mask);
        Some(tag.to_be_bytes())
    }
}

fn encrypted<C>(cipher: &C, block: Block) -> Block
where
    C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>,
{
    let mut block = block.into();
    cipher.encrypt_block(&mut block);
    block.into()
}

/// Only the last four bytes count, and they wrap.
fn next(counter: u128) -> u128 {
    const LOW: u128 = 0xffff_ffff;
    (counter & !LOW) | (counter.wrapping_add(1) & LOW)
}

/// Two lengths, in bits, as one block.
fn lengths(one: usize, other: usize) -> Option<Block> {
    let bits = |count: usize| u64::try_from(count).ok()?.checked_mul(8);
    let both = (u128::from(bits(one)?) << 64) | u128::from(bits(other)?);
    Some(both.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use aes_gcm::aead::Aead as _;
    use aes_gcm::aead::Payload;
    use aes_gcm::aes::{Aes128, Aes256};
    use aes_gcm::{AesGcm, Nonce};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sixteen bytes are a length both ways can do.
        #[test]
        fn agrees_with_the_crate(
            key in prop::array::uniform32(any::<u8>()),
            iv in prop::array::uniform16(any::<u8>()),
            aad in prop::collection::vec(any::<u8>(), 0..40),
            text in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let theirs = AesGcm::<Aes256, U16>::new_from_slice(&key).unwrap();
            let payload = Payload { msg: &text, aad: &aad };
            let expected = theirs.encrypt(&Nonce::<U16>::from(iv), payload).unwrap();
            let ours = Gcm::<Aes256>::new(&key, &iv).unwrap();
            prop_assert_eq!(ours.seal(&text, &aad).unwrap(), expected.clone());
            prop_assert_eq!(ours.open(&expected, &aad), Some(text));
        }
    }

    #[test]
    fn the_counter_wraps_in_its_last_four_bytes() {
        assert_eq!(next(0x1_ffff_ffff), 0x1_0000_0000);
        assert_eq!(next(0x1_0000_0000), 0x1_0000_0001);
    }

    #[test]
    fn an_empty_vector_is_none() {
        assert!(Gcm::<Aes128>::new(&[0; 16], b"").is_none());
        assert!(Gcm::<Aes128>::new(&[0; 15], b"iv").is_none());
    }
}
