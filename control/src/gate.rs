//! What stands between an event and its ring: the filters and limits of the rules that take it in.
//!
//! An event is recorded if one of its rules wants it: the first, in their order, whose filter accepts it and whose limit has room. If none
//! does, it is suppressed if a limit was all that stood against it, and filtered otherwise.

use crate::filter::{Expression, FilterError, Program};
use crate::limit::{Bucket, Limit};
use crate::session::{Notice, PlannedEvent, RoutedRule, SessionError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracepoint_core::clock::{self, Clock};
use tracepoint_core::marker::{Decision, FieldView, Filter};

/// What a rule asks of the events that it takes in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) filter: Option<String>,
    pub(crate) limit: Option<Limit>,
}

/// The conditions of all rules, by the number of rules that stood before: 0 is for those that have none of their own.
pub(crate) type ConditionsByRule = BTreeMap<usize, Conditions>;

/// A rule that takes events in.
struct Rule<'r> {
    /// `None`: all events, for the default channel.
    name: Option<&'r RoutedRule>,
    door: Door,
}

/// What a rule asks, ready to be held against events.
#[derive(Debug)]
pub(crate) struct Door {
    filter: Option<Expression>,
    bucket: Option<Arc<Bucket>>,
    /// Whether the filter fits an event, and why it did not fit another one.
    fits: bool,
    misfit: Option<FilterError>,
}

impl<'r> Rule<'r> {
    fn new(
        name: Option<&'r RoutedRule>,
        own: Option<&Conditions>,
        all: Option<&Conditions>,
    ) -> Result<Self, SessionError> {
        let filter = own.and_then(|own| own.filter.as_deref()).or(all.and_then(|all| all.filter.as_deref()));
        let limit = own.and_then(|own| own.limit).or(all.and_then(|all| all.limit));
        let bucket = limit.map(bucket).transpose()?;
        Ok(Self { name, door: Door::new(filter.map(Expression::parse).transpose()?, bucket) })
    }

    /// Whether it takes in this event, which is declared under `name`.
    fn takes_in(&self, event: &PlannedEvent, name: &str) -> bool {
        self.name.map_or(event.channel == 0, |rule| rule.takes_in_for(event.channel) && rule.name.matches(name))
    }
}

impl Door {
    pub(crate) const fn new(filter: Option<Expression>, bucket: Option<Arc<Bucket>>) -> Self {
        Self { filter, bucket, fits: false, misfit: None }
    }

    /// The way for an event, if the filter fits it.
    pub(crate) fn way(&mut self, event: &PlannedEvent) -> Result<Way, FilterError> {
        let program = self.filter.as_ref().map(|filter| filter.compile(event.markers[0].fields())).transpose();
        let program = program.inspect_err(|error| {
            // One that knows a name that would do says more.
            if self.misfit.as_ref().is_none_or(|known| error.suggests() && !known.suggests()) {
                self.misfit = Some(error.clone());
            }
        })?;
        self.fits = true;
        Ok(Way { program, bucket: self.bucket.clone() })
    }

    /// Why the filter fits none of the events that it was held against, if that is so.
    pub(crate) fn misfit(self) -> Option<FilterError> {
        self.misfit.filter(|_| !self.fits)
    }
}

/// A full bucket for the events of a rule.
pub(crate) fn bucket(limit: Limit) -> Result<Arc<Bucket>, SessionError> {
    if matches!(clock::selected(), Clock::None) {
        return Err(SessionError::LimitWithoutClock);
    }
    Ok(Arc::new(Bucket::new(limit.check()?)))
}

/// Gives each event its gate. Events that no rule's filter fits are left out, which is told; a filter that fits none of the events that its
/// rule takes in is an error.
pub(crate) fn set_gates(
    events: &mut Vec<PlannedEvent>,
    names: &[RoutedRule],
    conditions: &ConditionsByRule,
    notices: &mut Vec<Notice>,
) -> Result<(), SessionError> {
    if conditions.is_empty() {
        return Ok(());
    }
    let all = conditions.get(&0);
    let mut rules = Vec::new();
    for (index, rule) in names.iter().enumerate() {
        let own = conditions.get(&(index + 1));
        if !rule.name.excludes() {
            rules.push(Rule::new(Some(rule), own, all)?);
        } else if own.is_some() {
            return Err(SessionError::ConditionOnExclusion { rule: rule.name.text().to_owned() });
        }
    }
    if rules.is_empty() {
        rules.push(Rule::new(None, None, all)?);
    }
    let mut kept = Vec::new();
    for mut event in events.drain(..) {
        let (mut ways, mut misfit) = (Vec::new(), None);
        let declared = event.markers[0].full_name();
        for rule in rules.iter_mut().filter(|rule| rule.takes_in(&event, &declared)) {
            match rule.door.way(&event) {
                Ok(way) => ways.push(way),
                Err(error) => misfit = misfit.or(Some(error)),
            }
        }
        match misfit {
            Some(error) if ways.is_empty() => {
                notices.push(Notice::FilterDoesNotFit { event: event.name, reason: error.reason().to_owned() });
            }
            _ => {
                event.gate = gate(ways);
                kept.push(event);
            }
        }
    }
    *events = kept;
    match rules.into_iter().find_map(|rule| rule.door.misfit()) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// One rule's way in.
#[derive(Debug)]
pub(crate) struct Way {
    program: Option<Program>,
    bucket: Option<Arc<Bucket>>,
}

/// The gate with these ways; `None` if it is open.
pub(crate) fn gate(ways: Vec<Way>) -> Option<Arc<Gate>> {
    if ways.iter().any(Way::is_open) {
        return None;
    }
    Some(Arc::new(Gate(ways.into())))
}

/// What decides which events are recorded.
#[derive(Debug)]
pub(crate) struct Gate(Box<[Way]>);

impl Filter for Gate {
    /// Without a time nothing is suppressed.
    fn accept(&self, event: FieldView<'_>) -> bool {
        self.0.iter().any(|way| way.wants(event))
    }

    fn decide(&self, time: u64, event: FieldView<'_>) -> Decision {
        let mut decision = Decision::Refuse;
        for way in self.0.iter().filter(|way| way.wants(event)) {
            if way.bucket.as_ref().is_none_or(|bucket| bucket.take(time)) {
                return Decision::Accept;
            }
            decision = Decision::Suppress;
        }
        decision
    }
}

impl Way {
    /// Adds it to those of an event. Beside an open one there is no other, however many rules there are.
    pub(crate) fn add_to(self, ways: &mut Vec<Self>) {
        if self.is_open() {
            ways.clear();
        }
        if !ways.iter().any(Self::is_open) {
            ways.push(self);
        }
    }

    fn is_open(&self) -> bool {
        self.program.is_none() && self.bucket.is_none()
    }

    #[inline]
    fn wants(&self, event: FieldView<'_>) -> bool {
        self.program.as_ref().is_none_or(|program| program.accept(event))
    }
}
