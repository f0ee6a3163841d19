//! Encodes the values of an event on the stack, in the order of its fields, and records them.

use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_core::field::{AnyBuffer, AnyFields, AnyValue, MAX_ANY_FIELDS};
use tracepoint_core::internal::{RuntimeMarker, ValuesType};
use tracing_core::Field;
use tracing_core::field::Visit;

struct Collector {
    values: AnyBuffer,
    /// Set for the second attempt: values are taken only in field order, one field at a time, and no field is skipped.
    is_strict: bool,
    /// Set when a value arrived after that of a later field.
    is_disordered: bool,
}

impl Collector {
    /// Returns whether the value of this field can be appended now. Earlier fields that have no value yet are then absent.
    #[inline(always)]
    fn takes(&mut self, field: &Field) -> bool {
        let index = field.index();
        index == self.values.values() || self.passes_over_to(index)
    }

    #[inline(never)]
    fn passes_over_to(&mut self, index: usize) -> bool {
        self.is_disordered |= index < self.values.values();
        let is_taken = index > self.values.values() && !self.is_strict;
        if is_taken {
            self.pass_over_to(index);
        }
        is_taken
    }

    /// Marks the fields before this one as absent.
    #[inline(always)]
    fn pass_over_to(&mut self, index: usize) {
        while self.values.values() < index.min(MAX_ANY_FIELDS) {
            self.values.push(AnyValue::Absent);
        }
    }

    #[inline(always)]
    fn put(&mut self, field: &Field, value: AnyValue<'_>) {
        if self.takes(field) {
            self.values.push(value);
        }
    }

    /// Collects `count` values that do not arrive in field order; each visit yields at least one.
    #[cold]
    fn take_again(&mut self, count: usize, visit: &impl Fn(&mut dyn Visit)) {
        self.values = AnyBuffer::new();
        self.is_strict = true;
        for index in 0..count {
            if self.values.values() == index {
                visit(self);
                self.pass_over_to(index + 1);
            }
        }
    }
}

impl Visit for Collector {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, AnyValue::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, AnyValue::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, AnyValue::Unsigned(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, AnyValue::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, AnyValue::Text(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.takes(field) {
            self.values.push_text(|text| write!(text, "{value:?}"));
        }
    }
}

/// Collects the values of a callsite's `count` fields, by calling `visit`, and passes them to `record`. If formatting a value panics, the event
/// counts as lost, reason `panicked`, and the program continues.
#[inline]
pub(crate) fn collect<V: ValuesType>(
    tracepoint: RuntimeMarker<V>,
    count: usize,
    visit: impl Fn(&mut dyn Visit),
    record: impl FnOnce(AnyFields<'_>),
) {
    let count = count.min(MAX_ANY_FIELDS);
    let mut collector = Collector { values: AnyBuffer::new(), is_strict: false, is_disordered: false };
    let collected = catch_unwind(AssertUnwindSafe(|| {
        visit(&mut collector);
        collector.pass_over_to(count);
        if collector.is_disordered {
            collector.take_again(count, &visit);
        }
    }));
    match collected {
        Ok(()) => record(collector.values.fields()),
        Err(panic) => tracepoint.panicked(panic),
    }
}
