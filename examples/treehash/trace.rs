//! The tracepoints.

use crate::problem::Problem;
use std::path::Path;

tracepoint::define_trace! {
    provider = "treehash";

    /// The walk enters a directory.
    #[level(DebugProcess)]
    pub dir_entered(path: &Path, depth: u32) {
        path: path = path,
        /// Depth below the root, which is at 0.
        depth: u32 = depth,
    }

    /// A regular file was opened.
    #[level(DebugFunction)]
    pub file_opened(path: &Path, size: u64) {
        path: path = path,
        /// Its size according to the file system.
        size: u64 = size,
    }

    /// A part of a file was read.
    #[level(DebugLine)]
    pub chunk_read(fd: i32, offset: u64, len: u32) {
        fd: i32 = fd,
        offset: u64 = offset,
        len: u32 = len,
    }

    /// A regular file was hashed completely: fired exactly once for each.
    #[level(Info)]
    pub file_hashed(path: &Path, size: u64, digest: &[u8; 32]) {
        path: path = path,
        /// Number of bytes hashed.
        size: u64 = size,
        /// BLAKE3.
        digest: [u8; 32] = digest,
    }

    /// A symbolic link was seen and not followed.
    #[level(DebugProcess)]
    pub link_skipped(path: &Path) {
        path: path = path,
    }

    /// A file could not be read, or a link leads in a circle.
    #[level(Warning)]
    pub error(path: &Path, kind: Problem, message: &str) {
        path: path = path,
        kind: enum u8 { permission, vanished, loop, other } = kind as u8,
        message: str = message,
    }
}
