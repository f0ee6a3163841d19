//! The files of a session's statistics: which there are of a process, and their results.

pub mod index;
mod read;

pub use read::{ProcessStatistics, SessionStatistics, StatisticResult};
