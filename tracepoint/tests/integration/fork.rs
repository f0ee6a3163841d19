//! Children of a traced program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, Loss, OpenChannel};

tracepoint::define_trace! {
    provider = "fork";
    mapped(n: u64) { n: u64 = n }
    busy(n: u64) { n: u64 = n }
    inherited(n: u64) { n: u64 = n }
    splitting(pid: &AtomicI32) { child: bool = splits(pid) }
}

/// Forks, if that was not done before; returns whether this is the child.
fn splits(pid: &AtomicI32) -> bool {
    if pid.load(Ordering::Relaxed) == 0 {
        // SAFETY: the child leaves the event that it is in, looks at the account and ends by `_exit`.
        pid.store(unsafe { libc::fork() }.max(-1), Ordering::Relaxed);
        return pid.load(Ordering::Relaxed) == 0;
    }
    false
}

/// Runs `child` in a forked process and returns its exit code; 99 if it did not end within ten seconds.
fn in_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only calls `child` and `_exit`. The core's fork handlers, which are under test, leave its locks free in the
    // child; the C library does the same for malloc.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: alarm and _exit take plain numbers. The alarm ends a child that hangs, by SIGALRM.
        unsafe {
            libc::alarm(10);
            libc::_exit(child());
        }
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place, `pid` a child of this process for which no other thread waits.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 99 }
}

#[test]
fn a_child_changes_probes_while_the_parents_threads_were_inside() {
    own_process!();
    let stop = AtomicBool::new(false);
    let parent_hits = Arc::new(AtomicU64::new(0));
    let hits = Arc::clone(&parent_hits);
    let slow = register_trace_busy(move |_| {
        hits.fetch_add(1, Ordering::Relaxed);
        thread::yield_now();
    })
    .expect("registers");
    thread::scope(|scope| {
        for n in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    trace_busy(n);
                }
            });
        }
        // An updater, so that the update lock is often held at the time of the fork.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(register_trace_busy(|_| {}));
            }
        });
        for _ in 0..50 {
            let code = in_child(|| {
                let ran = Arc::new(AtomicU64::new(0));
                let count = Arc::clone(&ran);
                let Ok(probe) = register_trace_busy(move |_| {
                    count.fetch_add(1, Ordering::Relaxed);
                }) else {
                    return 1;
                };
                trace_busy(7);
                probe.unregister();
                trace_busy(7);
                tracepoint::probe::synchronize();
                i32::from(ran.load(Ordering::Relaxed) != 1)
            });
            assert_eq!(code, 0, "0: probes work in the child; 99: it hung");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(parent_hits.load(Ordering::Relaxed) > 0);
    drop(slow);
}

#[test]
fn a_child_does_not_write_into_its_parents_rings() {
    own_process!();
    let channel =
        OpenChannel::open(Channel::discard(1 << 16), [3; 16], 0, 4, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find("fork:busy").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    let own = |n| {
        trace_busy(n);
    };
    own(1);
    let code = in_child(|| {
        own(2);
        own(3);
        // A new thread, whose slot in the thread table belonged to another thread in the parent.
        thread::spawn(|| trace_busy(4)).join().map_or(1, |()| {
            let event = channel.account().events[id.get() as usize].clone();
            i32::from(event.lost(Loss::NotAttached) < 3)
        })
    });
    assert_eq!(code, 0);
    own(5);
    Subscription::end_all(vec![subscription]);
    let event = &channel.account().events[id.get() as usize];
    assert_eq!(event.lost(Loss::NotAttached), 0, "the parent lost nothing");
    assert_eq!(event.fired, event.recorded);
    channel.close();
}

/// A child that continues ends the inherited subscriptions, starts its own, and drops the inherited handles.
#[test]
fn a_child_starts_its_own_subscriptions() {
    own_process!();
    let open = || {
        let channel = Channel::discard(1 << 16).spares(1);
        OpenChannel::open(channel, [3; 16], 0, 1, Box::new(AnonymousMemory)).expect("opens")
    };
    let marker = tracepoint::find("fork:inherited").expect("listed").marker().expect("has fields");
    let record = |channel: &Arc<OpenChannel>| {
        let id = channel.add_event().expect("an id");
        marker.subscribe(Subscriber::record(Arc::clone(channel), id)).expect("switches")
    };
    let channel = open();
    let mut parents = Some(record(&channel));
    trace_inherited(1);
    let code = in_child(|| {
        Subscription::end_inherited();
        if marker.is_on() || marker.subscriber_count() > 0 {
            return 1;
        }
        // More channels than would fit in addition to the parent's.
        let own: Vec<_> = (0..32).map(|_| open()).collect();
        let subscription = record(&own[0]);
        // Dropping the handle of an ended subscription disables nothing.
        drop(parents.take());
        Subscription::end_inherited();
        trace_inherited(2);
        drop(subscription);
        trace_inherited(3);
        let event = own[0].account().events[0].clone();
        2 * i32::from((event.fired, event.recorded) != (1, 1)) + 4 * i32::from(marker.is_on())
    });
    assert_eq!(code, 0);
    trace_inherited(4);
    drop(parents);
    assert_eq!(channel.account().events[0].recorded, 2);
    assert!(!marker.is_on());
    channel.close();
}

/// Memory that a child does not inherit, like that of ring files.
#[cfg(all(target_os = "linux", not(tp_portable)))]
mod not_inherited {
    use std::io;
    use std::ptr::{NonNull, null_mut};
    use tracepoint_ring::channel::{MemorySource, RingMemory, RingRequest};

    pub(super) struct Source;

    struct Mapping(NonNull<u8>, usize);

    impl MemorySource for Source {
        fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
            // SAFETY: new anonymous memory, without another user.
            let base = unsafe {
                let base = libc::mmap(
                    null_mut(),
                    request.len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                assert_eq!(libc::madvise(base, request.len, libc::MADV_DONTFORK), 0);
                base
            };
            Ok(Box::new(Mapping(NonNull::new(base.cast()).expect("not at 0"), request.len)))
        }
    }

    // SAFETY: plain shared bytes.
    unsafe impl Send for Mapping {}
    // SAFETY: as above.
    unsafe impl Sync for Mapping {}

    // SAFETY: mapped above, whole pages, until this drops.
    unsafe impl RingMemory for Mapping {
        fn base(&self) -> NonNull<u8> {
            self.0
        }

        fn len(&self) -> usize {
            self.1
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: mapped by `ring_memory`, dropped once.
            unsafe { libc::munmap(self.0.as_ptr().cast(), self.1) };
        }
    }
}

/// A child has no ring, whether it was created by `fork`, which runs the handlers, or by a bare system call. It counts its events as
/// lost, and can read the account and drop the channel.
#[test]
#[cfg(all(target_os = "linux", not(tp_portable)))]
fn a_child_does_not_touch_memory_that_it_does_not_have() {
    own_process!();
    let channel = OpenChannel::open(Channel::discard(1 << 16), [3; 16], 0, 4, Box::new(not_inherited::Source));
    let channel = channel.expect("opens");
    let marker = tracepoint::find("fork:mapped").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    trace_mapped(1);
    for bare in [false, true] {
        // SAFETY: the child fires, counts and ends by `_exit`. Without handlers locks may be held in the child; it takes none.
        let pid = unsafe {
            if bare { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t } else { libc::fork() }
        };
        assert!(pid >= 0);
        if pid == 0 {
            trace_mapped(2);
            trace_mapped(3);
            // Without handlers malloc may be locked by a thread that does not exist in the child, and reading the account allocates.
            let right = bare || {
                let event = &channel.account().events[0];
                (event.fired, event.lost(Loss::NotAttached), event.recorded) == (2, 2, 0)
            };
            let refused = channel.finish(|_| ()).is_err();
            let unmoved = channel.maintain().is_ok();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!(right && refused && unmoved))) };
        }
        let mut status = 0;
        // SAFETY: `status` is a valid place, `pid` a child of this process.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!(status, 0, "bare: {bare}; a signal would be in the low bits");
    }
    trace_mapped(4);
    Subscription::end_all(vec![subscription]);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.total_lost()), (2, 2, 0));
    channel.close();
}

/// A field expression forks: both processes return from it, and only the parent has a ring to record the event in.
#[test]
#[cfg(all(target_os = "linux", not(tp_portable)))]
fn a_child_that_a_field_expression_made_has_no_ring() {
    own_process!();
    tracepoint_ring::clock::calibrate(std::time::Duration::from_millis(1)).ok();
    let channel = OpenChannel::open(Channel::discard(1 << 16), [3; 16], 0, 4, Box::new(not_inherited::Source));
    let channel = channel.expect("opens");
    let marker = tracepoint::find("fork:splitting").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    // The first event takes a ring, so that the second takes the fast path.
    trace_splitting(&AtomicI32::new(1));
    let pid = AtomicI32::new(0);
    trace_splitting(&pid);
    let pid = pid.load(Ordering::Relaxed);
    assert!(pid >= 0);
    if pid == 0 {
        let event = &channel.account().events[0];
        let right = (event.fired, event.lost(Loss::NotAttached), event.recorded) == (1, 1, 0);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place, `pid` a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "a signal would be in the low bits");
    Subscription::end_all(vec![subscription]);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.total_lost()), (2, 2, 0));
    channel.close();
}
