//! What the description of a session has a process open, as who may have it open that has named it.

use crate::private_dir::Author;
use crate::spec::{Do, SessionSpec, SinkSpec, State, TriggerSpec};

/// The outputs and triggers of a session that a trusted author has named. Another author may stop and start the session with these.
#[derive(Debug, Default)]
pub(super) struct Named {
    sinks: Vec<SinkSpec>,
    triggers: Vec<TriggerSpec>,
}

impl Named {
    /// Whether this description, by this author, may be applied.
    pub(super) fn admits(&mut self, spec: &SessionSpec, author: Author) -> bool {
        if author == Author::Trusted {
            self.sinks.clone_from(&spec.sinks);
            self.triggers = spec.triggers().flatten().cloned().collect();
            return true;
        }
        let opens = |action: &Do| matches!(action, Do::Snapshot(_) | Do::Run(_));
        let is_known = |trigger: &TriggerSpec| self.triggers.contains(trigger) || !trigger.actions.iter().any(opens);
        let has_known_outputs = spec.state != State::Active || spec.sinks.iter().all(|sink| self.sinks.contains(sink));
        has_known_outputs && spec.triggers().flatten().all(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::When;

    #[test]
    fn others_name_nothing_that_is_opened() -> Result<(), Box<dyn std::error::Error>> {
        let (mut named, mut spec) = (Named::default(), SessionSpec::new());
        spec.sinks.push(SinkSpec::text("/a"));
        let other = Author::Other(7);
        assert!(named.admits(&spec, other), "it is stopped");
        spec.state = State::Active;
        assert!(!named.admits(&spec, other));
        assert!(named.admits(&spec, Author::Trusted) && named.admits(&spec, other));
        spec.sinks.push(SinkSpec::udp(([127, 0, 0, 1], 9).into()));
        assert!(!named.admits(&spec, other));
        spec.sinks.clear();
        assert!(named.admits(&spec, other));
        spec.add_trigger(&TriggerSpec::new(When::Panic, Do::Notify))?;
        assert!(named.admits(&spec, other));
        spec.add_trigger(&TriggerSpec::new(When::Panic, Do::Snapshot("/b".into())))?;
        assert!(!named.admits(&spec, other));
        assert!(named.admits(&spec, Author::Trusted) && named.admits(&spec, other));
        Ok(())
    }
}
