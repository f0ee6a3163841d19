//! The kernel's own tracepoints, recorded together with the processes.
//!
//! ```text
//!   events/SYSTEM/EVENT/format (tracefs) ──▶ fields, number
//!   perf_event_open ──▶ one ring buffer for each CPU ──▶ bytes ──▶ Drain<KernelRings> ──▶ sinks, in a trace called `kernel`
//!                 └──▶ one counter for each event and CPU: fired, lost ─────────▶ the account
//! ```
//!
//! `perf_event_open` is used instead of the files of tracefs because it shares no state with other tools: they may trace the same events at
//! the same time, and when this process ends, in any way, the kernel disables its events. It also counts without a ring buffer how often
//! each event fired, against which the account is checked.
//!
//! Times are those of `CLOCK_MONOTONIC`, with the same offset from UTC as the processes of the run directory, so that views merge both by
//! time.
//!
//! All events of a CPU share its ring buffer. When that is full, the kernel drops new events (`ring_full`).

mod cpu;
mod perf;
mod recorder;
mod samples;
mod system_calls;
mod threads;
mod tracefs;
mod waits;
mod wakings;

use rustix::process::geteuid;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use thiserror::Error;
use tracepoint_reader::kernel::FormatError;
use tracepoint_session_spec::syntax::SyntaxError;

pub use recorder::{KernelRecorded, KernelRecorder, KernelRecording};
pub use threads::{ThreadRecorder, ThreadRecording};
pub use tracefs::KernelEvents;

/// The name of the trace in a directory of traces. The names of processes' traces end in a process id.
const TRACE: &str = "kernel";
/// The name of the trace with the waits of processes.
const WAITS: &str = "waits";
/// Its name if it has only samples.
const SAMPLES: &str = "samples";
/// The names of the events that need no rights.
const SWITCH: &str = "perf:switch";
const SAMPLE: &str = "perf:sample";

/// How to get the rights.
const RIGHTS: &str = "run `tracectl` as root (`sudo`), or give it the rights: \
                      `sudo setcap cap_perfmon,cap_dac_read_search,cap_ipc_lock=ep \"$(command -v tracectl)\"`";

/// The events of the kernel cannot be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No tracefs is mounted.
    #[error("no tracefs is mounted, which has the kernel's events: `sudo mount -t tracefs nodev /sys/kernel/tracing`")]
    NotMounted,
    /// A file of tracefs cannot be read.
    #[error("the kernel's events cannot be read: {path}: {1}; {RIGHTS}", path = .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A pattern is not a glob, for this reason.
    #[error("`{0}` is no pattern for events of the kernel: {1}")]
    Pattern(String, String),
    /// A pattern matches no event of this kernel; with the most similar names.
    #[error("no event of the kernel matches `{0}`{hint}", hint = did_you_mean(.1))]
    Unknown(String, Vec<String>),
    /// The fields of an event have an unknown format.
    #[error("the fields of the kernel's event {0} cannot be read: {1}")]
    Format(String, #[source] FormatError),
    /// The threads of a process cannot be recorded, because another process has its id here, or another user has made its entry.
    #[error(
        "its threads cannot be recorded: it is in another pid namespace, or of another user than its entry in the run directory; run `tracectl` in \
         its container, as its user"
    )]
    OtherProcess,
    /// The kernel does not allow this many samples per second, only the second number.
    #[error(
        "the kernel does not allow {0} samples per second, at most {1}: ask for fewer, or raise the limit (`sudo sysctl kernel.perf_event_max_sample_rate={0}`)"
    )]
    SampleRate(NonZeroU32, u32),
    /// The events of the kernel have thread ids of another pid namespace than this process.
    #[error(
        "the kernel's events have the thread ids of the whole machine, not those of this container; to record them, run `tracectl` outside of it"
    )]
    PidNamespace,
    /// The threads of a process cannot be recorded, because they need more open files, the first number, than the second one.
    #[error(
        "its threads need {0} open files, but only {1} more may be used for them; raise the hard limit (`ulimit -n`, `LimitNOFILE=` of a systemd unit)"
    )]
    Files(usize, usize),
    /// An event cannot be opened.
    #[error("the kernel does not let {0} be recorded: {1}; {mend}", mend = mend(.0, .1))]
    Open(String, #[source] io::Error),
    /// The kernel cannot allocate a ring buffer for this CPU, of this size in bytes.
    #[error(
        "the kernel gives no ring buffer of {1} bytes for CPU {0}: {2}; ask for a smaller one (`--kernel-ring-size 128K`), or \
         run `tracectl` as root"
    )]
    Ring(u32, usize, #[source] io::Error),
    /// A sink for the kernel's events cannot be created.
    #[error("the kernel's events cannot be written: {0}")]
    Sink(String),
    /// The recording thread, or a resource that it needs, cannot be created.
    #[error("the kernel's events cannot be recorded: {0}")]
    Thread(io::Error),
}

impl KernelError {
    fn pattern(pattern: &str, error: &SyntaxError) -> Self {
        Self::Pattern(pattern.to_owned(), error.to_string())
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    let hint = "; the file `available_events` of tracefs lists them";
    if nearest.is_empty() { hint.to_owned() } else { format!("; did you mean {}?", nearest.join(" or ")) }
}

/// Returns advice for an event that cannot be opened.
fn mend(event: &str, error: &io::Error) -> String {
    let text = match error.raw_os_error() {
        // For example the end of the interrupt by which perf wakes its readers.
        Some(libc::EPERM) if geteuid().is_root() => {
            return format!(
                "it allows that to no user, not even root: exclude the event with `!{event}`; if it refuses every event, a seccomp filter \
                 forbids `perf_event_open`: many containers run under such a filter"
            );
        }
        Some(libc::EPERM | libc::EACCES) if [SWITCH, SAMPLE].contains(&event) => {
            "the process is another user's, or the sysctl `kernel.perf_event_paranoid` is above 2, or a seccomp filter forbids `perf_event_open`"
        }
        Some(libc::EPERM | libc::EACCES) => RIGHTS,
        Some(libc::EMFILE | libc::ENFILE) => {
            "each event takes a descriptor for each CPU: raise the limit (`ulimit -n`) or record fewer events"
        }
        Some(libc::EINVAL) => "Linux 6.0 or later is needed, which counts the events that were lost",
        _ => "record other events, or a kernel with CONFIG_PERF_EVENTS",
    };
    text.to_owned()
}
