//! `tracectl stat` and `tracectl hist`: answers from recorded traces.

mod chart;
pub(crate) mod hist;
mod pass;
pub(crate) mod stat;
