//! The values of an event: collected on the stack, then recorded.

use std::fmt::{self, Debug, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_core::field::AnyValue;
use tracepoint_core::private::{RuntimeMarker, TextBuffer, ValuesType};
use tracing_core::Field;
use tracing_core::field::Visit;

/// The bytes of all texts of an event together.
const TEXTS: usize = 2048;

/// The most fields of a callsite that are described and recorded; further ones are left out.
pub(crate) const MOST_FIELDS: usize = 32;

/// A value, or the place of its text.
#[derive(Clone, Copy, Default)]
enum Slot {
    #[default]
    Absent,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(u16, u16),
}

struct Collector<const N: usize> {
    slots: [Slot; N],
    texts: TextBuffer<TEXTS>,
}

impl<const N: usize> Collector<N> {
    fn put(&mut self, field: &Field, value: Slot) {
        if let Some(slot) = self.slots.get_mut(field.index()) {
            *slot = value;
        }
    }

    fn put_text(&mut self, field: &Field, write: impl FnOnce(&mut TextBuffer<TEXTS>) -> fmt::Result) {
        let start = self.texts.as_str().len();
        // An error means that the text was cut off, or is that of the value.
        let _ = write(&mut self.texts);
        self.put(field, Slot::Text(start as u16, self.texts.as_str().len() as u16));
    }
}

impl<const N: usize> Visit for Collector<N> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Slot::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Slot::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Slot::Unsigned(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Slot::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, |texts| texts.write_str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_text(field, |texts| write!(texts, "{value:?}"));
    }
}

/// Collects the values of a callsite with `count` fields, which `visit` shows, and passes them to `record`. Where the code that formats a value
/// panics, the event is counted as lost, reason `panicked`, and the program goes on.
#[inline]
pub(crate) fn collect<V: ValuesType>(
    tracepoint: RuntimeMarker<V>,
    count: usize,
    visit: impl FnOnce(&mut dyn Visit),
    record: impl FnOnce(&[AnyValue<'_>]),
) {
    // Few fields are the usual case, and what is not used need not be initialised.
    match count {
        0..=4 => collect_in::<4, V>(tracepoint, count, visit, record),
        5..=12 => collect_in::<12, V>(tracepoint, count, visit, record),
        _ => collect_in::<MOST_FIELDS, V>(tracepoint, count.min(MOST_FIELDS), visit, record),
    }
}

#[inline]
fn collect_in<const N: usize, V: ValuesType>(
    tracepoint: RuntimeMarker<V>,
    count: usize,
    visit: impl FnOnce(&mut dyn Visit),
    record: impl FnOnce(&[AnyValue<'_>]),
) {
    let mut collector = Collector::<N> { slots: [Slot::Absent; N], texts: TextBuffer::new() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| visit(&mut collector))) {
        return tracepoint.panicked(panic);
    }
    let Collector { slots, texts } = &collector;
    // A text that the cut of a later one has changed is left out.
    let text = |place: Range<usize>| texts.as_str().get(place).map_or(AnyValue::Absent, AnyValue::Text);
    let mut values = [AnyValue::Absent; N];
    for (value, slot) in values[..count].iter_mut().zip(slots) {
        *value = match *slot {
            Slot::Absent => AnyValue::Absent,
            Slot::Unsigned(number) => AnyValue::Unsigned(number),
            Slot::Signed(number) => AnyValue::Signed(number),
            Slot::Float(number) => AnyValue::Float(number),
            Slot::Bool(truth) => AnyValue::Bool(truth),
            Slot::Text(start, end) => text(start.into()..end.into()),
        };
    }
    record(&values[..count]);
}
