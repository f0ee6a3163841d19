//! The time that is spent on each path of spans.

use std::collections::BTreeMap;
use std::io;

/// Deeper paths end there: their time is in [`TimeTree::further`].
const MAX_DEPTH: usize = 512;

/// Times by paths of names, without those of the spans inside, in nanoseconds.
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
    /// A span with this time of its own, and what is inside it.
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

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The time on paths that are not kept.
    pub fn further(&self) -> u64 {
        self.further
    }

    /// Adds the times of another one; those of its paths that are not in this one, if it has room for so many.
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
            // The smaller one into the larger one.
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

    /// Calls `show` with each path, the outermost name first, behind the names in `frames`, and its time.
    ///
    /// # Errors
    /// Those of `show`.
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

    /// All times together.
    fn total(&self) -> u64 {
        let of = |branch: &Branch| branch.time.saturating_add(branch.inside.total());
        self.names.values().map(of).fold(self.further, u64::saturating_add)
    }
}
