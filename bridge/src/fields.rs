//! The values of an event: encoded on the stack in the order of the fields, then recorded.

use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_core::field::{AnyBuffer, AnyFields, AnyValue, MAX_ANY_FIELDS};
use tracepoint_core::private::{RuntimeMarker, ValuesType};
use tracing_core::Field;
use tracing_core::field::Visit;

struct Collector {
    values: AnyBuffer,
    /// Whether fields in front of a value may still get theirs, so that they are not passed over.
    is_strict: bool,
    /// Whether a value came after that of a later field.
    is_disordered: bool,
}

impl Collector {
    /// Whether the value of this field is to be added now. The fields in front of it have none then.
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

    /// The fields in front of this one have no values.
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

    /// Takes the values of so many fields, where they do not come in their order: at least one at each visit.
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

/// Collects the values of a callsite with `count` fields, which `visit` shows, and passes them to `record`. Where the code that formats a value
/// panics, the event is counted as lost, reason `panicked`, and the program goes on.
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
