//! Records of `log` that arrive as events of `tracing`, because `tracing-log` is the program's logger.
//!
//! `tracing-log` has one callsite per level, which it never registers, and queries the filter at each record.

use super::trace_record_enabled;
use log::Level;
use std::fmt::Debug;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_core::callsite::Identifier;
use tracing_core::dispatcher::with_default;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Dispatch, Event, Metadata};
use tracing_log::{AsLog, AsTrace, NormalizeEvent};

/// Returns whether this is a callsite of `tracing-log`.
fn is_of_log(metadata: &Metadata<'_>) -> bool {
    static CALLSITES: OnceLock<[Identifier; 5]> = OnceLock::new();
    let callsites = CALLSITES.get_or_init(|| {
        let of = |level| log::Metadata::builder().level(level).build().as_trace().callsite();
        [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace].map(of)
    });
    callsites.contains(&metadata.callsite())
}

/// Returns whether this is a record of `log` and its tracepoint is on.
pub(crate) fn is_wanted(metadata: &Metadata<'_>) -> bool {
    trace_record_enabled() && is_of_log(metadata)
}

/// Records an event that is a record of `log`.
pub(crate) fn record(event: &Event<'_>) {
    if let Some(metadata) = event.normalized_metadata() {
        event.record(&mut Message(&metadata));
    }
}

/// Visitor that records an event's message with its metadata.
struct Message<'a>(&'a Metadata<'a>);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let mut record = log::Record::builder();
            record.level(self.0.level().as_log()).target(self.0.target()).module_path(self.0.module_path());
            record.file(self.0.file()).line(self.0.line());
            tracepoint_core::trace!(super::record(&record.args(format_args!("{value:?}")).build()));
        }
    }
}

/// Returns whether `tracing-log` is the program's logger: whether it queries this thread's dispatcher about a record.
pub(super) fn is_logger() -> bool {
    static WAS_ASKED: AtomicBool = AtomicBool::new(false);

    struct LoggerProbe;

    impl Subscriber for LoggerProbe {
        fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
            Interest::sometimes()
        }

        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            // Relaxed: the same thread stores and loads.
            WAS_ASKED.fetch_or(is_of_log(metadata), Ordering::Relaxed);
            false
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    let question = log::Metadata::builder().level(Level::Error).target("tracepoint").build();
    with_default(&Dispatch::new(LoggerProbe), || log::logger().enabled(&question));
    WAS_ASKED.load(Ordering::Relaxed)
}
