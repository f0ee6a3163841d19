//! What the rings of all processes of a session take together, where the session has a cap: a sum in a file, so that making a ring costs the
//! same however many processes there are.
//!
//! ```text
//!   sessions/NAME/memory     u64  bytes that are reserved for rings
//!                            u64  CLOCK_MONOTONIC in ns before which they are not counted again
//! ```
//!
//! A process reserves the length of a ring before it makes the file, with the ledger locked, and gives all back when it has removed its
//! rings. What a killed process had reserved stays in the sum, which is thus never too small. When it would exceed the cap, and in a new
//! ledger, the process counts the rings of all living processes, which is a look at each of them, and the count is the sum. Counting
//! takes at most a twentieth of the time; in between a refused process stays refused. All processes of a session have the same cap: rings that
//! one without a cap makes later are in the sum from the next count on.

use super::RINGS;
use super::lock::{PAUSE, TIMEOUT};
use crate::private_dir::PrivateDir;
use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Its name in the directory of a session.
pub(crate) const MEMORY: &str = "memory";
/// How much longer than counting the time until it may be done again is, and the longest such time.
const REST: u32 = 19;
const MAX_REST: Duration = Duration::from_secs(10);

/// The ledger of a session, locked.
#[derive(Debug)]
pub(super) struct Ledger(File);

impl Ledger {
    /// Opens or makes the ledger of a session, and waits for its lock, for at most a second.
    pub(super) fn lock(session: &PrivateDir) -> io::Result<Self> {
        for _ in 0..=TIMEOUT.as_millis() / PAUSE.as_millis() {
            let file = match session.open_to_change(MEMORY) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => match session.create_file(MEMORY, 16) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => made?,
                },
                opened => opened?,
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Who held the lock before may have removed the file.
                Ok(())
                    if session
                        .stamp(MEMORY)
                        .is_ok_and(|(inode, _)| fstat(&file).is_ok_and(|own| own.st_ino == inode)) =>
                {
                    return Ok(Self(file));
                }
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
    }

    /// Reserves `len` bytes, unless the sum would exceed `cap`, also after what `count` finds was taken for the sum.
    pub(super) fn reserve(&self, len: u64, cap: u64, count: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        let (mut sum, mut again) = (self.number(0), self.number(8));
        let now = now();
        let is_new = again == 0;
        // A time that is too far ahead is of an earlier boot.
        let may_count = !(now..=now + MAX_REST.as_nanos() as u64).contains(&again);
        if is_new || (may_count && sum.saturating_add(len) > cap) {
            sum = count()?;
            let rest = Duration::from_nanos(self::now() - now).saturating_mul(REST).min(MAX_REST);
            again = self::now() + rest.as_nanos() as u64;
        }
        let fits = sum.saturating_add(len) <= cap;
        self.write(sum + if fits { len } else { 0 }, again)?;
        if fits {
            return Ok(());
        }
        let text = format!(
            "the session's rings take {sum} bytes, and {len} more would exceed its cap of {cap}; raise the cap \
             (`--memory-cap`, `.memory_cap(bytes)`), or choose smaller or fewer rings"
        );
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
    }

    /// Gives back what was reserved.
    pub(super) fn give_back(&self, bytes: u64) -> io::Result<()> {
        self.write(self.number(0).saturating_sub(bytes), self.number(8))
    }

    fn write(&self, sum: u64, again: u64) -> io::Result<()> {
        self.0.write_all_at(&[sum, again].map(u64::to_le_bytes).concat(), 0)
    }

    /// A number of the file; 0 if it was not written yet.
    fn number(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, offset).map_or(0, |()| u64::from_le_bytes(bytes))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Removes the ledger of a session in which no process has a directory.
pub(super) fn remove_unused(session: &PrivateDir) {
    // A process makes its directory before it uses the ledger.
    let is_unused = || session.stamp(RINGS).is_err();
    if session.stamp(MEMORY).is_ok() && is_unused() {
        let _lock = Ledger::lock(session);
        if is_unused() {
            session.remove_file(MEMORY);
        }
    }
}

fn now() -> u64 {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).map_or(0, |now| now.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn rings_are_counted_only_where_the_sum_exceeds_the_cap() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let session = PrivateDir::at(temp.path())?;
        let counted = Cell::new(0);
        let count = |bytes: u64| {
            counted.set(counted.get() + 1);
            std::thread::sleep(Duration::from_millis(20));
            Ok(bytes)
        };
        for _ in 0..10 {
            Ledger::lock(&session)?.reserve(10, 100, || count(0))?;
        }
        assert_eq!(counted.get(), 1, "it was new");
        let ledger = Ledger::lock(&session)?;
        assert!(ledger.reserve(10, 100, || count(0)).is_err(), "not again so soon");
        ledger.give_back(30)?;
        ledger.reserve(30, 100, || count(0))?;
        assert_eq!((counted.get(), ledger.number(0)), (1, 100));
        ledger.write(100, 1)?;
        ledger.reserve(10, 100, || count(50))?;
        assert_eq!((counted.get(), ledger.number(0)), (2, 60), "the rings of five were gone");
        drop(ledger);
        session.subdir(RINGS)?;
        remove_unused(&session);
        assert!(session.stamp(MEMORY).is_ok(), "a process may use it");
        session.remove_empty(RINGS);
        remove_unused(&session);
        assert_eq!(session.names()?, [""; 0]);
        Ok(())
    }
}
