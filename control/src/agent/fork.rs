//! Forked children that live on, and get an agent of their own.
//!
//! ```text
//!   parent: Agent::builder().follow_fork(true)          child
//!     publishes FOLLOWED, installs a handler ──fork──▶  handler: a thread, and nothing else
//!                                                        │ 50 ms: who has become another program, or has ended, was never here
//!                                                        ▼
//!                                                       ends what it has of the parent's recordings, makes an entry of its own, joins the
//!                                                       sessions, and waits, as any agent does
//! ```
//!
//! After a fork the child has one thread, and whatever other threads of the parent had locked stays locked. POSIX allows it no more than what
//! signal handlers may do; C libraries allow more: they put their own locks in order before they run the handlers of fork, so that a child may
//! allocate and make threads. All that the handler does is to load a pointer and make a thread with a static function; Rust's library and
//! the program's allocator have no part in it. The rest is done by that thread, when the fork is over: where it waits for a lock that
//! nobody will ever give back, it is that thread alone which waits, holding nothing that the program needs, and the child is not traced.
//!
//! Handlers do not run in a child of `vfork`, `posix_spawn` or a raw `clone`: it has no agent, as before.
#![expect(unsafe_code, reason = "handlers of fork have no safe interface, and what they may do is for us to say")]

use super::worker::Worker;
use super::{AgentError, END, RUNNING};
use crate::rundir::RunDir;
use nix::libc;
use rustix::event::{EventfdFlags, eventfd};
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use tracepoint_core::marker::Subscription;

/// How old a child gets before it is traced.
const GRACE: Duration = Duration::from_millis(50);

/// Where children find the run directory: an absolute path. Null: they are not followed. What it points to is never freed.
static FOLLOWED: AtomicPtr<PathBuf> = AtomicPtr::new(null_mut());

/// The agent of this process, if it was made by the handler.
#[derive(Debug)]
struct Child {
    process: u32,
    stop: Arc<OwnedFd>,
    ended: Receiver<()>,
}

static CHILD: Mutex<Option<Child>> = Mutex::new(None);

/// Children that are forked from here on get an agent in this run directory.
pub(super) fn follow(run_dir: &RunDir) -> Result<(), AgentError> {
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    let path = std::path::absolute(run_dir.path()).map_err(AgentError::Thread)?;
    if INSTALLED.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the handler takes nothing, returns nothing, and does what the head of this file says.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if failed != 0 {
            INSTALLED.store(0, Ordering::Relaxed);
            return Err(AgentError::Thread(std::io::Error::from_raw_os_error(failed)));
        }
    }
    // A2: the path was written before; a child is a copy of what the forking thread sees, and loads with Acquire.
    FOLLOWED.store(Box::into_raw(Box::new(path)), Ordering::Release);
    Ok(())
}

/// Children that are forked from here on get none.
pub(super) fn follow_no_more() {
    // A2
    FOLLOWED.store(null_mut(), Ordering::Release);
}

extern "C" fn in_child() {
    // A2
    if FOLLOWED.load(Ordering::Acquire).is_null() {
        return;
    }
    // SAFETY: all of it is done on values of this function, which are valid when they are handed on; a set that the first call fills is
    // what the second takes. The thread takes nothing, and its function is static. It begins with signals blocked: they are for the program's
    // threads.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed::<libc::sigset_t>(), std::mem::zeroed::<libc::sigset_t>());
        libc::sigfillset(&raw mut all);
        // But for those that the thread makes itself.
        for own in [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(&raw mut all, own);
        }
        if libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) != 0 {
            return;
        }
        let mut thread = std::mem::zeroed::<libc::pthread_t>();
        // Without a thread the child is not traced, as without this.
        if libc::pthread_create(&raw mut thread, std::ptr::null(), run, null_mut()) == 0 {
            libc::pthread_detach(thread);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // A panic here is told by its message; the program is the parent's, and had no part in it.
    let _ = catch_unwind(|| {
        tracepoint_core::private::never_trace_this_thread();
        // SAFETY: a text that ends with a NUL, and is copied.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"tracepoint-agent".as_ptr()) };
        sleep(GRACE);
        // A2. SAFETY: what it points to is never freed, and was written before the fork.
        let served = unsafe { FOLLOWED.load(Ordering::Acquire).as_ref() }.map(|path| serve(path));
        if let Some(Err(error)) = served {
            super::say(&error.to_string());
        }
    });
    null_mut()
}

/// Is the child's agent, until its end.
fn serve(path: &Path) -> Result<(), AgentError> {
    let process = process::id();
    // The child may have started one of its own meanwhile.
    if !super::claim(process) {
        return Ok(());
    }
    let result = serve_only(path, process);
    RUNNING.store(0, Ordering::Relaxed);
    result
}

fn serve_only(path: &Path, process: u32) -> Result<(), AgentError> {
    Subscription::end_inherited();
    let run_dir = RunDir::at(path)?;
    let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| AgentError::Thread(errno.into()))?;
    let stop = Arc::new(stop);
    let mut worker = Worker::new(&run_dir)?;
    worker.follow_environment_as_a_child();
    let (end, ended) = channel();
    let child = Child { process, stop: Arc::clone(&stop), ended };
    *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    // Nobody waits for the first look.
    let (ready, _) = channel();
    // Whoever ends it goes on, should this panic: the sender is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| worker.run(&stop, &ready)));
    drop(end);
    Ok(())
}

/// Ends the agent that this child got, if it did: the sessions' traces are complete then. Waits as the end of an agent does.
pub(super) fn end_child() {
    let mut child = CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    // One of the parent's is not this one's.
    if let Some(Child { stop, ended, .. }) = child.take().filter(|child| child.process == process::id()) {
        drop(child);
        follow_no_more();
        // Any number that is not 0 is as good as another.
        if rustix::io::write(&*stop, &[1; 8]).is_ok() {
            let _ = ended.recv_timeout(END);
        }
    }
}
