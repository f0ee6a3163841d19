//! Paths in files that a traced process wrote.

use std::path::PathBuf;

/// Returns the path with these bytes.
#[cfg(unix)]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

/// Returns the path with these bytes. On Windows a path is a text.
#[cfg(not(unix))]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}
