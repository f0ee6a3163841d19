//! The scheduling of threads started by this library: ordinary, regardless of the scheduling of their starter.
//!
//! A new thread inherits policy, priority and processors of the thread that creates it. A thread that drains rings at the priority of a
//! real-time loop, on the loop's processor, would delay that loop. So each thread of this library first resets its inherited scheduling, as
//! `SCHED_RESET_ON_FORK` would do, and its processors as well; a program can [request](inherit_scheduling) the opposite.

use std::sync::atomic::{AtomicBool, Ordering};

/// Relaxed: threads started after the store see it, because starting a thread synchronises with it.
static INHERITS: AtomicBool = AtomicBool::new(false);

/// Lets threads that this library starts in this process from now on, and in its children, keep the scheduling policy, the priority, the nice
/// value and the processors of the thread that starts them.
#[doc(hidden)]
pub fn inherit_scheduling() {
    INHERITS.store(true, Ordering::Relaxed);
}

/// Gives the calling thread the policy `SCHED_OTHER` if it has a real-time one, the nice value 0 if it has a lower one, and all processors
/// of the process's control group. Does nothing after [`inherit_scheduling`]. If the system refuses a change, the old value stays.
///
/// In a process with a seccomp filter, which may end the process for such a call, this is done only for a thread with a real-time policy.
#[doc(hidden)]
pub fn leave_inherited_scheduling() {
    if !INHERITS.load(Ordering::Relaxed) {
        #[cfg(linux_kernel)]
        linux::leave_inherited();
    }
}

#[cfg(linux_kernel)]
mod linux {
    /// Words of a mask of 8192 processors, the most that Linux supports.
    const WORDS: usize = 8192 / 64;

    /// The result of `PR_GET_SECCOMP` in a process with a filter.
    const FILTER: libc::c_int = 2;

    pub(super) fn leave_inherited() {
        let all = [u64::MAX; WORDS];
        // SAFETY: each call concerns the calling thread. `all` has as many bytes as the kernel is given as its size, and the kernel uses from it only
        // the processors that exist and that the control group allows; `other` is plain data, and valid while it is read.
        unsafe {
            let policy = libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK;
            let is_real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy);
            if !is_real_time && libc::prctl(libc::PR_GET_SECCOMP) == FILTER {
                return;
            }
            let set_processors = || libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&all), all.as_ptr()) == 0;
            // Before the policy: on its starter's processor, an ordinary thread would wait for the starter. The processors of a thread under
            // SCHED_DEADLINE cannot be set.
            let is_set = set_processors();
            if is_real_time {
                let other: libc::sched_param = std::mem::zeroed();
                libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const other);
                let _ = is_set || set_processors();
            }
            // A failure also returns -1, and then the next call fails as well.
            if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
                libc::setpriority(libc::PRIO_PROCESS, 0, 0);
            }
        }
    }
}
