//! Every event of the program has the number of the task that fired it.

use std::process::Command;

#[test]
fn each_request_has_its_steps() {
    let output = Command::new(crate::common::program::built("tokio")).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    let expected: Vec<_> = (1..=20).map(|n| format!("request {n}: 100 steps, in their order")).collect();
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}
