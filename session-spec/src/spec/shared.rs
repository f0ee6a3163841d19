//! Descriptions in a run directory that a group shares: the session that a description was written for, and the files and programs that it
//! makes processes open.

use super::{SESSION, SessionSpec, SpecError};
use crate::table::{self, Value};

#[doc(hidden)]
impl SessionSpec {
    /// Returns the text of the file of the session called `name`.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::check`].
    pub fn to_toml_of(&self, name: &str) -> Result<String, SpecError> {
        self.check()?;
        let mut table = self.table()?;
        table.insert(SESSION.to_owned(), name.into());
        table::to_text(table).map_err(SpecError::malformed)
    }

    /// Returns the session that the file was written for; for `triggers.toml`, the session and process.
    pub fn written_for(bytes: &[u8]) -> Option<String> {
        let table = table::parse(str::from_utf8(bytes).ok()?).ok()?;
        table.get(SESSION).and_then(Value::as_str).map(str::to_owned)
    }

    /// Returns whether this description still opens something that `before`, the description it was derived from, names.
    pub fn opens_what_is_named_in(&self, before: &Self) -> bool {
        let is_named = |sink| before.sinks.iter().any(|known| known.is_at_same_place(sink));
        self.sinks.iter().any(is_named) || self.triggers.iter().any(|trigger| trigger.opens_as(&before.triggers))
    }

    /// Removes the sinks and triggers, for a session that ends.
    pub fn open_nothing(&mut self) {
        self.sinks.clear();
        self.triggers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{SinkSpec, State, TriggerAction, TriggerCondition, TriggerEntry, TriggerSpec};

    #[test]
    fn what_a_change_names_itself_is_told_from_what_was_named_before() -> Result<(), Box<dyn std::error::Error>> {
        let mut before = SessionSpec::new();
        before.sinks.push(SinkSpec::text("/a").into());
        let mut after = before.clone();
        assert!(after.opens_what_is_named_in(&before));
        after.sinks = vec![SinkSpec::text("/a").max_size(1 << 20).into()];
        assert!(after.opens_what_is_named_in(&before), "at the same place");
        after.sinks = vec![SinkSpec::text("/b").into()];
        assert!(!after.opens_what_is_named_in(&before));
        for (action, opens) in [
            (TriggerAction::Stop, false),
            (TriggerAction::Run(vec!["/bin/true".to_owned()]), true),
            (TriggerAction::Snapshot("/c".into()), true),
        ] {
            let mut before = SessionSpec::new();
            before.add_trigger(&TriggerSpec::new(TriggerCondition::Panic, action.clone()))?;
            assert_eq!(before.opens_what_is_named_in(&before), opens, "{action:?}");
            let mut after = before.clone();
            after.open_nothing();
            assert!(!after.opens_what_is_named_in(&before));
            // Another condition for the same action.
            after.add_trigger(&TriggerSpec::new(TriggerCondition::CoreDump, action).then(TriggerAction::Notify))?;
            assert_eq!(after.opens_what_is_named_in(&before), opens);
        }
        // A program of a newer version may open the action's target.
        let newer = "id = 't1'\nwhen = 'later'\nactions = [{ write = '/d' }]";
        before.triggers = vec![TriggerEntry::read(table::parse(newer)?)];
        assert!(before.opens_what_is_named_in(&before));
        Ok(())
    }

    #[test]
    fn a_file_names_its_session() -> Result<(), Box<dyn std::error::Error>> {
        let mut spec = SessionSpec::new();
        spec.sinks.push(SinkSpec::text("/a").into());
        let text = spec.to_toml_of("flight")?;
        assert_eq!(SessionSpec::written_for(text.as_bytes()).as_deref(), Some("flight"));
        assert_eq!(SessionSpec::parse(text.as_bytes())?, spec);
        assert_eq!(SessionSpec::written_for(spec.to_toml()?.as_bytes()), None);
        // A session that ends needs no output.
        spec.open_nothing();
        assert!(spec.to_toml().is_err());
        spec.state = State::Destroyed;
        assert!(SessionSpec::parse(spec.to_toml_of("flight")?.as_bytes())?.sinks.is_empty());
        Ok(())
    }
}
