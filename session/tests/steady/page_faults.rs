//! In the steady state an event causes no page fault.

#[test]
fn an_event_causes_no_page_fault() {
    own_process!();
    let faults = || {
        // SAFETY: zero is a valid value of all fields, and the kernel writes to this local only.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0, "the kernel counts");
            usage
        };
        usage.ru_minflt + usage.ru_majflt
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
