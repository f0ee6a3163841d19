//! The triggers of a session's description, understood or not.

use super::super::{ChannelSpec, SESSION, SessionSpec, SpecError};
use super::{TriggerAction, TriggerCondition, TriggerSpec};
use crate::table::{self, Table, TableError, Value};
use serde::Serialize;

/// The key of the triggers.
const TRIGGER: &str = "trigger";
/// Maximum number of triggers of a session.
const MAX_TRIGGERS: usize = 100;

/// A trigger, and the table that it was parsed from: a program must preserve a trigger that it does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerEntry {
    /// The table as text: tables that contain a NaN are not equal to themselves.
    table: String,
    trigger: Result<TriggerSpec, SpecError>,
}

impl TriggerEntry {
    fn new(trigger: &TriggerSpec) -> Result<Self, SpecError> {
        trigger.check()?;
        Ok(Self::read(table::write(trigger).map_err(SpecError::malformed)?))
    }

    pub(in crate::spec) fn read(table: Table) -> Self {
        let text = table::to_text(table.clone()).unwrap_or_default();
        let id = id_of(&table);
        let named = |error: TableError| {
            SpecError::invalid(format!("trigger `{id}` is not supported by this version: {}", error.message))
        };
        let trigger = table::read::<TriggerSpec>(table).map_err(named);
        Self { table: text, trigger: trigger.and_then(|trigger| trigger.check().map(|()| trigger)) }
    }

    /// Returns whether it opens something that one of `others` also opens. For a trigger that is not understood, returns whether `others`
    /// contains it.
    pub(in crate::spec) fn opens_as(&self, others: &[Self]) -> bool {
        let Ok(trigger) = &self.trigger else { return others.contains(self) };
        let has = |action| others.iter().flat_map(|other| &other.trigger).any(|other| other.actions.contains(action));
        trigger.actions.iter().filter(|action| action.opens()).any(has)
    }

    /// The id, also of a trigger that is not understood.
    fn id(&self) -> String {
        id_of(&table::parse(&self.table).unwrap_or_default())
    }
}

fn id_of(table: &Table) -> String {
    table.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Serialize for TriggerEntry {
    /// Writes the table as it was read.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        table::parse(&self.table).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl SessionSpec {
    /// Returns the triggers in order, with an error for each that this version does not understand.
    pub fn triggers(&self) -> impl Iterator<Item = Result<&TriggerSpec, &SpecError>> {
        self.triggers.iter().map(|entry| entry.trigger.as_ref())
    }

    /// Returns the ids of the triggers that this version does not understand, with the errors.
    #[doc(hidden)]
    pub fn unsupported_triggers(&self) -> impl Iterator<Item = (String, &SpecError)> {
        self.triggers.iter().filter_map(|entry| Some((entry.id(), entry.trigger.as_ref().err()?)))
    }

    /// Adds a trigger with its default settings: does `action` whenever `when` occurs. Returns the trigger's id.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::add_trigger`](Self::add_trigger).
    pub fn trigger(&mut self, when: TriggerCondition, action: TriggerAction) -> Result<String, SpecError> {
        self.add_trigger(&TriggerSpec::new(when, action))
    }

    /// Adds a trigger, and returns its id: its own, or the first free one of `t1`, `t2` and so on. A trigger without an id is not added if
    /// the session has an equal one, ids aside.
    ///
    /// # Errors
    ///
    /// If the trigger is invalid, its id is taken, it would be the 101st, or its condition cannot occur in this session.
    pub fn add_trigger(&mut self, trigger: &TriggerSpec) -> Result<String, SpecError> {
        let ids: Vec<_> = self.triggers.iter().map(TriggerEntry::id).collect();
        let mut trigger = trigger.clone();
        if trigger.id.is_empty() {
            let is_same = |known: &&TriggerSpec| TriggerSpec { id: String::new(), ..(*known).clone() } == trigger;
            if let Some(known) = self.triggers().flatten().find(is_same) {
                return Ok(known.id.clone());
            }
            let free = |id: &String| !ids.contains(id);
            trigger.id = (1..=MAX_TRIGGERS).map(|number| format!("t{number}")).find(free).unwrap_or_default();
        } else if ids.contains(&trigger.id) {
            let id = &trigger.id;
            return Err(SpecError::invalid(format!(
                "there is a trigger `{id}` already; choose another id, or remove it (`tracectl untrigger {id}`)"
            )));
        }
        if ids.len() >= MAX_TRIGGERS {
            return Err(SpecError::invalid(format!(
                "a session has at most {MAX_TRIGGERS} triggers; remove one with `tracectl untrigger ID`"
            )));
        }
        self.check_has_drained_ring(&trigger)?;
        self.triggers.push(TriggerEntry::new(&trigger)?);
        Ok(trigger.id)
    }

    /// Adds a trigger with its default settings. It may be invalid; [`check_triggers_in_code`](Self::check_triggers_in_code) reports that.
    #[doc(hidden)]
    pub fn push_trigger(&mut self, when: TriggerCondition, action: TriggerAction) {
        let trigger = TriggerSpec::new(when, action);
        if let Err(error) = self.add_trigger(&trigger) {
            self.triggers.push(TriggerEntry { table: String::new(), trigger: Err(error) });
        }
    }

    /// Checks the triggers of a session in code, which no other process controls.
    #[doc(hidden)]
    pub fn check_triggers_in_code(&self) -> Result<(), SpecError> {
        for trigger in self.triggers() {
            let trigger = trigger.map_err(Clone::clone)?;
            let refused = |what: String| {
                Err(SpecError::invalid(format!(
                    "trigger `{}`: {what} is for sessions that a controller has created (`tracectl create`); a session in code is \
                     controlled by its program",
                    trigger.id
                )))
            };
            if let Some(action) = trigger.actions.iter().find(|action| action.controls_session()) {
                return refused(format!("the action `{}`", action.name()));
            }
            if matches!(trigger.when, TriggerCondition::Size(_) | TriggerCondition::Rotated | TriggerCondition::Exit) {
                return refused(format!("the condition `{}`", trigger.when.kind()));
            }
            self.check_has_drained_ring(trigger)?;
        }
        Ok(())
    }

    /// Checks that the condition `ring-full` can occur.
    fn check_has_drained_ring(&self, trigger: &TriggerSpec) -> Result<(), SpecError> {
        if matches!(trigger.when, TriggerCondition::RingFull(_)) && self.all_channels().all(ChannelSpec::keeps_newest) {
            return Err(SpecError::invalid(
                "the condition `ring-full` needs a channel that is drained: the rings of a flight recorder are always full",
            ));
        }
        Ok(())
    }

    /// Returns the triggers of a session and process as a separate file: `NAME/PID-START`.
    #[doc(hidden)]
    pub fn triggers_to_toml(&self, place: &str) -> Result<String, SpecError> {
        let triggers = serde_json::to_value(&self.triggers).map_err(SpecError::malformed)?;
        let mut table = Table::new();
        table.insert(SESSION.to_owned(), place.into());
        table.insert(TRIGGER.to_owned(), triggers);
        table::to_text(table).map_err(SpecError::malformed)
    }

    /// Parses the triggers in such a file; omits those that this version does not understand.
    #[doc(hidden)]
    pub fn parse_triggers(bytes: &[u8]) -> Option<Vec<TriggerSpec>> {
        let mut table = table::parse(str::from_utf8(bytes).ok()?).ok()?;
        let Some(Value::Array(triggers)) = table.remove(TRIGGER) else { return None };
        let understood = |trigger| match trigger {
            Value::Object(table) => TriggerEntry::read(table).trigger.ok(),
            _ => None,
        };
        Some(triggers.into_iter().filter_map(understood).collect())
    }

    /// Removes the trigger with this id, even if it is not understood; returns whether it existed.
    pub fn remove_trigger(&mut self, id: &str) -> bool {
        let before = self.triggers.len();
        self.triggers.retain(|entry| entry.id() != id);
        self.triggers.len() < before
    }

    /// Checks the number of triggers, and that their ids are unique.
    pub(in crate::spec) fn check_triggers(&self) -> Result<(), SpecError> {
        let ids: Vec<_> = self.triggers.iter().map(TriggerEntry::id).collect();
        if ids.len() > MAX_TRIGGERS {
            return Err(SpecError::invalid(format!(
                "a session has at most {MAX_TRIGGERS} triggers, not {}",
                ids.len()
            )));
        }
        match (1..ids.len()).find(|at| ids[..*at].contains(&ids[*at])) {
            Some(twice) => Err(SpecError::invalid(format!("two triggers have the id `{}`", ids[twice]))),
            None => Ok(()),
        }
    }
}
