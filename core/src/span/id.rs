//! The ids of spans: unique in the process, and cheap, because each thread takes them from its own block.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::thread::take_local;

/// The id of a span: unique within its process, and never 0. After `fork`, the child continues with the parent's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(u64);

/// Ids per block. 2⁴⁸ blocks outlast any process.
const BLOCK: u64 = 1 << 16;
/// Ids per block that stay unused: signal handlers may take one each before a new block is stored.
const SLACK: u64 = 256;

thread_local! {
    // Const-initialised and without a destructor, so that signal handlers and destructors of other thread-locals can use it. The initial value is
    // the end of a block.
    static NEXT: AtomicU64 = const { AtomicU64::new(BLOCK - SLACK) };
}

impl SpanId {
    /// No span: the parent of a span without a given parent.
    pub const NONE: Self = Self(0);

    /// The number; 0 for [`NONE`](Self::NONE).
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) const fn of(id: NonZeroU64) -> Self {
        Self(id.get())
    }

    #[inline]
    pub(super) fn next() -> Self {
        NEXT.with(|next| {
            let id = take_local(next);
            Self(if id % BLOCK < BLOCK - SLACK { id } else { next_block(next) })
        })
    }
}

/// Starts a new block for the thread, and returns its first id.
#[cold]
fn next_block(next: &AtomicU64) -> u64 {
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    // Skip the first number of each block, which is 0 in the first block.
    let first = BLOCKS.fetch_add(BLOCK, Ordering::Relaxed) + 1;
    // A handler may have taken a block meanwhile, and used some of its ids. The rest of that block is abandoned, so its ids are not reused.
    next.store(first + 1, Ordering::Relaxed);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_across_blocks_and_threads() {
        let take = || (0..3 * BLOCK).map(|_| SpanId::next().get()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(take)).collect();
        let ids: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        assert!(!ids.contains(&0), "0 is no id");
    }
}
