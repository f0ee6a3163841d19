//! LTTng-UST: a C object has the tracepoint and its call. The test before the call is written here, so that the loop calls no C
//! function while the tracepoint is off.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Unusable, Variant};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// The part of `struct lttng_ust_tracepoint` that the test needs; `c/lttng.c` asserts where the fields are.
#[repr(C)]
struct Tracepoint {
    struct_size: u32,
    provider_name: *const c_char,
    event_name: *const c_char,
    state: AtomicI32,
}

unsafe extern "C" {
    static lttng_ust_tracepoint_peers___small: Tracepoint;
    fn peers_lttng_fire(a: i32, b: i32, c: i64);
    fn peers_lttng_connect(probe: Probe) -> c_int;
    fn peers_lttng_disconnect(probe: Probe) -> c_int;
}

type Probe = extern "C" fn(data: *mut c_void, a: c_int, b: c_int, c: i64);

extern "C" fn probe(_: *mut c_void, a: c_int, b: c_int, c: i64) {
    tally::add(a, b, c);
}

/// The expansion of `lttng_ust_tracepoint(…)`.
#[derive(Clone, Copy, Debug)]
pub struct Lttng;

impl Site for Lttng {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        // SAFETY: a static of the C object; only its state is ever written, and that is read as an atomic.
        if unsafe { &lttng_ust_tracepoint_peers___small.state }.load(Ordering::Relaxed) != 0 {
            fire(a, b, c);
        }
    }
}

#[cold]
#[inline(always)]
fn fire(a: i32, b: i32, c: i64) {
    // SAFETY: takes any values.
    unsafe { peers_lttng_fire(a, b, c) }
}

const COUNT: Arm = || {
    // SAFETY: the probe has the tracepoint's signature with the data pointer in front, and is never unloaded.
    let refused = unsafe { peers_lttng_connect(probe) };
    // SAFETY: a static, as above.
    let state = || unsafe { &lttng_ust_tracepoint_peers___small.state }.load(Ordering::Relaxed);
    if refused != 0 || state() == 0 {
        return Err(Unusable("lttng-ust did not connect the probe: liblttng-ust-tracepoint.so is missing".into()));
    }
    Ok(Armed::until(|| {
        // SAFETY: takes what was connected.
        unsafe { peers_lttng_disconnect(probe) };
    }))
};

const OFF: Variant = Variant {
    name: "lttng",
    mode: Mode::Off,
    does: "LTTng-UST: a load and a branch",
    kernels: Compiled::of::<Lttng>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "lttng-callback",
        mode: Mode::On,
        counts_losses: true,
        does: "LTTng-UST with one probe of ours that counts and sums up: no session, nothing recorded",
        arm: COUNT,
        ..OFF
    },
];
