//! What this collector has of traces whose leases it had: another one may have them now.
//!
//! While a trace is collected its directory has the file [`FILE`], with the key of the lease and the epoch. A collector that ends a trace removes it.

use super::broker::{Broker, Failed};
use super::lease::Lease;
use crate::hub::position::{Position, cut_off};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file in the directory of a trace that is being collected.
const FILE: &str = ".lease";
/// How deep directories are searched: host, session, process.
const DEPTH: usize = 3;

/// A directory of a trace that a former collector had.
#[derive(Clone, Debug)]
pub(super) struct Former {
    root: PathBuf,
    pub(super) key: String,
    epoch: u64,
    session: String,
}

/// Notes that a trace is collected in this directory.
pub(super) fn mark(root: &Path, key: &str, epoch: u64, session: &str) -> io::Result<()> {
    fs::write(root.join(FILE), format!("{key}\n{epoch}\n{session}\n"))
}

/// The trace in this directory has ended here.
pub(super) fn unmark(root: &Path) {
    // A directory without a packet is gone. If the file stays, the next collector looks at the lease once more.
    let _ = fs::remove_file(root.join(FILE));
}

/// Cuts off what is behind the position, and notes that the trace has ended here. A message about it.
pub(super) fn end(root: &Path, session: &str, at: &Position) -> Option<String> {
    if !root.exists() {
        return None;
    }
    match cut_off(root, session, at) {
        Ok(cut) => {
            unmark(root);
            (cut > 0).then(|| format!("cut off {cut} packets of `{session}` that another collector has, too"))
        }
        Err(error) => Some(format!("cannot end the trace in {}: {error}", root.display())),
    }
}

/// The directories below an output directory that have not ended.
pub(super) fn find(output: &Path) -> Vec<Former> {
    let mut found = Vec::new();
    search(output, DEPTH, &mut found);
    found
}

fn search(directory: &Path, depth: usize, found: &mut Vec<Former>) {
    if let Ok(text) = fs::read_to_string(directory.join(FILE)) {
        let mut lines = text.lines().map(str::to_owned);
        if let (Some(key), Some(epoch), Some(session)) = (lines.next(), lines.next(), lines.next()) {
            if let Ok(epoch) = epoch.parse() {
                found.push(Former { root: directory.to_owned(), key, epoch, session });
            }
        }
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        search(&entry.path(), depth - 1, found);
    }
}

impl Former {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.root == other.root
    }

    /// Looks at the lease. `Ok(true)`: it is settled; `Ok(false)`: this collector still has it, and goes on there. A message, if something was done.
    pub(super) async fn settle(&self, broker: &Broker, owner: &str) -> Result<(bool, Option<String>), Failed> {
        let Some((lease, _)) = Lease::read(broker, &self.key).await? else {
            unmark(&self.root);
            let root = self.root.display();
            return Ok((true, Some(format!("there is no lease of the trace in {root}: what is there stays"))));
        };
        if let Some(at) = lease.end_of(owner, self.epoch) {
            return Ok((true, end(&self.root, &self.session, at)));
        }
        Ok((false, None))
    }
}
