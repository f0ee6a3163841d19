//! The list of the statistics of a process: `PID-START.json`, replaced whenever they change.
//!
//! ```json
//! {"format": "tracepoint-statistics", "version": 1, "process": "4242-717", "name": "server", "pid_namespace": 4026531836,
//!  "statistics": [{"file": "4242-717.0.stat", "offset": 0, "words": 352, "event": "shop:paid",
//!                  "rule": {"event": "shop:*", "statistic": "count"}}]}
//! ```

use crate::private_dir::PrivateDir;
use crate::process::{self, ProcessKey};
use crate::spec::Rule;
use serde::{Deserialize, Serialize};
use std::io;

pub(super) const SUFFIX: &str = ".json";
const FORMAT: &str = "tracepoint-statistics";
const VERSION: u32 = 1;
/// The largest list that is read, in bytes.
const MAX_SIZE: u64 = 16 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Index {
    format: String,
    version: u32,
    pub(super) process: ProcessKey,
    pub(super) name: String,
    /// 0 if it is not known.
    pid_namespace: u64,
    pub(super) statistics: Vec<Entry>,
}

/// A statistic in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) file: String,
    /// Its first word, and how many there are.
    pub(super) offset: usize,
    pub(super) words: usize,
    pub(super) event: String,
    pub(super) rule: Rule,
}

impl Index {
    /// Of this process.
    pub(super) fn new(statistics: Vec<Entry>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            process: ProcessKey::of_this_process(),
            name: process::this_process().name,
            pid_namespace: process::pid_namespace(),
            statistics,
        }
    }

    pub(super) fn write(&self, dir: &PrivateDir, process: &str) -> io::Result<()> {
        dir.replace(&file_name(process), &serde_json::to_vec(self)?)
    }

    pub(super) fn read(dir: &PrivateDir, file: &str) -> io::Result<Self> {
        let index: Self = serde_json::from_slice(&dir.read_file(file, MAX_SIZE)?)?;
        if index.format != FORMAT || index.version != VERSION {
            let text = format!(
                "`{}` of version {} is no list of statistics that this version reads",
                index.format, index.version
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(index)
    }

    /// Whether its process is known to have ended: it is of this pid namespace, and does not exist.
    pub(super) fn has_ended(&self) -> bool {
        let here = process::pid_namespace();
        here != 0 && self.pid_namespace == here && !self.process.exists()
    }
}

fn file_name(process: &str) -> String {
    format!("{process}{SUFFIX}")
}

/// Removes the files of a process; those that readers find first go first.
pub(super) fn remove(dir: &PrivateDir, process: &str) {
    dir.remove_file(&file_name(process));
    let own = |name: &String| name.strip_prefix(process).is_some_and(|rest| rest.starts_with('.'));
    for file in dir.names().unwrap_or_default().into_iter().filter(own) {
        dir.remove_file(&file);
    }
}

/// Removes the files of processes that have ended, but for the newest `kept` ones.
pub(super) fn prune(dir: &PrivateDir, kept: usize) {
    let names = dir.names().unwrap_or_default();
    let lists: Vec<_> = names.iter().filter(|name| name.ends_with(SUFFIX) && !name.starts_with('.')).collect();
    if lists.len() <= kept {
        return;
    }
    let changed = |name: &str| {
        let stat = dir.open_file(name).ok().and_then(|file| file.metadata().ok());
        stat.and_then(|stat| stat.modified().ok())
    };
    let ended = lists.iter().filter(|name| Index::read(dir, name).is_ok_and(|index| index.has_ended()));
    let mut ended: Vec<_> = ended.map(|name| (changed(name), name)).collect();
    ended.sort();
    for (_, name) in ended.iter().take(ended.len().saturating_sub(kept)) {
        remove(dir, name.trim_end_matches(SUFFIX));
    }
}
