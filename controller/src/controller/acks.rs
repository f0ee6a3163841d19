//! Reads the acknowledgements of a session's processes.

use std::io;
use tracepoint_run_dir::ack::files::{ACKS, SUFFIX};
use tracepoint_run_dir::ack::{Ack, AckState};
use tracepoint_run_dir::json::read_json;
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};

/// Returns all acknowledgements in `dir`, the directory of a session, by process. `is_alive` returns whether the process of an entry is
/// alive.
pub(super) fn all(dir: &PrivateDir, is_alive: impl Fn(&str) -> bool) -> Result<Vec<Ack>, DirError> {
    let acks = match dir.open_subdir(ACKS) {
        Ok(acks) => acks,
        // No agent has acknowledged yet.
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = acks.names().map_err(|error| acks.failed("read", "", error))?;
    let whole = names.into_iter().filter(|name| !name.starts_with('.'));
    let mut found: Vec<Ack> = whole.filter_map(|name| read(&acks, &name, &is_alive).ok()).collect();
    found.sort_by_key(|ack| ack.process);
    Ok(found)
}

/// Returns the last acknowledgement of the process with this entry, dead or alive.
pub(super) fn last(dir: &PrivateDir, entry: &str) -> Option<Ack> {
    read_json(&dir.open_subdir(ACKS).ok()?, &format!("{entry}{SUFFIX}")).ok()
}

fn read(acks: &PrivateDir, name: &str, is_alive: impl Fn(&str) -> bool) -> io::Result<Ack> {
    let ack: Ack = read_json(acks, name)?;
    let records = |ack: &Ack| matches!(ack.state, AckState::Recording | AckState::Ending);
    let entry = name.strip_suffix(SUFFIX).unwrap_or(name);
    if !records(&ack) || is_alive(entry) {
        return Ok(ack);
    }
    // It may have ended properly since then, and acknowledged that.
    let mut last: Ack = read_json(acks, name)?;
    if records(&last) {
        (last.state, last.events) = (AckState::Dead, 0);
    }
    Ok(last)
}
