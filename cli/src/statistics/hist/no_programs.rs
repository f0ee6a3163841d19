//! The counterpart on systems other than Linux.

use super::Hist;
use crate::failure::{Failure, VerbResult};
use crate::not_here;
use crate::statistics::live::Target;
use tracepoint_probes::{Snapshot, StatisticSpec};

impl Hist {
    pub(super) fn run_live(&self, target: Target, _spec: Option<StatisticSpec>) -> VerbResult {
        match target {}
    }

    pub(super) fn write_metrics(&self, _snapshot: &Snapshot, _lost: u64) -> Result<(), Failure> {
        Err(not_here::failure())
    }
}
