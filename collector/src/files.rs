//! Creates directories and files below a session's directory.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

/// Creates the missing directories of a relative path. Does not follow symbolic links.
pub(crate) fn make_directories(base: &Path, relative: &Path) -> io::Result<()> {
    let mut path = base.to_owned();
    for part in relative.components() {
        let Component::Normal(name) = part else { return Err(ErrorKind::InvalidInput.into()) };
        path.push(name);
        match DirBuilder::new().mode(0o750).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => {}
            result => result?,
        }
    }
    Ok(())
}

/// Writes a file below a directory atomically.
pub(crate) fn put(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    let parent = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
    make_directories(directory, parent)?;
    let fresh = directory.join(parent).join(".new");
    std::fs::write(&fresh, bytes)?;
    std::fs::rename(fresh, path)
}
