//! The first program that a newcomer copies behaves as its comments say.

use std::process::Command;

#[test]
fn two_switches_are_recorded() {
    let output = Command::new(crate::common::program::built("sched")).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert_eq!(err, "sched:kernel_sched_switch: fired 2, recorded 2\n");
    let fields: Vec<_> = out.lines().map(|line| line.rsplit_once("sched_switch ").unwrap().1).collect();
    assert_eq!(fields, ["prev_pid=0 next_pid=4711 prev_state=0", "prev_pid=4711 next_pid=0 prev_state=1"]);
}
