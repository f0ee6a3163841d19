//! The output directory. It becomes a trace when it has metadata; the account is written last.

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
    /// Creates the directory and its parents, or uses an empty one.
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

    /// Creates a file that must not exist.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, RecoverError> {
        let path = self.path.join(name);
        File::create_new(&path).map_err(RecoverError::write(&path))
    }

    /// Writes the metadata, which makes it a trace.
    pub(crate) fn describe(&self, metadata: &[u8]) -> Result<(), RecoverError> {
        let mut file = self.create_file("metadata")?;
        file.write_all(metadata).map_err(RecoverError::write(&self.path.join("metadata")))
    }

    /// Writes the account, which makes it complete.
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
