//! Existing traces in an output directory: removes them, or chooses a new directory named by the time.

use super::CtfError;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tz::UtcDateTime;

/// Maximum depth of traces below a directory: a process's directory, and its chunks.
const DEPTH: u32 = 3;
/// The first bytes of a trace's metadata, and words that this library writes near its beginning.
const METADATA: &[u8] = b"/* CTF 1.8 */";
const TRACER: &[u8] = b"tracer_name = \"tracepoint\"";
/// The first bytes of a packet.
const MAGIC: [u8; 4] = 0xC1FC_1FC1_u32.to_le_bytes();

/// Removes this library's traces in a directory and below it, and leaves the directory empty. Does nothing if it does not exist.
///
/// Do not remove a trace that is being written: its session would fail to write.
///
/// # Errors
/// [`CtfError::NotEmpty`] if there is anything except such traces; then nothing is removed. [`CtfError::NotADirectory`] and [`CtfError::Io`].
pub fn remove_traces(directory: impl AsRef<Path>) -> Result<(), CtfError> {
    let path = directory.as_ref();
    let failed = |action| move |source| CtfError::Io { action, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read")(error)),
        Ok(found) if !found.is_dir() => return Err(CtfError::NotADirectory(path.to_owned())),
        Ok(_) => {}
    }
    if let Some(found) = foreign(path, DEPTH).map_err(failed("read"))? {
        let found = found.strip_prefix(path).unwrap_or(&found).to_string_lossy().into_owned();
        return Err(CtfError::NotEmpty { path: path.to_owned(), found });
    }
    let remove = |entry: DirEntry| {
        let is_directory = entry.file_type()?.is_dir();
        if is_directory { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }
    };
    // The metadata first, so that a process killed in between leaves no partial trace.
    match fs::remove_file(path.join("metadata")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove")(error)),
        _ => {}
    }
    fs::read_dir(path).and_then(|mut entries| entries.try_for_each(|entry| remove(entry?))).map_err(failed("remove"))
}

/// Returns the path of a directory in `parent` that does not exist yet, named by the time in UTC: `20261123T162431Z`, or `20261123T162431Z-2` and so
/// on. Such names sort by time. The directory is not created.
pub fn dated_directory(parent: impl AsRef<Path>) -> PathBuf {
    let name = time_name(SystemTime::now());
    let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
    let mut paths = std::iter::once(name.clone()).chain(numbered).map(|name| parent.as_ref().join(name));
    paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| parent.as_ref().join(name))
}

/// Formats a time to the second, as a name.
fn time_name(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = UtcDateTime::from_timespec(seconds.cast_signed(), 0).unwrap_or(UtcDateTime::UNIX_EPOCH);
    let [month, day, hour, minute, second] =
        [time.month(), time.month_day(), time.hour(), time.minute(), time.second()];
    format!("{:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z", time.year())
}

/// Returns an entry of a directory that is not part of a trace, if there is one.
fn foreign(directory: &Path, depth: u32) -> io::Result<Option<PathBuf>> {
    let is_trace = begins_like_metadata(&directory.join("metadata"))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind, name) = (entry.path(), entry.file_type()?, entry.file_name());
        if kind.is_dir() {
            let is_account = name == ".account";
            let inner = match depth.checked_sub(1) {
                None => Some(path),
                Some(_) if is_account => foreign_account(&path, is_trace)?,
                Some(depth) => foreign(&path, depth)?,
            };
            if inner.is_some() {
                return Ok(inner);
            }
        } else if !kind.is_file() || !is_trace || !(name == "metadata" || is_stream(&path)?) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The same for the directory of an account. Without metadata there is no account, but a process that was killed may leave what it was writing.
fn foreign_account(directory: &Path, is_trace: bool) -> io::Result<Option<PathBuf>> {
    let is_account = |entry: &DirEntry| {
        let name = entry.file_name();
        (is_trace && name == "account.json") || name == ".account.json.new" || name == ".metadata.new"
    };
    let mut entries = fs::read_dir(directory)?;
    let found = entries.find(|entry| entry.as_ref().map_or(true, |entry| !is_account(entry))).transpose()?;
    Ok(found.map(|entry| entry.path()))
}

fn begins_like_metadata(file: &Path) -> io::Result<bool> {
    if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(false);
    }
    let begin = beginning(file, 4096)?;
    Ok(begin.starts_with(METADATA) && begin.windows(TRACER.len()).any(|bytes| bytes == TRACER))
}

fn is_stream(file: &Path) -> io::Result<bool> {
    let begin = beginning(file, 4)?;
    Ok(begin.is_empty() || begin == MAGIC)
}

fn beginning(file: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    File::open(file)?.take(bytes).read_to_end(&mut begin)?;
    Ok(begin)
}
