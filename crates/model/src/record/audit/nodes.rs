//! Holding the logs of several nodes against each other. Each log was walked alone
//! before; here the heads that stand as anchors in one are compared with the records of
//! the log they name.
//!
//! To rewrite one log unseen takes the keys and the logs of all nodes that saw it.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::note::TreeHead;
use crate::record::tree::TreeHash;
use crate::text::{elided, one_line};

/// A head of another log, and the record it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchoredHead {
    /// The record of the anchor.
    pub record: u64,
    /// The head. Its signature was checked, if its key is known.
    pub head: TreeHead,
}

/// What is known of one node after its log was walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLog {
    /// The name of the log.
    pub name: String,
    /// The last record; nothing if the walk broke off before.
    pub end: Option<u64>,
    /// The last record that was removed by a checkpoint.
    pub removed: u64,
    /// The hash over so many records, for every size that matters.
    pub roots: BTreeMap<u64, TreeHash>,
    /// The heads this node signed and kept beside its log.
    pub heads: Vec<TreeHead>,
    /// The heads of others in this log, in order.
    pub anchors: Vec<AnchoredHead>,
}

/// One contradiction between the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFault {
    /// The node whose log is contradicted.
    pub node: String,
    /// The first record of it that may be wrong.
    pub sequence: u64,
    /// What is wrong.
    pub what: String,
}

/// How far one node vouches for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// Whose log has the anchors.
    pub by: String,
    /// The log they name.
    pub node: String,
    /// The records that the newest of them covers.
    pub size: u64,
}

/// What holding the logs against each other found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesFound {
    /// Contradictions.
    pub faults: Vec<NodeFault>,
    /// Who vouches for whom, as far as it was checked.
    pub vouched: Vec<Vouched>,
    /// Logs that are anchored but were not given, by name.
    pub unchecked: BTreeSet<String>,
}

/// The sizes at which the hashes of logs are needed: those of every head there is.
#[must_use]
pub fn sizes_that_matter(nodes: &[NodeLog]) -> BTreeSet<u64> {
    let heads = nodes.iter().flat_map(|node| {
        let anchored = node.anchors.iter().map(|anchored| &anchored.head);
        node.heads.iter().chain(anchored)
    });
    heads.map(|head| head.size).collect()
}

/// Compares every anchor with the log it names.
#[must_use]
pub fn compare(nodes: &[NodeLog]) -> NodesFound {
    let mut found = NodesFound::default();
    for node in nodes {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for anchored in &node.anchors {
            let head = &anchored.head;
            let before = newest.entry(&head.origin).or_default();
            if head.size < *before {
                found.faults.push(NodeFault {
                    node: head.origin.clone(),
                    sequence: head.size.saturating_add(1),
                    what: format!(
                        "{} anchors a head over {} records after one over {before}: an old head \
                         was replayed, or the log was rolled back",
                        place(node, anchored),
                        head.size
                    ),
                });
            }
            *before = (*before).max(head.size);
        }
        for (name, size) in newest {
            match nodes.iter().find(|known| known.name == name) {
                Some(known) => found.vouched.push(Vouched {
                    by: node.name.clone(),
                    node: known.name.clone(),
                    size,
                }),
                None => {
                    found.unchecked.insert(name.to_owned());
                }
            }
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        let later = nodes.iter().skip(index + 1);
        let copies = later.filter(|other| other.name == node.name);
        found
            .faults
            .extend(copies.filter_map(|copy| difference(node, copy)));
        found.faults.extend(fork(node, nodes));
        found.faults.extend(swap(node, nodes));
        found.faults.extend(contradiction(node, nodes));
    }
    found
}

/// The anchors of others that name a log, the smallest head first.
fn anchors_of<'a>(node: &'a NodeLog, nodes: &'a [NodeLog]) -> Vec<(&'a NodeLog, &'a AnchoredHead)> {
    let anchors = nodes.iter().flat_map(|by| {
        let anchors = by.anchors.iter();
        let about = anchors.filter(|anchored| anchored.head.origin == node.name);
        about.map(move |anchored| (by, anchored))
    });
    let mut anchors: Vec<_> = anchors.collect();
    anchors.sort_by_key(|(_, anchored)| anchored.head.size);
    anchors
}

/// Two heads over the same number of records that differ, both signed.
fn fork(node: &NodeLog, nodes: &[NodeLog]) -> Option<NodeFault> {
    // Of its own heads over one size the newest counts: after an acknowledged cut there are
    // two, and what the log says about itself is checked with the log.
    let own = node.heads.iter().map(|head| {
        let place = "the one that is kept beside the log".to_owned();
        (head.size, (head.root, place))
    });
    let mut seen: BTreeMap<u64, (TreeHash, String)> = own.collect();
    let anchors = anchors_of(node, nodes).into_iter();
    let anchors = anchors.map(|(by, anchored)| {
        let place = format!("the one that {} anchors", place(by, anchored));
        (&anchored.head, place)
    });
    for (head, place) in anchors {
        match seen.get(&head.size) {
            Some((root, other)) if *root != head.root => {
                return Some(NodeFault {
                    node: node.name.clone(),
                    sequence: 1,
                    what: format!(
                        "two different heads over {} records were signed, {other} and {place}: \
                         the log was forked",
                        head.size
                    ),
                });
            }
            Some(_) => {}
            None => {
                seen.insert(head.size, (head.root, place));
            }
        }
    }
    None
}

/// Attack: a log that was forked is given with what it was before. Each copy is whole in itself.
fn difference(node: &NodeLog, copy: &NodeLog) -> Option<NodeFault> {
    let mut same = 0;
    for (size, root) in &node.roots {
        match copy.roots.get(size) {
            Some(other) if other == root => same = *size,
            Some(_) => {
                return Some(NodeFault {
                    node: node.name.clone(),
                    sequence: same.saturating_add(1),
                    what: format!(
                        "two copies of it differ in records {} to {size}: the log was forked",
                        same.saturating_add(1)
                    ),
                });
            }
            None => {}
        }
    }
    None
}

/// A log whose records are those that another node signed.
fn swap(node: &NodeLog, nodes: &[NodeLog]) -> Option<NodeFault> {
    let fits = |heads: &[TreeHead]| {
        let known = heads.iter().filter_map(|head| {
            let root = node.roots.get(&head.size)?;
            // A head over nothing fits every log.
            (head.size > 0).then_some(*root == head.root)
        });
        let known: Vec<bool> = known.collect();
        !known.is_empty() && known.iter().all(|fits| *fits)
    };
    let mut others = nodes.iter().filter(|other| other.name != node.name);
    let other = others.find(|other| fits(&other.heads))?;
    Some(NodeFault {
        node: node.name.clone(),
        sequence: 1,
        what: format!(
            "its records are those of `{}`: the files were swapped",
            shown(&other.name)
        ),
    })
}

/// The first anchor of another node that the log does not fit.
fn contradiction(node: &NodeLog, nodes: &[NodeLog]) -> Option<NodeFault> {
    let mut sound = node.removed;
    for (by, anchored) in anchors_of(node, nodes) {
        let head = &anchored.head;
        let place = place(by, anchored);
        let fault = |sequence: u64, what: String| {
            Some(NodeFault {
                node: node.name.clone(),
                sequence,
                what,
            })
        };
        match (node.roots.get(&head.size), node.end) {
            (Some(root), _) if *root == head.root => sound = sound.max(head.size),
            (Some(_), _) => {
                let begin = sound.min(head.size.saturating_sub(1)).saturating_add(1);
                let what = format!(
                    "records {begin} to {} are not those that {place} anchors",
                    head.size
                );
                return fault(begin, what);
            }
            (None, Some(end)) if head.size > end => {
                let what = format!(
                    "the log ends with record {end}, but {place} anchors its head over {} \
                     records: its end was cut off, or it was exported before the other",
                    head.size
                );
                return fault(end.saturating_add(1), what);
            }
            // Within a sealed gap, or behind a record that is broken already.
            (None, _) => {}
        }
    }
    None
}

fn place(by: &NodeLog, anchored: &AnchoredHead) -> String {
    format!("record {} of `{}`", anchored.record, shown(&by.name))
}

fn shown(name: &str) -> String {
    elided(&one_line(name), 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tree::Frontier;

    /// A log of records that begin with a letter, and heads at some sizes.
    fn node(name: &str, letter: char, end: u64, sizes: &[u64]) -> NodeLog {
        let mut tree = Frontier::default();
        let mut roots = BTreeMap::from([(0, tree.root())]);
        for number in 1..=end {
            tree.push(TreeHash::leaf(format!("{letter}{number}").as_bytes()));
            roots.insert(number, tree.root());
        }
        let heads = sizes.iter().map(|size| head(name, *size, &roots)).collect();
        NodeLog {
            name: name.to_owned(),
            end: Some(end),
            removed: 0,
            roots,
            heads,
            anchors: Vec::new(),
        }
    }

    fn head(name: &str, size: u64, roots: &BTreeMap<u64, TreeHash>) -> TreeHead {
        TreeHead {
            origin: name.to_owned(),
            size,
            root: roots[&size],
            fork: None,
        }
    }

    /// Two nodes: `b` anchors the heads of `a` over 4 and 8 records.
    fn cluster() -> [NodeLog; 2] {
        let a = node("a", 'a', 9, &[4, 8]);
        let mut b = node("b", 'b', 7, &[6]);
        let records = [3, 5].into_iter();
        let anchors = records.zip(a.heads.iter().cloned());
        b.anchors = anchors
            .map(|(record, head)| AnchoredHead { record, head })
            .collect();
        [a, b]
    }

    fn faults(nodes: &[NodeLog]) -> Vec<String> {
        let faults = compare(nodes).faults.into_iter();
        faults
            .map(|it| format!("{} {}: {}", it.node, it.sequence, it.what))
            .collect()
    }

    #[test]
    fn logs_that_agree_vouch_for_each_other() {
        let found = compare(&cluster());
        assert_eq!(found.faults, Vec::new());
        let vouched = Vouched {
            by: "b".to_owned(),
            node: "a".to_owned(),
            size: 8,
        };
        assert_eq!(found.vouched, [vouched]);
        assert_eq!(sizes_that_matter(&cluster()), [4, 6, 8].into());
    }

    #[test]
    fn each_contradiction_is_named() {
        let [a, b] = cluster();
        // The past rewritten, with heads signed again.
        let rewritten = node("a", 'x', 9, &[5, 9]);
        assert_eq!(
            faults(&[rewritten, b.clone()]),
            ["a 1: records 1 to 4 are not those that record 3 of `b` anchors"]
        );
        // The end cut off, with its heads.
        let short = node("a", 'a', 6, &[4]);
        assert_eq!(
            faults(&[short, b.clone()]),
            [
                "a 7: the log ends with record 6, but record 5 of `b` anchors its head over 8 \
                 records: its end was cut off, or it was exported before the other"
            ]
        );
        // An old head replayed.
        let mut replayed = b.clone();
        let mut old = replayed.anchors[0].clone();
        old.record = 6;
        replayed.anchors.push(old);
        assert_eq!(
            faults(&[a.clone(), replayed]),
            [
                "a 5: record 6 of `b` anchors a head over 4 records after one over 8: an old head \
                 was replayed, or the log was rolled back"
            ]
        );
        // One log in the place of the other.
        let mut swapped = node("a", 'b', 7, &[]);
        swapped.heads.clone_from(&a.heads);
        let found = faults(&[swapped, b.clone()]);
        assert_eq!(
            found[0],
            "a 1: its records are those of `b`: the files were swapped"
        );
        // Two heads of one size.
        let mut forked = a;
        forked.heads[1].root = TreeHash::empty();
        let found = faults(&[forked, b.clone()]);
        assert!(found[0].contains("the log was forked"), "{found:?}");
        // A log that is not there.
        let found = compare(&[b]);
        assert_eq!(found.unchecked, ["a".to_owned()].into());
    }

    #[test]
    fn two_copies_of_a_log_are_held_against_each_other() {
        let (longer, shorter) = (node("a", 'a', 9, &[4, 8]), node("a", 'a', 6, &[4, 6]));
        assert_eq!(faults(&[longer.clone(), shorter]), Vec::<String>::new());
        let mut forked = longer.clone();
        for size in 7..=9 {
            forked.roots.insert(size, TreeHash::leaf(b"other"));
        }
        assert_eq!(
            faults(&[longer, forked]),
            ["a 7: two copies of it differ in records 7 to 7: the log was forked"]
        );
    }

    #[test]
    fn what_lies_in_a_sealed_gap_is_not_compared() {
        let [mut a, b] = cluster();
        a.removed = 6;
        a.roots.retain(|size, _| *size >= 6);
        assert_eq!(faults(&[a.clone(), b.clone()]), Vec::<String>::new());
        a.roots.insert(8, TreeHash::empty());
        assert_eq!(
            faults(&[a, b]),
            ["a 7: records 7 to 8 are not those that record 5 of `b` anchors"]
        );
    }
}
