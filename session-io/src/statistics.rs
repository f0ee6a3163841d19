//! The files of a session's statistics: their index for each process, and their results.

pub mod index;
#[cfg(target_os = "linux")]
mod read;
mod result;

#[cfg(target_os = "linux")]
pub use read::{ProcessStatistics, SessionStatistics};
pub use result::StatisticResult;
