//! The ids of spans: unique in the process, and cheap, because each thread takes them from a block of its own.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::thread::take_local;

/// The number of a span: unique within its process, and never 0. A child after `fork` goes on where its parent was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(u64);

/// The ids of a block. 2⁴⁸ blocks outlast any process.
const BLOCK: u64 = 1 << 16;
/// The ids of a block that are not used: signal handlers may take one each before a new block is stored.
const SLACK: u64 = 256;

thread_local! {
    // Const-initialised and without a destructor, so that signal handlers and destructors of other thread-locals can use it. It begins
    // behind the last id of a block.
    static NEXT: AtomicU64 = const { AtomicU64::new(BLOCK - SLACK) };
}

impl SpanId {
    /// No span: the parent of a span for which none was named.
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

/// The first id of a new block, of which the thread takes the next ones.
#[cold]
fn next_block(next: &AtomicU64) -> u64 {
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    // Without its first number, which is 0 in the first block.
    let first = BLOCKS.fetch_add(BLOCK, Ordering::Relaxed) + 1;
    // A handler that took a block meanwhile has used some of its ids, which are not used again: that block is given up.
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
