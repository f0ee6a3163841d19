//! An output directory whose contents appear atomically: they are written under another name first.
//!
//! A directory that does not exist appears by one rename. In an existing, empty directory, a temporary directory is filled, and
//! its entries are moved up, the `metadata` last: without it, the directory is not a trace. A process that dies leaves at most the temporary
//! directory, whose name begins with a dot; any error removes it.

use super::RecoverError;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory under its temporary name. Dropping it removes it, unless it was published.
#[derive(Debug)]
pub(super) struct StagedDirectory {
    out: PathBuf,
    temporary: PathBuf,
    /// True if `out` existed, and contains the temporary directory.
    inside: bool,
}

impl StagedDirectory {
    /// A temporary directory for `out`, which must be empty if it exists. Creates missing parents.
    pub(super) fn begin(out: &Path) -> Result<Self, RecoverError> {
        let inside = match fs::symlink_metadata(out) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(RecoverError::write(out)(error)),
        };
        let parent = if inside {
            check_empty(out, None)?;
            out
        } else {
            let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::create_dir_all(parent).map_err(RecoverError::write(parent))?;
            parent
        };
        let temporary = make(parent)?;
        let staged = Self { out: out.to_owned(), temporary, inside };
        if inside {
            // If two begin at the same moment, neither continues.
            check_empty(out, staged.temporary.file_name())?;
        }
        Ok(staged)
    }

    /// The directory for the contents.
    pub(super) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Removes the contents.
    pub(super) fn clear(&self) -> Result<(), RecoverError> {
        let emptied = fs::remove_dir_all(&self.temporary).and_then(|()| fs::create_dir(&self.temporary));
        emptied.map_err(RecoverError::write(&self.temporary))
    }

    /// Moves the contents to their final place.
    pub(super) fn publish(mut self) -> Result<(), RecoverError> {
        let published = if self.inside { self.move_entries() } else { fs::rename(&self.temporary, &self.out) };
        match published {
            Ok(()) => {
                self.temporary.clear();
                Ok(())
            }
            Err(error) => {
                // Another process may have published there in the meantime.
                check_empty(&self.out, self.temporary.file_name())?;
                Err(RecoverError::write(&self.out)(error))
            }
        }
    }

    fn move_entries(&self) -> io::Result<()> {
        let entries = fs::read_dir(&self.temporary)?.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names: Vec<OsString> = entries.collect::<io::Result<_>>()?;
        names.sort_by_key(|name| name == "metadata");
        for name in names {
            fs::rename(self.temporary.join(&name), self.out.join(&name))?;
        }
        fs::remove_dir(&self.temporary)
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // A failure is harmless: the remaining directory is not a trace.
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Makes a temporary directory. A process of the same id may have left one.
fn make(parent: &Path) -> Result<PathBuf, RecoverError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".snapshot-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(RecoverError::write(&path)(error)),
        }
    }
}

/// An error if `out` exists and has an entry other than `own`.
fn check_empty(out: &Path, own: Option<&OsStr>) -> Result<(), RecoverError> {
    let entries = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(RecoverError::write(out))?,
    };
    for entry in entries {
        let name = entry.map_err(RecoverError::write(out))?.file_name();
        if Some(&*name) != own {
            let found = name.to_string_lossy().into_owned();
            return Err(RecoverError::NotEmpty { path: out.to_owned(), found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn contents_appear_when_they_are_published_and_not_before() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let empty = temp.path().join("empty");
        fs::create_dir(&empty)?;
        for out in [temp.path().join("a/new"), empty] {
            let staged = StagedDirectory::begin(&out)?;
            fs::write(staged.path().join("metadata"), b"m")?;
            fs::write(staged.path().join("stream"), b"s")?;
            assert!(!out.join("metadata").exists());
            staged.publish()?;
            assert_eq!(names(&out), ["metadata", "stream"]);
            let found = StagedDirectory::begin(&out)
                .map(|_| ())
                .map_err(|error| matches!(error, RecoverError::NotEmpty { .. }));
            assert_eq!(found, Err(true), "it is not empty");
        }
        assert_eq!((names(temp.path()).len(), names(&temp.path().join("a")).len()), (2, 1));
        Ok(())
    }

    #[test]
    fn what_is_not_published_leaves_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let out = temp.path().join("out");
        let (first, second) = (StagedDirectory::begin(&out)?, StagedDirectory::begin(&out)?);
        fs::write(first.path().join("metadata"), b"1")?;
        first.publish()?;
        fs::write(second.path().join("metadata"), b"2")?;
        assert!(matches!(second.publish(), Err(RecoverError::NotEmpty { .. })));
        drop(StagedDirectory::begin(&temp.path().join("other"))?);
        assert_eq!(names(temp.path()), ["out"]);
        assert_eq!(fs::read(out.join("metadata"))?, b"1");
        assert!(matches!(StagedDirectory::begin(&out.join("metadata")), Err(RecoverError::Write { .. })), "a file");
        Ok(())
    }
}
