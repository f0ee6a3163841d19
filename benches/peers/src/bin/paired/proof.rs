//! Checks that variants do what they claim, each in a separate process, so that libraries that are switched on do not affect
//! each other.

use anyhow::{Context, Result, ensure};
use std::env;
use std::process::Command;
use tracepoint_peers::report::Proof;
use tracepoint_peers::variant::Variant;

/// Switches a variant on, counts its hits, and fails if they are not the expected ones.
pub(crate) fn show(variant: &Variant, json: bool) -> Result<()> {
    let proof = match variant.check() {
        Ok(check) => Proof { holds: check.holds(), found: check.to_string(), bytes: check.bytes() },
        Err(reason) => Proof { holds: true, found: format!("not usable: {reason}"), bytes: None },
    };
    if json {
        println!("{}", serde_json::to_string(&proof)?);
    } else {
        println!("{}", text(&proof));
    }
    ensure!(proof.holds, "{} does not hit when it is on, or does when it is off", variant.name);
    Ok(())
}

/// The same for several variants.
pub(crate) fn all(variants: &[&'static Variant]) -> Result<()> {
    let mut failed = 0;
    for variant in variants {
        let proof = of(variant)?;
        println!("{:<26}{}", variant.name, text(&proof));
        failed += usize::from(!proof.holds);
    }
    ensure!(failed == 0, "{failed} variants do not hit when they are on, or do when they are off");
    Ok(())
}

/// Runs the check in another process.
pub(crate) fn of(variant: &Variant) -> Result<Proof> {
    let program = env::current_exe().context("this program's path")?;
    let output = Command::new(program).args(["--check", variant.name, "--json"]).output().context("run --check")?;
    let said = serde_json::from_slice(&output.stdout);
    // A variant that ends the program has also failed.
    Ok(said.unwrap_or_else(|_| Proof {
        holds: false,
        found: String::from_utf8_lossy(&output.stderr).trim().into(),
        bytes: None,
    }))
}

fn text(proof: &Proof) -> String {
    match proof.bytes {
        Some(bytes) => format!("{}; {bytes:.1} bytes for an event", proof.found),
        None => proof.found.clone(),
    }
}
