//! Rings that a killed `record` left in memory: they are shown, can be recovered, and are removed on request, but never while in use.

use super::remote_recording::{busy, record, verified, written};
use super::{BECOMES, Outcome, Place, is_traced, kill, program, until};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

const DAY: u64 = 24 * 60 * 60;

fn is_of_today(time: SystemTime) -> bool {
    time.elapsed().unwrap_or_default() < Duration::from_secs(DAY)
}

#[test]
fn rings_of_a_killed_recorder_are_shown_and_removed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "leftover::rings_of_a_killed_recorder_are_shown_and_removed";
    let (first, second) = (busy(&place, test, 1), busy(&place, test, 1));
    let names: Vec<String> =
        ["a", "b"].map(|out| kill_recorder(&place, &first, out)).into_iter().collect::<Result<_, _>>()?;
    let goes_on = record(&place, &second, "c")?;
    until(|| written(&place.path("c")) > 1 << 16);

    let shown = place.well(&["status"]);
    assert!(shown.contains("rings of sessions that are over: ") && shown.contains("tracectl clean --purge"), "{shown}");
    assert!(names.iter().all(|name| shown.contains(&format!("\n  {name} "))), "{shown}");
    for verb in ["status", "list"] {
        let report: serde_json::Value = serde_json::from_str(&place.well(&[verb, "--json"]))?;
        let left = report["leftovers"].as_array().ok_or("no list")?;
        assert_eq!(left.len(), 2, "{report}");
        assert!(left.iter().all(|left| left["bytes"].as_u64() > Some(64 << 10) && left["processes"] == 1), "{report}");
        assert!(left.iter().all(|left| left["age_seconds"].as_u64() < Some(DAY / 2)), "counts from the end: {report}");
    }

    // Recoverable rings stay, unless the user explicitly requests their removal.
    let err = place.refused(&["destroy", &names[0]]);
    assert!(
        err.contains("tracectl recover") && err.contains(&format!("tracectl destroy --purge {}", names[0])),
        "{err}"
    );
    let count = || fs::read_dir(place.path("run/sessions")).map(Iterator::count);
    assert!(place.well(&["clean"]).starts_with("kept "));
    assert!(place.well(&["clean", "--purge", "--dry-run"]).starts_with("would remove "));
    assert_eq!(count()?, 3);
    // If the recorder was killed while it wrote a packet, there is a note.
    let (code, said, notes) = place.tracectl(&["recover", &format!("run/sessions/{}", names[0]), "-o", "recovered"]);
    assert_eq!(code, Some(0), "{said}{notes}");
    assert!(
        notes.lines().all(|note| note.starts_with("note: ") && note.ends_with("a part of a packet, and left out")),
        "{notes}"
    );
    place.well(&["destroy", "--purge", &names[0]]);
    assert_eq!(count()?, 2);
    let removed: serde_json::Value = serde_json::from_str(&place.well(&["clean", "--older-than", "0s", "--json"]))?;
    assert_eq!((&removed["removed"][0]["name"], &removed["kept"]), (&names[1].as_str().into(), &serde_json::json!([])));
    assert_eq!(count()?, 1);
    assert!(place.well(&["clean", "--purge"]).is_empty(), "the other recorder uses its rings");

    kill(&goes_on, "INT")?;
    let output = goes_on.wait_with_output()?;
    assert!(output.status.success(), "{output:?}");
    verified(&place, "c");
    assert_eq!(count()?, 0);
    Ok(())
}

/// `status` and `list` report immediately that a process has died.
#[test]
fn a_killed_process_is_shown_as_dead() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "leftover::a_killed_process_is_shown_as_dead";
    let (_stays, dies) = (place.start(test), place.start(test));
    place.well(&["create", "flight", "-e", "shop:paid", "--start"]);
    let pid = dies.0.id();
    // The last answer of the process, which continues to record.
    place.well(&["status"]);
    drop(dies);
    let shown = place.well(&["status"]);
    let row = shown.lines().find(|line| line.starts_with(&format!("  {pid} "))).ok_or("no row")?;
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words[2..], ["dead", "0", "-", "-", "-", "-", "-"], "{shown}");
    let told = shown.lines().find(|line| line.contains(&format!("process {pid}: it died while it recorded")));
    assert!(told.is_some_and(|line| line.contains("its last answer was: ") && line.contains(" recorded")), "{shown}");
    let report: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json"]))?;
    let states = report["sessions"][0]["processes"].as_array().ok_or("no processes")?.iter();
    let mut states: Vec<_> = states.map(|process| process["state"].as_str().unwrap_or_default()).collect();
    states.sort_unstable();
    for process in report["sessions"][0]["processes"].as_array().ok_or("no processes")? {
        let is_dead = process["state"] == "dead";
        assert_eq!(
            (process["counters"].is_null(), process["last_counters"].is_null()),
            (is_dead, !is_dead),
            "{process}"
        );
    }
    assert_eq!(states, ["dead", "recording"]);
    let listed = place.well(&["list"]);
    let mut lines = listed.lines().skip_while(|line| !line.starts_with(&format!("{pid} ")));
    assert!(lines.next().is_some_and(|line| line.contains("dead")), "{listed}");
    assert!(
        lines.next().is_some_and(|line| line.contains(&format!("tracectl recover {}", place.path("run").display()))),
        "{listed}"
    );
    let report: serde_json::Value = serde_json::from_str(&place.well(&["list", "--json"]))?;
    assert_eq!((&report["dead"][0]["pid"], &report["dead"][0]["session"]), (&pid.into(), &"flight".into()), "{report}");
    let (code, _, _) = place.tracectl(&["destroy", "--purge", "flight"]);
    assert_eq!(code, Some(0));
    Ok(())
}

/// Lets a recorder record this process for what looks like days, and kills it. Returns the name of its session.
fn kill_recorder(place: &Place, traced: &super::Traced, out: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut recorder = record(place, traced, out)?;
    until(|| written(&place.path(out)) > 1 << 16);
    let rings = place.path("run/sessions").join(format!("record-{}/rings", recorder.id()));
    let dir = fs::read_dir(rings)?.next().ok_or("no rings")??.path();
    File::open(&dir)?.set_modified(SystemTime::now() - Duration::from_secs(2 * DAY))?;
    // No file in it is created in the meantime: stores into mapped files change no time stamp.
    until(|| File::open(&dir).and_then(|dir| dir.metadata()?.modified()).is_ok_and(is_of_today));
    recorder.kill()?;
    recorder.wait()?;
    until(|| place.on().is_empty());
    Ok(format!("record-{}", recorder.id()))
}

/// A process that executes another program keeps its id. Its earlier records are kept, and `recover` includes them in the trace.
#[test]
fn events_before_exec_can_be_recovered() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let test = "leftover::events_before_exec_can_be_recovered";
    place.well(&["create", "s", "-e", "shop:paid", "-o", "out", "--start", "--wait"]);
    // 20 events, and then the same program again with an endless series of events.
    let mut first = program(test, 20);
    first.env(BECOMES, "1");
    let traced = place.start_as(first);
    let process = || -> serde_json::Value {
        // A process that is calling `exec` does not answer, which the exit code of `status` reports.
        let (_, report, _) = place.tracectl(&["status", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        report["sessions"][0]["processes"][0].clone()
    };
    until(|| process()["counters"]["recorded"].as_u64() > Some(100));
    let rings = format!("run/sessions/s/rings/{}", process()["process"].as_str().unwrap_or_default());
    let shown = place.well(&["status"]);
    assert!(shown.contains("died or called `exec`") && shown.contains(&rings), "{shown}");
    let (code, _, err) = place.tracectl(&["destroy", "s"]);
    assert!(code == Some(0) && err.contains("tracectl recover") && err.contains(&rings), "{err}");
    drop(traced);
    place.well(&["recover", &rings, "-o", "before"]);
    assert_eq!(place.tracectl(&["view", "before"]).1.lines().filter(|line| line.contains(" shop:paid ")).count(), 20);
    verified(&place, "before");
}
