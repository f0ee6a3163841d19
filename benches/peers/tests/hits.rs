//! Every variant hits while it is on and does not while it is off. Each runs in a separate process, because some
//! libraries cannot be switched off again, and some share a global.

use std::process::Command;
use tracepoint_peers::peer;

#[test]
fn every_variant_hits_when_on() {
    let mut wrong = Vec::new();
    for variant in peer::all() {
        let output = Command::new(env!("CARGO_BIN_EXE_paired"))
            .args(["--check", variant.name])
            .output()
            .expect("paired was built for this test");
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        println!("{:<26}{found}", variant.name);
        if !output.status.success() {
            wrong.push((variant.name, found, String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = peer::all().map(|variant| variant.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
