//! A panic in a probe does not reach the traced code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::field::Value;
use tracepoint::marker::{Aggregate, FieldView, Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, Loss, OpenChannel};

tracepoint::define_trace! {
    provider = "panic";
    hooked(n: u64);
    indexed(values: &[u64], index: usize) { before: u32 = 7, value: u64 = values[index] }
    guarded(n: u64) { n: u64 = n, text: str = Guard(n).text() }
    conditional(values: &[u64]) if values[0] > 0 { n: u64 = 1 }
}

/// A payload whose drop also panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload's drop panics");
    }
}

/// A temporary of a field expression that borrows from it: dropped after the delivery of the event; panics then at every odd number.
struct Guard(u64);

impl Guard {
    fn text(&self) -> &str {
        if self.0 < 5 { "few" } else { "many" }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        assert!(self.0.is_multiple_of(2), "the drop of a temporary panics");
    }
}

struct Total(AtomicU64);

impl Aggregate for Total {
    fn observe(&self, _time: u64, event: FieldView<'_>) {
        if let Some(Value::Unsigned(n)) = event.get(0) {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_panic_behind_an_event_changes_nothing_about_it() {
    own_process!();
    let marker = tracepoint::find("panic:guarded").expect("listed").marker().expect("has fields");
    // A channel alone, an aggregate alone, and both: each leaves the read-side section at another place.
    for (records, observes) in [(true, false), (false, true), (true, true)] {
        let channel =
            OpenChannel::open(Channel::discard(1 << 16), [2; 16], 0, 4, Box::new(AnonymousMemory)).expect("opens");
        let id = channel.add_event().expect("first id");
        let total = Arc::new(Total(AtomicU64::new(0)));
        let mut subscriptions = Vec::new();
        if records {
            subscriptions.push(marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches"));
        }
        if observes {
            subscriptions.push(marker.subscribe(Subscriber::aggregate(Arc::<Total>::clone(&total))).expect("switches"));
        }
        (0..10).for_each(trace_guarded);
        // If a section had been left twice, it would be open now, and this would wait for its end.
        Subscription::end_all(subscriptions);
        let event = &channel.account().events[id.get() as usize];
        let expected = if records { 10 } else { 0 };
        assert_eq!((event.fired, event.recorded), (expected, expected), "{records} {observes}");
        assert_eq!(total.0.load(Ordering::Relaxed), if observes { 45 } else { 0 }, "{records} {observes}");
        channel.close();
    }
}

#[test]
fn a_panicking_probe_is_disconnected_and_counted() {
    own_process!();
    let others = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&others);
    let bad = register_trace_hooked_prio(20, |_| std::panic::panic_any(Bomb)).expect("registers");
    let good = register_trace_hooked(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    })
    .expect("registers");
    let tracepoint = tracepoint::find("panic:hooked").expect("listed");
    assert_eq!(tracepoint.probe_count(), 2);
    trace_hooked(1);
    trace_hooked(2);
    assert_eq!(tracepoint.probe_panics(), 1, "it ran once");
    assert_eq!(tracepoint.probe_count(), 1, "and was disconnected");
    assert_eq!(others.load(Ordering::Relaxed), 2, "the others run on");
    drop((bad, good));
    assert!(!trace_hooked_enabled());
}

#[test]
fn a_panicking_field_loses_its_event_and_nothing_else() {
    own_process!();
    let channel =
        OpenChannel::open(Channel::discard(1 << 16), [2; 16], 0, 4, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find("panic:indexed").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    trace_indexed(&[1, 2], 0);
    trace_indexed(&[1, 2], 2);
    trace_indexed(&[1, 2], 1);
    Subscription::end_all(vec![subscription]);
    let event = &channel.account().events[id.get() as usize];
    assert_eq!((event.fired, event.recorded, event.lost(Loss::Panicked)), (3, 2, 1));
    let mut bytes = 0;
    channel.finish(|packet| bytes += packet.bytes.len()).expect("no subscriber is left");
    assert_eq!(bytes, 96 + 2 * (8 + 4 + 8) + 96, "two whole records, one packet, and the last packet");
    channel.close();
}

#[test]
fn a_panicking_condition_is_false() {
    own_process!();
    let runs = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&runs);
    let probe = register_trace_conditional(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    })
    .expect("registers");
    trace_conditional(&[]);
    trace_conditional(&[1]);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    drop(probe);
}

/// Returns the output of a process that panics inside a probe and outside.
fn heard(silenced: bool) -> String {
    let output = Command::new(std::env::current_exe().expect("has a path"))
        .args(["--exact", "panic::panics_in_probes_reach_the_panic_hook_unless_silenced", "--nocapture"])
        .env("PANIC_CHILD", silenced.to_string())
        .output()
        .expect("runs");
    let heard = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{heard}");
    heard
}

#[test]
fn panics_in_probes_reach_the_panic_hook_unless_silenced() {
    own_process!();
    if let Some(silenced) = std::env::var_os("PANIC_CHILD") {
        if silenced == "true" {
            tracepoint::probe::silence_panics();
        }
        let probe = register_trace_hooked(|_| panic!("inside a probe")).expect("registers");
        trace_hooked(1);
        drop(probe);
        let _ = catch_unwind(AssertUnwindSafe(|| panic!("outside of any probe")));
        return;
    }
    let (unasked, silenced) = (heard(false), heard(true));
    assert!(unasked.contains("outside of any probe") && unasked.contains("inside a probe"), "{unasked}");
    assert!(silenced.contains("outside of any probe") && !silenced.contains("inside a probe"), "{silenced}");
}
