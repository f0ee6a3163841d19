//! The group that a run directory is open to, if it is: `TRACEPOINT_GROUP`.

use crate::secure_exec::secure;
use rustix::fs::{Gid, Mode, fchmod, fchown};
use std::env;
use std::fs::File;
use std::io;
use std::sync::OnceLock;

/// The group, by its name or number; `None` if none is named, or there is none of that name. Looked up once: what was made for a
/// group stays so.
pub(crate) fn group() -> Option<Gid> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    let found = *GROUP.get_or_init(|| {
        let name = env::var("TRACEPOINT_GROUP").ok().filter(|name| !name.is_empty() && !secure())?;
        name.parse().ok().or_else(|| Some(nix::unistd::Group::from_name(&name).ok()??.gid.as_raw()))
    });
    found.map(Gid::from_raw)
}

/// Lets the group read and write a file that this process has just made, if there is one.
pub(crate) fn shared(file: File) -> io::Result<File> {
    if let Some(group) = group() {
        fchown(&file, None, Some(group))?;
        fchmod(&file, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?;
    }
    Ok(file)
}
