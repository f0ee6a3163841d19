//! What a paired run found, as JSON holds it.

use crate::interval::Interval;
use crate::machine::Machine;
use crate::variant::Mode;
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
    /// A row for each variant that ran on two processors at once.
    pub two: Vec<Two>,
    /// A row for each variant that ran without a pause.
    pub sustained: Vec<Sustained>,
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
    /// What becomes of events.
    pub mode: Mode,
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
    /// Of those that record: what an event adds over what it adds to the floor of the same workload, both in the same round.
    pub over_floor: Option<Interval>,
}

/// A variant on one processor and on two at once, in turn, in the tight kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Two {
    /// The variant.
    pub variant: String,
    /// Nanoseconds for one event and its share of the loop, of a thread that runs alone.
    pub alone_ns: Interval,
    /// The same of a thread beside another one.
    pub beside_ns: Interval,
    /// One over the other, in the same round.
    pub ratio: Interval,
}

/// A variant in the tight kernel for as long as it takes to fill whatever it fills.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sustained {
    /// The variant.
    pub variant: String,
    /// Nanoseconds for one event and its share of the loop.
    pub ns: f64,
    /// How many events there were.
    pub events: u64,
    /// How many of those did not arrive.
    pub lost: u64,
}

/// What a variant's check found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The variant.
    pub variant: String,
    /// What was found.
    #[serde(flatten)]
    pub proof: Proof,
    /// How many events were measured.
    pub events: u64,
    /// How many of those did not arrive where they should have; nothing is known of a variant that does not tell.
    pub lost: Option<u64>,
}

/// What a check by itself prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// Whether the variant's figures may be believed.
    pub holds: bool,
    /// What was found.
    pub found: String,
    /// How many bytes an event took, where it was kept and that can be told.
    pub bytes: Option<f64>,
}

/// A variant that could not be used here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// The variant.
    pub variant: String,
    /// What it would do with an event.
    pub does: String,
    /// What becomes of events.
    pub mode: Mode,
    /// Why not.
    pub reason: String,
}
