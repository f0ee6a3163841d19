//! The file that is written.

use crate::failure::Failure;
use crate::output;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Stands for the standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A new file, which is removed if it is not written to its end; a pipe or a device, as it is; or the standard output.
pub(super) struct Target {
    path: PathBuf,
    is_new: bool,
}

impl Target {
    /// Creates the file; what is written goes through the second value.
    pub(super) fn create(path: &Path) -> Result<(Self, Box<dyn Write>), Failure> {
        let path = path.to_owned();
        if is_standard_output(&path) {
            return Ok((Self { path, is_new: false }, Box::new(output::raw())));
        }
        let is_special = fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        let mut options = OpenOptions::new();
        match options.write(true).create_new(!is_special).open(&path) {
            Ok(file) => Ok((Self { path, is_new: !is_special }, Box::new(BufWriter::with_capacity(1 << 20, file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let path = path.display();
                Err(Failure::Refused(format!("{path} exists already; remove it, or name another file")))
            }
            Err(error) => {
                Err(Failure::Refused(format!("cannot create {}: {error}; name another file", path.display())))
            }
        }
    }

    /// Keeps the file if it was written to its end, and removes it otherwise.
    pub(super) fn keep<T>(self, written: io::Result<T>) -> Result<T, Failure> {
        written.map_err(|error| {
            if self.is_new {
                // If it cannot be removed either, the error below still says that it was not written.
                drop(fs::remove_file(&self.path));
            }
            if is_standard_output(&self.path) || error.kind() == io::ErrorKind::BrokenPipe {
                return Failure::Write(error);
            }
            Failure::Refused(format!("cannot write {}: {error}; make room, or name another file", self.path.display()))
        })
    }
}
