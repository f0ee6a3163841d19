//! Records of the `log` facade as events of the tracepoint `log:record`.
//!
//! `log` has no callsites, so one tracepoint covers all records. Select them with a filter:
//! `tracectl record -e log:record --filter 'target == "hyper*" && level == "Warn"'`. While it is off, the maximum level of `log` is the other
//! logger's, or `Off`, and a `log::info!` costs a load and a comparison.
//!
//! Records arrive in one of two ways. With the feature `tracing-log` of `tracing-subscriber`, which is on by default, a subscriber's `init` installs
//! `tracing-log` as the program's logger, and the [layer](crate::layer()) gets the records. Without that feature, [`init`] installs the tracepoint as
//! the logger.

pub(crate) mod through_tracing;

use crate::switching;
use log::{LevelFilter, Log, Metadata, Record};
use std::sync::OnceLock;
use thiserror::Error;

tracepoint_core::define_trace! {
    provider = "log";

    /// A record of the `log` facade.
    #[level(Debug)]
    pub(crate) record(record: &Record<'_>) {
        level: enum u8 { Error = 1, Warn = 2, Info = 3, Debug = 4, Trace = 5 } = record.level() as u8,
        target: str = record.target(),
        module: Option<str> = record.module_path(),
        file: Option<str> = record.file(),
        line: Option<u32> = record.line(),
        message: display(1024) = record.args(),
    }
}

/// The logger that gets the records in addition to the tracepoint, and its level.
static OTHER: OnceLock<Option<(Box<dyn Log>, LevelFilter)>> = OnceLock::new();

struct Tracepoints;

/// The program has a logger that passes no records to the tracepoint.
#[derive(Clone, Copy, Debug, Error)]
#[error(
    "the program has another logger for `log`: give that one to `tracepoint_tracing::log::init_beside(logger, level)` \
     instead of installing it"
)]
pub struct OtherLogger;

/// Records `log`: installs the tracepoint as the program's logger, unless that is the logger of `tracing-log`, whose records the
/// [layer](crate::layer()) gets.
///
/// Call it after the subscriber's `init`, which fails if a logger is installed and `tracing-subscriber` has the feature `tracing-log`.
///
/// # Errors
///
/// If the program has another logger; use [`init_beside`] instead.
pub fn init() -> Result<(), OtherLogger> {
    install(None).or_else(|other| if through_tracing::is_logger() { Ok(()) } else { Err(other) })
}

/// Installs the tracepoint as the program's logger, together with another logger, which gets the records up to `level` as before.
///
/// # Errors
///
/// If the program has a logger already; the other logger must not install itself.
pub fn init_beside(other: Box<dyn Log>, level: LevelFilter) -> Result<(), OtherLogger> {
    install(Some((other, level)))
}

fn install(other: Option<(Box<dyn Log>, LevelFilter)>) -> Result<(), OtherLogger> {
    log::set_logger(&Tracepoints).map_err(|_| OtherLogger)?;
    let _ = OTHER.set(other);
    switching::follow_with(set_level);
    Ok(())
}

fn other() -> Option<&'static (Box<dyn Log>, LevelFilter)> {
    OTHER.get()?.as_ref()
}

/// Sets the maximum level of `log` to the one that is needed now.
fn set_level() {
    let level = other().map_or(LevelFilter::Off, |(_, level)| *level);
    log::set_max_level(if trace_record_enabled() { LevelFilter::Trace } else { level });
}

impl Log for Tracepoints {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_for = |(log, level): &(Box<dyn Log>, LevelFilter)| metadata.level() <= *level && log.enabled(metadata);
        trace_record_enabled() || other().is_some_and(is_for)
    }

    fn log(&self, log_record: &Record<'_>) {
        tracepoint_core::trace!(record(log_record));
        if let Some((log, level)) = other()
            && log_record.level() <= *level
        {
            log.log(log_record);
        }
    }

    fn flush(&self) {
        if let Some((log, _)) = other() {
            log.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Log for Silent {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn log(&self, _: &Record<'_>) {}

        fn flush(&self) {}
    }

    #[test]
    fn another_logger_is_refused() {
        log::set_logger(&Silent).expect("the only logger of these tests");
        let refused = init().expect_err("there is a logger");
        assert!(refused.to_string().contains("init_beside"), "{refused}");
    }
}
