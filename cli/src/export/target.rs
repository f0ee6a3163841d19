//! The output file.

use crate::failure::Failure;
use crate::output;
use crate::output_file;
use fileguard::shortage_mend;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A new file, called `NAME.partial` until it is complete; an existing pipe or device; or the standard output.
pub(super) struct Target {
    path: PathBuf,
    partial: Option<PathBuf>,
}

impl Target {
    /// Creates the file; the second value is its writer.
    pub(super) fn create(path: &Path) -> Result<(Self, Box<dyn Write>), Failure> {
        let path = path.to_owned();
        if output_file::is_standard(&path) {
            return Ok((Self { path, partial: None }, output::plain()));
        }
        let is_special = fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let partial = Some(PathBuf::from(partial)).filter(|_| !is_special);
        let opened = match &partial {
            Some(_) if fs::symlink_metadata(&path).is_ok() => Err((&path, io::ErrorKind::AlreadyExists.into())),
            Some(partial) => {
                OpenOptions::new().write(true).create_new(true).open(partial).map_err(|error| (partial, error))
            }
            None => OpenOptions::new().write(true).open(&path).map_err(|error| (&path, error)),
        };
        match opened {
            Ok(file) => Ok((Self { path, partial }, Box::new(BufWriter::with_capacity(1 << 20, file)))),
            Err((exists, error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                let exists = exists.display();
                Err(Failure::Refused(format!("{exists} exists already; remove it, or name another file")))
            }
            Err((_, error)) => {
                let mend = shortage_mend(&error).unwrap_or("; name another file");
                Err(Failure::Refused(format!("cannot create {}: {error}{mend}", path.display())))
            }
        }
    }

    /// Renames the file if it is complete, and removes it otherwise.
    pub(super) fn keep<T>(self, written: io::Result<T>) -> Result<T, Failure> {
        let named = written.and_then(|written| {
            self.partial.iter().try_for_each(|partial| fs::rename(partial, &self.path))?;
            Ok(written)
        });
        named.map_err(|error| {
            if let Some(partial) = &self.partial {
                // If it cannot be removed, the error below still says that it is incomplete.
                drop(fs::remove_file(partial));
            }
            if output_file::is_standard(&self.path) || error.kind() == io::ErrorKind::BrokenPipe {
                return Failure::Write(error);
            }
            let advice = match error.kind() {
                // The data is invalid, not the file.
                io::ErrorKind::InvalidData => "",
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    "; make room, or name another file"
                }
                _ => shortage_mend(&error).unwrap_or("; name another file"),
            };
            Failure::Refused(format!("cannot write {}: {error}{advice}", self.path.display()))
        })
    }
}
