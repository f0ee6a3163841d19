//! A killed process dumps no core; `tracectl listen` notices its end.

use super::{Outcome, Place, check_snapshot_with, is_traced, wait_for};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

/// Killed on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_process_leaves_a_snapshot_and_one_that_dumps_core_leaves_one() -> Outcome {
    const TEST: &str = "killed::a_killed_process_leaves_a_snapshot_and_one_that_dumps_core_leaves_one";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new(None)?;
    let _installed = place.install()?;
    let told = place.text("own/told");
    let run = ["run", "--", "/bin/sh", "-c", "echo $TRACEPOINT_TRIGGER_KILLED_SIGNAL > \"$0\"", &told];
    let trigger = ["trigger", "-s", "flight", "killed", "snapshot", "--output"];
    place.well(&[&trigger[..], &[&place.text("own/out")], &run].concat())?;
    let mut listener = place.command(&place.path("tracectl"));
    let listener = listener.args(["listen", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut listener = Ended(listener);
    let mut lines = BufReader::new(listener.0.stdout.take().ok_or("a pipe")?).lines();
    assert!(lines.next().ok_or("a line")??.contains("listening"));

    let mut healthy = place.start(TEST, "no")?;
    let mut dies = place.start(TEST, "kill")?;
    drop(dies.stdin.take());
    assert_eq!(dies.wait()?.signal(), Some(9));
    let report: Value = serde_json::from_str(&lines.next().ok_or("a line")??)?;
    assert_eq!((&report["type"], &report["occurrence"]["pid"]), (&"occurred".into(), &dies.id().into()), "{report:#}");
    let snapshot = place.snapshot_of(dies.id())?;
    let killed = ["killed_signal = 9;", "trigger_condition = \"killed\";"].map(str::to_owned);
    check_snapshot_with(&snapshot, "kill", &killed, dies.id(), healthy.id())?;
    wait_for(|| fs::read_to_string(place.path("own/told")).ok().filter(|told| told == "9\n"));

    // A core dump matches the other condition only.
    let mut crashes = place.start(TEST, "abort")?;
    drop(crashes.stdin.take());
    crashes.wait()?;
    let report: Value = serde_json::from_str(&lines.next().ok_or("a line")??)?;
    assert_eq!((&report["type"], &report["pid"]), (&"core_dump".into(), &crashes.id().into()), "{report:#}");
    place.snapshot_of(crashes.id())?;
    let all: Value = serde_json::from_str(&place.well(&["triggers", "--json"])?)?;
    let occurred = |index: usize| all["triggers"][index]["state"]["occurred"].clone();
    assert_eq!((occurred(0), occurred(1)), (1.into(), 1.into()), "{all:#}");
    assert_eq!(all["triggers"][1]["state"]["last"][1]["ended"], "exit status 0", "{all:#}");
    drop(healthy.stdin.take());
    assert!(healthy.wait()?.success(), "the other process goes on");
    Ok(())
}
