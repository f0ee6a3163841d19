//! Samples of the processor: what the threads of processes run, at a rate, with their call stacks.
//!
//! ```text
//!   attach: perf_event_open(PERF_COUNT_SW_CPU_CLOCK, RATE) for each thread and CPU ──▶ perf:sample    the call stack, while the thread runs
//!           PERF_RECORD_MMAP2 of the same events ────────────────────────────────────▶ perf:mmap      code that is mapped from now on
//!           /proc/PID/maps, after the threads are attached ──────────────────────────▶ perf:mmap      code that is mapped already
//!           PERF_RECORD_THROTTLE, UNTHROTTLE ────────────────────────────────────────▶ perf:throttle  the kernel takes no samples for a while
//! ```
//!
//! The clock of the processor is an event of software: it needs no counter of the hardware, which virtual machines and containers rarely have, and it
//! only advances while the thread runs. The kernel walks the call stack along the frame pointers. Without the rights for it (`perf_event_paranoid`
//! above 1), nothing is sampled while the thread is in the kernel.
//!
//! Nothing is symbolized here: a sample has addresses, and a mapping has the file and its build id, by which a reader finds the names of functions. A
//! mapping that is made while its process is attached may be described twice; it is never missing.
//!
//! The kernel has no counter of samples: its counter has the time in which the thread ran. Fired is therefore recorded plus lost.

use super::perf::ThreadEvent;
use super::threads::Selection;
use super::{KernelError, SAMPLE};
use std::fs;
use std::num::NonZeroU32;
use tracepoint_reader::kernel::EventFormat;

const MAPPING: &str = "perf:mmap";
const THROTTLE: &str = "perf:throttle";
const MAX_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

impl Selection {
    /// Adds samples, this many in a second in which a thread runs. Returns whether they have the kernel's part.
    ///
    /// Fails if the kernel allows no such rate.
    pub(super) fn add_samples(&mut self, rate: NonZeroU32) -> Result<bool, KernelError> {
        let max = fs::read_to_string(MAX_RATE).ok().and_then(|text| text.trim().parse().ok());
        if let Some(max) = max.filter(|max| rate.get() > *max) {
            return Err(KernelError::SampleRate(rate, max));
        }
        let sample = |with_kernel| ThreadEvent::Sample { rate, with_kernel };
        let with_kernel = {
            let mut alone = Self::default();
            alone.open(SAMPLE, EventFormat::sample(), sample(true));
            alone.check().is_ok()
        };
        self.open(SAMPLE, EventFormat::sample(), sample(with_kernel));
        self.describe(MAPPING, EventFormat::code_mapping());
        self.describe(THROTTLE, EventFormat::throttle());
        Ok(with_kernel)
    }
}
