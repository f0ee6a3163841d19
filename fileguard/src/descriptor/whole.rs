//! Reads complete files and directories, like the functions of the same names in the standard library.

use super::checked_fd::CheckedFd;
use super::retry::retried;
use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Bytes of a directory read by one call.
const ENTRIES: usize = 8192;

/// The contents of a file that is not a symbolic link. If the program closes the descriptor meanwhile, the file is read again from the start.
///
/// # Errors
///
/// If it cannot be opened or read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    retried(|| {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = CheckedFd::opened(File::from(open(path.as_ref(), flags, Mode::empty())?), flags)?;
        let mut bytes = Vec::new();
        (&*file).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// The contents of a text file that is not a symbolic link.
///
/// # Errors
///
/// If it cannot be opened or read, or is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The names of the entries of a directory, without `.` and `..`, in any order.
///
/// # Errors
///
/// If it cannot be opened or read.
pub fn names(directory: impl AsFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened: CheckedFd<OwnedFd> = CheckedFd::opened(openat(directory, ".", flags, Mode::empty())?, flags)?;
    let mut buffer = Vec::with_capacity(ENTRIES);
    let mut entries = RawDir::new(&opened, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        names.extend((!matches!(name, b"." | b"..")).then(|| OsString::from_vec(name.to_vec())));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_entries_of_a_large_directory_are_named() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let mut expected: Vec<OsString> =
            (0..600).map(|number| format!("a file with a long name {number}").into()).collect();
        for name in &expected {
            std::fs::write(temp.path().join(name), "x")?;
        }
        let mut found = names(File::open(temp.path())?)?;
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(read_to_string(temp.path().join(&found[0]))?, "x");
        assert_eq!(read(temp.path().join("none")).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        Ok(())
    }
}
