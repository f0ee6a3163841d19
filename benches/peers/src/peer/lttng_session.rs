//! LTTng-UST that records into sessions of a running `lttng-sessiond`, as any user. babeltrace2 reads the recorded events.

mod session;

use crate::kernel::Compiled;
use crate::peer::workload::{name, sum};
use crate::site::Site;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use session::{Kind, Session};
pub use session::{load_provider, lttng};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

/// The part of `struct lttng_ust_tracepoint` that the test needs; `c/lttng_session.c` asserts where the fields are.
#[repr(C)]
struct Tracepoint {
    struct_size: u32,
    provider_name: *const c_char,
    event_name: *const c_char,
    state: AtomicI32,
}

unsafe extern "C" {
    static lttng_ust_tracepoint_peers_session___snapshot_numbers: Tracepoint;
    static lttng_ust_tracepoint_peers_session___discard_numbers: Tracepoint;
    static lttng_ust_tracepoint_peers_session___snapshot_text: Tracepoint;
    static lttng_ust_tracepoint_peers_session___discard_text: Tracepoint;
    fn peers_lttng_snapshot_numbers(a: c_int, b: c_int, c: i64);
    fn peers_lttng_discard_numbers(a: c_int, b: c_int, c: i64);
    fn peers_lttng_snapshot_text(name: *const c_char, n: u64);
    fn peers_lttng_discard_text(name: *const c_char, n: u64);
}

/// The expansion of `lttng_ust_tracepoint(…)`: the test, and the call of the C function with the remaining code.
macro_rules! site {
    ($site:ident, $tracepoint:ident, |$a:ident, $b:ident, $c:ident| $call:expr) => {
        #[doc = concat!("The event of `", stringify!($tracepoint), "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $site;

        impl $site {
            /// True if the tracepoint is on.
            #[inline(always)]
            pub fn is_on() -> bool {
                // SAFETY: a static of the C object; only its state is ever written, and that is read as an atomic.
                unsafe { &$tracepoint.state }.load(Ordering::Relaxed) != 0
            }
        }

        impl Site for $site {
            #[inline(always)]
            fn event($a: i32, $b: i32, $c: i64) {
                #[cold]
                #[inline(always)]
                fn fire($a: i32, $b: i32, $c: i64) {
                    // SAFETY: numbers may be any, and a NUL follows the text.
                    unsafe { $call }
                }
                if Self::is_on() {
                    fire($a, $b, $c);
                }
            }
        }
    };
}

site!(SnapshotNumbers, lttng_ust_tracepoint_peers_session___snapshot_numbers, |a, b, c| {
    peers_lttng_snapshot_numbers(a, b, c);
});
site!(DiscardNumbers, lttng_ust_tracepoint_peers_session___discard_numbers, |a, b, c| {
    peers_lttng_discard_numbers(a, b, c);
});
site!(SnapshotText, lttng_ust_tracepoint_peers_session___snapshot_text, |a, b, c| {
    peers_lttng_snapshot_text(name().as_ptr().cast(), sum(a, b, c));
});
site!(DiscardText, lttng_ust_tracepoint_peers_session___discard_text, |a, b, c| {
    peers_lttng_discard_text(name().as_ptr().cast(), sum(a, b, c));
});

/// The values in a line of babeltrace2's.
const NUMBERS: &[&str] = &["{ a = ", ", b = ", ", c = "];
const TEXT: &[&str] = &[", n = "];

/// Starts a session for an event, which must then be on. At its end, the events that babeltrace2 finds are added to the tally.
fn recording(
    kind: Kind,
    event: &'static str,
    is_on: fn() -> bool,
    marks: &'static [&'static str],
) -> Result<Armed, Unusable> {
    let session = Session::start(kind, event)?;
    if !is_on() {
        return Err(Unusable(format!("lttng started a session, and {event} is off")));
    }
    Ok(Armed::until(move || session.stop(marks, marks == TEXT)))
}

const fn plan(floor: &'static str) -> Recording {
    Recording { floor, warm: 2_000, thread: AS_IT_IS, sustained: true }
}

const SNAPSHOT_NUMBERS: Arm = || recording(Kind::Snapshot, "snapshot_numbers", SnapshotNumbers::is_on, NUMBERS);
const DISCARD_NUMBERS: Arm = || recording(Kind::Discard, "discard_numbers", DiscardNumbers::is_on, NUMBERS);
const SNAPSHOT_TEXT: Arm = || recording(Kind::Snapshot, "snapshot_text", SnapshotText::is_on, TEXT);
const DISCARD_TEXT: Arm = || recording(Kind::Discard, "discard_text", DiscardText::is_on, TEXT);

const SNAPSHOT: Variant = Variant {
    name: "lttng-snapshot",
    mode: Mode::Recorded,
    does: "LTTng-UST into a flight recorder of its session daemon's: its clock, a ring for each processor",
    kernels: Compiled::of::<SnapshotNumbers>(),
    arm: SNAPSHOT_NUMBERS,
    count: SNAPSHOT_NUMBERS,
    proof: Proof::Values,
    // Overwritten events are not counted.
    counts_losses: false,
    hold: Hold::Pass,
    limit: u64::MAX,
    recording: Some(plan("floor")),
};

const DISCARD: Variant = Variant {
    name: "lttng-discard",
    does: "LTTng-UST into a session whose daemon writes a CTF trace, and which drops events while its ring is full",
    kernels: Compiled::of::<DiscardNumbers>(),
    arm: DISCARD_NUMBERS,
    count: DISCARD_NUMBERS,
    counts_losses: true,
    ..SNAPSHOT
};

/// Both kinds of session, with both workloads.
pub const VARIANTS: &[Variant] = &[
    SNAPSHOT,
    DISCARD,
    Variant {
        name: "lttng-snapshot-text",
        does: "as lttng-snapshot",
        kernels: Compiled::of::<SnapshotText>(),
        arm: SNAPSHOT_TEXT,
        count: SNAPSHOT_TEXT,
        recording: Some(plan("floor-text")),
        ..SNAPSHOT
    },
    Variant {
        name: "lttng-discard-text",
        does: "as lttng-discard",
        kernels: Compiled::of::<DiscardText>(),
        arm: DISCARD_TEXT,
        count: DISCARD_TEXT,
        recording: Some(plan("floor-text")),
        ..DISCARD
    },
];
