//! Shared keys that this program makes: the one of a collector to which other machines can connect, and those of `record --on`.

use crate::failure::Failure;
use crate::state_dir::{absolute, state_dir};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The random bytes of a key.
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

/// The file with the key of this user's collectors, which is made if there is none; then its text, too.
pub(crate) fn key_of_collector() -> Result<(PathBuf, Option<String>), Failure> {
    // That of a unit of systemd, which may have no home.
    let directory = match absolute("STATE_DIRECTORY") {
        Some(directory) => Some(directory),
        None => state_dir(MEND)?.map(|state| state.join("tracepoint")),
    };
    let directory = directory
        .ok_or_else(|| Failure::Refused(format!("there is no home directory for the key of the collector; {MEND}")))?;
    let path = directory.join(NAME);
    let made = make(&directory, &path).map_err(|error| {
        Failure::Refused(format!("cannot make the key of the collector, {}: {error}; {MEND}", path.display()))
    })?;
    Ok((path, made))
}

/// Makes the file, whole or not at all; the text of the key, unless there is one.
fn make(directory: &Path, path: &Path) -> io::Result<Option<String>> {
    if path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let new = path.with_extension(format!("key.{}", std::process::id()));
    let text = random_key()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = writeln!(file, "{text}").and_then(|()| fs::hard_link(&new, path));
    fs::remove_file(&new)?;
    match written {
        // Another collector of this user has made one meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        written => written.map(|()| Some(text)),
    }
}
