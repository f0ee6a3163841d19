//! A part of each file system stays free, whatever is recorded.

use rustix::fs::statvfs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What part of a file system stays free: one in so many.
const FREE: u64 = 20;
/// How many bytes are written between two looks at what is free.
const LOOK: u64 = 4 << 20;

/// What keeps a sink from doing what it should.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// How often something was refused since the last time that there was room.
    refused: AtomicU64,
    /// How many bytes the session allows.
    most: u64,
    /// How often something was refused that was beyond them, since the last time that something was not.
    beyond: AtomicU64,
    /// Why the last rotation failed, if it did.
    rotation: Mutex<Option<String>>,
}

impl Watch {
    /// What became of the last rotation.
    pub(super) fn rotated(&self, failed: Option<String>) {
        *self.rotation.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    /// What there is to tell.
    pub(super) fn notices(&self) -> impl Iterator<Item = String> {
        let rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.no_room().into_iter().chain(self.written_up()).chain(rotation)
    }

    fn no_room(&self) -> Option<String> {
        let refused = self.refused.load(Ordering::Relaxed);
        let path = self.path.display();
        (refused > 0).then(|| {
            format!(
                "nothing is written to {path}, {refused} times by now: less than a twentieth of its file system is free; it goes on \
                 when there is room"
            )
        })
    }

    fn written_up(&self) -> Option<String> {
        let beyond = self.beyond.load(Ordering::Relaxed);
        let (path, most) = (self.path.display(), self.most);
        (beyond > 0).then(|| {
            format!(
                "nothing is written to {path} any more, {beyond} times by now: the {most} bytes that the session allows (`max_size`) are \
                 there; allow more, or have only the newest stay (`rotate_size` and `keep`, or a dt file)"
            )
        })
    }
}

/// How many bytes one sink may write, or several together.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: u64,
    /// What is there, of all of them.
    kept: AtomicU64,
    /// Whether something was refused, because it was beyond.
    used_up: AtomicBool,
}

impl Allowance {
    /// So many.
    pub(crate) fn of(most: u64) -> Arc<Self> {
        Arc::new(Self { most, kept: AtomicU64::new(0), used_up: AtomicBool::new(false) })
    }

    /// Whether something was refused, because it was beyond.
    pub(crate) fn is_used_up(&self) -> bool {
        self.used_up.load(Ordering::Relaxed)
    }

    /// What is there, of all, if somebody who had `before` bytes, as far as is known here, has `kept`.
    fn all(&self, before: u64, kept: u64) -> u64 {
        // Relaxed: the number tells of nothing else. Sinks that share it are used by one thread.
        self.kept.load(Ordering::Relaxed).saturating_sub(before).saturating_add(kept)
    }

    /// Whether somebody who had `before` bytes, as far as is known here, and has `kept`, may have `len` more.
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

/// The bounds of what one sink writes.
#[derive(Debug)]
pub(super) struct Space {
    /// A path on the file system.
    path: PathBuf,
    allowance: Arc<Allowance>,
    /// What it has of that, as it was when it was asked for last.
    kept: u64,
    /// How many were written since it was looked at last; `None`: it was not.
    since: Option<u64>,
    free: bool,
    watch: Arc<Watch>,
}

impl Space {
    pub(super) fn new(path: &Path, allowance: Arc<Allowance>) -> Self {
        let (refused, beyond) = (AtomicU64::new(0), AtomicU64::new(0));
        let most = allowance.most;
        let watch = Watch { path: path.to_owned(), refused, most, beyond, rotation: Mutex::new(None) };
        Self { path: path.to_owned(), allowance, kept: 0, since: None, free: true, watch: Arc::new(watch) }
    }

    pub(super) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// Whether `len` bytes more than these are more than the session allows.
    pub(super) fn is_beyond(&self, kept: u64, len: u64) -> bool {
        self.allowance.all(self.kept, kept).saturating_add(len) > self.allowance.most
    }

    /// Whether `len` bytes may be added, where there are `kept` already.
    pub(super) fn check(&mut self, kept: u64, len: u64) -> io::Result<()> {
        let before = std::mem::replace(&mut self.kept, kept);
        if !self.allowance.check(before, kept, len) {
            self.watch.beyond.fetch_add(1, Ordering::Relaxed);
            let most = self.allowance.most;
            let text = format!("the {most} bytes that the session allows (`max_size`) are written");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        self.watch.beyond.store(0, Ordering::Relaxed);
        if !self.free || self.since.is_none_or(|since| since >= LOOK) {
            self.free = has_room(&self.path)?;
            self.since = Some(0);
        }
        if self.free {
            self.watch.refused.store(0, Ordering::Relaxed);
            return Ok(());
        }
        self.watch.refused.fetch_add(1, Ordering::Relaxed);
        Err(full())
    }

    /// Something could not be written: the next time it is looked at what is free.
    pub(super) fn fail(&mut self, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            self.free = false;
            self.watch.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many bytes were written.
    pub(super) fn add(&mut self, len: u64) {
        self.since = self.since.map(|since| since + len);
        self.kept = self.kept.saturating_add(len);
        self.allowance.kept.fetch_add(len, Ordering::Relaxed);
    }
}

/// Fails unless so much is free that something may be written at `path`, or where it is to be made.
pub(super) fn insist(path: &Path) -> Result<(), String> {
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    match has_room(there) {
        Ok(false) => {
            Err(format!("cannot record to {}: {}; make room, or record somewhere else", path.display(), full()))
        }
        // What cannot be looked at will be told by whoever writes there.
        _ => Ok(()),
    }
}

fn has_room(path: &Path) -> io::Result<bool> {
    let stat = statvfs(path)?;
    Ok(stat.f_bavail > stat.f_blocks / FREE)
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "a twentieth of the file system stays free")
}
