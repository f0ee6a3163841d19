//! The condition `signal`: a handler that counts.
//!
//! The handler is installed while a session has such a trigger, and only then. It adds to a counter, wakes the threads of the triggers, and
//! calls the handler that was there before, if the program had one. All of that is async-signal-safe. The handler that was there before is put
//! back when the last such trigger is gone, unless the program has installed another one meanwhile; ours then does no harm where it is still
//! called.
#![expect(
    unsafe_code,
    reason = "handlers of signals have no safe interface, and this file guarantees what its handler does"
)]

use super::words;
use crate::spec::{When, signal_number};
use crate::trigger::occurrence::{Detail, Occurrence};
use nix::libc;
use std::collections::BTreeMap;
use std::mem::zeroed;
use std::process;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// More than the largest number of a signal.
const SIGNALS: usize = 65;

/// How often each signal came. Relaxed: publishes nothing.
static COUNTS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
/// What handled each signal before, for the handler. Never freed: a handler may still be running.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS] = [const { AtomicPtr::new(null_mut()) }; SIGNALS];
/// How many triggers have each signal. Held while handlers are installed and removed; never in a handler.
static TRIGGERS: Mutex<BTreeMap<i32, usize>> = Mutex::new(BTreeMap::new());

/// A signal that a trigger has.
#[derive(Debug)]
pub(super) struct SignalWatch {
    signal: i32,
    /// How often it had come when that was last looked at.
    seen: AtomicU64,
    is_off: AtomicBool,
}

impl SignalWatch {
    /// Installs the handler, unless another trigger has done so.
    pub(super) fn start(name: &str) -> Result<Self, String> {
        let signal = signal_number(name).ok_or_else(|| format!("there is no signal `{name}`"))?;
        let mut triggers = TRIGGERS.lock().unwrap_or_else(PoisonError::into_inner);
        let count = triggers.entry(signal).or_default();
        if *count == 0 {
            install(signal).map_err(|error| format!("no handler can be installed for {name}: {error}"))?;
        }
        *count += 1;
        let seen = AtomicU64::new(COUNTS[index(signal)].load(Ordering::Relaxed));
        Ok(Self { signal, seen, is_off: AtomicBool::new(false) })
    }

    /// Puts back what handled the signal before, if no other trigger has it.
    pub(super) fn switch_off(&self) {
        if self.is_off.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut triggers = TRIGGERS.lock().unwrap_or_else(PoisonError::into_inner);
        let count = triggers.entry(self.signal).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            remove(self.signal);
        }
    }

    fn count(&self) -> u64 {
        COUNTS[index(self.signal)].load(Ordering::Relaxed)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.count() != self.seen.load(Ordering::Acquire)
    }

    /// One occurrence for all signals since the last time, which has their number.
    pub(super) fn take(&self, when: &When) -> Vec<Occurrence> {
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

/// Where the signal is in the tables: 0, which is no signal, if it is none.
fn index(signal: libc::c_int) -> usize {
    usize::try_from(signal).ok().filter(|signal| *signal < SIGNALS).unwrap_or(0)
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn install(signal: i32) -> std::io::Result<()> {
    // SAFETY: all bytes zero is a valid structure.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = handle as Handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: as above.
    let previous = Box::into_raw(Box::new(unsafe { zeroed::<libc::sigaction>() }));
    // SAFETY: asks for the present action alone, and writes it into the structure.
    check(unsafe { libc::sigaction(signal, null(), previous) })?;
    // E3: Release pairs with the Acquire in `handle`. The former structure, if any, is leaked: a handler may be reading it.
    PREVIOUS[index(signal)].store(previous, Ordering::Release);
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, is async-signal-safe, and lives as long as the program.
    check(unsafe { libc::sigaction(signal, &raw const action, null_mut()) })
}

fn remove(signal: i32) {
    let previous = PREVIOUS[index(signal)].load(Ordering::Relaxed);
    // SAFETY: all bytes zero is a valid structure.
    let mut present: libc::sigaction = unsafe { zeroed() };
    // SAFETY: asks for the present action alone.
    let is_known = unsafe { libc::sigaction(signal, null(), &raw mut present) } == 0;
    if is_known && present.sa_sigaction == handle as Handler as usize && !previous.is_null() {
        // SAFETY: what handled the signal before, as the system has returned it.
        let _ = unsafe { libc::sigaction(signal, previous, null_mut()) };
    }
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The handler. Async-signal-safe: adds to an atomic, wakes by a system call that preserves `errno`, and calls what was there before.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    COUNTS[index(signal)].fetch_add(1, Ordering::Relaxed);
    words::wake_all();
    // E3: Acquire pairs with the Release in `install`.
    let previous = PREVIOUS[index(signal)].load(Ordering::Acquire);
    // SAFETY: null, or a structure that was completely written and is never freed.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    let address = previous.sa_sigaction;
    if address == libc::SIG_DFL || address == libc::SIG_IGN || address == handle as Handler as usize {
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
