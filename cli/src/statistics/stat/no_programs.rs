//! The counterpart on systems other than Linux.

use super::{EventCounts, Stat};
use crate::failure::{Failure, VerbResult};
use crate::not_here;
use crate::statistics::live::Target;
use std::net::SocketAddr;

impl Stat {
    pub(super) fn run_live(&self, target: Target) -> VerbResult {
        match target {}
    }

    pub(super) fn serve(&self, _address: SocketAddr) -> VerbResult {
        Err(not_here::failure())
    }

    pub(super) fn write_metrics(&self, _counted: &EventCounts) -> Result<(), Failure> {
        Err(not_here::failure())
    }
}
