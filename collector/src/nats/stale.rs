//! Directories of traces that this collector had leases on before a restart, and that another collector may have now.
//!
//! While a trace is collected, its directory has the file [`FILE`] with the lease's key and epoch. A collector removes it when the trace ends there.

use super::broker::{Broker, BrokerError};
use super::lease::Lease;
use crate::hub::position::{Position, cut_off};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The mark in the directory of a trace that is being collected.
const FILE: &str = ".lease";
/// Maximum depth of the search: host, session, process.
const DEPTH: usize = 3;

/// A directory of a trace on which an earlier collector had the lease.
#[derive(Clone, Debug)]
pub(super) struct StaleTrace {
    root: PathBuf,
    pub(super) key: String,
    epoch: u64,
    session: String,
}

/// Marks a directory in which a trace is collected.
pub(super) fn mark(root: &Path, key: &str, epoch: u64, session: &str) -> io::Result<()> {
    fs::write(root.join(FILE), format!("{key}\n{epoch}\n{session}\n"))
}

/// Removes the mark: the trace has ended here.
pub(super) fn unmark(root: &Path) {
    // A directory without packets is gone. If the mark stays, the next collector checks the lease again.
    let _ = fs::remove_file(root.join(FILE));
}

/// Removes data beyond the position, and the mark. Returns a message about it, if there is one.
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

/// Finds marked directories below an output directory.
pub(super) fn find(output: &Path) -> Vec<StaleTrace> {
    let mut found = Vec::new();
    search(output, DEPTH, &mut found);
    found
}

fn search(directory: &Path, depth: usize, found: &mut Vec<StaleTrace>) {
    if let Ok(text) = fs::read_to_string(directory.join(FILE)) {
        let mut lines = text.lines().map(str::to_owned);
        if let (Some(key), Some(epoch), Some(session)) = (lines.next(), lines.next(), lines.next())
            && let Ok(epoch) = epoch.parse()
        {
            found.push(StaleTrace { root: directory.to_owned(), key, epoch, session });
        }
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        search(&entry.path(), depth - 1, found);
    }
}

impl StaleTrace {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.root == other.root
    }

    /// Checks the lease. Returns `true` if the directory is settled, `false` if this collector still has the lease and continues there; and a
    /// message, if something was done.
    pub(super) async fn settle(&self, broker: &Broker, owner: &str) -> Result<(bool, Option<String>), BrokerError> {
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
