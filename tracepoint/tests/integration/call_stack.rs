//! Call stacks: a program with frame pointers has its callers in its records, one without comes to no harm.

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
        // What comes behind is the beginning of the thread.
        assert_eq!(callers[1..4], ["inner", "middle", "outer"], "{output}");
    }
    // No more than the channel allows.
    assert_eq!((deep[0], deep[1]), ("24", "inner"), "{output}");
    assert!(deep.len() > 15 && deep[2..].iter().all(|name| *name == "down"), "{output}");
}

#[test]
fn without_frame_pointers_nothing_happens() {
    let output = run(&Build::profile("release").binary("call-stack"), &[]);
    assert_eq!(output.lines().count(), 5, "{output}");
}
