//! Four threads run sites in a loop while another one switches them: no hit after off, no miss after on.
//!
//! The switching thread publishes its phase. A reader that sees the same phase before and after it ran the sites knows whether they had to
//! fire.

use crate::site::{OFF, ON, assert_all, assert_all_off, sites_of_key_in};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

tracepoint::define_trace! {
    provider = "site_stress";
    fired(hits: &AtomicU64);
}

/// The phase of the switching thread: its step in the low bits, the number of the round above them. Only grows.
const TURNING_ON: u64 = 0;
const ON_AND_RETURNED: u64 = 1;
const TURNING_OFF: u64 = 2;
const OFF_AND_WAITED: u64 = 3;

static PHASE: AtomicU64 = AtomicU64::new(TURNING_ON);

/// The number of probes that were still running after `unregister` had returned.
static LATE: AtomicU64 = AtomicU64::new(0);

/// The probe of a round. It is slow, so that the thread that unregisters it often has to wait.
fn probe(round: u64, hits: &AtomicU64) {
    hits.fetch_add(1, Ordering::Relaxed);
    for _ in 0..20 {
        spin_loop();
    }
    if PHASE.load(Ordering::SeqCst) >= round * 4 + OFF_AND_WAITED {
        LATE.fetch_add(1, Ordering::Relaxed);
    }
}

/// Several sites in a row, so that each iteration of a reader runs all of them.
#[inline(never)]
fn fire(hits: &AtomicU64) {
    macro_rules! five_sites {
        () => {
            tracepoint::trace!(fired(hits));
            tracepoint::trace!(fired(hits));
            tracepoint::trace!(fired(hits));
            tracepoint::trace!(fired(hits));
            tracepoint::trace!(fired(hits));
        };
    }
    five_sites!();
    five_sites!();
    five_sites!();
    trace_fired(hits);
}

const SITES_IN_FIRE: u64 = 16;

#[derive(Default)]
struct Reader {
    /// The number of iterations in which the sites had to be on, and in which they had to be off.
    ran_on: AtomicU64,
    ran_off: AtomicU64,
    hits_while_off: AtomicU64,
    misses_while_on: AtomicU64,
}

impl Reader {
    fn read(&self, stop: &AtomicBool) {
        let hits = AtomicU64::new(0);
        while !stop.load(Ordering::Relaxed) {
            let before = PHASE.load(Ordering::SeqCst);
            hits.store(0, Ordering::Relaxed);
            let enabled = u64::from(trace_fired_enabled());
            fire(&hits);
            if PHASE.load(Ordering::SeqCst) != before {
                continue;
            }
            let hits = enabled + hits.load(Ordering::Relaxed);
            match before % 4 {
                ON_AND_RETURNED => {
                    self.misses_while_on.fetch_add(1 + SITES_IN_FIRE - hits, Ordering::Relaxed);
                    self.ran_on.fetch_add(1, Ordering::Release);
                }
                OFF_AND_WAITED => {
                    self.hits_while_off.fetch_add(hits, Ordering::Relaxed);
                    self.ran_off.fetch_add(1, Ordering::Release);
                }
                _ => {}
            }
        }
    }
}

/// Number of times that the sites are switched on and off; a long run uses a million.
fn rounds() -> u64 {
    match std::env::var("TRACEPOINT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("a number"),
        Err(_) => 20_000,
    }
}

/// Waits until each reader has done one more iteration of the kind that `counter` counts.
fn wait_for_readers(readers: &[Reader], counter: impl Fn(&Reader) -> &AtomicU64) {
    for reader in readers {
        let before = counter(reader).load(Ordering::Acquire);
        while counter(reader).load(Ordering::Acquire) == before {
            spin_loop();
            thread::yield_now();
        }
    }
}

/// Returns whether the kernel can make other processors discard decoded instructions. If not, they may execute old instructions right after a
/// switch, and only the switching thread's own hits are counted.
fn kernel_synchronizes_cores() -> bool {
    const QUERY: libc::c_int = 0;
    const PRIVATE_EXPEDITED_SYNC_CORE: libc::c_long = 1 << 5;
    // SAFETY: takes plain numbers and touches no memory.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) };
    commands >= 0 && commands & PRIVATE_EXPEDITED_SYNC_CORE != 0
}

#[test]
fn sites_run_while_they_are_switched() {
    own_process!();
    let sites = sites_of_key_in(fire as *const ());
    let readers: [Reader; 4] = Default::default();
    let stop = AtomicBool::new(false);
    let own_hits = AtomicU64::new(0);
    let fire_own = || {
        own_hits.store(0, Ordering::Relaxed);
        fire(&own_hits);
        own_hits.load(Ordering::Relaxed)
    };
    let rounds = rounds();
    thread::scope(|scope| {
        for reader in &readers {
            let stop = &stop;
            scope.spawn(move || reader.read(stop));
        }
        // Stops the readers also after a failed assertion, because the scope waits for them.
        let stop_readers = StopOnDrop(&stop);
        for round in 0..rounds {
            // Most switches meet the readers at an arbitrary point; every 64th round waits until each reader has seen both states.
            let meet_readers = round % 64 == 0;
            let phase = |phase| PHASE.store(round * 4 + phase, Ordering::SeqCst);
            phase(TURNING_ON);
            let probe = register_trace_fired(move |hits| probe(round, hits)).expect("switches");
            phase(ON_AND_RETURNED);
            assert_all(&sites, ON);
            assert_eq!(fire_own(), SITES_IN_FIRE, "round {round}: on for the thread that turned it on");
            if meet_readers {
                wait_for_readers(&readers, |reader| &reader.ran_on);
            }
            phase(TURNING_OFF);
            unregister_trace_fired(probe);
            phase(OFF_AND_WAITED);
            assert_all(&sites, OFF);
            assert_eq!(fire_own(), 0, "round {round}: off for the thread that turned it off");
            if meet_readers {
                wait_for_readers(&readers, |reader| &reader.ran_off);
            }
        }
        drop(stop_readers);
    });
    for reader in &readers {
        let [on, off, hits, misses] =
            [&reader.ran_on, &reader.ran_off, &reader.hits_while_off, &reader.misses_while_on].map(load);
        assert!(on >= rounds / 64 && off >= rounds / 64, "readers ran in both states: {on}, {off}");
        if kernel_synchronizes_cores() {
            assert_eq!((hits, misses), (0, 0), "hits while off, misses while on");
        }
    }
    assert_eq!(LATE.load(Ordering::Relaxed), 0, "no thread is in a probe after unregister returned");
    let platform = tracepoint::runtime::platform();
    assert_eq!((platform.foreign_sites, platform.stuck_sites, platform.never_freed), (0, 0, 0));
    assert_all_off();
    println!("{} sites, each switched on and off {rounds} times", sites.len());
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
