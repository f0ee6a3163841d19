//! Determines which watchers would detect the condition of a trigger.

use super::core_handler::has_core_handler;
use super::fire::TriggerStatus;
use super::socket::owner;
use std::path::Path;
use tracepoint_session_io::trigger::connection::NOTIFY;
use tracepoint_session_spec::{TriggerAction, TriggerCondition};

/// The watchers that detect conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watchers {
    /// The listener of the run directory: its process, in this pid namespace.
    pub listener: Option<u32>,
    /// True if the kernel starts `tracectl notify` when a process dumps core.
    pub core_handler: bool,
}

impl Watchers {
    /// The watchers of the run directory at `run_dir`.
    pub fn of(run_dir: &Path) -> Self {
        Self { listener: owner(&run_dir.join(NOTIFY)), core_handler: has_core_handler() }
    }

    /// Returns the missing requirement of this trigger, if any, with the command that helps.
    pub fn missing(&self, trigger: &TriggerStatus) -> Option<&'static str> {
        let TriggerStatus { spec: trigger, is_recorded, .. } = trigger;
        if self.listener.is_some() {
            return None;
        }
        if trigger.when == TriggerCondition::CoreDump && !self.core_handler {
            return Some(
                "the kernel starts no helper for core dumps (`tracectl install-core-handler`), and no `tracectl listen` runs \
                 that another helper could write to",
            );
        }
        let in_process = trigger.when.is_noticed_in_process();
        if trigger.when != TriggerCondition::CoreDump && !in_process && !is_recorded {
            return Some("its condition is noticed by `tracectl listen`, which does not run");
        }
        let needs = |action: &TriggerAction| {
            matches!(action, TriggerAction::Notify) || (in_process && matches!(action, TriggerAction::Run(_)))
        };
        if trigger.actions.iter().any(needs) {
            return Some("its actions `notify` and `run` are done by `tracectl listen`, which does not run");
        }
        let waits = *is_recorded && !in_process && trigger.when != TriggerCondition::CoreDump;
        trigger
            .after
            .filter(|_| !waits)
            .map(|_| "its actions are done at once: no `tracectl listen` runs, which waits for the time after")
    }
}
