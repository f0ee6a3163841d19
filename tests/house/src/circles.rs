//! Cycles in a graph: its strongly connected components with more than one node.

use std::collections::{BTreeMap, BTreeSet};

/// The cycles, each sorted.
pub fn circles<N: Clone + Ord>(edges: &BTreeMap<N, BTreeSet<N>>) -> Vec<BTreeSet<N>> {
    let reached: BTreeMap<&N, BTreeSet<&N>> = edges.keys().map(|node| (node, reached_from(node, edges))).collect();
    let mut found = BTreeSet::new();
    for (node, forward) in &reached {
        let back = |other: &&&N| reached.get(**other).is_some_and(|reached| reached.contains(node));
        let circle: BTreeSet<N> = forward.iter().filter(back).map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// All nodes reachable from `start` in one or more steps.
fn reached_from<'a, N: Ord>(start: &'a N, edges: &'a BTreeMap<N, BTreeSet<N>>) -> BTreeSet<&'a N> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(node) = next.pop() {
        for target in edges.get(node).into_iter().flatten() {
            if reached.insert(target) {
                next.push(target);
            }
        }
    }
    reached
}
