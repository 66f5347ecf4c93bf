//! The hashes of the tree, on the disk. `tree.0` has the leaves, 32 bytes each;
//! `tree.1` the hashes of 256 of them, `tree.2` of 65536, and so on. Any subtree is
//! computed from at most 128 hashes that stand beside each other.
//!
//! The files are made from the log and can be made again as far as the log reaches
//! back. They stay when old records are removed: what was signed over those records
//! can still be checked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::record::tree::{Frontier, Subtrees, TreeHash, frontier};

use crate::audit::log::disk;
use crate::error::StoreError;
use crate::home::files::sync_folder;

/// Levels of the tree from one file to the next.
const STEP: u32 = 8;
/// Hashes of one file that make one of the next.
const WIDTH: u64 = 1 << STEP;
/// Files; enough for 2^64 leaves.
const FILES: u32 = 64 / STEP;
/// Bytes of a hash.
const HASH: u64 = 32;

/// The hashes of the tree.
#[derive(Debug)]
pub(crate) struct TreeHashes {
    folder: PathBuf,
    files: Vec<File>,
    size: u64,
}

impl TreeHashes {
    /// Opens the tree for writing, creating it if absent. The caller holds the lock of
    /// the heads.
    pub(crate) fn open(folder: &Path) -> Result<TreeHashes, StoreError> {
        let mut tree = TreeHashes {
            folder: folder.to_owned(),
            files: vec![open(folder, 0)?],
            size: 0,
        };
        // A torn hash at the end is not counted: the division rounds down, and the next
        // write goes over it.
        tree.size = tree.count(0)?;
        tree.complete()?;
        Ok(tree)
    }

    /// Opens the tree for reading; nothing if there is none.
    pub(crate) fn find(folder: &Path) -> Result<Option<TreeHashes>, StoreError> {
        let mut files = Vec::new();
        for number in 0..FILES {
            let path = path(folder, number);
            match File::open(&path) {
                Ok(file) => files.push(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(StoreError::file("open", path, error)),
            }
        }
        if files.is_empty() {
            return Ok(None);
        }
        let folder = folder.to_owned();
        let mut tree = TreeHashes {
            folder,
            files,
            size: 0,
        };
        tree.size = tree.count(0)?;
        Ok(Some(tree))
    }

    /// How many leaves there are.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The hash of one leaf.
    pub(crate) fn leaf(&self, index: u64) -> Result<TreeHash, StoreError> {
        self.subtree(0, index)
    }

    /// Adds leaves.
    pub(crate) fn append(&mut self, leaves: &[TreeHash]) -> Result<(), StoreError> {
        let Some(file) = self.files.first() else {
            return Err(self.missing(0));
        };
        write(&self.folder, file, self.size, leaves)?;
        self.size += count(leaves.len());
        // At once, so that a reader with a shared lock finds the upper files complete.
        self.complete()
    }

    /// Forgets all leaves from a size on.
    pub(crate) fn truncate(&mut self, size: u64) -> Result<(), StoreError> {
        for (number, file) in (0..).zip(&self.files) {
            let wanted = (size >> (STEP * number)) * HASH;
            let fail = |error| StoreError::file("cut", &self.folder, error);
            if file.metadata().map_err(fail)?.len() > wanted {
                file.set_len(wanted).map_err(fail)?;
            }
        }
        self.size = self.count(0)?;
        self.complete()
    }

    /// Gets everything onto the disk.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.files.iter().try_for_each(disk::sync)
    }

    /// Computes what the upper files lack.
    fn complete(&mut self) -> Result<(), StoreError> {
        for number in 1..FILES {
            let wanted = self.size >> (STEP * number);
            if wanted == 0 && self.files.len() <= index(number) {
                break;
            }
            if self.files.len() <= index(number) {
                self.files.push(open(&self.folder, number)?);
            }
            let there = self.count(number)?;
            let Some(file) = self.files.get(index(number)) else {
                break;
            };
            // The log was cut, or a process died between the leaves and this file.
            if there > wanted {
                let fail = |error| StoreError::file("cut", &self.folder, error);
                file.set_len(wanted * HASH).map_err(fail)?;
            }
            for place in there..wanted {
                let hash = self.fold(number - 1, place * WIDTH, WIDTH)?;
                write(&self.folder, file, place, &[hash])?;
            }
        }
        Ok(())
    }

    fn count(&self, number: u32) -> Result<u64, StoreError> {
        let file = self.files.get(index(number));
        let file = file.ok_or_else(|| self.missing(0))?;
        let about = file.metadata();
        let about = about.map_err(|error| StoreError::file("read", &self.folder, error))?;
        Ok(about.len() / HASH)
    }

    /// The hash over so many hashes of a file, a power of two of them.
    fn fold(&self, number: u32, begin: u64, count: u64) -> Result<TreeHash, StoreError> {
        let file = self.files.get(index(number));
        let file = file.ok_or_else(|| self.missing(begin))?;
        let mut bytes = vec![0; usize::try_from(count * HASH).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, begin * HASH)
            .map_err(|_| self.missing(begin << (STEP * number)))?;
        let (hashes, _) = bytes.as_chunks::<32>();
        let mut hashes: Vec<TreeHash> = hashes.iter().copied().map(TreeHash::from_bytes).collect();
        while hashes.len() > 1 {
            let pairs = hashes.as_chunks::<2>().0.iter();
            hashes = pairs
                .map(|[left, right]| TreeHash::node(left, right))
                .collect();
        }
        hashes.pop().ok_or_else(|| self.missing(begin))
    }

    fn missing(&self, index: u64) -> StoreError {
        StoreError::Unsigned {
            what: format!("the hash of record {} is missing", index.saturating_add(1)),
        }
    }
}

impl Subtrees for TreeHashes {
    type Fault = StoreError;

    fn subtree(&self, level: u32, index: u64) -> Result<TreeHash, StoreError> {
        let inner = level % STEP;
        self.fold(level / STEP, index << inner, 1 << inner)
    }
}

/// The tree over records that were removed, for a walk that begins behind them.
pub(crate) fn removed(
    tree: Option<&TreeHashes>,
    through: u64,
) -> Result<Option<Frontier>, StoreError> {
    match tree {
        _ if through == 0 => Ok(Some(Frontier::default())),
        Some(tree) if tree.size() >= through => frontier(tree, through).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("tree.{number}"))
}

fn open(folder: &Path, number: u32) -> Result<File, StoreError> {
    let path = path(folder, number);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let fail = |error| StoreError::file("open", &path, error);
    match options.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map_err(fail),
    }
    let file = options.create(true).truncate(false).open(&path);
    let file = file.map_err(fail)?;
    // The name too: a head that is signed over leaves must not outlive their file.
    sync_folder(folder)?;
    Ok(file)
}

fn write(folder: &Path, file: &File, place: u64, hashes: &[TreeHash]) -> Result<(), StoreError> {
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| *hash.bytes()).collect();
    file.write_all_at(&bytes, place * HASH)
        .map_err(|error| crate::audit::log::segment::failed("write", folder, error))
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use model::record::tree::{prove_inclusion, root, shows_inclusion};

    use super::*;

    fn leaf(number: u64) -> TreeHash {
        TreeHash::leaf(&number.to_be_bytes())
    }

    #[test]
    fn the_files_have_the_hashes_of_the_tree_at_every_size() {
        let folder = std::env::temp_dir().join(format!("tree-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).expect("a folder");
        let mut tree = TreeHashes::open(&folder).expect("a tree");
        let mut oracle = Frontier::default();
        let mut roots = vec![oracle.root()];
        let mut number = 0;
        for piece in [1, 2, 253, 255, 1, 600, 66_000] {
            let leaves: Vec<TreeHash> = (number..number + piece).map(leaf).collect();
            number += piece;
            for leaf in &leaves {
                oracle.push(*leaf);
                roots.push(oracle.root());
            }
            tree.append(&leaves).expect("written");
            assert_eq!(root(&tree, number).expect("read"), oracle.root());
        }
        for size in [1, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, number] {
            let expected = roots[usize::try_from(size).expect("small")];
            assert_eq!(root(&tree, size).expect("read"), expected, "{size}");
            let proof = prove_inclusion(&tree, size / 2, size).expect("read");
            let proof = proof.expect("a leaf");
            assert!(shows_inclusion(
                &leaf(size / 2),
                size / 2,
                size,
                &proof,
                &expected
            ));
        }
        // Shorter again, as after a cut, and opened by the next process.
        tree.truncate(65_700).expect("cut");
        drop(tree);
        let mut tree = TreeHashes::open(&folder).expect("a tree");
        assert_eq!(tree.size(), 65_700);
        assert_eq!(root(&tree, 65_700).expect("read"), roots[65_700]);
        // A file above the leaves is lost.
        std::fs::remove_file(path(&folder, 1)).expect("there");
        drop(tree);
        tree = TreeHashes::open(&folder).expect("a tree");
        assert_eq!(root(&tree, 65_700).expect("read"), roots[65_700]);
        assert!(root(&tree, 65_701).is_err());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
