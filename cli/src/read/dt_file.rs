//! Output as a dt file. The size and number of its slots are known only at the end of the session. Until then the trace is in a temporary directory
//! next to the file, which is then converted.

use super::Output;
use super::directory::Directory;
use crate::failure::Failure;
use crate::message;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tracepoint_reader::RecoverError;
use tracepoint_reader::convert::{ConversionSummary, ConvertError, ConvertOptions, convert};
use tracepoint_reader::udp::{Counts, Report, SessionEnd};

pub(super) struct DtFile {
    path: PathBuf,
    options: ConvertOptions,
    directory: Directory,
    /// The directory; removed on drop, unless the conversion failed.
    received: TempDir,
}

pub(super) fn is_dt_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dt")
}

impl DtFile {
    pub(super) fn create(path: &Path, slots: Option<u32>) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(ConvertError::from(datatrace::Error::Exists(path.to_owned())).into());
        }
        let mut options = ConvertOptions::default();
        options.slots = slots;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let received = tempfile::Builder::new().prefix(&name).tempdir_in(parent);
        let received = received.map_err(|source| RecoverError::Write { path: parent.to_owned(), source })?;
        let directory = Directory::create(received.path())?;
        Ok(Self { path: path.to_owned(), options, directory, received })
    }
}

/// Writes the dt file; returns true if it contains everything that arrived, except for packets without a slot.
fn make(directory: Directory, received: &Path, out: &Path, options: ConvertOptions) -> Result<bool, Failure> {
    directory.close(out)?;
    let ConversionSummary { dropped, damage, .. } = convert(received, out, options, |_| {})?;
    message::note_dropped(dropped);
    for damage in &damage {
        message::error(&format!("{damage}; not in {}", out.display()));
    }
    Ok(damage.is_empty())
}

impl Output for DtFile {
    fn write(&mut self, report: Report) -> Result<bool, Failure> {
        self.directory.write(report)
    }

    fn finish(self: Box<Self>, _: SessionEnd, _: &Counts) -> Result<bool, Failure> {
        let Self { path, options, directory, received } = *self;
        if !directory.described {
            message::note(&format!("no trace has arrived; {} was not created", path.display()));
            return Ok(true);
        }
        let made = make(directory, received.path(), &path, options);
        if made.is_err() {
            message::note(&format!("the CTF trace that was received is kept in {}", received.keep().display()));
        }
        made
    }
}
