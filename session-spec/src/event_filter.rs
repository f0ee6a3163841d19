//! The filter of an event: combines the filters and limits of all rules that record the event.
//!
//! An event is recorded if one of its rules accepts it: the first, in the order of the rules, whose filter accepts it, whose sample takes it and
//! whose limit has room. If none does, the event is counted as suppressed if a filter accepted it, and as filtered otherwise.

use crate::filter::{Expression, FilterError, Program};
use crate::limit::Bucket;
use std::sync::Arc;
use tracepoint_core::field::FieldDescriptor;
use tracepoint_core::marker::{Decision, FieldView, Filter};
use tracepoint_probes::Sample;

/// The sample and the rate limit of a rule, applied to events that its filter accepts. The sample is taken first.
#[derive(Clone, Debug, Default)]
pub struct RateConditions {
    /// Passes one in N events.
    pub sample: Option<Arc<Sample>>,
    /// Bounds the rate.
    pub bucket: Option<Arc<Bucket>>,
}

impl RateConditions {
    #[inline]
    fn take(&self, time: u64) -> bool {
        self.sample.as_ref().is_none_or(|sample| sample.take())
            && self.bucket.as_ref().is_none_or(|bucket| bucket.take(time))
    }

    fn accept_all(&self) -> bool {
        self.sample.is_none() && self.bucket.is_none()
    }
}

/// The filter and rates of one rule, to be compiled for the events that it matches.
#[derive(Debug)]
pub struct RuleConditions {
    filter: Option<Expression>,
    rates: RateConditions,
    /// True if the filter compiled for at least one event; the error is that of an event for which it did not.
    compiled_any: bool,
    compile_error: Option<FilterError>,
}

impl RuleConditions {
    /// Creates the conditions of a rule with this filter.
    pub const fn new(filter: Option<Expression>, rates: RateConditions) -> Self {
        Self { filter, rates, compiled_any: false, compile_error: None }
    }

    /// Compiles the rule's condition for an event with these fields.
    pub fn compile(&mut self, fields: &'static [FieldDescriptor]) -> Result<Condition, FilterError> {
        let program = self.filter.as_ref().map(|filter| filter.compile(fields)).transpose();
        let program = program.inspect_err(|error| {
            // Prefer an error that suggests a field's name.
            if self.compile_error.as_ref().is_none_or(|known| error.suggests() && !known.suggests()) {
                self.compile_error = Some(error.clone());
            }
        })?;
        self.compiled_any = true;
        Ok(Condition { program, rates: self.rates.clone() })
    }

    /// The error if the filter compiled for none of the events; `None` if it compiled for one.
    pub fn compile_error(self) -> Option<FilterError> {
        self.compile_error.filter(|_| !self.compiled_any)
    }
}

/// The condition of one rule, compiled for one event.
#[derive(Debug)]
pub struct Condition {
    program: Option<Program>,
    rates: RateConditions,
}

impl Condition {
    /// Adds the condition to those of an event. A condition that accepts everything replaces all others, so that further rules cost
    /// nothing.
    pub fn add_to(self, conditions: &mut Vec<Self>) {
        if self.accepts_all() {
            conditions.clear();
        }
        if !conditions.iter().any(Self::accepts_all) {
            conditions.push(self);
        }
    }

    fn accepts_all(&self) -> bool {
        self.program.is_none() && self.rates.accept_all()
    }

    #[inline]
    fn passes_filter(&self, event: FieldView<'_>) -> bool {
        self.program.as_ref().is_none_or(|program| program.accept(event))
    }
}

/// The conditions of all rules that record an event.
#[derive(Debug)]
pub struct EventFilter(Box<[Condition]>);

impl EventFilter {
    /// The filter with these conditions; `None` if it would accept everything.
    pub fn new(conditions: Vec<Condition>) -> Option<Arc<Self>> {
        let accepts_all = conditions.iter().any(Condition::accepts_all);
        (!accepts_all).then(|| Arc::new(Self(conditions.into())))
    }
}

impl Filter for EventFilter {
    /// Without a time, limits are not applied.
    fn accept(&self, event: FieldView<'_>) -> bool {
        self.0.iter().any(|condition| condition.passes_filter(event))
    }

    fn decide(&self, time: u64, event: FieldView<'_>) -> Decision {
        let mut decision = Decision::Refuse;
        for condition in self.0.iter().filter(|condition| condition.passes_filter(event)) {
            if condition.rates.take(time) {
                return Decision::Accept;
            }
            decision = Decision::Suppress;
        }
        decision
    }
}
