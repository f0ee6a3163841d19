//! The outputs and programs in a session's description: a process opens them only if an author whom it trusts has written them.

use tracepoint_run_dir::private_dir::Author;
use tracepoint_session_spec::{SessionSpec, SinkSpec, State, TriggerAction, TriggerSpec};

/// The outputs and triggers of a session that a trusted author has written. Another author may stop and start a session with the same ones.
#[derive(Debug, Default)]
pub(super) struct TrustedOutputs {
    /// The session's id.
    id: String,
    sinks: Vec<SinkSpec>,
    triggers: Vec<TriggerSpec>,
}

impl TrustedOutputs {
    /// Returns whether this description by this author may be applied. A stopped session may be started by its triggers.
    pub(super) fn admits(&mut self, spec: &SessionSpec, author: Author) -> bool {
        if author == Author::Trusted {
            self.id.clone_from(&spec.id);
            self.sinks.clone_from(&spec.sinks);
            self.triggers = spec.triggers().flatten().cloned().collect();
            return true;
        }
        // The session ends, and opens nothing.
        if spec.state == State::Destroyed {
            return true;
        }
        let is_same = self.id == spec.id;
        let is_known = |trigger: &TriggerSpec| {
            is_same && self.triggers.contains(trigger) || !trigger.actions.iter().any(TriggerAction::opens)
        };
        let has_known_outputs = spec.sinks.iter().all(|sink| is_same && self.sinks.contains(sink));
        has_known_outputs && spec.triggers().flatten().all(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_session_spec::TriggerCondition;

    #[test]
    fn others_name_nothing_that_is_opened() -> Result<(), Box<dyn std::error::Error>> {
        let (mut named, mut spec) = (TrustedOutputs::default(), SessionSpec::new());
        spec.sinks.push(SinkSpec::text("/a").into());
        let other = Author::Other(7);
        for state in [State::Stopped, State::Active] {
            spec.state = state;
            assert!(!named.admits(&spec, other) && !named.admits(&spec, Author::Moved), "{state:?}");
        }
        assert!(named.admits(&spec, Author::Trusted) && named.admits(&spec, other));
        assert!(!named.admits(&spec.another(), other), "another session of that name");
        spec.sinks.push(SinkSpec::udp(([127, 0, 0, 1], 9).into()).into());
        assert!(!named.admits(&spec, other));
        spec.sinks.clear();
        assert!(named.admits(&spec, other));
        spec.add_trigger(&TriggerSpec::new(TriggerCondition::Panic, TriggerAction::Notify))?;
        assert!(named.admits(&spec, other));
        spec.add_trigger(&TriggerSpec::new(TriggerCondition::Panic, TriggerAction::Snapshot("/b".into())))?;
        assert!(!named.admits(&spec, other));
        assert!(named.admits(&spec, Author::Trusted) && named.admits(&spec, other));
        (spec.state, spec.sinks) = (State::Destroyed, vec![SinkSpec::text("/c").into()]);
        assert!(named.admits(&spec, other));
        spec.state = State::Active;
        assert!(!named.admits(&spec, other));
        Ok(())
    }
}
