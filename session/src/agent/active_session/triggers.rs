//! The triggers of a session whose conditions this process detects itself.

use super::ActiveSession;
use crate::agent::context::Context;
use crate::session::Recording;
use crate::trigger::{Owner, Program};
use std::time::Instant;
use tracepoint_run_dir::ack::TriggerAck;
use tracepoint_session_spec::{SessionSpec, TriggerSpec};

impl ActiveSession {
    /// Watches the conditions of these triggers, and acknowledges all triggers of the session.
    pub(super) fn watch(&mut self, spec: &SessionSpec, triggers: &[&TriggerSpec], context: &Context) {
        let run_dir = context.sessions.parent().unwrap_or(&context.sessions).to_owned();
        let owner = Owner { run_dir, session: self.name.clone(), process: None };
        let program = Program { key: context.key(), executable: &context.info.executable, events: &context.events };
        let channels = self.recording.as_ref().map(Recording::channels).unwrap_or_default();
        let watched = self.triggers.follow(&owner, triggers, program, &channels, &self.statistics.live());
        let unsupported =
            spec.unsupported_triggers().map(|(id, error)| (id, TriggerAck::Unsupported(error.to_string())));
        self.ack.triggers = unsupported.collect();
        self.ack.triggers.extend(watched.into_iter().map(|(id, watched)| {
            (
                id,
                watched.map_or_else(TriggerAck::Unsupported, |events| {
                    events.map_or(TriggerAck::Watched, TriggerAck::Events)
                }),
            )
        }));
    }

    /// Starts the actions of triggers whose condition is the end of the process, while the rings exist.
    pub(in crate::agent) fn begin_exit(&self) {
        self.triggers.begin_exit();
    }

    /// Waits for these actions.
    pub(in crate::agent) fn end_triggers(&mut self, deadline: Instant) {
        self.triggers.end_until(deadline);
    }
}
