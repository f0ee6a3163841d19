//! Where the clock's zero is, in the time of the world.
//!
//! Times are those of `CLOCK_MONOTONIC`; viewers want the time of day, and merge traces by it. The distance between the two
//! clocks cannot be measured twice with the same result: two processes that measured it for themselves would be microseconds
//! apart in a merged trace, and effects would come before their causes. It is therefore measured once per boot, and kept in the
//! file `clock` of the run directory. Setting the machine's clock later does not change it: what matters more is that the
//! traces of one boot agree.

use crate::rundir::RunDir;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, renameat, unlinkat};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tracepoint_sinks::ClockInfo;
use uuid::Uuid;

/// The file, in the run directory.
const FILE: &str = "clock";
/// Held while the file is looked at and, if need be, written.
const LOCK: &str = "clock.lock";
/// What the file begins with.
const FORMAT: &str = "tracepoint-clock 1";
/// How often the lock is tried, and the pause between: a stopped process that holds it must not stop us.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);
/// How many measurements the best is taken of.
const MEASUREMENTS: usize = 32;

/// The clock of this boot, as all processes that share `run_dir` see it. Without a directory that can be used, as this process
/// alone sees it, and the error says why.
pub(crate) fn clock_info(run_dir: &RunDir) -> (ClockInfo, io::Result<()>) {
    let boot = boot_id();
    match shared_offset(run_dir, boot) {
        Ok(offset) => (info(boot, offset), Ok(())),
        Err(error) => (info(boot, measure()), Err(error)),
    }
}

/// The clock as this process alone sees it.
pub(crate) fn own_clock_info() -> ClockInfo {
    info(boot_id(), measure())
}

fn info(boot: Option<Uuid>, offset: i64) -> ClockInfo {
    ClockInfo { uuid: boot.map(Uuid::into_bytes), offset }
}

/// What tells this boot of the machine from all others.
fn boot_id() -> Option<Uuid> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().parse().ok()
}

fn shared_offset(run_dir: &RunDir, boot: Option<Uuid>) -> io::Result<i64> {
    let boot = boot.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the machine has no boot id"))?;
    let fd = run_dir.fd();
    let _lock = Lock::take(fd)?;
    if let Some(offset) = read(fd, boot) {
        return Ok(offset);
    }
    let offset = measure();
    write(fd, boot, offset)?;
    Ok(offset)
}

/// The lock file, locked. Two processes that find no clock must not both write one, each believing its own.
struct Lock(File);

impl Lock {
    fn take(dir: &OwnedFd) -> io::Result<Self> {
        let file = File::from(openat(dir, LOCK, WRITE | OFlags::CREATE, OWNER)?);
        for _ in 0..TRIES {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("another process does not give {LOCK} back")))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that was forked meanwhile. Fails only for a bad descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

const WRITE: OFlags = OFlags::WRONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// The offset in the file; `None` if there is no file, or it is of another boot, or damaged: it is then written anew.
fn read(dir: &OwnedFd, boot: Uuid) -> Option<i64> {
    let file = openat(dir, FILE, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).take(1024).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let whole = text.ends_with('\n') && lines.next()? == FORMAT;
    let same_boot = lines.next()?.strip_prefix("boot ")?.parse::<Uuid>().ok()? == boot;
    let offset = lines.next()?.strip_prefix("offset_ns ")?.parse().ok()?;
    (whole && same_boot && lines.next().is_none()).then_some(offset)
}

fn write(dir: &OwnedFd, boot: Uuid, offset: i64) -> io::Result<()> {
    let temporary = format!(".{FILE}.new");
    // What a process left here that was killed is in the way of nobody but us: the lock is held.
    let _ = unlinkat(dir, &temporary, AtFlags::empty());
    let mut file = File::from(openat(dir, &temporary, WRITE | OFlags::CREATE | OFlags::EXCL, OWNER)?);
    file.write_all(format!("{FORMAT}\nboot {boot}\noffset_ns {offset}\n").as_bytes())?;
    Ok(renameat(dir, &temporary, dir, FILE)?)
}

/// The distance between the clocks, in ns: `CLOCK_REALTIME` between two readings of `CLOCK_MONOTONIC`, the closest of several.
fn measure() -> i64 {
    let one = || {
        let before = ns(clock_gettime(ClockId::Monotonic));
        let real = ns(clock_gettime(ClockId::Realtime));
        let after = ns(clock_gettime(ClockId::Monotonic));
        (after - before, real - (before + (after - before) / 2))
    };
    let mut best = one();
    for _ in 1..MEASUREMENTS {
        best = best.min(one());
    }
    best.1
}

fn ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_measurement_is_kept() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = dir.path().to_owned();
                std::thread::spawn(move || RunDir::at(&path).map(|dir| clock_info(&dir).0.offset).ok())
            })
            .collect();
        let offsets: Vec<_> = threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        assert!(offsets[0].is_some());
        assert!(offsets.iter().all(|offset| *offset == offsets[0]), "{offsets:?}");
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 2, "the file and its lock");
        Ok(())
    }

    #[test]
    fn what_is_damaged_or_of_another_boot_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let file = dir.path().join(FILE);
        let boot = boot_id().ok_or("no boot id")?;
        let texts = [
            String::new(),
            format!("{FORMAT}\nboot {}\noffset_ns 5\n", Uuid::nil()),
            format!("{FORMAT}\nboot {boot}\noffset_ns 5"),
            format!("{FORMAT}\nboot {boot}\noffset_ns many\n"),
            "\0".repeat(4096),
        ];
        for text in texts {
            std::fs::write(&file, &text)?;
            let (info, shared) = clock_info(&dir);
            shared?;
            assert_ne!(info.offset, 5, "{text:?}");
            assert_eq!(read(dir.fd(), boot), Some(info.offset), "{text:?}");
        }
        std::fs::write(&file, format!("{FORMAT}\nboot {boot}\noffset_ns 5\n"))?;
        assert_eq!(clock_info(&dir).0.offset, 5);
        Ok(())
    }
}
