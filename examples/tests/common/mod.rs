//! Shared by the tests: a tree to hash, its expected events computed independently of the program, and the events according to babeltrace2.

#![allow(dead_code, reason = "no test uses all of it")]

pub(crate) mod babeltrace;
pub(crate) mod expected;
pub(crate) mod program;
pub(crate) mod tree;

use std::path::Path;

/// An event of treehash as plain values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plain {
    DirEntered { path: Vec<u8>, depth: u32 },
    FileOpened { path: Vec<u8>, size: u64 },
    ChunkRead { fd: i32, offset: u64, len: u32 },
    FileHashed { path: Vec<u8>, size: u64, digest: [u8; 32] },
    LinkSkipped { path: Vec<u8> },
    Error { path: Vec<u8>, kind: String, message: String },
}

/// The bytes of a path.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// Sorts the events: simultaneous events of several threads have no defined order.
pub(crate) fn sorted(mut events: Vec<Plain>) -> Vec<Plain> {
    events.sort();
    events
}

/// Fails at the first difference, because a list of thousands of events is not a useful message.
pub(crate) fn assert_same(what: &str, found: &[Plain], expected: &[Plain]) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{what}: event {index} of {} differs", found_of(found));
    }
    assert_eq!(found.len(), expected.len(), "{what}: the number of events");
}

fn found_of(event: &Plain) -> &'static str {
    match event {
        Plain::DirEntered { .. } => "dir_entered",
        Plain::FileOpened { .. } => "file_opened",
        Plain::ChunkRead { .. } => "chunk_read",
        Plain::FileHashed { .. } => "file_hashed",
        Plain::LinkSkipped { .. } => "link_skipped",
        Plain::Error { .. } => "error",
    }
}
