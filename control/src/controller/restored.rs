//! Processes that were restored from a checkpoint: they have another start time than their entries.

use super::Controller;
use crate::app;
use crate::bell::RingResult;
use crate::process::{ProcessKey, pid_namespace};

impl Controller {
    /// Whether a process of this id, which is one of our pid namespace, has an entry with another start time: it may have been restored from a
    /// checkpoint, and publishes itself again when it is woken, which this does.
    pub(super) fn has_restored(&self, pid: u32) -> bool {
        let names = self.apps.names().unwrap_or_default().into_iter();
        let of_pid = names.filter(|name| ProcessKey::of_directory(name).is_some_and(|key| key.pid == pid));
        // Ids of other namespaces are those of other processes.
        let is_ours = |name: &String| {
            let described = self.apps.open_subdir(name).ok().and_then(|dir| app::description(&dir));
            described.is_none_or(|info| [0, pid_namespace()].contains(&info.pid_namespace))
        };
        of_pid.filter(is_ours).any(|name| self.ring_one(&name, "") == RingResult::Queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{ApplicationInfo, PROCESS, replace_json};
    use crate::bell::Bell;
    use crate::rundir::RunDir;

    #[test]
    fn processes_of_other_namespaces_are_left_alone() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let controller = Controller::at(RunDir::at(&temp.path().join("run"))?)?;
        let own = pid_namespace();
        for (pid, namespace, expected) in [(7, own, true), (8, own + 1, false), (9, 0, true)] {
            let dir = controller.apps.make_subdir(&format!("{pid}-12"))?;
            let info = ApplicationInfo { pid, started: 12, pid_namespace: namespace, ..ApplicationInfo::default() };
            replace_json(&dir, PROCESS, &info)?;
            let _bell = Bell::make(&dir)?;
            assert_eq!(controller.has_restored(pid), expected, "{pid}");
        }
        Ok(())
    }
}
