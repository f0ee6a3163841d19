//! The wake-ups of the recorded threads.
//!
//! An event of a thread is counted but not stored while the thread does not run (Linux commit c9bc1753b3cc of February 2026, which is in updates of
//! older releases, too), so that its own wake-up by an interrupt or by another process would be missing. Wake-ups are therefore recorded on all CPUs,
//! with a filter in the kernel that names the threads. A filter cannot be changed: if there are new threads, the event is opened again, and a wake-up
//! at that moment may be stored twice.

use super::cpu::Cpu;
use super::perf::ThreadEvent;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Maximum number of ranges of thread ids in a filter, whose text may have 4,095 bytes.
const MAX_RANGES: usize = 100;

/// Which wake-ups are recorded.
#[derive(Debug)]
pub(super) struct Wakings {
    /// The number of the tracepoint.
    number: u16,
    /// The threads that are woken.
    threads: BTreeSet<u32>,
}

impl Wakings {
    pub(super) const fn new(number: u16) -> Self {
        Self { number, threads: BTreeSet::new() }
    }

    /// Records the wake-ups of these threads as well.
    pub(super) fn add(&mut self, threads: BTreeSet<u32>, cpus: &mut [Cpu]) -> io::Result<()> {
        if threads.is_subset(&self.threads) {
            return Ok(());
        }
        self.threads.retain(|thread| Path::new("/proc").join(thread.to_string()).exists());
        self.threads.extend(threads);
        let event = ThreadEvent::Tracepoint(self.number, Some(filter(&self.threads)));
        // On all CPUs, whether or not one fails. No thread is woken on a CPU that is offline.
        let present = cpus.iter_mut().filter(|cpu| !cpu.is_gone);
        let recorded = present.map(|cpu| match cpu.record_wakings(&event) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            recorded => recorded.map_err(|error| io::Error::new(error.kind(), format!("CPU {}: {error}", cpu.number))),
        });
        recorded.fold(Ok(()), Result::and)
    }
}

/// Returns a filter for these threads. If they are in too many ranges of ids, it includes the ids in the smallest gaps.
fn filter(threads: &BTreeSet<u32>) -> CString {
    let ids: Vec<_> = threads.iter().copied().collect();
    let mut gaps: Vec<_> = (1..ids.len()).filter(|index| ids[*index] - ids[index - 1] > 1).collect();
    gaps.sort_by_key(|index| std::cmp::Reverse(ids[*index] - ids[index - 1]));
    gaps.truncate(MAX_RANGES - 1);
    gaps.extend([0, ids.len()]);
    gaps.sort_unstable();
    let term = |range: &[usize]| match &ids[range[0]..range[1]] {
        [] => None,
        [only] => Some(format!("pid == {only}")),
        [first, .., last] => Some(format!("(pid >= {first} && pid <= {last})")),
    };
    let terms: Vec<_> = gaps.windows(2).filter_map(term).collect();
    CString::new(terms.join(" || ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_ranges_and_a_bounded_size() {
        let of = |ids: &[u32]| filter(&ids.iter().copied().collect()).into_string().unwrap_or_default();
        assert_eq!(of(&[7]), "pid == 7");
        assert_eq!(of(&[7, 8, 9, 11]), "(pid >= 7 && pid <= 9) || pid == 11");
        let many: Vec<_> = (0..5000).map(|index| 4_000_000 + 2 * index).chain([1]).collect();
        let text = of(&many);
        assert!(text.len() < 4096 && text.contains("pid == 1 ") && text.ends_with("4009998)"), "{text}");
    }
}
