//! Models of grace periods, RCU pointers and the seqcount latch. Each states its property and the orderings that it needs (letters of
//! `docs/ordering.md`): if one of them is weakened, the model fails.

use crate::grace::{Section, begin_grace_period};
use crate::primitive::light_fence;
use crate::rcu_pointer::RcuPointer;
use crate::seqcount_latch::SeqcountLatch;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};

/// A probe that records whether it was freed. It is accessed by relaxed operations, so that only the orderings of the structures keep a reader
/// from seeing the flag set.
struct Probe {
    freed: AtomicUsize,
}

/// A tracepoint that one thread fires: the section of the thread, and the list of probes. It is in an `Arc` where the crates have statics.
struct Site {
    section: Section,
    list: RcuPointer<Arc<Probe>>,
}

impl Site {
    fn new(probe: &Arc<Probe>) -> Arc<Self> {
        let site = Self { section: Section::new(), list: RcuPointer::null() };
        assert!(site.list.replace(Some(Box::new(Arc::clone(probe)))).is_none());
        Arc::new(site)
    }

    /// The effect of a site. Returns whether the probe ran.
    fn fire(&self) -> bool {
        let is_outermost = self.section.enter(light_fence);
        // SAFETY: inside a section until `exit` below.
        let seen = unsafe { self.list.read() };
        if let Some(probe) = seen {
            assert_eq!(probe.freed.load(Ordering::Relaxed), 0, "a probe ran after it was freed");
        }
        let ran = seen.is_some();
        if is_outermost {
            self.section.exit();
        }
        ran
    }

    /// The effect of a site whose probe stores 1 into `done`. Returns whether the probe ran.
    fn fire_and_store(&self, done: &AtomicUsize) -> bool {
        self.section.enter(light_fence);
        // SAFETY: inside a section until `exit` below.
        let ran = unsafe { self.list.read() }.is_some();
        if ran {
            done.store(1, Ordering::Relaxed);
        }
        self.section.exit();
        ran
    }

    /// The effect of `unregister`.
    fn unregister(&self, probe: &Probe) {
        let old = self.list.replace(None);
        assert!(begin_grace_period());
        self.section.wait_until_ended();
        probe.freed.store(1, Ordering::Relaxed);
        drop(old);
    }
}

fn probe() -> Arc<Probe> {
    Arc::new(Probe { freed: AtomicUsize::new(0) })
}

/// A thread that fires.
fn thread_of<R: 'static>(site: &Arc<Site>, fires: impl FnOnce(&Site) -> R + 'static) -> JoinHandle<R> {
    let site = Arc::clone(site);
    thread::spawn(move || fires(&site))
}

/// Unregisters the probe of a site while a thread fires it. Returns the site, and the result of the thread.
fn unregister_while<R: 'static>(fires: impl FnOnce(&Site) -> R + 'static) -> (Arc<Site>, R) {
    let probe = probe();
    let site = Site::new(&probe);
    let firing = thread_of(&site, fires);
    site.unregister(&probe);
    let returned = firing.join().unwrap();
    (site, returned)
}

/// After `unregister` has waited, the probe is not running and will not run. Needs G1/G2, G3 and P1.
#[test]
fn nothing_runs_after_the_grace_period() {
    loom::model(|| {
        let (site, ()) = unregister_while(|site| {
            site.fire();
            site.fire();
        });
        assert!(!site.fire(), "a site that fires later finds no list");
    });
}

/// A waiter sees the stores of a probe in the section that it waited for. Needs G3.
#[test]
fn the_grace_period_orders_the_probes_stores() {
    loom::model(|| {
        let probe = probe();
        let site = Site::new(&probe);
        let done = Arc::new(AtomicUsize::new(0));
        let stored = Arc::clone(&done);
        let firing = thread_of(&site, move |site| site.fire_and_store(&stored));
        site.unregister(&probe);
        let seen = done.load(Ordering::Relaxed);
        let ran = firing.join().unwrap();
        assert!(!ran || seen == 1, "the probe ran, so its effect is visible after the wait");
    });
}

/// A signal handler that interrupts `enter` between its store and its fence runs the fence itself, and finds no freed probe. Needs G1 in an
/// `enter` inside a section.
#[test]
fn a_handler_inside_enter_runs_the_fence() {
    loom::model(|| {
        unregister_while(|site| {
            let is_outermost = site.section.enter(|| {
                site.fire();
                light_fence();
            });
            assert!(is_outermost, "the handler has not left the section");
            site.section.exit();
        });
    });
}

/// A waiter that finds the next section open, and has never loaded the word between the two, sees the stores made in the first one. Needs G3 in
/// `enter`. The waiter loads twice without a yield, at which loom would run the other thread to its end.
#[test]
fn a_later_section_publishes_the_stores_of_an_earlier_one() {
    loom::model(|| {
        let probe = probe();
        let site = Site::new(&probe);
        let done = Arc::new(AtomicUsize::new(0));
        let stored = Arc::clone(&done);
        let firing = thread_of(&site, move |site| {
            let ran = site.fire_and_store(&stored);
            site.section.enter(light_fence);
            site.section.exit();
            ran
        });
        let old = site.list.replace(None);
        assert!(begin_grace_period());
        let ended = site.section.open().is_none_or(|open| site.section.has_ended(open));
        let seen = done.load(Ordering::Relaxed);
        let ran = firing.join().unwrap();
        assert!(!ended || !ran || seen == 1, "the section has ended, so its effects are visible");
        drop(old);
    });
}

/// A probe that fires a tracepoint nests: the inner event does not end the outer section.
#[test]
fn an_inner_event_does_not_end_the_outer_section() {
    loom::model(|| {
        unregister_while(|site| {
            site.section.enter(light_fence);
            // SAFETY: inside a section until `exit` below.
            let seen = unsafe { site.list.read() };
            site.fire();
            if let Some(probe) = seen {
                assert_eq!(probe.freed.load(Ordering::Relaxed), 0, "freed under an open section");
            }
            site.section.exit();
        });
    });
}

/// A reader finds a list fully initialised. Needs P1.
#[test]
fn a_published_list_is_whole() {
    loom::model(|| {
        let site = Arc::new((Section::new(), RcuPointer::<AtomicUsize>::null()));
        let reading = {
            let site = Arc::clone(&site);
            thread::spawn(move || {
                site.0.enter(light_fence);
                // SAFETY: inside a section until `exit` below; nothing is replaced in this model.
                if let Some(list) = unsafe { site.1.read() } {
                    assert_eq!(list.load(Ordering::Relaxed), 7);
                }
                site.0.exit();
            })
        };
        let list = AtomicUsize::new(0);
        list.store(7, Ordering::Relaxed);
        assert!(site.1.replace(Some(Box::new(list))).is_none());
        reading.join().unwrap();
        drop(site.1.replace(None));
    });
}

/// Two concurrent writers, each of which waits for a grace period, free one version each.
#[test]
fn two_changes_at_once() {
    loom::model(|| {
        let first = probe();
        let site = Site::new(&first);
        let second = probe();
        let changing = {
            let (site, second) = (Arc::clone(&site), Arc::clone(&second));
            thread::spawn(move || {
                let old = site.list.replace(Some(Box::new(second)));
                assert!(begin_grace_period());
                site.section.wait_until_ended();
                drop(old);
            })
        };
        let old = site.list.replace(None);
        assert!(begin_grace_period());
        site.section.wait_until_ended();
        drop(old);
        changing.join().unwrap();
        drop(site.list.replace(None));
    });
}

/// A reader never sees words of two generations. Needs K1 and K2.
#[test]
fn a_reader_of_the_latch_never_sees_a_mixture() {
    loom::model(|| {
        let latch = Arc::new(SeqcountLatch::<2>::empty());
        latch.publish([1, 10]);
        let reading = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || {
                if let Some((words, ())) = latch.read(|| ()) {
                    assert!([[1, 10], [2, 20], [3, 30]].contains(&words), "{words:?}");
                }
            })
        };
        // The third generation is written over the first.
        latch.publish([2, 20]);
        latch.publish([3, 30]);
        reading.join().unwrap();
        assert_eq!(latch.read(|| ()), Some(([3, 30], ())));
    });
}

/// The same when the words are removed between two generations.
#[test]
fn a_latch_that_was_empty_gives_the_new_words() {
    loom::model(|| {
        let latch = Arc::new(SeqcountLatch::<2>::empty());
        let reading = {
            let latch = Arc::clone(&latch);
            thread::spawn(move || {
                if let Some((words, ())) = latch.read(|| ()) {
                    assert!([[1, 10], [2, 20]].contains(&words), "{words:?}");
                }
            })
        };
        latch.publish([1, 10]);
        latch.clear();
        latch.publish([2, 20]);
        reading.join().unwrap();
    });
}
