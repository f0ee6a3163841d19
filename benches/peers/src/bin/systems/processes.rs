//! The resources of processes, measured from outside: processor time, wake-ups and memory.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::time::Duration;

/// A process id.
pub(crate) type Pid = u32;

/// The processor time of a process, with all its threads.
pub(crate) fn processor_time(pid: Pid) -> Result<Duration> {
    let mut clock = 0;
    // SAFETY: it writes one value to a place of its type.
    let failed = unsafe { libc::clock_getcpuclockid(libc::pid_t::try_from(pid)?, &raw mut clock) };
    ensure!(failed == 0, "process {pid} has no clock");
    time(clock).with_context(|| format!("process {pid} has ended"))
}

/// The processor time of this thread.
pub(crate) fn thread_time() -> Duration {
    time(libc::CLOCK_THREAD_CPUTIME_ID).expect("every thread has this clock")
}

fn time(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes one value to a place of its type.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (failed == 0).then(|| Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32))
}

/// The sum of the processor times.
pub(crate) fn processor_times(pids: &[Pid]) -> Result<Duration> {
    pids.iter().map(|pid| processor_time(*pid)).sum()
}

/// How often the threads of processes have gone to sleep, so far.
pub(crate) fn sleeps(pids: &[Pid]) -> Result<u64> {
    let mut sum = 0;
    for pid in pids {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            // A thread may end in the meantime.
            let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
            sum += number(&status, "voluntary_ctxt_switches:").context("every thread has the count")?;
        }
    }
    Ok(sum)
}

/// Memory of processes, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) rss: u64,
    /// Including its share of pages used by several processes.
    pub(crate) pss: u64,
}

/// The total memory of several processes.
pub(crate) fn memory(pids: &[Pid]) -> Result<Memory> {
    let mut sum = Memory::default();
    for pid in pids {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        sum.rss += number(&rollup, "Rss:").context("every process has an RSS")?;
        sum.pss += number(&rollup, "Pss:").context("every process has a PSS")?;
    }
    Ok(sum)
}

/// The shared memory of the machine, in KiB: files in memory, mapped or not.
pub(crate) fn shared() -> Result<u64> {
    number(&fs::read_to_string("/proc/meminfo")?, "Shmem:").context("/proc/meminfo has it")
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
