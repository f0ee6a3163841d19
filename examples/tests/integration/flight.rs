//! The snapshot taken at a panic ends with the request that the panicking worker had started.

use std::process::Command;

#[test]
fn a_panic_leaves_the_newest_events() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(crate::common::program::built("flight")).arg(place.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.starts_with("1 of 4 workers panicked; "), "{out}{err}");
    assert!(err.contains("snapshot of the session flight at the panic: "), "{err}");
    assert!(err.contains("request 50000 cannot be served"), "the previous hook runs: {err}");
    let viewed = Command::new("babeltrace2").arg(place.path().join("panic")).env("LC_ALL", "C").output();
    let viewed = viewed.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    assert!(viewed.status.success());
    let viewed = String::from_utf8(viewed.stdout).unwrap();
    let of = |name: &str| viewed.lines().filter(|line| line.contains(name) && line.contains("request = 50000")).count();
    assert_eq!((of("worker:begun:"), of("worker:served:")), (1, 0));
}
