//! The group that shares the run directory, if `TRACEPOINT_GROUP` is set.

use crate::users::Group;
use rustix::fs::{Gid, Mode, fchmod, fchown};
use std::env;
use std::fs::File;
use std::io;
use std::sync::OnceLock;
use tracepoint_reader::secure_exec::secure;

/// Returns the group, given by name or number; `None` if none is set or the name is unknown. Looked up once, so that the answer does not
/// change while the process runs.
pub fn group() -> Option<Gid> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    let found = *GROUP.get_or_init(|| {
        let name = env::var("TRACEPOINT_GROUP").ok().filter(|name| !name.is_empty() && !secure())?;
        name.parse().ok().or_else(|| Some(Group::by_name(&name).ok()??.gid))
    });
    found.map(Gid::from_raw)
}

/// Gives the group read access to a file that this process has just created, if a group is set.
pub(crate) fn readable(file: &File) -> io::Result<()> {
    let Some(group) = group() else { return Ok(()) };
    fchown(file, None, Some(group))?;
    Ok(fchmod(file, Mode::RUSR | Mode::WUSR | Mode::RGRP)?)
}

/// Gives the group read and write access to a file that this process has just created, if a group is set.
pub(crate) fn shared(file: &File) -> io::Result<()> {
    let Some(group) = group() else { return Ok(()) };
    fchown(file, None, Some(group))?;
    Ok(fchmod(file, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?)
}
