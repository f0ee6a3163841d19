//! Reports as a dt file. How large its slots have to be, and how many, is known when all has come: until then it is a directory
//! next to it, which is converted.

use super::Out;
use super::directory::Directory;
use crate::failure::{self, Failure};
use crate::output::{self, counted};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tracepoint_reader::convert::{ConvertError, ConvertOptions, Converted, convert};
use tracepoint_reader::udp::{Counts, DirectoryError, Ending, Report};

pub(super) struct DtFile {
    path: PathBuf,
    options: ConvertOptions,
    directory: Directory,
    /// Removed with all that is in it, unless it is the only place where it is.
    beside: TempDir,
}

impl DtFile {
    /// Whether this is what a dt file is called.
    pub(super) fn is_one(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "dt")
    }

    pub(super) fn create(path: &Path, slots: Option<u32>) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(ConvertError::from(datatrace::Error::Exists { path: path.to_owned() }).into());
        }
        let mut options = ConvertOptions::default();
        options.slots = slots;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let beside = tempfile::Builder::new().prefix(&name).tempdir_in(parent);
        let beside = beside.map_err(|source| DirectoryError::Write { path: parent.to_owned(), source })?;
        let directory = Directory::create(beside.path())?;
        Ok(Self { path: path.to_owned(), options, directory, beside })
    }
}

/// Makes the dt file; whether all that came is in it, or has no slot.
fn make(directory: Directory, received: &Path, out: &Path, options: ConvertOptions) -> Result<bool, Failure> {
    directory.close(out)?;
    let Converted { dropped, damage, .. } = convert(received, out, options, |_| {})?;
    if dropped > 0 {
        output::note(&format!("{} found no slot, the oldest", counted(dropped, "packet")));
    }
    for damage in &damage {
        failure::say_error(&format!("{damage}; not in {}", out.display()));
    }
    Ok(damage.is_empty())
}

impl Out for DtFile {
    fn take(&mut self, report: Report) -> Result<bool, Failure> {
        self.directory.take(report)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.directory.flush()
    }

    fn finish(self: Box<Self>, _: Ending, _: &Counts) -> Result<bool, Failure> {
        let Self { path, options, directory, beside } = *self;
        if !directory.is_trace() {
            output::note(&format!("nothing came that a trace could be made of; there is no {}", path.display()));
            return Ok(true);
        }
        let made = make(directory, beside.path(), &path, options);
        if made.is_err() {
            output::note(&format!("what came is in {}, as a CTF trace", beside.keep().display()));
        }
        made
    }
}
