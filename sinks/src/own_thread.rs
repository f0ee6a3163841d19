//! The threads that this crate starts in the program: what each of them does first.

use crate::system;
use std::env;
use std::io;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tracepoint_reader::secure_exec::secure;

#[cfg(unix)]
pub use tracepoint_ring::thread::block_signals;
pub use tracepoint_ring::thread::never_trace_this_thread;

/// The environment variable that makes the threads keep the scheduling that they inherit, if it is set to anything but `0`.
const INHERIT: &str = "TRACEPOINT_INHERIT_SCHEDULING";
/// Bytes of address space that are free when a thread is started: more than the standard library maps for its signal stack.
const SIGNAL_STACK: usize = 256 << 10;
/// How long its starter waits for a thread to run.
const BEGINS_WITHIN: Duration = Duration::from_millis(250);

/// Makes the threads that this library starts in this process from now on keep what they inherit from the thread that starts them: the
/// scheduling policy and the priority, a nice value below 0, and the processors that it may run on (`sched_setaffinity`).
///
/// Otherwise these threads (the agent's, `tracepoint-drain` and `tracepoint-supply` of a session, those of sinks) have the policy `SCHED_OTHER` and all
/// processors of the process's control group, so that they do not delay a real-time loop that starts a session, or runs on the processor of the thread that
/// does. `TRACEPOINT_INHERIT_SCHEDULING=1` in the environment does the same.
pub fn inherit_scheduling() {
    tracepoint_ring::thread::inherit_scheduling();
}

/// Does what the environment asks of the threads that are started next.
pub fn follow_environment() {
    if env::var_os(INHERIT).is_some_and(|value| !value.is_empty() && value != "0") && !secure() {
        inherit_scheduling();
    }
}

/// Starts a thread of this library called `name`: it is not traced, leaves signals to the program's threads, and has ordinary scheduling. Waits
/// until the thread runs, for a quarter of a second at most.
///
/// # Errors
///
/// If the system cannot create a thread, or has no memory for its signal stack.
pub fn spawn<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    start(
        name,
        Box::new(|| {
            begin();
            body()
        }),
    )
}

/// Starts such a thread whose events are recorded, because it runs code of the program's.
///
/// # Errors
///
/// As [`spawn`].
pub fn spawn_traced<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    start(
        name,
        Box::new(|| {
            begin_traced();
            body()
        }),
    )
}

/// The standard library maps a signal stack on a new thread, and ends the process if it cannot. So there must be memory for it, and the caller,
/// who may allocate rings next, waits until the thread has it. (A thread of the program's may still take the memory in between.) The wait is
/// bounded: a caller that holds the dynamic linker's lock, in a constructor of a library that is being loaded, may keep the new thread from running.
///
/// The function is boxed, so that the machinery of the standard library is compiled once for each type of results, not for each function.
fn start<T: Send + 'static>(name: &str, body: Box<dyn FnOnce() -> T + Send>) -> io::Result<JoinHandle<T>> {
    system::check_address_space(SIGNAL_STACK)?;
    let (begins, has_begun) = channel::<()>();
    let body = move || {
        drop(begins);
        body()
    };
    let thread = Builder::new().name(name.to_owned()).spawn(body)?;
    // Always an error: the sender is dropped, or the time is over.
    let _ = has_begun.recv_timeout(BEGINS_WITHIN);
    Ok(thread)
}

/// Begins a thread of this crate: it is not traced, leaves signals to the program's threads, and has ordinary scheduling.
pub fn begin() {
    never_trace_this_thread();
    begin_traced();
}

/// Begins a thread of this crate whose events are recorded, because it runs code of the program's.
fn begin_traced() {
    tracepoint_ring::thread::leave_inherited_scheduling();
    leave_signals_to_the_program();
}

/// Blocks all signals on the calling thread, so that the program's own threads handle them. Synchronous fault signals stay unblocked:
/// blocking them would end the program. If this fails, a signal handler may run on this thread, as on any other.
pub fn leave_signals_to_the_program() {
    #[cfg(unix)]
    block_signals();
}

/// Returns the processor time of the calling thread; 0 on Windows.
pub fn cpu_time() -> Duration {
    system::thread_cpu_time()
}
