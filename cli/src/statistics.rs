//! `tracectl stat` and `tracectl hist`: statistics of recorded traces and of running programs.

mod chart;
mod groups;
mod heat_map;
pub(crate) mod hist;
#[cfg(target_os = "linux")]
mod listen;
#[cfg_attr(not(target_os = "linux"), path = "statistics/no_programs.rs")]
pub(crate) mod live;
mod operands;
mod pass;
mod picture;
#[cfg(target_os = "linux")]
mod prometheus;
pub(crate) mod stat;
mod summary;
mod svg;
mod text;

pub(crate) use chart::{PERCENTILES, lines as histogram_lines, percentile};
pub(crate) use operands::IDS;
pub(crate) use pass::{Input, PassSummary};

/// A time in nanoseconds for display.
pub(crate) fn duration(nanoseconds: u64) -> String {
    chart::value(number(nanoseconds), true)
}

/// A count as a coordinate.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn number(count: u64) -> f64 {
    count as f64
}
