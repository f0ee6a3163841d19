//! A lock-free hash table from the keys of an event to the row of its counters.
//!
//! ```text
//!   EMPTY ──compare-and-swap: the identity──▶ CLAIMED ──store the keys──▶ NAMED
//! ```
//!
//! A group is claimed by one compare-and-swap. A thread that finds its identity in a group counts immediately, even if the keys are not stored yet.
//! No thread waits for another, so a signal handler may interrupt it anywhere. Groups are never freed.

use crate::key::{GroupKey, KEY_WORDS, Key, combine};
use crate::layout::Layout;
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity in a free group.
const EMPTY: u64 = 0;
/// The identity of zero, in place of [`EMPTY`]. One other number among the 2^64 has this identity as well, and shares zero's group.
const ZERO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The identity of the keys of an event.
#[inline]
pub(crate) fn identity(keys: &[Key<'_>], hasher: &RandomState) -> u64 {
    let identity = match keys {
        [one] => one.identity(hasher),
        [first, second] => combine(first.identity(hasher), second.identity(hasher)),
        _ => 0,
    };
    if identity == EMPTY { ZERO } else { identity }
}

/// Finds the group of the keys, and claims a group if they are new; `None` if the table is full.
#[inline]
pub(crate) fn find(words: &[AtomicU64], layout: &Layout, keys: &[Key<'_>], hasher: &RandomState) -> Option<usize> {
    let identity = identity(keys, hasher);
    let groups = layout.groups;
    let start = ((u128::from(identity) * groups as u128) >> 64) as usize;
    (start..groups).chain(0..start).find(|&group| {
        let at = layout.group_at(group);
        match words[at].load(Ordering::Relaxed) {
            EMPTY => {}
            owner => return owner == identity,
        }
        // Relaxed: the keys are published by K1, not by the identity.
        match words[at].compare_exchange(EMPTY, identity, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                for (index, key) in keys.iter().enumerate() {
                    let key_at = at + 1 + index * KEY_WORDS;
                    key.store(&words[key_at..key_at + KEY_WORDS]);
                }
                true
            }
            Err(owner) => owner == identity,
        }
    })
}

/// The keys of a group; `None` if the group is free, or its keys are not stored (yet).
pub(crate) fn keys(words: &[AtomicU64], layout: &Layout, group: usize) -> Option<Vec<GroupKey>> {
    let at = layout.group_at(group);
    let keys = words[at + 1..at + layout.group_words()].chunks_exact(KEY_WORDS);
    keys.map(GroupKey::load).collect()
}
