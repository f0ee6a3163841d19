//! Spans: pairs of events that begin and end something. They are recognised by their names and fields, so that every format can represent them.

use crate::metadata::EventClass;

/// The role of an event in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanPart {
    /// It begins a span: its name ends with `_begin`, and it has the fields `span_id` and `parent_id`.
    Begin,
    /// It ends a span: its name ends with `_end`, and it has the fields `span_id` and `duration_ns`.
    End,
}

/// The field with the duration of a span, in nanoseconds.
pub(crate) const DURATION: &str = "duration_ns";

impl EventClass {
    /// The name of the span that events of this class begin or end, `provider:span`, and the role of these events; `None` if they do not belong to a
    /// span.
    pub fn span(&self) -> Option<(&str, SpanPart)> {
        // If events share a name and differ in their fields, all except the first are recorded with a number.
        let numbered =
            self.name.rsplit_once('#').filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()));
        let name = numbered.map_or(&*self.name, |(name, _)| name);
        let has =
            |field| self.fields.as_ref().is_some_and(|fields| fields.fields.iter().any(|one| one.name() == field));
        let parts = [("_begin", "parent_id", SpanPart::Begin), ("_end", DURATION, SpanPart::End)];
        let part = parts
            .into_iter()
            .find_map(|(suffix, field, part)| Some((name.strip_suffix(suffix)?, part)).filter(|_| has(field)));
        part.filter(|_| has("span_id"))
    }
}
