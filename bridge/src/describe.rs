//! The tracepoints of a callsite and their descriptions: names, fields, level, location. They live as long as the process.

use tracepoint_core::field::{AnyFields, Base, ByteOrder, FieldDescriptor, FieldType, IntegerType, MAX_ANY_FIELDS};
use tracepoint_core::internal::{At, MarkerParts, RuntimeMarker, UpdateGuard, ValuesType};
use tracepoint_core::{Level, Location};
use tracing_core::Metadata;

/// The provider, the part of each name before the colon.
const PROVIDER: &str = "tracing";

tracepoint_core::define_trace! {
    provider = "tracepoint";

    /// Never fired. Its presence shows the agent that this program will register further markers.
    registers_markers() {}
}

/// Maximum length of a name in bytes: the limit of LTTng's tools, minus the provider and the colon.
const MAX_NAME: usize = 255 - PROVIDER.len() - 1;

const ID: FieldType =
    FieldType::Integer(IntegerType { bits: 64, signed: false, base: Base::Decimal, order: ByteOrder::Little });

/// Values of an event, or of a span's later values: the id of a span, then the fields.
#[derive(Debug)]
pub(crate) enum InSpan {}

impl ValuesType for InSpan {
    type Values<'a> = (u64, AnyFields<'a>);
}

/// Values of a span's begin: its id, its parent's id, then the fields.
#[derive(Debug)]
pub(crate) enum Begin {}

impl ValuesType for Begin {
    type Values<'a> = At<(u64, (u64, AnyFields<'a>))>;
}

/// Values of a span's end: its id, and its duration in nanoseconds.
#[derive(Debug)]
pub(crate) enum End {}

impl ValuesType for End {
    type Values<'a> = At<(u64, (u64, ()))>;
}

/// The tracepoints of a callsite.
#[derive(Debug)]
pub(crate) enum Tracepoints {
    Event(RuntimeMarker<InSpan>),
    Span {
        begin: RuntimeMarker<Begin>,
        record: RuntimeMarker<InSpan>,
        end: RuntimeMarker<End>,
    },
    /// The maximum number of tracepoints is reached.
    None,
}

impl Tracepoints {
    /// Returns whether any of them is on.
    pub(crate) fn is_on(&self) -> bool {
        match self {
            Self::Event(event) => event.is_on(),
            Self::Span { begin, record, end } => begin.is_on() || record.is_on() || end.is_on(),
            Self::None => false,
        }
    }
}

/// Registers the tracepoints of a callsite.
pub(crate) fn register(metadata: &'static Metadata<'static>, locked: &UpdateGuard<'_>) -> Tracepoints {
    let tracepoints = if metadata.is_span() {
        let name = format!("{}::{}", metadata.target(), metadata.name());
        // Readers recognise the begin and the end of a span by these names.
        let begin = marker(locked, metadata, &name, "_begin", &["span_id", "parent_id"], true);
        let record = marker(locked, metadata, &name, "_record", &["span_id"], true);
        let end = marker(locked, metadata, &name, "_end", &["span_id", "duration_ns"], false);
        begin.zip(record).zip(end).map(|((begin, record), end)| Tracepoints::Span { begin, record, end })
    } else {
        marker(locked, metadata, &event_name(metadata), "", &["span_id"], true).map(Tracepoints::Event)
    };
    tracepoints.unwrap_or(Tracepoints::None)
}

/// Returns `TARGET:LINE`, or `TARGET::NAME` for an event with an explicit name.
fn event_name(metadata: &Metadata<'_>) -> String {
    let (target, name) = (metadata.target(), metadata.name());
    match metadata.line() {
        // By default, the macros name events `event FILE:LINE`.
        Some(line) if name.starts_with("event ") => format!("{target}:{line}"),
        _ => format!("{target}::{name}"),
    }
}

fn marker<V: ValuesType>(
    locked: &UpdateGuard<'_>,
    metadata: &'static Metadata<'static>,
    name: &str,
    ending: &str,
    ids: &[&'static str],
    has_fields: bool,
) -> Option<RuntimeMarker<V>> {
    let mut fields: Vec<_> = ids.iter().map(|name| FieldDescriptor { name, ty: ID, doc: "" }).collect();
    if has_fields {
        fields.extend(metadata.fields().iter().take(MAX_ANY_FIELDS).map(|field| FieldDescriptor {
            name: identifier(field.name(), ids),
            ty: FieldType::Any,
            doc: "",
        }));
    }
    let parts = MarkerParts {
        provider: PROVIDER,
        name: full_name(name, ending).leak(),
        level: level(*metadata.level()),
        fields: fields.leak(),
        format: "",
        doc: "",
        location: Location {
            package: "",
            version: "",
            module: metadata.module_path().unwrap_or(""),
            file: metadata.file().unwrap_or(""),
            line: metadata.line().unwrap_or(0),
        },
    };
    RuntimeMarker::register(parts, locked)
}

/// Converts a name to characters that CTF supports, and truncates it.
fn full_name(name: &str, ending: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    name.chars().map(plain).take(MAX_NAME - ending.len()).chain(ending.chars()).collect()
}

/// Converts a field name to an identifier that filters accept, distinct from `ids`.
fn identifier(name: &'static str, ids: &[&str]) -> &'static str {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !ids.contains(&name) {
        return name;
    }
    let mut own: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    while ids.contains(&&*own) {
        own.push('_');
    }
    own.leak()
}

fn level(level: tracing_core::Level) -> Level {
    match level {
        tracing_core::Level::ERROR => Level::Err,
        tracing_core::Level::WARN => Level::Warning,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::DEBUG => Level::DebugModule,
        _ => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_bounded() {
        assert_eq!(full_name("a::b c é", "_end"), "a::b_c___end");
        assert_eq!(full_name(&"x".repeat(300), "_begin").len(), MAX_NAME);
        assert_eq!(identifier("http.method", &["id"]), "http_method");
        assert_eq!(identifier("id", &["id"]), "id_");
    }
}
