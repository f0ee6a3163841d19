//! Sessions that programs start in code: they are listed, can be snapshot, and share no name with an external session.

use super::{Outcome, Place, Traced, paid, program};
use std::env;
use std::path::PathBuf;
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session};

/// Set to the name of the session in the code of a process.
pub(super) const NAME: &str = "TEST_IN_CODE";

/// In a process with a session in its code, records 20 events, waits until its input ends, and returns `true`.
fn has_session() -> bool {
    let Ok(name) = env::var(NAME) else { return false };
    let text = TextSink::new(std::io::sink());
    let session = Session::builder(name).events("shop:paid").channel(Channel::overwrite(1 << 20)).sink(text).start();
    let session = session.expect("it starts");
    (0..20).for_each(|n| tracepoint::trace!(paid(n)));
    println!("ready");
    let _ = std::io::stdin().lines().count();
    session.stop().expect("it stops");
    true
}

pub(super) fn start(place: &Place, test: &str, name: &str, further: Option<(&str, PathBuf)>) -> Traced {
    let mut command = program(test, 0);
    command.env(NAME, name).envs(further);
    place.start_as(command)
}

/// Makes the process stop its session.
fn stop(mut traced: Traced) -> Outcome {
    drop(traced.0.stdin.take());
    // Its status is that of the test runner, whose output is no longer read.
    traced.0.wait()?;
    Ok(())
}

#[test]
fn a_session_in_code_is_listed_and_snapshot() -> Outcome {
    if has_session() {
        return Ok(());
    }
    let place = Place::new();
    let flight = start(&place, "in_code::a_session_in_code_is_listed_and_snapshot", "flight", None);
    let pid = flight.0.id();
    for verb in [&["list"][..], &["status"], &["status", "flight"]] {
        let (code, out, _) = place.tracectl(verb);
        let row = out.lines().find(|line| line.starts_with("  flight ")).ok_or("no row")?;
        assert!(code == Some(0) && row.contains(&format!(" {pid} ")) && row.ends_with(" `shop:paid`"), "{out}");
        assert!(out.contains("tracectl snapshot flight -o OUT"), "{out}");
        let (_, out, _) = place.tracectl(&[verb, &["--json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&out)?;
        let session = &report["in_code"][0];
        assert_eq!((&session["name"], &session["pid"]), (&"flight".into(), &pid.into()), "{report}");
        assert!(session["rings"].as_u64() > Some(64 << 10), "{report}");
    }
    assert_eq!(place.tracectl(&["snapshot", "flight", "-o", "taken"]).0, Some(0));
    assert_eq!(super::viewed(&place.path("taken"), " shop:paid: "), 20);

    // Commands that change a session report its owner.
    for arguments in [&["create", "flight", "-e", "shop:*", "--wait"][..], &["stop", "flight"], &["destroy", "flight"]]
    {
        let err = place.refused(arguments);
        assert!(err.contains(&format!("the code of process {pid} has started the session flight")), "{err}");
    }
    stop(flight)?;
    assert_eq!(place.well(&["status"]), "");
    place.well(&["create", "flight", "-e", "shop:*", "--wait"]);
    Ok(())
}

#[test]
fn a_session_from_outside_keeps_its_name() -> Outcome {
    if has_session() {
        return Ok(());
    }
    let place = Place::new();
    place.well(&["create", "flight", "-e", "shop:*", "--wait"]);
    let in_code = start(&place, "in_code::a_session_from_outside_keeps_its_name", "flight", None);
    let label = format!("flight@{}", in_code.0.id());
    let shown = place.well(&["status"]);
    assert!(shown.contains("flight: stopped") && shown.contains(&format!("\n  {label} ")), "{shown}");
    assert_eq!(place.tracectl(&["snapshot", &label, "-o", "taken"]).0, Some(0));
    let metadata = std::fs::read_to_string(place.path("taken/metadata"))?;
    assert!(metadata.contains(&label), "the trace has the name by which the session is listed: {metadata}");
    let (code, _, _) = place.tracectl(&["destroy", "flight"]);
    assert_eq!(code, Some(0));
    stop(in_code)
}
