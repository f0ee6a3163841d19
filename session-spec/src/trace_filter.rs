//! Selects events of recorded traces by the rules of sessions: names, levels, and conditions on fields.

mod fields;

use crate::filter::{Expression, FilterError, Program};
use crate::kinds::Kinds;
use crate::spec::{LevelError, LevelRule, NameRule, NameRuleError};
pub(crate) use fields::condition_fields;
use std::collections::BTreeSet;
use std::sync::Arc;
use tracepoint_core::Level;
use tracepoint_core::internal::nearest_names;
use tracepoint_reader::EventView;
use tracepoint_reader::metadata::{EventClass, Metadata, StreamClass};

/// A selection of events: `-e`, `--level` and `--filter` of `tracectl view`.
///
/// An event is selected if a pattern and no exclusion matches its name, its level satisfies the condition on levels, and its fields satisfy
/// the condition on fields. As in a session, an event that lacks a field of the condition, or has it with another type, is not selected.
///
/// The condition may also name members of the contexts of an event and of its packet, such as `tid`. A field of the event takes precedence.
#[derive(Debug, Default)]
pub struct TraceFilter {
    rules: Rules,
    /// The decision about each kind of event.
    kinds: Kinds<Kind>,
}

impl Clone for TraceFilter {
    /// Copies the rules. The decisions about kinds of events are made again.
    fn clone(&self) -> Self {
        Self { rules: self.rules.clone(), kinds: Kinds::default() }
    }
}

#[derive(Clone, Debug, Default)]
struct Rules {
    names: Vec<NameRule>,
    level: Option<LevelRule>,
    condition: Option<Expression>,
}

#[derive(Debug)]
enum Kind {
    Never,
    Always,
    If(Program),
}

/// The selection is invalid, or selects nothing.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceFilterError {
    /// A pattern cannot be parsed.
    #[error("`{pattern}` is not a pattern for events: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The problem.
        reason: NameRuleError,
    },
    /// The condition on levels cannot be parsed.
    #[error(transparent)]
    Level(LevelError),
    /// The condition on fields cannot be parsed, or fits none of the events that are selected by name and level.
    #[error("the filter cannot be used: {0}")]
    Filter(#[source] Box<FilterError>),
    /// A pattern matches no event of the trace.
    #[error("no event of the trace matches `{pattern}`{}", suggestion(.nearest))]
    NoEvent {
        /// The pattern.
        pattern: String,
        /// The most similar names; may be empty.
        nearest: Vec<String>,
    },
    /// No selected event of the trace has such a level.
    #[error("no selected event of the trace has a level `{level}`; {}", known_levels(.levels))]
    NoLevel {
        /// The condition.
        level: String,
        /// The levels that the selected events have, the most important first.
        levels: Vec<Level>,
    },
    /// The exclusions match every event that the other patterns match.
    #[error("the patterns with `!` exclude every event of the trace that is selected; leave one of them out")]
    Excluded,
    /// No event of the trace has a field of this name.
    #[error("no event of the trace has a field called `{name}`{}", suggestion(.nearest))]
    NoField {
        /// The name.
        name: String,
        /// The most similar names; may be empty.
        nearest: Vec<String>,
    },
}

/// Fails if no event of these traces has a field, or a member of a context, with one of these names.
///
/// # Errors
/// [`TraceFilterError::NoField`].
pub fn check_fields<'a>(names: &[String], traces: impl Iterator<Item = &'a Metadata>) -> Result<(), TraceFilterError> {
    let mut known = BTreeSet::new();
    for stream in traces.flat_map(Metadata::streams) {
        for class in stream.events.values() {
            known.extend(condition_fields(stream, class).iter().map(|field| field.name));
        }
    }
    match names.iter().find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(TraceFilterError::NoField { name: name.clone(), nearest: nearest_names(name, known) }),
    }
}

fn known_levels(levels: &[Level]) -> String {
    match levels {
        [] => "they have none".to_owned(),
        levels => {
            let names: Vec<_> = levels.iter().map(ToString::to_string).collect();
            format!("there are: {}", names.join(", "))
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) }
}

impl TraceFilter {
    /// Selects the events whose names match one of `patterns`, such as `net:*`, except those that match a pattern beginning with `!`; all
    /// events by default.
    ///
    /// # Errors
    /// If a pattern cannot be parsed.
    pub fn new(patterns: &[String]) -> Result<Self, TraceFilterError> {
        let name = |pattern: &String| {
            let malformed = |reason| TraceFilterError::Pattern { pattern: pattern.clone(), reason };
            NameRule::parse_any(pattern).map_err(malformed)
        };
        let names = patterns.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Self { rules: Rules { names, ..Rules::default() }, kinds: Kinds::default() })
    }

    /// Restricts it to events of certain levels: `<=info` or `info` (at least as important as info), `==err`, `>=debug`. Events without a
    /// level are not selected.
    ///
    /// # Errors
    /// If the condition cannot be parsed.
    pub fn level(mut self, level: &str) -> Result<Self, TraceFilterError> {
        self.rules.level = Some(level.parse().map_err(TraceFilterError::Level)?);
        Ok(self)
    }

    /// Restricts it to events whose fields satisfy a condition.
    #[must_use]
    pub fn condition(mut self, condition: Expression) -> Self {
        self.rules.condition = Some(condition);
        self
    }

    /// Returns whether it selects every event.
    pub fn selects_all(&self) -> bool {
        let Rules { names, level, condition } = &self.rules;
        names.is_empty() && level.is_none() && condition.is_none()
    }

    /// Returns whether it selects an event, such as an [`Event`](tracepoint_reader::Event). Costs a look-up by the kind of the event, and
    /// the condition.
    pub fn accepts<'a>(&mut self, event: impl Into<EventView<'a>>) -> bool {
        if self.selects_all() {
            return true;
        }
        let event = event.into();
        let (class, rules) = (event.class(), &self.rules);
        match self.kinds.get(class, || rules.kind(&event.stream().class, class).unwrap_or(Kind::Never)) {
            Kind::Always => true,
            Kind::If(program) => program.accepts(|index| event.value(index)),
            Kind::Never => false,
        }
    }

    /// Returns whether it may select events with this name, depending on level and fields.
    pub fn may_accept(&self, name: &str) -> bool {
        self.rules.may_accept(name)
    }

    /// Fails if a pattern matches no event of these traces, if all matched events are excluded or have another level, or if the condition
    /// fits none of the events selected by name and level. Succeeds for traces without any kind of event.
    ///
    /// # Errors
    /// [`TraceFilterError::NoEvent`], [`TraceFilterError::Excluded`], [`TraceFilterError::NoLevel`], [`TraceFilterError::Filter`].
    pub fn check<'a>(&self, traces: impl Iterator<Item = &'a Metadata>) -> Result<(), TraceFilterError> {
        let streams: Vec<&Arc<StreamClass>> = traces.flat_map(Metadata::streams).collect();
        let classes = || streams.iter().flat_map(|stream| stream.events.values().map(move |class| (*stream, class)));
        for rule in self.rules.names.iter().filter(|rule| !rule.excludes()) {
            if !classes().any(|(_, class)| rule.matches(&class.name)) {
                let names: BTreeSet<&str> = classes().map(|(_, class)| class.name.as_str()).collect();
                let nearest = nearest_names(rule.text(), names);
                return Err(TraceFilterError::NoEvent { pattern: rule.text().to_owned(), nearest });
            }
        }
        let named: Vec<_> = classes().filter(|(_, class)| self.rules.may_accept(&class.name)).collect();
        if named.is_empty() && classes().next().is_some() {
            return Err(TraceFilterError::Excluded);
        }
        if let Some(wanted) = self.rules.level.as_ref().filter(|_| !named.is_empty()) {
            let levels: BTreeSet<_> = named.iter().filter_map(|(_, class)| level_of(class)).collect();
            if !levels.iter().any(|level| wanted.matches(*level)) {
                let levels = levels.into_iter().collect();
                return Err(TraceFilterError::NoLevel { level: wanted.to_string(), levels });
            }
        }
        let mut failed: Option<FilterError> = None;
        for (stream, class) in classes() {
            match self.rules.kind(stream, class) {
                Ok(Kind::Never) => {}
                Ok(_) => return Ok(()),
                // Prefer an error that suggests a field's name.
                Err(error) if failed.as_ref().is_none_or(|known| error.suggests() && !known.suggests()) => {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        failed.map_or(Ok(()), |error| Err(TraceFilterError::Filter(error.into())))
    }
}

fn level_of(class: &EventClass) -> Option<Level> {
    class.loglevel.and_then(|level| Level::ALL.get(usize::try_from(level).ok()?).copied())
}

impl Rules {
    fn may_accept(&self, name: &str) -> bool {
        let has_match =
            |excludes: bool| self.names.iter().any(|rule| rule.excludes() == excludes && rule.matches(name));
        (self.names.iter().all(NameRule::excludes) || has_match(false)) && !has_match(true)
    }

    fn kind(&self, stream: &StreamClass, class: &EventClass) -> Result<Kind, FilterError> {
        let matches = |wanted: &LevelRule| level_of(class).is_some_and(|level| wanted.matches(level));
        let has_level = self.level.as_ref().is_none_or(matches);
        if !has_level || !self.may_accept(&class.name) {
            return Ok(Kind::Never);
        }
        Ok(match &self.condition {
            None => Kind::Always,
            Some(condition) => Kind::If(condition.compile_for(&condition_fields(stream, class))?),
        })
    }
}
