//! Records of the `log` facade as events of the tracepoint `log:record`.
//!
//! `log` has no callsites: one tracepoint has all records. Select them by a filter:
//! `tracectl record -e log:record --filter 'target == "hyper*" && level == "Warn"'`. While it is off, the level of `log` is that of the
//! other logger, or `Off`, and a `log::info!` costs a load and a comparison.

use crate::switching;
use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};
use std::sync::OnceLock;

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

/// The logger that gets the records besides the tracepoint, and its level.
static OTHER: OnceLock<Option<(Box<dyn Log>, LevelFilter)>> = OnceLock::new();

struct Tracepoints;

/// Makes the tracepoint the logger of the program.
///
/// # Errors
///
/// If the program has a logger: use [`init_beside`] in its place.
pub fn init() -> Result<(), SetLoggerError> {
    install(None)
}

/// Makes the tracepoint the logger of the program, beside another one, which gets the records up to `level` as before.
///
/// # Errors
///
/// If the program has a logger: do not install the other one by itself.
pub fn init_beside(other: Box<dyn Log>, level: LevelFilter) -> Result<(), SetLoggerError> {
    install(Some((other, level)))
}

fn install(other: Option<(Box<dyn Log>, LevelFilter)>) -> Result<(), SetLoggerError> {
    log::set_logger(&Tracepoints)?;
    let _ = OTHER.set(other);
    switching::follow_with(set_level);
    Ok(())
}

fn other() -> Option<&'static (Box<dyn Log>, LevelFilter)> {
    OTHER.get()?.as_ref()
}

/// Sets the level of `log` to what is wanted now.
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
        if let Some((log, level)) = other() {
            if log_record.level() <= *level {
                log.log(log_record);
            }
        }
    }

    fn flush(&self) {
        if let Some((log, _)) = other() {
            log.flush();
        }
    }
}
