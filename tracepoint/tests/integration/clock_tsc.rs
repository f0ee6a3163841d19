//! The clock based on the processor's counter, compared with the kernel's. Nothing here depends on the speed of the test: a time is compared
//! with the times read before and after it.

use crate::skip::skip;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_ring::clock::{self, Calibration, Clock};

/// The tolerance of the comparison. It is much larger than the error that steering leaves, because this thread may be descheduled for
/// seconds between two comparisons.
const SLACK: u64 = 20_000;

fn kernel() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Reads the time, and asserts that it agrees with the kernel's clock.
fn agreed() -> u64 {
    let before = kernel();
    let time = clock::now();
    let after = kernel();
    assert!(before <= time + SLACK && time <= after + SLACK, "{before} {time} {after}");
    time
}

#[test]
fn follows_the_kernels_clock() {
    own_process!();
    assert_eq!((clock::name(), clock::error_bound()), ("clock_gettime", 0));
    let untrusted = tracepoint::runtime::platform().to_string();
    let counter = if cfg!(target_arch = "aarch64") { "system counter" } else { "time stamp counter" };
    let reason = format!("clock: clock_gettime (the {counter} has not been declared trustworthy)");
    assert!(untrusted.ends_with(&reason), "{untrusted}");
    clock::steer();
    agreed();

    let odd = Calibration { base_tsc: 0, base_ns: 0, ticks_per_second: 3, baseline_ns: 1 };
    assert!(clock::trust_tsc(odd).is_err());
    if let Err(reason) = clock::calibrate(Duration::from_millis(10)) {
        let platform = tracepoint::runtime::platform().to_string();
        assert!(platform.ends_with(&format!("clock: clock_gettime ({reason})")), "{platform}");
        return skip(
            &format!("the time stamp counter cannot be trusted: {reason}"),
            "Run on a machine whose counter is invariant",
        );
    }
    assert_eq!(clock::name(), clock::COUNTER);
    assert!(tracepoint::runtime::platform().clock.starts_with(&format!("{}, error below ", clock::COUNTER)));

    // The clock compares itself with the kernel's several times, first after 100 ms; read it in between.
    let begin = Instant::now();
    let mut last = 0;
    while begin.elapsed() < Duration::from_millis(1500) {
        for _ in 0..100 {
            let time = agreed();
            assert!(time >= last, "the time went back: {last} {time}");
            last = time;
        }
        clock::steer();
        sleep(Duration::from_millis(5));
    }
    assert_eq!(clock::steps(), 0);
    assert!((1..SLACK).contains(&clock::error_bound()), "{} ns", clock::error_bound());

    // Selected again, it starts at the kernel's time, also if another clock was selected in between.
    clock::calibrate(Duration::from_millis(1)).expect("measured before");
    agreed();
    clock::select(Clock::None).expect("no channel is open");
    assert_eq!((clock::now(), clock::error_bound()), (0, 0));
    clock::steer();
    clock::select(Clock::Monotonic).expect("no channel is open");
    assert_eq!(clock::name(), clock::COUNTER);
    agreed();

    clock::distrust_tsc("because");
    assert_eq!(tracepoint::runtime::platform().clock, "clock_gettime (because)");
    agreed();
}
