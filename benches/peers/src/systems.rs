//! The results of the bin `systems`, in the form of its JSON output.

use crate::interval::Interval;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The machine, and the time of the run.
    pub machine: Machine,
    /// The number of rounds.
    pub rounds: usize,
    /// How long a program had been idle before each load, in milliseconds.
    pub pause_ms: u64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The systems that could not be measured here, and why.
    pub absent: Vec<Absent>,
}

impl Report {
    /// The median of a figure of a system.
    pub fn median(&self, what: &str, system: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| figure.what == what && figure.system == system)?;
        Some(figure.value.median)
    }
}

/// A figure of a system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the figure; the bin `systems` lists the names and units.
    pub what: String,
    /// The system.
    pub system: String,
    /// The median over the rounds.
    pub value: Interval,
}

/// A system that could not be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// The system.
    pub system: String,
    /// The reason.
    pub reason: String,
}
