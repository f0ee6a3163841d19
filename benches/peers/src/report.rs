//! What a paired run found, as JSON holds it.

use crate::interval::Interval;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where and when.
    pub machine: Machine,
    /// The processor that the run was pinned to, if it could be.
    pub pinned: Option<usize>,
    /// How many rounds.
    pub rounds: usize,
    /// A row for each variant and kernel.
    pub rows: Vec<Row>,
    /// What each variant's check found.
    pub checks: Vec<Checked>,
    /// The variants that could not be used here.
    pub unusable: Vec<Absent>,
}

/// A variant in a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// What it does with an event.
    pub does: String,
    /// Whether it is on.
    pub on: bool,
    /// The kernel.
    pub kernel: String,
    /// Time over that without a site.
    pub ratio: Interval,
    /// Nanoseconds for one event more than without a site.
    pub added_ns: Interval,
    /// Nanoseconds for one event and its share of the loop: the fastest round.
    pub ns_min: f64,
    /// The same: the median round.
    pub ns_median: f64,
}

/// What a variant's check found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The variant.
    pub variant: String,
    /// Whether its figures may be believed.
    pub holds: bool,
    /// What was found.
    pub found: String,
    /// How many events were measured.
    pub events: u64,
    /// How many of those did not arrive where they should have; nothing is known of a variant that does not tell.
    pub lost: Option<u64>,
}

/// A variant that could not be used here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// The variant.
    pub variant: String,
    /// What it would do with an event.
    pub does: String,
    /// Whether it is on.
    pub on: bool,
    /// Why not.
    pub reason: String,
}
