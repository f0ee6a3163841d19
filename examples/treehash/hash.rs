//! Hashes a file.

use crate::problem::Problem;
use crate::progress::Progress;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use tracepoint::trace;

/// Number of bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Room for a chunk.
pub(crate) fn chunk() -> Box<[u8]> {
    vec![0; CHUNK].into()
}

/// Hashes the file at `path`, and counts the result.
pub(crate) fn hash_and_tell(path: &Path, chunk: &mut [u8], progress: &Progress) {
    match hash(path, chunk) {
        Ok(size) => progress.hashed(size),
        Err(error) => progress.problem(path, Problem::of(&error), &error.to_string()),
    }
}

/// Hashes the file at `path`, and returns its size. The digest is recorded in the trace only.
fn hash(path: &Path, chunk: &mut [u8]) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    trace!(crate::trace::file_opened(path, size));

    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    loop {
        let len = match file.read(chunk) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        trace!(crate::trace::chunk_read(file.as_raw_fd(), offset, len as u32));
        hasher.update(&chunk[..len]);
        offset += len as u64;
    }

    let digest = hasher.finalize();
    trace!(crate::trace::file_hashed(path, offset, digest.as_bytes()));
    Ok(offset)
}
