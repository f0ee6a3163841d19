//! Caps on the bandwidth of a sink that sends over a network.

use crate::bucket::Bucket;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Maximum time that one packet may take at a cap.
const LONGEST_PACKET: Duration = Duration::from_secs(10);

/// The caps of a sink.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    pub(crate) max: Option<u64>,
    pub(crate) session: Option<Bucket>,
    pub(crate) run_dir: Option<Bucket>,
}

impl Bandwidth {
    /// Returns the cap of the session, in bytes per second.
    pub const fn max(&self) -> Option<u64> {
        self.max
    }

    /// Shares the cap of the session with other processes through `session`, and also applies that of the run directory.
    pub fn share(&mut self, session: Option<Bucket>, run_dir: Option<Bucket>) {
        self.session = session.filter(|_| self.max.is_some());
        self.run_dir = run_dir;
    }

    /// Applies the session's cap from now on, in a bucket of this process if no bucket is shared.
    pub(crate) fn begin(&mut self) {
        let Some(rate) = self.max else { return };
        self.session.get_or_insert_with(|| Bucket::private(rate)).set_rate(Some(rate));
    }

    pub(crate) fn caps(&self) -> impl Iterator<Item = &Bucket> {
        self.session.iter().chain(&self.run_dir)
    }

    /// Fails if a packet of this size would take too long.
    pub(crate) fn check(&self, packet_size: usize) -> io::Result<()> {
        let needed = (packet_size as u64).div_ceil(LONGEST_PACKET.as_secs());
        for (cap, mend) in [
            (self.session.as_ref(), "raise `--max-bandwidth`"),
            (self.run_dir.as_ref(), "raise the cap of the run directory (`tracectl bandwidth RATE`)"),
        ] {
            let Some(rate) = cap.and_then(Bucket::rate).filter(|rate| *rate < needed) else { continue };
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "a packet of {packet_size} bytes would take more than 10 s at the cap of {rate} bytes per second; {mend} to at least \
                     {needed}, or divide the rings into more packets"
                ),
            ));
        }
        Ok(())
    }
}
