//! The time spent on each path of spans.

use std::collections::BTreeMap;
use std::io;

/// Maximum depth of a path. The time on deeper paths is in [`TimeTree::further`].
const MAX_DEPTH: usize = 512;

/// Times in nanoseconds by path of span names, excluding inner spans.
#[derive(Clone, Debug, Default)]
pub struct TimeTree {
    names: BTreeMap<String, Branch>,
    /// The number of paths.
    count: usize,
    depth: usize,
    further: u64,
}

#[derive(Clone, Debug, Default)]
struct Branch {
    time: u64,
    inside: TimeTree,
}

impl TimeTree {
    /// Creates the tree of a span: its own time, and the times inside it.
    pub(crate) fn of(name: &str, time: u64, mut inside: Self) -> Self {
        let mut further = std::mem::take(&mut inside.further);
        if inside.depth >= MAX_DEPTH {
            further = further.saturating_add(inside.total());
            inside = Self::default();
        }
        let (count, depth) = (inside.count + 1, inside.depth + 1);
        Self { names: BTreeMap::from([(name.to_owned(), Branch { time, inside })]), count, depth, further }
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The time on paths that are not kept.
    pub fn further(&self) -> u64 {
        self.further
    }

    /// Adds the times of another tree. Paths missing here are added only up to `room` paths.
    pub(crate) fn add(&mut self, other: Self, room: usize) {
        self.further = self.further.saturating_add(other.further);
        let mut room = room;
        for (name, mut branch) in other.names {
            let Some(known) = self.names.get_mut(&name) else {
                if branch.inside.count < room {
                    room -= branch.inside.count + 1;
                    self.count += branch.inside.count + 1;
                    self.depth = self.depth.max(branch.inside.depth + 1);
                    self.names.insert(name, branch);
                } else {
                    self.further = self.further.saturating_add(branch.time).saturating_add(branch.inside.total());
                }
                continue;
            };
            known.time = known.time.saturating_add(branch.time);
            let before = known.inside.count;
            // Merge the smaller tree into the larger one.
            if before < branch.inside.count {
                std::mem::swap(&mut known.inside, &mut branch.inside);
            }
            known.inside.add(branch.inside, room);
            let added = known.inside.count - before;
            self.further = self.further.saturating_add(std::mem::take(&mut known.inside.further));
            (self.count, room) = (self.count + added, room.saturating_sub(added));
            self.depth = self.depth.max(known.inside.depth + 1);
        }
    }

    /// Calls `show` with each path and its time. A path consists of the names in `frames`, followed by the names in the tree, outermost first.
    ///
    /// # Errors
    /// The errors of `show`.
    pub(crate) fn paths(
        &self,
        frames: &mut Vec<String>,
        show: &mut impl FnMut(&[String], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        for (name, branch) in &self.names {
            frames.push(name.clone());
            show(frames, branch.time)?;
            branch.inside.paths(frames, show)?;
            frames.pop();
        }
        Ok(())
    }

    /// The sum of all times.
    fn total(&self) -> u64 {
        let of = |branch: &Branch| branch.time.saturating_add(branch.inside.total());
        self.names.values().map(of).fold(self.further, u64::saturating_add)
    }
}
