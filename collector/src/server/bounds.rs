//! Limits on connections and files, derived from this process's limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files reserved for the collector itself and for short operations.
const OWN: usize = 64;
/// Maximum number of files used, even if more are allowed: each stream also takes memory.
const MAX: usize = 1 << 18;
/// Maximum number of connections of senders (for control and data each), of viewers, and for metrics.
const SENDERS: usize = 4096;
const VIEWERS: usize = 256;
const METRICS: usize = 64;

/// The limits of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Connections of senders, for control and data each.
    pub(super) senders: usize,
    pub(super) viewers: usize,
    pub(super) metrics: usize,
    /// Open stream files.
    pub(super) files: usize,
}

impl Bounds {
    /// Returns the limits of this process, and raises its soft limit on open files, which is low by default, to the hard limit. `files` limits stream
    /// files further; `below` replaces a higher limit on open files.
    pub(super) fn of_this_process(files: Option<usize>, below: Option<usize>) -> Self {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        let limit = getrlimit(Resource::Nofile).current.map_or(MAX, |limit| usize::try_from(limit).unwrap_or(MAX));
        Self::new(below.map_or(limit, |below| limit.min(below)), files)
    }

    fn new(limit: usize, files: Option<usize>) -> Self {
        let limit = limit.min(MAX);
        let part = |parts: usize, most: usize| (limit / parts).clamp(4, most);
        let (senders, viewers, metrics) = (part(8, SENDERS), part(64, VIEWERS), part(128, METRICS));
        let left = limit.saturating_sub(OWN + 2 * senders + viewers + metrics).max(FEWEST);
        Self { senders, viewers, metrics, files: files.map_or(left, |files| files.min(left)) }
    }
}

/// Minimum number of stream files. A sender may have a quarter of all files, which is then enough for one stream and its metadata.
const FEWEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_together_is_below_the_limit() {
        for limit in [256, 1024, 4096, 20_000, 1 << 20, usize::MAX] {
            let Bounds { senders, viewers, metrics, files } = Bounds::new(limit, None);
            assert!(OWN + 2 * senders + viewers + metrics + files <= limit, "{limit}");
            assert!(files >= limit.min(MAX) / 4, "{limit}: {files}");
        }
        assert_eq!(Bounds::new(20_000, Some(100)).files, 100);
        assert_eq!(Bounds::new(1024, Some(1 << 30)), Bounds::new(1024, None));
        assert_eq!(Bounds::new(1 << 30, None).senders, SENDERS);
        // The values in the documentation.
        let files = [256, 1024, 65_536, 524_288].map(|limit| Bounds::new(limit, None).files);
        assert_eq!(files, [120, 680, 56_960, 253_568]);
    }
}
