//! The vectors are those of the reference implementation of RFC 6962 (certificate
//! transparency): eight leaves with known roots and proofs. A second, naive way to
//! compute every hash is the oracle for all other sizes.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

/// Leaves of the reference vectors.
const LEAVES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];

/// Their roots, for sizes 1 to 8.
const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex
        .chars()
        .map(|digit| digit.to_digit(16).expect("a digit"))
        .collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte");
    digits.chunks(2).map(byte).collect()
}

fn hash(hex: &str) -> TreeHash {
    TreeHash::from_bytes(bytes(hex).try_into().expect("32 bytes"))
}

/// All leaves, and the definition of RFC 6962 2.1 over them, word for word.
struct Naive(Vec<TreeHash>);

impl Naive {
    fn of(leaves: &[Vec<u8>]) -> Naive {
        Naive(leaves.iter().map(|leaf| TreeHash::leaf(leaf)).collect())
    }

    fn root(&self, size: u64) -> TreeHash {
        let size = usize::try_from(size).expect("small");
        defined(&self.0[..size])
    }
}

fn defined(leaves: &[TreeHash]) -> TreeHash {
    match leaves {
        [] => TreeHash::empty(),
        [one] => *one,
        many => {
            let mut split = 1;
            while split * 2 < many.len() {
                split *= 2;
            }
            let (left, right) = many.split_at(split);
            TreeHash::node(&defined(left), &defined(right))
        }
    }
}

impl Subtrees for Naive {
    type Fault = Infallible;

    fn subtree(&self, level: u32, index: u64) -> Result<TreeHash, Infallible> {
        let begin = usize::try_from(index << level).expect("small");
        let end = begin + (1_usize << level);
        Ok(defined(&self.0[begin..end]))
    }
}

fn reference() -> Naive {
    Naive::of(&LEAVES.map(bytes))
}

fn numbered(count: u64) -> Naive {
    let leaves: Vec<Vec<u8>> = (0..count)
        .map(|number| number.to_be_bytes().to_vec())
        .collect();
    Naive::of(&leaves)
}

#[test]
fn roots_are_those_of_the_reference() {
    let trees = reference();
    let mut growing = Frontier::default();
    assert_eq!(
        growing.root(),
        hash("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    );
    for (size, expected) in (1..).zip(ROOTS) {
        let index = usize::try_from(size - 1).expect("small");
        growing.push(trees.0[index]);
        assert_eq!(growing.root(), hash(expected), "{size}");
        assert_eq!(root(&trees, size), Ok(hash(expected)), "{size}");
        assert_eq!(frontier(&trees, size), Ok(growing.clone()));
    }
}

#[test]
fn proofs_are_those_of_the_reference() {
    let trees = reference();
    let inclusion: [(u64, u64, &[&str]); 4] = [
        (0, 1, &[]),
        (
            0,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            3,
            &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
        ),
    ];
    for (index, size, expected) in inclusion {
        let expected: Vec<TreeHash> = expected.iter().map(|it| hash(it)).collect();
        assert_eq!(prove_inclusion(&trees, index, size), Ok(Some(expected)));
    }
    let consistency: [(u64, u64, &[&str]); 3] = [
        (1, 1, &[]),
        (
            1,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
    ];
    for (old, size, expected) in consistency {
        let expected: Vec<TreeHash> = expected.iter().map(|it| hash(it)).collect();
        assert_eq!(prove_consistency(&trees, old, size), Ok(Some(expected)));
    }
}

#[test]
fn each_leaf_of_each_size_is_proved_and_no_other() {
    let trees = numbered(70);
    for size in 1..=70 {
        let root = trees.root(size);
        for index in 0..size {
            let leaf = trees.0[usize::try_from(index).expect("small")];
            let proof = prove_inclusion(&trees, index, size).expect("kept");
            let proof = proof.expect("a leaf of the tree");
            assert!(shows_inclusion(&leaf, index, size, &proof, &root));
            // Attack: the same proof for another leaf, place, size or root.
            let other = TreeHash::leaf(b"another");
            assert!(!shows_inclusion(&other, index, size, &proof, &root));
            assert!(!shows_inclusion(&leaf, index, size, &proof, &other));
            assert!(!shows_inclusion(&leaf, size, size, &proof, &root));
            if size > 1 {
                let elsewhere = (index + 1) % size;
                assert!(!shows_inclusion(&leaf, elsewhere, size, &proof, &root));
                let short = proof.split_last().expect("not empty").1;
                assert!(!shows_inclusion(&leaf, index, size, short, &root));
            }
            let long = [proof.as_slice(), &[other]].concat();
            assert!(!shows_inclusion(&leaf, index, size, &long, &root));
        }
        assert_eq!(prove_inclusion(&trees, size, size), Ok(None));
    }
}

#[test]
fn each_size_begins_with_each_smaller_one() {
    let trees = numbered(70);
    for size in 1..=70 {
        let root = trees.root(size);
        for old in 0..=size {
            let old_root = trees.root(old);
            let proof = prove_consistency(&trees, old, size).expect("kept");
            let proof = proof.expect("no larger");
            assert!(shows_consistency(old, &old_root, size, &root, &proof));
            let other = TreeHash::leaf(b"another");
            assert!(!shows_consistency(old, &other, size, &root, &proof));
            // A tree that grew from nothing is shown by the empty old tree alone.
            assert_eq!(
                shows_consistency(old, &old_root, size, &other, &proof),
                old == 0
            );
            if let Some((_, short)) = proof.split_last() {
                assert!(!shows_consistency(old, &old_root, size, &root, short));
            }
            let long = [proof.as_slice(), &[other]].concat();
            assert!(!shows_consistency(old, &old_root, size, &root, &long));
        }
        assert_eq!(prove_consistency(&trees, size + 1, size), Ok(None));
    }
}

#[test]
fn a_frontier_of_another_size_is_none() {
    let leaf = TreeHash::leaf(b"");
    assert!(Frontier::new(3, vec![leaf, leaf]).is_some());
    for (size, count) in [(0, 1), (3, 1), (3, 3), (4, 2)] {
        assert_eq!(Frontier::new(size, vec![leaf; count]), None);
    }
}

#[test]
fn texts_that_are_no_hash_are_refused() {
    let sound = TreeHash::empty().to_string();
    assert_eq!(sound.parse(), Ok(TreeHash::empty()));
    for text in [
        "",
        "AA==",
        "é",
        sound.trim_start_matches('4'),
        &format!("{sound}="),
    ] {
        assert_eq!(text.parse::<TreeHash>(), Err(NotATreeHash), "{text}");
    }
}

proptest! {
    /// A proof for one tree shows nothing about a tree that differs in one leaf.
    #[test]
    fn a_changed_leaf_is_never_shown(
        size in 2_u64..200,
        changed in any::<prop::sample::Index>(),
        old in any::<prop::sample::Index>(),
    ) {
        let count = usize::try_from(size).expect("small");
        let (changed, old) = (changed.index(count), old.index(count) + 1);
        let trees = numbered(size);
        let mut forked = numbered(size);
        forked.0[changed] = TreeHash::leaf(b"forked");
        let old_size = u64::try_from(old).expect("small");
        let index = u64::try_from(changed).expect("small");
        let proof = prove_inclusion(&forked, index, size).expect("kept").expect("a leaf");
        prop_assert!(shows_inclusion(
            &forked.0[changed], index, size, &proof, &forked.root(size)
        ));
        prop_assert!(!shows_inclusion(
            &forked.0[changed], index, size, &proof, &trees.root(size)
        ));
        let proof = prove_consistency(&forked, old_size, size).expect("kept").expect("older");
        let fits = shows_consistency(
            old_size, &trees.root(old_size), size, &forked.root(size), &proof
        );
        // The fork is consistent with what was signed only if it begins later.
        prop_assert_eq!(fits, changed >= old);
    }
}
