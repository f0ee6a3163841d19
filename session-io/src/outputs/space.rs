//! Keeps a part of each file system free, and limits the bytes that sinks write.

use super::OutputError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint_run_dir::notice::Notice;
use tracepoint_sinks::SinkError;

/// The part of a file system that stays free: one in this many.
#[cfg(target_os = "linux")]
const FREE: u64 = 20;
/// Maximum of that part in bytes.
#[cfg(target_os = "linux")]
const FREE_MAX: u64 = 2 << 30;
/// Bytes written between two checks of the free space.
const CHECK_INTERVAL: u64 = 4 << 20;

/// Problems of a sink, for messages to the user.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// Number of refused writes since there was enough free space.
    refused: AtomicU64,
    /// Maximum number of bytes that the session allows.
    most: u64,
    /// Number of writes refused beyond that maximum, since a write was accepted.
    beyond: AtomicU64,
    /// Error of the last rotation.
    rotation: Mutex<Option<String>>,
}

impl Watch {
    /// Records the result of the last rotation.
    pub(super) fn rotated(&self, failed: Option<String>) {
        *self.rotation.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    /// The current messages.
    pub(super) fn notices(&self) -> impl Iterator<Item = Notice> {
        let path = || self.path.clone();
        let count = |count: &AtomicU64| Some(count.load(Ordering::Relaxed)).filter(|count| *count > 0);
        let no_space = count(&self.refused).map(|refused| Notice::NoSpace { path: path(), refused });
        let max_size = self.most;
        let limit = count(&self.beyond).map(|refused| Notice::MaxSizeReached { path: path(), refused, max_size });
        let rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rotation = rotation.map(Notice::RotationFailed);
        [no_space, limit, rotation].into_iter().flatten()
    }
}

/// Maximum number of bytes that one sink, or several together, may keep.
#[derive(Debug)]
pub struct Allowance {
    most: u64,
    /// Bytes kept by all of them.
    kept: AtomicU64,
    /// True once a write was refused because it would exceed the maximum.
    used_up: AtomicBool,
}

impl Allowance {
    /// An allowance of `most` bytes.
    pub fn of(most: u64) -> Arc<Self> {
        Arc::new(Self { most, kept: AtomicU64::new(0), used_up: AtomicBool::new(false) })
    }

    /// Returns whether a write was refused because it would exceed the maximum.
    pub fn is_used_up(&self) -> bool {
        self.used_up.load(Ordering::Relaxed)
    }

    /// Returns the bytes kept by all sinks, if a sink that was counted with `before` bytes now has `kept`.
    fn all(&self, before: u64, kept: u64) -> u64 {
        // Relaxed: the number publishes no other data, and sinks that share it run on one thread.
        self.kept.load(Ordering::Relaxed).saturating_sub(before).saturating_add(kept)
    }

    /// Returns whether a sink that was counted with `before` bytes and has `kept` may write `len` more. Updates the count.
    fn check(&self, before: u64, kept: u64, len: u64) -> bool {
        let all = self.all(before, kept);
        self.kept.store(all, Ordering::Relaxed);
        let fits = all.saturating_add(len) <= self.most;
        if !fits {
            self.used_up.store(true, Ordering::Relaxed);
        }
        fits
    }
}

/// A write was refused because it would exceed the maximum.
#[derive(Debug, thiserror::Error)]
#[error("the session's limit of {most} bytes (`max_size`) is reached")]
pub struct LimitReached {
    most: u64,
}

impl LimitReached {
    /// Returns whether a sink has failed for that reason.
    pub fn is_reason_of(error: &SinkError) -> bool {
        error.io_error().get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>)
    }
}

/// The limits of one sink.
#[derive(Debug)]
pub(super) struct Space {
    /// A path on the file system.
    path: PathBuf,
    allowance: Arc<Allowance>,
    /// Bytes of the allowance that this sink keeps, as of the last check.
    kept: u64,
    /// Bytes written since the last check of the free space; `None` before the first check.
    since: Option<u64>,
    /// True if the last check found enough free space.
    may_write: bool,
    watch: Arc<Watch>,
}

impl Space {
    pub(super) fn new(path: &Path, allowance: Arc<Allowance>) -> Self {
        let (refused, beyond) = (AtomicU64::new(0), AtomicU64::new(0));
        let most = allowance.most;
        let watch = Watch { path: path.to_owned(), refused, most, beyond, rotation: Mutex::new(None) };
        Self { path: path.to_owned(), allowance, kept: 0, since: None, may_write: true, watch: Arc::new(watch) }
    }

    pub(super) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// Returns whether `len` more bytes than `kept` exceed the maximum.
    pub(super) fn is_beyond(&self, kept: u64, len: u64) -> bool {
        self.allowance.all(self.kept, kept).saturating_add(len) > self.allowance.most
    }

    /// Checks that a sink that keeps `kept` bytes may write `len` more.
    pub(super) fn check(&mut self, kept: u64, len: u64) -> io::Result<()> {
        let before = std::mem::replace(&mut self.kept, kept);
        if !self.allowance.check(before, kept, len) {
            self.watch.beyond.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, LimitReached { most: self.allowance.most }));
        }
        self.watch.beyond.store(0, Ordering::Relaxed);
        if !self.may_write || self.since.is_none_or(|since| since >= CHECK_INTERVAL) {
            self.may_write = has_space(&self.path)?;
            self.since = Some(0);
        }
        if self.may_write {
            self.watch.refused.store(0, Ordering::Relaxed);
            return Ok(());
        }
        self.watch.refused.fetch_add(1, Ordering::Relaxed);
        Err(full())
    }

    /// Records a failed write: if the file system was full, the next write checks the free space first.
    pub(super) fn fail(&mut self, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            self.may_write = false;
            self.watch.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts `len` bytes that were written.
    pub(super) fn add(&mut self, len: u64) {
        self.since = self.since.map(|since| since + len);
        self.kept = self.kept.saturating_add(len);
        self.allowance.kept.fetch_add(len, Ordering::Relaxed);
    }
}

/// Fails unless the file system of `path`, or of its nearest existing parent, has enough free space.
pub(super) fn require_space(path: &Path) -> Result<(), OutputError> {
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    match has_space(there) {
        Ok(false) => Err(OutputError::NoSpace { path: path.to_owned(), source: full() }),
        // If it cannot be checked, writing will report the error.
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn has_space(path: &Path) -> io::Result<bool> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(leaves_enough(stat.f_bavail, stat.f_blocks, stat.f_frsize))
}

/// Returns whether more than what stays free is available. Sizes are in blocks.
#[cfg(target_os = "linux")]
fn leaves_enough(available: u64, whole: u64, block: u64) -> bool {
    available > (whole / FREE).min(FREE_MAX / block.max(1))
}

/// The standard library does not know the free space: a full disk refuses the write.
#[cfg(not(target_os = "linux"))]
const fn has_space(_: &Path) -> io::Result<bool> {
    Ok(true)
}

fn full() -> io::Error {
    io::Error::new(
        io::ErrorKind::StorageFull,
        "a twentieth of the file system, or 2 GiB of a large one, must stay free",
    )
}

#[cfg(test)]
mod tests {
    use super::leaves_enough;

    #[test]
    fn a_part_of_the_file_system_stays_free() {
        let blocks = |gib: u64| gib << 18;
        assert!(leaves_enough(blocks(2), blocks(20), 4096) && !leaves_enough(blocks(1), blocks(20), 4096));
        // A disk of 4 TiB of which 1 % is free.
        assert!(leaves_enough(blocks(40), blocks(4096), 4096) && !leaves_enough(blocks(2), blocks(4096), 4096));
        assert!(leaves_enough(1, 0, 0), "a file system that reports no size");
    }
}
