//! The condition `signal`: a handler that counts.
//!
//! The handler is installed only while a session has such a trigger. It increments a counter, wakes the threads of the triggers, and calls
//! the previous handler, if the program had one. All of that is async-signal-safe. The previous handler is restored when the last such
//! trigger is removed, unless the program has installed another one meanwhile. That handler may call ours from then on, so ours is never
//! installed in front of it: the two would call each other endlessly. A later trigger with this signal is refused.
#![expect(
    unsafe_code,
    reason = "handlers of signals have no safe interface, and this file guarantees what its handler does"
)]

use super::error::WatchError;
use super::words;
use std::mem::zeroed;
use std::process;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use tracepoint_session_io::trigger::{Detail, Occurrence};
use tracepoint_session_spec::{TriggerCondition, signal_number};

/// Greater than the largest signal number.
const SIGNALS: usize = 65;

/// Number of occurrences of each signal. Relaxed: publishes nothing.
static COUNTS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
/// The previous action of each signal, for the handler. Never freed: a handler may still be running.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS] = [const { AtomicPtr::new(null_mut()) }; SIGNALS];
/// The uses of each signal. Held while handlers are installed and removed; never in a handler.
static USES: Mutex<[Use; SIGNALS]> = Mutex::new([const { Use { triggers: 0, was_replaced: false } }; SIGNALS]);

/// The use of a signal by triggers.
#[derive(Debug)]
struct Use {
    triggers: usize,
    /// True if the program had replaced the handler when the last trigger was removed.
    was_replaced: bool,
}

/// A signal used by a trigger.
#[derive(Debug)]
pub(super) struct SignalWatch {
    signal: i32,
    /// The count at the last check.
    seen: AtomicU64,
    is_off: AtomicBool,
}

impl SignalWatch {
    /// Installs the handler, unless another trigger has done so.
    pub(super) fn start(name: &str) -> Result<Self, WatchError> {
        let signal = signal_number(name).ok_or_else(|| WatchError::new(format_args!("there is no signal `{name}`")))?;
        let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = &mut uses[index(signal)];
        if uses.was_replaced {
            return Err(WatchError::new(format_args!(
                "the program has replaced the handler of an earlier trigger for {name}, and its own may call that; use another signal"
            )));
        }
        if uses.triggers == 0 {
            let failed = |error| WatchError::new(format_args!("no handler can be installed for {name}: {error}"));
            install(signal).map_err(failed)?;
        }
        uses.triggers += 1;
        let seen = AtomicU64::new(COUNTS[index(signal)].load(Ordering::Relaxed));
        Ok(Self { signal, seen, is_off: AtomicBool::new(false) })
    }

    /// Restores the previous action of the signal, if no other trigger uses it.
    pub(super) fn switch_off(&self) {
        if self.is_off.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = &mut uses[index(self.signal)];
        uses.triggers = uses.triggers.saturating_sub(1);
        if uses.triggers == 0 {
            uses.was_replaced = !remove(self.signal);
        }
    }

    fn count(&self) -> u64 {
        COUNTS[index(self.signal)].load(Ordering::Relaxed)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.count() != self.seen.load(Ordering::Acquire)
    }

    /// Returns one occurrence for all signals since the last call, with their number.
    pub(super) fn take(&self, when: &TriggerCondition) -> Vec<Occurrence> {
        let count = self.count();
        // Release: as the store of FREE in `capture`.
        let new = count - self.seen.swap(count, Ordering::Release);
        if new == 0 {
            return Vec::new();
        }
        let mut occurrence = Occurrence::new(when, process::id(), SystemTime::now());
        occurrence.skipped = new - 1;
        occurrence.add("trigger_signal", Detail::Number(self.signal.unsigned_abs().into()));
        vec![occurrence]
    }
}

/// Returns the index of the signal in the tables; 0, which is not a signal, if it is out of range.
fn index(signal: libc::c_int) -> usize {
    usize::try_from(signal).ok().filter(|signal| *signal < SIGNALS).unwrap_or(0)
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn install(signal: i32) -> std::io::Result<()> {
    // SAFETY: all bytes zero is a valid structure.
    let mut previous: libc::sigaction = unsafe { zeroed() };
    // SAFETY: asks for the present action alone, and writes it into the structure.
    check(unsafe { libc::sigaction(signal, null(), &raw mut previous) })?;
    // A handler continues to use its mask, and interrupts system calls as before.
    let mut action = previous;
    action.sa_sigaction = handle as Handler as usize;
    let restart =
        if is_handler(previous.sa_sigaction) { previous.sa_flags & libc::SA_RESTART } else { libc::SA_RESTART };
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | restart;
    // E3: Release pairs with the Acquire in `handle`. The former structure, if any, is leaked: a handler may be reading it.
    PREVIOUS[index(signal)].store(Box::into_raw(Box::new(previous)), Ordering::Release);
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, is async-signal-safe, and lives as long as the program.
    check(unsafe { libc::sigaction(signal, &raw const action, null_mut()) })
}

/// Restores the previous action of the signal; returns `false`, without an effect, if the program has replaced our handler.
fn remove(signal: i32) -> bool {
    let previous = PREVIOUS[index(signal)].load(Ordering::Relaxed);
    // SAFETY: all bytes zero is a valid structure.
    let mut present: libc::sigaction = unsafe { zeroed() };
    // SAFETY: asks for the present action alone.
    let is_known = unsafe { libc::sigaction(signal, null(), &raw mut present) } == 0;
    let is_ours = is_known && present.sa_sigaction == handle as Handler as usize && !previous.is_null();
    if is_ours {
        // SAFETY: what handled the signal before, as the system has returned it.
        let _ = unsafe { libc::sigaction(signal, previous, null_mut()) };
    }
    is_ours
}

/// Returns whether this is the address of a handler, not one of the kernel's own actions.
fn is_handler(address: libc::sighandler_t) -> bool {
    address != libc::SIG_DFL && address != libc::SIG_IGN
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The handler. Async-signal-safe: increments an atomic, wakes threads by a system call that preserves `errno`, and calls the previous
/// handler.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    COUNTS[index(signal)].fetch_add(1, Ordering::Relaxed);
    words::wake_all();
    // E3: Acquire pairs with the Release in `install`.
    let previous = PREVIOUS[index(signal)].load(Ordering::Acquire);
    // SAFETY: null, or a structure that was completely written and is never freed.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    let address = previous.sa_sigaction;
    if !is_handler(address) || address == handle as Handler as usize {
        return;
    }
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the system had this address as a handler with this signature, and the arguments are those of this call.
        unsafe { std::mem::transmute::<usize, Handler>(address)(signal, info, context) }
    } else {
        // SAFETY: the system had this address as a handler that takes the signal alone.
        unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(address)(signal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The action before the program's handler.
    static CHAINED: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());
    static CALLS: AtomicU64 = AtomicU64::new(0);

    extern "C" fn program(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the test has stored the action that was there before, which is that of the trigger.
        let handler = unsafe { (*CHAINED.load(Ordering::Acquire)).sa_sigaction };
        // SAFETY: as above; it has this signature.
        unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) }
    }

    /// A program's handler calls that of a trigger: the next trigger does not call the program's.
    #[test]
    fn handlers_never_call_each_other() {
        let name = "RTMIN+7";
        let signal = signal_number(name).expect("a signal");
        let first = SignalWatch::start(name).expect("a handler");
        // SAFETY: all bytes zero is a valid structure.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { (zeroed(), zeroed()) };
        (action.sa_sigaction, action.sa_flags) = (program as Handler as usize, libc::SA_SIGINFO);
        // SAFETY: asks for the present action alone.
        check(unsafe { libc::sigaction(signal, null(), &raw mut before) }).expect("an action");
        CHAINED.store(Box::into_raw(Box::new(before)), Ordering::Release);
        // SAFETY: the handler has the signature that SA_SIGINFO asks for.
        check(unsafe { libc::sigaction(signal, &raw const action, null_mut()) }).expect("installed");
        first.switch_off();
        let error = SignalWatch::start(name).expect_err("the program's handler may call ours");
        assert!(error.to_string().contains("use another signal"), "{error}");
        // SAFETY: sends the signal to this thread.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
        assert_eq!(CALLS.load(Ordering::Relaxed), 1, "once");
        // SAFETY: asks for the present action alone.
        check(unsafe { libc::sigaction(signal, null(), &raw mut before) }).expect("an action");
        assert_eq!(before.sa_sigaction, program as Handler as usize, "the program's handler stays");
    }
}
