//! Finds the regular files of a tree, and hands them to the threads that hash them.

use crate::hash;
use crate::problem::Problem;
use crate::progress::{Progress, Totals};
use crossbeam_channel::Sender;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint::trace;
use walkdir::{DirEntry, WalkDir};

/// How far the walk may be ahead of the hashing, in files.
const AHEAD: usize = 1 << 16;

/// What shall be hashed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The directory.
    pub root: PathBuf,
    /// How many threads hash; at least one does.
    pub threads: usize,
    /// Whether symbolic links are followed: what they lead to then counts as if it stood in their place.
    pub follow: bool,
}

/// Hashes the tree. This thread walks, others hash.
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
    // By name, so that two walks of a tree are alike.
    for entry in WalkDir::new(&work.root).follow_links(work.follow).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {
                progress.entered();
                trace!(crate::trace::dir_entered(entry.path(), entry.depth() as u32));
            }
            Ok(entry) if entry.file_type().is_file() => {
                progress.found();
                // Fails if all threads are gone, which are here until the walk is over.
                let _ = found.send(entry.into_path());
            }
            Ok(entry) if entry.file_type().is_symlink() => skip_link(&entry, progress),
            // A socket, a pipe, a device: nothing to hash.
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(&work.root);
                let kind = match error.io_error() {
                    None => Problem::Loop, // a link to one of the directories that it stands in
                    Some(error) => Problem::of(error),
                };
                progress.problem(path, kind, &error.to_string());
            }
        }
    }
}

/// A link is not followed; but one that leads in a circle is worth telling.
fn skip_link(link: &DirEntry, progress: &Progress) {
    let path = link.path();
    progress.skipped();
    trace!(crate::trace::link_skipped(path));
    match leads_back(path) {
        Ok(true) => progress.problem(path, Problem::Loop, "the link leads to a directory that it stands in"),
        Err(error) if Problem::of(&error) == Problem::Loop => {
            progress.problem(path, Problem::Loop, &error.to_string());
        }
        // Where a link leads nowhere, nothing was to be hashed.
        Ok(false) | Err(_) => {}
    }
}

/// Whether the link at `path` leads to a directory that it stands in.
fn leads_back(path: &Path) -> io::Result<bool> {
    let target = fs::canonicalize(path)?;
    let place = fs::canonicalize(path.parent().unwrap_or(Path::new("/")))?;
    Ok(place.starts_with(target))
}
