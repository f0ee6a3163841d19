//! Shared keys made by this program: for a collector that other machines can reach, and for `record --on`.

use crate::failure::Failure;
use crate::state_dir::state_dir;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Size of a key in random bytes.
const KEY_BYTES: usize = 32;
const NAME: &str = "collector.key";
const MEND: &str = "name the key with `--key-file FILE`";

/// The text of a new key, in hexadecimal digits.
pub(crate) fn random_key() -> io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// The path of the key file of this user's collectors. The file may not exist.
pub(crate) fn path_of_collector() -> Result<PathBuf, Failure> {
    let directory = match unit_state() {
        Some(directory) => Some(directory),
        None => state_dir(MEND)?.map(|state| state.join("tracepoint")),
    };
    let none = || Failure::Refused(format!("there is no home directory for the key of the collector; {MEND}"));
    directory.map(|directory| directory.join(NAME)).ok_or_else(none)
}

/// The first state directory of a systemd unit. A unit may have several, and may have no home.
fn unit_state() -> Option<PathBuf> {
    let all = env::var_os("STATE_DIRECTORY")?;
    env::split_paths(&all).next().filter(|first| first.is_absolute())
}

/// Creates a file with this key, atomically. `false` if the file already exists.
pub(crate) fn make(path: &Path, key: &str) -> Result<bool, Failure> {
    write(path, key).map_err(|error| not_made(path, &error))
}

pub(crate) fn not_made(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("cannot make the key of the collector, {}: {error}; {MEND}", path.display()))
}

fn write(path: &Path, key: &str) -> io::Result<bool> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let new = path.with_extension(format!("key.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = writeln!(file, "{key}").and_then(|()| fs::hard_link(&new, path));
    fs::remove_file(&new)?;
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        written => written.map(|()| true),
    }
}
