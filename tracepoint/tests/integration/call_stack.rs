//! Call stacks: a program with frame pointers records its callers; a program without frame pointers does not crash.

use crate::fixture::{Build, run};

#[test]
fn callers_are_recorded() {
    let output = run(&Build::profile("release").frame_pointers().binary("call-stack"), &[]);
    let lines: Vec<_> = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let [main_aside, main, deep, thread_aside, thread] = &lines[..] else { panic!("five records: {output}") };
    for callers in [main_aside, thread_aside] {
        assert_eq!(callers[..], ["0"], "on a stack of its own: {output}");
    }
    for callers in [main, thread] {
        // The first caller is not a function of the tracepoint. Those after these are closures, and the thread's start routine.
        assert_eq!(callers[1..4], ["inner", "middle", "outer"], "{output}");
    }
    // The channel limits the number of frames.
    assert_eq!((deep[0], deep[1]), ("24", "inner"), "{output}");
    assert!(deep.len() == 25 && deep[2..].iter().all(|name| *name == "down"), "{output}");
}

#[test]
fn code_without_frame_pointers_is_safe() {
    let output = run(&Build::profile("release").binary("call-stack"), &[]);
    assert_eq!(output.lines().count(), 5, "{output}");
}
