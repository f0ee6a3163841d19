//! What processes that died had recorded: recovered while the recording goes on, so that the rings of many are not in each other's way.

use crate::failure::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tracepoint_control::{Ack, AckState, Application, ControlError, NamedSession};
use tracepoint_reader::recover::RecoveredProcess;

/// What was recovered so far.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub(super) processes: Vec<RecoveredProcess>,
    pub(super) failures: Vec<String>,
    /// Directories that cannot be recovered, and stay.
    failed: BTreeSet<PathBuf>,
}

impl Recovery {
    /// Recovers what processes have left that died since.
    pub(super) fn go_on(&mut self, session: &NamedSession<'_>, out: &Path) -> Result<(), ControlError> {
        for dir in session.rings_of_dead()? {
            if self.failed.contains(&dir) {
                continue;
            }
            match recover(&dir, out) {
                Ok(process) => {
                    self.processes.push(process);
                    session.remove_rings_of_dead(&dir)?;
                }
                Err(error) => {
                    self.failures.push(format!("{}: {error}", dir.display()));
                    self.failed.insert(dir);
                }
            }
        }
        Ok(())
    }

    /// Whether something could not be recovered, and stays.
    pub(super) fn is_wanting(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Tells of the processes that died, and of which there is nothing to recover any more. `acks` is what all said who were there when the
    /// recording ended in `generation`, and before.
    pub(super) fn miss(&mut self, acks: &[Ack], silent: &[Application], generation: u64) {
        let lives = |ack: &Ack| {
            ack.generation >= generation || silent.iter().any(|process| process.info().key() == ack.process)
        };
        let is_known = |ack: &Ack| {
            let key = ack.process.to_string();
            let failed = self.failed.iter().filter_map(|dir| dir.file_name()?.to_str());
            let recovered = self.processes.iter().any(|process| process.pid == ack.process.pid);
            recovered || { failed }.any(|name| name.starts_with(&key))
        };
        let recorded = acks.iter().filter(|ack| ack.state == AckState::Recording);
        let missed = recorded.filter(|ack| !lives(ack) && !is_known(ack));
        let told: Vec<_> = missed
            .map(|ack| {
                let (pid, name) = (ack.process.pid, &ack.name);
                format!(
                    "process {pid} ({name}) died, and its rings were gone before they could be recovered: what was in them is lost"
                )
            })
            .collect();
        self.failures.extend(told);
    }
}

/// Makes one whole trace of what a process that died had written and what was in its rings still, in place of the part.
fn recover(dir: &Path, out: &Path) -> Result<RecoveredProcess, Failure> {
    let part = fs::read_to_string(dir.join("outputs")).unwrap_or_default();
    let part = part.lines().find_map(|line| line.strip_prefix("ctf ")).map(PathBuf::from);
    let name = dir.file_name().unwrap_or_default();
    let growing = out.join(format!(".{}.recovered", name.to_string_lossy()));
    let recovered = tracepoint_reader::recover(dir, &growing)?;
    let mut process = recovered.processes.into_iter().next().unwrap_or_default();
    // What stands in a file of the process's is no leave to replace anything but an entry of the output.
    let is_entry = |part: &PathBuf| part.parent() == Some(out) && part.file_name().is_some();
    process.output = part.filter(is_entry).unwrap_or_else(|| out.join(name));
    if process.output.exists() {
        fs::remove_dir_all(&process.output)?;
    }
    fs::rename(&growing, &process.output)?;
    Ok(process)
}
