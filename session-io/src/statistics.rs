//! The files of a session's statistics: their index for each process, and their results.

pub mod index;
mod read;

pub use read::{ProcessStatistics, SessionStatistics, StatisticResult};
