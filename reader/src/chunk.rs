//! Chunks: a trace that is split into consecutive directories, so that all but the last can be removed while it is recorded.
//!
//! ```text
//!   DIR/chunk-000001/   metadata, streams, account: a complete trace
//!   DIR/chunk-000002/   continues it: the same UUID; packet numbers and counters run on
//! ```

use std::path::Path;

const PREFIX: &str = "chunk-";

/// The name of the directory of a chunk. The first has the number 1. Names sort by number up to a million.
pub fn chunk_name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

/// The number of a chunk, from the name of its directory; `None` for other names.
pub fn chunk_number(directory: &Path) -> Option<u64> {
    let digits = directory.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number > 0)
}

/// The directory of the whole trace: the parent of a chunk, or the directory itself.
pub(crate) fn root(directory: &Path) -> &Path {
    chunk_number(directory).and_then(|_| directory.parent()).unwrap_or(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_names_parse_to_numbers() {
        for number in [1, 999_999, 1_000_000, u64::MAX] {
            assert_eq!(chunk_number(&Path::new("/a").join(chunk_name(number))), Some(number));
        }
        for name in ["chunk-", "chunk-000000", "chunk-1", "chunk-00000x", "chunk-+00001", "Chunk-000001"] {
            assert_eq!(chunk_number(Path::new(name)), None, "{name}");
        }
        assert_eq!(root(Path::new("/a/chunk-000002")), Path::new("/a"));
        assert_eq!(root(Path::new("/a/b")), Path::new("/a/b"));
    }
}
