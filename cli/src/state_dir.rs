//! The directory for persistent state: `$XDG_STATE_HOME`, or `~/.local/state`.

use crate::failure::Failure;
use rustix::process::geteuid;
use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tracepoint_run_dir::users::User;

/// The directory; `None` if this user has no home. `mend` is the advice in error messages.
pub(crate) fn state_dir(mend: &str) -> Result<Option<PathBuf>, Failure> {
    // With `--user`, `HOME` still names root's directory.
    let own = |home: &PathBuf| home.metadata().is_ok_and(|home| home.uid() == geteuid().as_raw());
    let home = || absolute("HOME").filter(own).or_else(|| Some(User::by_id(geteuid().as_raw()).ok()??.home));
    match absolute("XDG_STATE_HOME") {
        Some(state) => made(state, mend).map(Some),
        None => Ok(home().map(|home| home.join(".local/state"))),
    }
}

/// An environment variable, if its value is an absolute path.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value: &OsString| Path::new(value).is_absolute()).map(PathBuf::from)
}

/// The directory `$XDG_STATE_HOME`; created if it does not exist.
fn made(dir: PathBuf, mend: &str) -> Result<PathBuf, Failure> {
    let failed = |reason: String| {
        Failure::Refused(format!("cannot use `$XDG_STATE_HOME`: {reason}; correct the variable, or {mend}"))
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| failed(format!("{} cannot be made: {error}", dir.display())))?;
    let owner = dir.metadata().map_err(|error| failed(format!("{}: {error}", dir.display())))?.uid();
    if owner != geteuid().as_raw() {
        return Err(failed(format!("{} belongs to user {owner}", dir.display())));
    }
    Ok(dir)
}
