//! Processes that were restored from a checkpoint: their start time differs from that in their entries.

use super::Controller;
use crate::described::description;
use tracepoint_reader::process::{ProcessKey, pid_namespace};
use tracepoint_run_dir::bell::RingResult;

impl Controller {
    /// Returns whether a process with this id in our pid namespace has an entry with another start time: it may have been restored from a
    /// checkpoint. Wakes the process, which then publishes itself again.
    pub(super) fn has_restored(&self, pid: u32) -> bool {
        let names = self.store.apps().names().unwrap_or_default().into_iter();
        let of_pid = names.filter(|name| ProcessKey::of_directory(name).is_some_and(|key| key.pid == pid));
        // Ids in other namespaces denote other processes.
        let is_ours = |name: &String| {
            let described = self.store.apps().open_subdir(name).ok().and_then(|dir| description(&dir));
            described.is_none_or(|info| [0, pid_namespace()].contains(&info.pid_namespace))
        };
        of_pid.filter(is_ours).any(|name| self.store.ring_one(&name, "") == RingResult::Queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_run_dir::app::ApplicationInfo;
    use tracepoint_run_dir::bell::Bell;
    use tracepoint_run_dir::json::replace_json;
    use tracepoint_run_dir::layout::PROCESS;
    use tracepoint_run_dir::rundir::RunDir;

    #[test]
    fn processes_of_other_namespaces_are_left_alone() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let controller = Controller::at(RunDir::at(&temp.path().join("run"))?)?;
        let own = pid_namespace();
        for (pid, namespace, expected) in [(7, own, true), (8, own + 1, false), (9, 0, true)] {
            let dir = controller.store.apps().make_subdir(&format!("{pid}-12"))?;
            let mut info = ApplicationInfo::default();
            (info.pid, info.started, info.pid_namespace) = (pid, 12, namespace);
            replace_json(&dir, PROCESS, &info)?;
            let _bell = Bell::make(&dir)?;
            assert_eq!(controller.has_restored(pid), expected, "{pid}");
        }
        Ok(())
    }
}
