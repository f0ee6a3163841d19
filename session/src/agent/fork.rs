//! Agents for forked children: started by a fork handler once the child has lived for 50 ms without calling `exec`.
//!
//! ```text
//!   parent: Agent::builder().follow_fork(true)          child
//!     publishes CHILD_RUN_DIR, installs handler ──fork──▶ handler: creates a thread, and nothing else
//!                                                        │ 50 ms: a child that calls exec or exits is not listed
//!                                                        ▼
//!                                                       ends its copies of the parent's recordings, creates its own
//!                                                       entry, applies the sessions, and waits, as any agent does
//! ```
//!
//! After a fork the child has one thread, and locks that other threads of the parent held stay locked. POSIX restricts the child to
//! async-signal-safe functions. C libraries allow more: they restore their own locks before they run fork handlers, so that a child may
//! allocate and create threads. The handler only loads a pointer and creates a thread with a static function; it uses neither the Rust
//! standard library nor the program's allocator. That thread does the rest after the fork has completed. If it waits for a lock that is
//! never released, only that thread blocks; it holds nothing that the program needs, and the child is not traced.
//!
//! Fork handlers do not run in a child of `vfork`, `posix_spawn` or a raw `clone`; such a child gets no agent.
#![expect(
    unsafe_code,
    reason = "`pthread_atfork` has no safe interface, and this file guarantees what the handler does"
)]

use super::wakeup::Stop;
use super::worker::Worker;
use super::{AgentError, RUNNING, running};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::Duration;
use tracepoint_core::marker::Subscription;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_sinks::own_thread;

/// The time that a child has to call `exec` before it gets an agent.
const EXEC_GRACE: Duration = Duration::from_millis(50);

/// The absolute path of the run directory for children. Null if children get no agent. The pointee is never freed.
static CHILD_RUN_DIR: AtomicPtr<PathBuf> = AtomicPtr::new(null_mut());

/// Gives future forked children an agent in this run directory.
pub(super) fn follow(run_dir: &RunDir) -> Result<(), AgentError> {
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    let path = std::path::absolute(run_dir.path()).map_err(AgentError::Thread)?;
    if INSTALLED.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the handler has the required signature, and does no more than the head of this file allows.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(fork_handler)) };
        if failed != 0 {
            INSTALLED.store(0, Ordering::Relaxed);
            return Err(AgentError::Thread(std::io::Error::from_raw_os_error(failed)));
        }
    }
    // A2: publishes the path, written before; a child inherits what the forking thread sees, and loads with Acquire.
    CHILD_RUN_DIR.store(Box::into_raw(Box::new(path)), Ordering::Release);
    Ok(())
}

/// Stops giving agents to future forked children.
pub(super) fn stop_following() {
    // A2
    CHILD_RUN_DIR.store(null_mut(), Ordering::Release);
}

extern "C" fn fork_handler() {
    // A2
    if CHILD_RUN_DIR.load(Ordering::Acquire).is_null() {
        return;
    }
    // The thread starts with signals blocked, because signals are for the program's threads.
    let Some(before) = own_thread::block_signals() else { return };
    // SAFETY: the pointer is to a local of this function, for which zero is a valid value. The thread gets no argument, and its function is
    // static.
    unsafe {
        let mut thread = std::mem::zeroed::<libc::pthread_t>();
        // On failure the child is not traced.
        if libc::pthread_create(&raw mut thread, std::ptr::null(), agent_thread, null_mut()) == 0 {
            libc::pthread_detach(thread);
        }
    }
    before.restore();
}

extern "C" fn agent_thread(_: *mut c_void) -> *mut c_void {
    // The panic hook has printed the message of a panic; it must not unwind into C.
    let _ = catch_unwind(|| {
        own_thread::begin();
        // SAFETY: a NUL-terminated string, which the kernel copies.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"tracepoint-agent".as_ptr()) };
        sleep(EXEC_GRACE);
        // A2. SAFETY: the pointee is never freed, and was written before the fork.
        let result = unsafe { CHILD_RUN_DIR.load(Ordering::Acquire).as_ref() }.map(|path| run_agent(path));
        if let Some(Err(error)) = result {
            super::print_notice(&error);
        }
    });
    null_mut()
}

/// Runs the child's agent until it is stopped.
fn run_agent(path: &Path) -> Result<(), AgentError> {
    let process = process::id();
    // The child may have started its own agent meanwhile.
    if !super::claim(process) {
        return Ok(());
    }
    let result = run_claimed(path);
    RUNNING.store(0, Ordering::Relaxed);
    result
}

fn run_claimed(path: &Path) -> Result<(), AgentError> {
    Subscription::end_inherited();
    let run_dir = RunDir::open(path)?;
    let stop = Stop::new().map_err(AgentError::Thread)?;
    let mut worker = Worker::new(&run_dir, stop.clone())?;
    worker.follow_environment_as_a_child();
    let (end, ended) = channel();
    running::register(stop, ended);
    // No thread waits for the first scan.
    let (ready, _) = channel();
    // After a panic the sender is dropped, which ends the wait for it.
    let _ = catch_unwind(AssertUnwindSafe(|| worker.run(&ready)));
    drop(end);
    Ok(())
}
