//! Parent and child each have their own copy of the code: each switches only its own sites.

use crate::site::{OFF, ON, assert_all, assert_all_off, finish_child, sites_of_key_in, start_child};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::Probe;

tracepoint::define_trace! {
    provider = "site_fork";
    fired();
}

#[inline(never)]
fn fire() {
    tracepoint::trace!(fired());
}

static HITS: AtomicU64 = AtomicU64::new(0);

fn register() -> Probe<fired> {
    register_trace_fired(|| {
        HITS.fetch_add(1, Ordering::Relaxed);
    })
    .expect("switches")
}

/// Asserts that the sites have this form in the calling process, and behave accordingly.
#[track_caller]
fn assert_own(form: u8) {
    assert_all(&sites_of_key_in(fire as *const ()), form);
    let before = HITS.load(Ordering::Relaxed);
    fire();
    assert_eq!(HITS.load(Ordering::Relaxed) - before, u64::from(form == ON));
}

/// One of two processes that run alternately.
struct Turns(UnixStream);

impl Turns {
    /// Passes the turn to the other process; returns when it comes back.
    #[track_caller]
    fn pass(&mut self) {
        self.give();
        self.wait();
    }

    #[track_caller]
    fn give(&mut self) {
        self.0.write_all(b".").expect("the other process is there");
    }

    #[track_caller]
    fn wait(&mut self) {
        self.0.read_exact(&mut [0]).expect("the other process is still running");
    }
}

/// Runs `child` and `parent` alternately, in two processes. The child begins.
fn run_alternately(child: impl FnOnce(&mut Turns), parent: impl FnOnce(&mut Turns)) {
    let (ours, theirs) = UnixStream::pair().expect("descriptors");
    let (mut ours, mut theirs) = (Some(ours), Some(theirs));
    let pid = start_child(|| {
        // Each process holds only one end, so that the other notices if it dies.
        drop(ours.take());
        child(&mut Turns(theirs.take().expect("not taken yet")));
    });
    drop(theirs);
    let mut turns = Turns(ours.take().expect("not taken in this process"));
    turns.wait();
    parent(&mut turns);
    drop(turns);
    assert_eq!(finish_child(pid), 0, "the child succeeded");
}

#[test]
fn parent_and_child_switch_their_own_sites() {
    own_process!();
    // The child inherits everything that is opened or chosen once per process.
    drop(register());
    assert_own(OFF);

    run_alternately(
        |turns| {
            let probe = register();
            assert_own(ON);
            turns.pass(); // the parent turns its own on
            assert_own(ON);
            drop(probe);
            assert_own(OFF);
            turns.pass(); // the parent's stay on; it turns them off
            assert_own(OFF);
            let again = register();
            assert_own(ON);
            turns.pass();
            drop(again);
            assert_all_off();
            turns.give();
        },
        |turns| {
            assert_own(OFF);
            let probe = register();
            assert_own(ON);
            turns.pass();
            assert_own(ON);
            drop(probe);
            assert_own(OFF);
            turns.pass();
            assert_own(OFF);
            turns.pass();
            assert_own(OFF);
        },
    );

    // A child inherits sites that are on, with the probe.
    let mut probe = Some(register());
    let inherited = &mut probe;
    run_alternately(
        |turns| {
            assert_own(ON);
            drop(inherited.take());
            assert_own(OFF);
            turns.pass(); // the parent's stay on; it turns them off and on
            assert_own(OFF);
            turns.give();
        },
        |turns| {
            assert_own(ON);
            drop(register());
            assert_own(ON);
            turns.pass();
            assert_own(ON);
        },
    );
    drop(probe);
    assert_own(OFF);
    assert_all_off();
}
