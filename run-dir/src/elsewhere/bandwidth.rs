//! The counterpart on systems other than Linux, which have no sinks that send over a network.

use crate::private_dir::PrivateDir;
use std::io;
use tracepoint_sinks::Sink;

/// No sender shares a bandwidth.
#[derive(Clone, Copy, Debug)]
pub struct Buckets;

impl Buckets {
    /// Does nothing.
    pub fn share(_: &mut dyn Sink, _: Option<&PrivateDir>) -> io::Result<()> {
        Ok(())
    }
}
