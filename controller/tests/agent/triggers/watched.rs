//! Conditions that a listener detects: killed processes, the size of the outputs, and complete chunks.

use super::by_hand::Listening;
use super::{flight, snapshots, status};
use crate::common::{Outcome, view};
use crate::traced::{Place, is_traced, traces};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_controller::NamedSession;
use tracepoint_controller::trigger::{TriggerOptions, TriggerState, Watchers, trigger_set};
use tracepoint_session_spec::{TriggerAction, TriggerCondition};

/// Maximum time to wait for an action of the listener.
const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until the state of the only trigger satisfies the condition.
pub(super) fn until(session: &NamedSession<'_>, is_so: impl Fn(&TriggerState) -> bool) -> TriggerState {
    let began = Instant::now();
    loop {
        let state = status(session).state;
        if is_so(&state) {
            return state;
        }
        assert!(began.elapsed() < DEADLINE, "{state:?}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_process_is_in_the_snapshot() -> Outcome {
    const TEST: &str = "triggers::watched::a_killed_process_is_in_the_snapshot";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    let out = place.out("flight");
    trigger_set(&session, TriggerCondition::Killed, TriggerAction::Snapshot(out.clone()), &TriggerOptions::default())?;
    let (healthy, mut dies, ends) = (place.start(TEST), place.start(TEST), place.start(TEST));
    place.until_recorded(&session, 20);
    let _listening = Listening::start(&place.run_dir());
    // Also a process that starts while the listener runs.
    let mut late = place.start(TEST);
    place.until_recorded(&session, 20);
    assert!(ends.end(), "this is no kill");
    dies.kill();
    let state = until(&session, |state| !state.snapshots.is_empty());
    late.kill();
    until(&session, |state| state.snapshots.len() == 2);
    assert_eq!((state.occurred, state.fired, state.failed), (1, 1, 0), "{state:?}");
    let snapshot = &state.snapshots[0].path;
    assert!(snapshot.to_string_lossy().ends_with(&format!("-{}", dies.id())), "{snapshot:?}");
    let of = |pid: u32| {
        let is_its = |path: &&std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{pid}-")))
        };
        traces(snapshot).iter().find(is_its).cloned().ok_or_else(|| format!("no trace of {pid} in {snapshot:?}"))
    };
    let metadata = fs::read_to_string(of(dies.id())?.join("metadata"))?;
    for part in [
        "trigger_condition = \"killed\";".to_owned(),
        "killed_signal = 9;".to_owned(),
        format!("trigger_pid = {};", dies.id()),
    ] {
        assert!(metadata.contains(&part), "{part} is not in {metadata}");
    }
    for pid in [dies.id(), healthy.id()] {
        assert!(view(&[&of(pid)?]).count("traced:tick") >= 20);
    }
    let recorded = || {
        let acks = place.acks(&session);
        acks.iter().find(|ack| ack.process.pid == healthy.id()).map_or(0, |ack| ack.counters.recorded)
    };
    let before = recorded();
    while recorded() <= before {
        sleep(Duration::from_millis(5));
    }
    assert!(healthy.end());
    assert_eq!(snapshots(&out).len(), 2);
    Ok(())
}

/// Ends before the listener started are not occurrences; without a listener, the trigger is not watched.
#[test]
fn what_came_before_the_listener_does_not_count() -> Outcome {
    const TEST: &str = "triggers::watched::what_came_before_the_listener_does_not_count";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let session = flight(&place, "flight");
    trigger_set(&session, TriggerCondition::Killed, TriggerAction::Stop, &TriggerOptions::default())?;
    let (mut before, mut after) = (place.start(TEST), place.start(TEST));
    place.until_recorded(&session, 5);
    let missing = || Watchers::of(&place.run_dir()).missing(&status(&session));
    assert!(missing().is_some_and(|text| text.contains("its condition is noticed by")), "{:?}", missing());
    before.kill();
    let _listening = Listening::start(&place.run_dir());
    assert_eq!(missing(), None);
    after.kill();
    let state = until(&session, |state| state.occurred > 0 && !state.last.is_empty());
    assert_eq!((state.occurred, state.fired), (1, 1), "{state:?}");
    Ok(())
}

#[test]
fn sizes_and_chunks_are_noticed() -> Outcome {
    const TEST: &str = "triggers::watched::sizes_and_chunks_are_noticed";
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let (sized, rotated) = (place.record("sized", &["traced:*"]), place.record("rotated", &["traced:*"]));
    let child = place.start(TEST);
    let options = TriggerOptions::default();
    trigger_set(&sized, TriggerCondition::Size(20_000), TriggerAction::Rotate, &options)?;
    trigger_set(&rotated, TriggerCondition::Rotated, TriggerAction::Stop, &options)?;
    let listening = Listening::start(&place.run_dir());
    let state = until(&sized, |state| state.fired > 0 && !state.last.is_empty());
    assert_eq!((state.last[0].action.as_str(), &state.last[0].error), ("rotate", &None));
    assert!(sized.log()?.contains("rotate"), "{}", sized.log()?);

    place.until_recorded(&rotated, 5);
    assert_eq!(status(&rotated).state.occurred, 0, "nothing has asked for a rotation");
    rotated.rotate()?;
    until(&rotated, |state| state.fired > 0 && !state.last.is_empty());
    assert!(rotated.log()?.contains("stop by trigger"), "{}", rotated.log()?);

    // Both count once: the size for each start, and each chunk once, also for the next listener.
    drop(listening);
    let _listening = Listening::start(&place.run_dir());
    place.until_recorded(&sized, 2000);
    sleep(Duration::from_millis(1500));
    assert_eq!((status(&sized).state.occurred, status(&rotated).state.occurred), (1, 1));
    assert!(child.end());
    Ok(())
}
