//! Detects changes of files, and reads a session's file if it has changed.

use rustix::fs::{AtFlags, statat};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use tracepoint_run_dir::layout::SESSION;
use tracepoint_run_dir::private_dir::{Author, PrivateDir};
use tracepoint_session_spec::SessionSpec;

/// Identifies one version of a file: inode, modification time, size.
pub(super) type FileVersion = (u64, i64, i64, u64);

/// Returns the version of the file `name`; uses no descriptor.
pub(super) fn version_of(dir: &PrivateDir, name: &str) -> io::Result<FileVersion> {
    let stat = statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Ok((stat.st_ino, stat.st_mtime, nanos, u64::try_from(stat.st_size).unwrap_or(0)))
}

/// Returns the file's version, content and author, or `None` if it still has this version.
pub(super) fn read_if_changed(
    dir: &PrivateDir,
    version: Option<FileVersion>,
) -> io::Result<Option<(FileVersion, Vec<u8>, Author)>> {
    fileguard::retried(|| {
        let file = dir.open_file(SESSION)?;
        let found = file.metadata()?;
        let found = (found.ino(), found.mtime(), found.mtime_nsec(), found.size());
        if version == Some(found) {
            return Ok(None);
        }
        let (author, mut bytes) = (Author::of(&file)?, Vec::new());
        (&*file).take(SessionSpec::MAX_SIZE + 1).read_to_end(&mut bytes)?;
        Ok(Some((found, bytes, author)))
    })
}
