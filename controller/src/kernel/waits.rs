//! When threads run, and what they wait for.
//!
//! With the rights to record tracepoints, the events are the switches of each thread, its wake-ups, the system calls in which a thread may wait, its
//! block I/O and its major page faults. Without them, they are the switches alone, which any user may record of own processes.

use super::perf::ThreadEvent;
use super::threads::Selection;
use super::tracefs::KernelEvents;
use super::{KernelError, SWITCH, system_calls};
use tracepoint_reader::kernel::{EventFormat, Place};
use tracepoint_reader::process::pid_namespace;

/// Names of events that are no tracepoints: a thread is recorded from now on; none is any more; a page fault for which a thread has waited.
const THREAD: &str = "perf:thread";
const END: &str = "perf:end";
const MAJOR_FAULT: &str = "perf:major_fault";
/// `PROC_PID_INIT_INO`: the inode of the first pid namespace.
const INITIAL_PID_NAMESPACE: u64 = 0xefff_fffc;
const ENTER: &str = "raw_syscalls:sys_enter";
const EXIT: &str = "raw_syscalls:sys_exit";
const WAKING: &str = "sched:sched_waking";
const TRACEPOINTS: [&str; 5] = ["block:block_bio_queue", ENTER, EXIT, "sched:sched_switch", WAKING];

impl Selection {
    /// Adds the switches of threads.
    pub(super) fn add_switches(&mut self) {
        self.open(SWITCH, EventFormat::switch(), ThreadEvent::Switch);
        self.describe(THREAD, EventFormat::recorded_thread());
        self.describe(END, EventFormat::recording_ended());
    }

    /// Adds the waits. Fails without the rights to record tracepoints, and in a container: their fields have the thread ids of the whole machine.
    pub(super) fn add_waits(&mut self) -> Result<(), KernelError> {
        if pid_namespace() != INITIAL_PID_NAMESPACE {
            return Err(KernelError::PidNamespace);
        }
        let filter = system_calls::filter();
        for (name, mut format) in KernelEvents::select(&TRACEPOINTS)?.0 {
            if name == WAKING {
                format.add_flags();
                self.wakings = Some(format.number);
                self.describe(&name, format);
                continue;
            }
            let is_call = [ENTER, EXIT].contains(&name.as_str());
            if is_call {
                format.name_values("id", system_calls::NAMES);
            }
            // The first argument is a descriptor, the address of a futex, or a pointer.
            for field in format.fields.iter_mut().filter(|field| is_call && field.name == "args") {
                if let Place::Fixed { offset, .. } = field.place {
                    field.place = Place::Fixed { offset, size: size_of::<u64>() };
                }
            }
            let event = ThreadEvent::Tracepoint(format.number, is_call.then(|| filter.clone()));
            self.open(&name, format, event);
        }
        self.open(MAJOR_FAULT, EventFormat::software(), ThreadEvent::MajorFault);
        // The files of tracefs may be readable while perf refuses.
        self.check()
    }
}
