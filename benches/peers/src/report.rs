//! The results of a paired run, in the form of its JSON output.

use crate::interval::Interval;
use crate::machine::Machine;
use crate::variant::Mode;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The machine, and the time of the run.
    pub machine: Machine,
    /// The processor that the run was pinned to; `None` if the system refused.
    pub pinned: Option<usize>,
    /// The number of rounds.
    pub rounds: usize,
    /// A row for each variant and kernel.
    pub rows: Vec<Row>,
    /// A row for each variant that ran on two processors at once.
    pub two: Vec<Two>,
    /// A row for each variant that ran without a pause.
    pub sustained: Vec<Sustained>,
    /// The result of the check of each variant.
    pub checks: Vec<Checked>,
    /// The variants that could not be used here.
    pub unusable: Vec<Absent>,
}

/// A variant in a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// The variant's handling of an event.
    pub does: String,
    /// The state of the events: off, on or recorded.
    pub mode: Mode,
    /// The kernel.
    pub kernel: String,
    /// The time of the kernel, divided by its time without a site.
    pub ratio: Interval,
    /// The nanoseconds that one event adds to the kernel.
    pub added_ns: Interval,
    /// Nanoseconds for one event and its share of the loop: the fastest round.
    pub ns_min: f64,
    /// Nanoseconds for one event and its share of the loop: the median round.
    pub ns_median: f64,
    /// For variants that record: the cost an event adds, divided by the cost it adds with the floor, both in the same round and workload.
    pub over_floor: Option<Interval>,
}

/// A variant in the tight kernel, on one processor and on two at once, in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Two {
    /// The variant.
    pub variant: String,
    /// Nanoseconds for one event and its share of the loop, of a thread that runs alone.
    pub alone_ns: Interval,
    /// The same for a thread that runs next to another one.
    pub beside_ns: Interval,
    /// One over the other, in the same round.
    pub ratio: Interval,
}

/// A variant in the tight kernel, for long enough to fill its buffers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sustained {
    /// The variant.
    pub variant: String,
    /// Nanoseconds for one event and its share of the loop.
    pub ns: f64,
    /// The number of events.
    pub events: u64,
    /// The number of lost events.
    pub lost: u64,
}

/// The result of the check of a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The variant.
    pub variant: String,
    /// The finding, as text.
    #[serde(flatten)]
    pub proof: Proof,
    /// The number of measured events.
    pub events: u64,
    /// The number of lost events; `None` for a variant that does not report it.
    pub lost: Option<u64>,
}

/// The result of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// True if the figures of the variant are valid.
    pub holds: bool,
    /// The finding, as text.
    pub found: String,
    /// The bytes of an event, where it was kept and they are known.
    pub bytes: Option<f64>,
}

/// A variant that could not be used here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// The variant.
    pub variant: String,
    /// The effect that an event of the variant would have.
    pub does: String,
    /// The state of the events: off, on or recorded.
    pub mode: Mode,
    /// The reason.
    pub reason: String,
}
