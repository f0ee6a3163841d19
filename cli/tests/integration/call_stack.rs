//! Call stacks of a program with frame pointers, from its recording to the pictures of functions.

use crate::fixture::{Build, run};
use std::process::Command;

/// Exports the call stacks of a trace in this format.
fn exported(format: &str, trace: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    let output = command.args(["export", "--stacks", "calls", format, "-", trace]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_flame_graph_of_calls_has_the_names_of_functions() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let trace = trace.to_str().unwrap();
    run(&Build::dev().frame_pointers().binary("flame"), &[trace]);

    let folded = exported("--folded", trace);
    let count = |stack: &str| {
        let of_it = folded.lines().filter(|line| line.contains(stack));
        of_it.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
    };
    // Although nothing is inlined in this build, no function of the tracer is between the function with the site and the event.
    assert_eq!(count(";flame::outer_part;flame::middle_part;flame::inner_part;flame:burned "), 10, "{folded}");
    assert_eq!(count(";flame::main;flame::inner_part;flame:burned "), 5, "{folded}");
    assert_eq!(count(";flame:burned "), 15, "{folded}");
    for event in ["part_begin", "part_end"] {
        assert_eq!(count(&format!(";flame::main;flame::timed_part;flame:{event} ")), 3, "{folded}");
    }

    let picture = exported("--flame", trace);
    let calls = [("outer_part", 10), ("middle_part", 10), ("inner_part", 10), ("inner_part", 5)];
    for function in calls.map(|(name, count)| format!("flame::{name} ({count} events")) {
        assert!(picture.contains(&function), "{function}: {picture}");
    }
}
