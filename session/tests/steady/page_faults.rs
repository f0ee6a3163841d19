//! In the steady state an event causes no page fault.

use nix::sys::resource::{UsageWho, getrusage};

#[test]
fn an_event_causes_no_page_fault() {
    own_process!();
    let faults = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel counts");
        usage.minor_page_faults() + usage.major_page_faults()
    };
    let before = faults();
    let pages = std::hint::black_box(vec![1_u8; 4 << 20]);
    assert!(faults() > before, "this thread is counted: {}", pages.len());
    crate::states::in_each(|state, act| {
        let before = faults();
        act();
        assert_eq!(faults() - before, 0, "{state}");
    });
}
