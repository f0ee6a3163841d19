//! Descriptors that the agent reserves, so that it can end sessions in a process that may not open another file.

use fileguard::GuardedFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::io;
use std::os::fd::OwnedFd;
use tracepoint_run_dir::private_dir::PrivateDir;

/// Number of reserved descriptors: the number that a scan uses at a time while a session with an output ends, and some more.
const KEPT: usize = 8;

/// The descriptors.
#[derive(Debug, Default)]
pub(super) struct SpareDescriptors(Vec<GuardedFd<OwnedFd>>);

impl SpareDescriptors {
    /// Reserves missing descriptors, as many as available, as duplicates of the descriptor of `dir`.
    pub(super) fn take(&mut self, dir: &PrivateDir) {
        // The program may have closed some.
        self.0.retain(GuardedFd::is_open);
        let missing = KEPT - self.0.len();
        let Ok(fd) = dir.fd() else { return };
        // The lowest numbers: if the program lowers the limit, higher ones are useless.
        let spare = || fcntl_dupfd_cloexec(&fd, 0).map_err(io::Error::from).and_then(GuardedFd::with_its_number);
        self.0.extend((0..missing).map_while(|_| spare().ok()));
    }

    /// Closes them, so that the agent can open files instead, unless other threads of the program are faster. Returns whether there were
    /// any.
    pub(super) fn release(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

/// Returns whether an operation failed because the process or the system may not open another file.
pub(super) fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
