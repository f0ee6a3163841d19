//! The progress of the work: counted by all threads, and shown by a bar.

use crate::problem::Problem;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::trace;

/// Total counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regular files hashed.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Directories entered.
    pub directories: u64,
    /// Symbolic links seen and not followed.
    pub links: u64,
    /// Problems, by [`Problem`] as index.
    pub problems: [u64; Problem::ALL.len()],
}

impl Totals {
    /// Adds the totals of another walk.
    pub fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.directories += other.directories;
        self.links += other.links;
        for (sum, problems) in self.problems.iter_mut().zip(other.problems) {
            *sum += problems;
        }
    }
}

/// The counters, and a bar on the standard error if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    files: AtomicU64,
    bytes: AtomicU64,
    directories: AtomicU64,
    links: AtomicU64,
    problems: [AtomicU64; Problem::ALL.len()],
}

impl Progress {
    /// Creates zeroed counters, with or without a bar.
    pub fn new(shown: bool) -> Self {
        let bar = if shown { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} files, {msg} {elapsed}") {
            bar.set_style(style);
        }
        Self {
            bar,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            links: AtomicU64::new(0),
            problems: [const { AtomicU64::new(0) }; Problem::ALL.len()],
        }
    }

    /// Counts a regular file that was found.
    pub(crate) fn found(&self) {
        self.bar.inc_length(1);
    }

    /// Counts a directory that was entered.
    pub(crate) fn entered(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a link that was not followed.
    pub(crate) fn skipped(&self) {
        self.links.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a hashed file of `size` bytes.
    pub(crate) fn hashed(&self, size: u64) {
        let files = self.files.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        if files.is_multiple_of(256) {
            self.bar.set_message(HumanBytes(bytes).to_string());
        }
        self.bar.inc(1);
    }

    /// Counts a problem with `path`, and fires its tracepoint.
    pub(crate) fn problem(&self, path: &Path, kind: Problem, message: &str) {
        self.problems[kind as usize].fetch_add(1, Ordering::Relaxed);
        trace!(crate::trace::error(path, kind, message));
    }

    /// Removes the bar, and returns the counts.
    pub fn finish(self) -> Totals {
        self.bar.finish_and_clear();
        Totals {
            files: self.files.into_inner(),
            bytes: self.bytes.into_inner(),
            directories: self.directories.into_inner(),
            links: self.links.into_inner(),
            problems: self.problems.map(AtomicU64::into_inner),
        }
    }
}
