//! Signal handlers that trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};

tracepoint::define_trace! {
    provider = "signal";
    main_loop(n: u64, text: &str) { n: u64 = n, text: str = text }
    handler(n: u64) { n: u64 = n }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let n = HANDLED.fetch_add(1, Ordering::Relaxed);
    trace_handler(n);
    tracepoint::trace_mark!(in_handler, "n %lu", n);
}

/// Every event of a handler is recorded or counted, wherever the handler interrupted the thread, and the interrupted records are intact.
#[test]
fn signal_handlers_may_trace() {
    own_process!();
    let channel = OpenChannel::open(Channel::discard(1 << 18).packets(4), [5; 16], 0, 8, Box::new(AnonymousMemory))
        .expect("opens");
    let subscriptions: Vec<_> = tracepoint::runtime::markers()
        .filter(|marker| marker.provider() == "signal" || marker.name() == "in_handler")
        .map(|marker| {
            marker
                .subscribe(Subscriber::record(Arc::clone(&channel), channel.add_event().expect("an id")))
                .expect("switches")
        })
        .collect();
    // SAFETY: the handler has the signature for sigaction without SA_SIGINFO, and only traces, which is safe in handlers (this is the
    // property under test).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let stop = AtomicBool::new(false);
    let mut fired = 0u64;
    let (mut records, mut per_stream) = (0, std::collections::BTreeMap::<u64, u64>::new());
    thread::scope(|scope| {
        // SAFETY: pthread_self takes nothing and cannot fail.
        let target = unsafe { libc::pthread_self() };
        let (stop, channel) = (&stop, &channel);
        scope.spawn(move || {
            while HANDLED.load(Ordering::Relaxed) <= 500 {
                thread::sleep(Duration::from_micros(50));
                // SAFETY: the target outlives this scope.
                unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            trace_main_loop(fired, "between two signals, a text of some length");
            fired += 1;
            if fired.is_multiple_of(1024) {
                channel.drain(|packet| {
                    let before = per_stream.entry(packet.stream.instance).or_default();
                    assert_eq!(*before, packet.events_before, "no record vanished");
                    records += packet.events_after - packet.events_before;
                    *before = packet.events_after;
                });
            }
        }
    });
    Subscription::end_all(subscriptions);
    channel.finish(|packet| records += packet.events_after - packet.events_before).expect("no subscriber is left");
    let handled = HANDLED.load(Ordering::Relaxed);
    assert!(handled > 100, "signals arrived");
    let account = channel.account();
    let total: u64 = account.events.iter().map(|event| event.fired).sum();
    assert_eq!(total, fired + 2 * handled, "every event was counted as fired, those of handlers too");
    for event in &account.events {
        assert_eq!(event.fired, event.recorded + event.total_lost());
    }
    let recorded: u64 = account.events.iter().map(|event| event.recorded).sum();
    assert_eq!(recorded, records, "what the counters say was recorded was drained");
    channel.close();
}
