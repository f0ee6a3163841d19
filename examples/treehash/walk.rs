//! Finds the regular files of a tree, and passes them to the hashing threads.

use crate::hash;
use crate::problem::Problem;
use crate::progress::{Progress, Totals};
use crossbeam_channel::Sender;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint::trace;
use walkdir::{DirEntry, WalkDir};

/// Maximum number of files that the walk may be ahead of the hashing.
const AHEAD: usize = 1 << 16;

/// The task: a tree to hash, and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The directory.
    pub root: PathBuf,
    /// Number of hashing threads; at least one is used.
    pub threads: usize,
    /// True if symbolic links are followed: their targets then count as if they were in the place of the links.
    pub follow: bool,
}

/// Hashes the tree. This thread walks, other threads hash.
pub fn hash_tree(work: &Work, progress: Progress) -> Totals {
    let (found, files) = crossbeam_channel::bounded(AHEAD);
    std::thread::scope(|scope| {
        for _ in 0..work.threads.max(1) {
            let (files, progress) = (files.clone(), &progress);
            scope.spawn(move || {
                let mut chunk = hash::chunk();
                files.iter().for_each(|path: PathBuf| hash::hash_and_tell(&path, &mut chunk, progress));
            });
        }
        walk(work, &found, &progress);
        drop(found); // the threads end when they have hashed all files in the queue
    });
    progress.finish()
}

fn walk(work: &Work, found: &Sender<PathBuf>, progress: &Progress) {
    // Sort by name, so that two walks of a tree have the same order.
    for entry in WalkDir::new(&work.root).follow_links(work.follow).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {
                progress.entered();
                trace!(crate::trace::dir_entered(entry.path(), entry.depth() as u32));
            }
            Ok(entry) if entry.file_type().is_file() => {
                progress.found();
                // Fails only if all threads are gone; they exist until the walk is over.
                let _ = found.send(entry.into_path());
            }
            Ok(entry) if entry.file_type().is_symlink() => skip_link(&entry, progress),
            // A socket, a pipe, a device: nothing to hash.
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(&work.root);
                let kind = match error.io_error() {
                    None => Problem::Loop, // a link to a directory that contains it
                    Some(error) => Problem::of(error),
                };
                progress.problem(path, kind, &error.to_string());
            }
        }
    }
}

/// Skips a link. A link that leads in a circle is reported as a problem.
fn skip_link(link: &DirEntry, progress: &Progress) {
    let path = link.path();
    progress.skipped();
    trace!(crate::trace::link_skipped(path));
    match leads_back(path) {
        Ok(true) => progress.problem(path, Problem::Loop, "the link leads to a directory that it stands in"),
        Err(error) if Problem::of(&error) == Problem::Loop => {
            progress.problem(path, Problem::Loop, &error.to_string());
        }
        // The link is dangling: there is nothing to hash.
        Ok(false) | Err(_) => {}
    }
}

/// Returns whether the link at `path` leads to a directory that contains it.
fn leads_back(path: &Path) -> io::Result<bool> {
    let target = fs::canonicalize(path)?;
    let place = fs::canonicalize(path.parent().unwrap_or(Path::new("/")))?;
    Ok(place.starts_with(target))
}
