//! Creates trace objects from the entries of a romfile.

use super::{MAX_ROMFILE, RomEntry, RomError, parse};
use crate::error::Error;
use crate::object::TraceObject;
use crate::options::TraceOptions;
use crate::writer::Layout;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The default romfile.
const ROMFILE: &str = "./rom";

/// The objects of a protocol could not be created from a romfile. None was created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The romfile could not be read.
    #[error("{}: {source}{}", path.display(), mend(source))]
    Io {
        /// The romfile.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of the protocol is malformed.
    #[error("{}: {error}", path.display())]
    Line {
        /// The romfile.
        path: PathBuf,
        /// The line, the column, and the expected input.
        #[source]
        error: RomError,
    },
    /// The object of a line could not be created.
    #[error("{}: line {line}: {error}", path.display())]
    Object {
        /// The romfile.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The reason.
        #[source]
        error: Error,
    },
}

/// Creates the trace objects that the romfile `./rom` lists for `protocol`, and [keeps](TraceObject::keep) them open, so that the protocol
/// can look them up by name. A program that calls this must call [`close_all`](crate::close_all) at its end. The original's `dtLoadXObjRomOpts`.
///
/// # Errors
///
/// See [`LoadError`]. Lines of other protocols are ignored.
pub fn load_options(protocol: &str) -> Result<Vec<Arc<TraceObject>>, LoadError> {
    load_options_from(Path::new(ROMFILE), protocol, Path::new("."))
}

/// [`load_options`] from another romfile, with the files of the objects in `directory`.
///
/// # Errors
///
/// See [`LoadError`].
pub fn load_options_from(romfile: &Path, protocol: &str, directory: &Path) -> Result<Vec<Arc<TraceObject>>, LoadError> {
    let path = || romfile.to_owned();
    let text = read(romfile).map_err(|source| LoadError::Io { path: path(), source })?;
    let mut entries = Vec::new();
    for entry in parse(&text) {
        match entry {
            Ok(entry) if entry.protocol == protocol => entries.push(entry),
            Err(error) if error.protocol == protocol => return Err(LoadError::Line { path: path(), error }),
            _ => {}
        }
    }
    let mut objects = Vec::new();
    for RomEntry { name, logsize, filesize, line, .. } in entries {
        let options = TraceOptions::new(Layout::new(logsize, filesize)).directory(directory);
        let made = name.map_or_else(|| options.clone().create_unnamed(), |name| options.clone().create(&name));
        objects.push(made.map_err(|error| LoadError::Object { path: path(), line, error })?);
    }
    // Only after all have succeeded: otherwise dropping closes the earlier ones.
    objects.iter().for_each(TraceObject::keep);
    Ok(objects)
}

/// The remedy for an error.
fn mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; name a romfile, or make this one",
        io::ErrorKind::PermissionDenied => "; name a romfile that this user may read",
        _ => "",
    }
}

fn read(romfile: &Path) -> io::Result<String> {
    let wrong = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    if !romfile.metadata()?.is_file() {
        return Err(wrong("not a regular file".into()));
    }
    let mut bytes = Vec::new();
    File::open(romfile)?.take(MAX_ROMFILE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_ROMFILE {
        return Err(wrong(format!("a romfile of more than {MAX_ROMFILE} bytes is not read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(column).chars().count() + 1;
        wrong(format!("line {line}, column {column}: expected text in UTF-8"))
    })
}
