//! The list of the statistics of a process: `PID-START.json`, replaced whenever they change.
//!
//! ```json
//! {"format": "tracepoint-statistics", "version": 1, "process": "4242-717", "name": "server", "pid_namespace": 4026531836,
//!  "statistics": [{"file": "4242-717.0.stat", "offset": 0, "words": 352, "event": "shop:paid",
//!                  "rule": {"event": "shop:*", "statistic": "count"}, "is_duration": false}]}
//! ```

use serde::{Deserialize, Serialize};
use std::io;
use tracepoint_reader::process::{self, ProcessKey};
use tracepoint_reader::time_namespace::TimeNamespace;
use tracepoint_run_dir::own_process;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_spec::Rule;

pub(super) const SUFFIX: &str = ".json";
const FORMAT: &str = "tracepoint-statistics";
const VERSION: u32 = 1;
/// Maximum size of a list that is read, in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// The statistics of a process, and its identity.
#[derive(Debug, Serialize, Deserialize)]
pub struct Index {
    format: String,
    version: u32,
    pub(super) process: ProcessKey,
    pub(super) name: String,
    /// 0 if unknown.
    pid_namespace: u64,
    /// The offset of `CLOCK_MONOTONIC` in its time namespace from that of the initial one, in ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    clock_shift: i64,
    pub(super) statistics: Vec<Entry>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(shift: &i64) -> bool {
    *shift == 0
}

/// Returns the shift of this process's own clock.
fn shift() -> i64 {
    TimeNamespace::of_this_process().unwrap_or_default().monotonic
}

/// A statistic in a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the file.
    pub file: String,
    /// The index of its first word.
    pub offset: usize,
    /// Its number of words.
    pub words: usize,
    /// The event; for a latency, the one that ends it.
    pub event: String,
    /// The rule.
    pub rule: Rule,
    /// True if the values are nanoseconds.
    #[serde(default)]
    pub is_duration: bool,
}

impl Index {
    /// Creates the index of this process.
    pub fn new(statistics: Vec<Entry>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            process: ProcessKey::of_this_process(),
            name: own_process::this_process().name,
            pid_namespace: process::own_pid_namespace(),
            clock_shift: shift(),
            statistics,
        }
    }

    /// Returns the difference to add to times of its process to convert them to times of this process.
    #[cfg(target_os = "linux")]
    pub(super) fn shift_to_here(&self) -> i64 {
        shift().saturating_sub(self.clock_shift)
    }

    /// Replaces the file of the process with this name.
    pub fn write(&self, dir: &PrivateDir, process: &str) -> io::Result<()> {
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

    /// Returns whether its process is known to have ended: it is in this pid namespace, and does not exist.
    pub(super) fn has_ended(&self) -> bool {
        let here = process::pid_namespace();
        here != 0 && self.pid_namespace == here && !self.process.exists()
    }
}

fn file_name(process: &str) -> String {
    format!("{process}{SUFFIX}")
}

/// Removes the files of a process, the list first, because readers start with it.
pub fn remove(dir: &PrivateDir, process: &str) {
    dir.remove_file(&file_name(process));
    let own = |name: &String| name.strip_prefix(process).is_some_and(|rest| rest.starts_with('.'));
    for file in dir.names().unwrap_or_default().into_iter().filter(own) {
        dir.remove_file(&file);
    }
}

/// Removes the files of processes that have ended, except for the `kept` processes that ended last. The modification times of mapped files
/// do not show this. Therefore this function touches the lists of living processes: the time of a list is when its process was last seen
/// alive.
pub fn prune(dir: &PrivateDir, kept: usize) {
    let names = dir.names().unwrap_or_default();
    let lists: Vec<_> = names.iter().filter(|name| name.ends_with(SUFFIX) && !name.starts_with('.')).collect();
    // With few lists, they need not be read.
    if lists.len() <= kept / 2 {
        return;
    }
    let changed = |name: &str| {
        let stat = dir.open_file(name).ok().and_then(|file| file.metadata().ok());
        stat.and_then(|stat| stat.modified().ok())
    };
    let mut ended = Vec::new();
    for name in lists {
        match Index::read(dir, name) {
            Ok(index) if index.has_ended() => ended.push((changed(name), name)),
            Ok(_) => dir.touch_file(name),
            Err(_) => {}
        }
    }
    ended.sort();
    for (_, name) in ended.iter().take(ended.len().saturating_sub(kept)) {
        remove(dir, name.trim_end_matches(SUFFIX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    /// A process that runs for a long time has an old list: its list is not removed before those of processes that started and ended
    /// meanwhile.
    #[test]
    fn the_lists_of_those_that_ended_last_are_kept() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = PrivateDir::at(temp.path())?;
        let put = |pid: u32, started: u64, seconds: u64| -> io::Result<()> {
            let process = ProcessKey::new(pid, started);
            let name = process.to_string();
            Index { process, ..Index::new(Vec::new()) }.write(&dir, &name)?;
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::open(temp.path().join(file_name(&name)))?.set_modified(changed)
        };
        let own = ProcessKey::of_this_process();
        put(own.pid, own.started, 1)?;
        for second in 2..6 {
            put(own.pid, own.started + second, second)?;
        }
        prune(&dir, 3);
        let own_list = file_name(&own.to_string());
        let changed = temp.path().join(&own_list).metadata()?.modified()?;
        assert!(changed > SystemTime::UNIX_EPOCH + Duration::from_secs(6), "seen alive");
        assert_eq!(dir.names()?.len(), 4, "its own, and three that have ended");
        assert!(dir.file_len(&file_name(&ProcessKey::new(own.pid, own.started + 2).to_string())).is_err());
        Ok(())
    }
}
