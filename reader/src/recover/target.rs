//! The directory that is written. It is not a trace before it has its metadata, and its books are the last thing in it.

use super::RecoverError;
use crate::account::{ACCOUNT_PATH, Account};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
}

impl Target {
    /// Makes the directory, parents included, or takes an empty one.
    pub(crate) fn create(path: &Path) -> Result<Self, RecoverError> {
        let failed = || RecoverError::write(path);
        fs::create_dir_all(path).map_err(failed())?;
        if let Some(entry) = fs::read_dir(path).map_err(failed())?.next() {
            let found = entry.map_err(failed())?.file_name().to_string_lossy().into_owned();
            return Err(RecoverError::NotEmpty { path: path.to_owned(), found });
        }
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that must not be there.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, RecoverError> {
        let path = self.path.join(name);
        File::create_new(&path).map_err(RecoverError::write(&path))
    }

    /// Puts the metadata in: from here on it is a trace.
    pub(crate) fn describe(&self, metadata: &[u8]) -> Result<(), RecoverError> {
        let mut file = self.create_file("metadata")?;
        file.write_all(metadata).map_err(RecoverError::write(&self.path.join("metadata")))
    }

    /// Puts the account in, whole: from here on it is complete.
    pub(crate) fn finish(&self, account: &Account) -> Result<(), RecoverError> {
        let path = self.path.join(ACCOUNT_PATH);
        let growing = path.with_extension("json.new");
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
            fs::write(&growing, account.to_json())?;
            fs::rename(&growing, &path)
        };
        write().map_err(RecoverError::write(&path))
    }
}
