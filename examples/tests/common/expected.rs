//! The expected events of a tree, computed without the program under test.

use super::{Plain, bytes, tree};
use std::fs;
use std::path::Path;

/// The events of a directory without difficult entries, except those of chunks, whose file descriptors are not predictable.
pub(crate) fn events_without_trouble(root: &Path) -> Vec<Plain> {
    let mut events = Vec::new();
    directory(root, 0, false, &mut events);
    events
}

/// The events of a [`tree::Tree`], except those of chunks, and without the messages of errors. With `closed`, the program may not read
/// closed files and directories.
pub(crate) fn events(root: &Path, closed: bool) -> Vec<Plain> {
    let mut events = Vec::new();
    directory(root, 0, closed, &mut events);
    for circle in tree::CIRCLES {
        events.push(error(&root.join(circle), "loop"));
    }
    events
}

fn directory(path: &Path, depth: u32, closed: bool, events: &mut Vec<Plain>) {
    events.push(Plain::DirEntered { path: bytes(path), depth });
    if closed && path.ends_with(tree::CLOSED[1]) {
        events.push(error(path, "permission"));
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            directory(&path, depth + 1, closed, events);
        } else if kind.is_symlink() {
            events.push(Plain::LinkSkipped { path: bytes(&path) });
        } else if kind.is_file() {
            if closed && path.ends_with(tree::CLOSED[0]) {
                events.push(error(&path, "permission"));
                continue;
            }
            let content = fs::read(&path).unwrap();
            let (size, digest) = (content.len() as u64, *blake3::hash(&content).as_bytes());
            events.push(Plain::FileOpened { path: bytes(&path), size });
            events.push(Plain::FileHashed { path: bytes(&path), size, digest });
        }
    }
}

fn error(path: &Path, kind: &str) -> Plain {
    Plain::Error { path: bytes(path), kind: kind.to_owned(), message: String::new() }
}
