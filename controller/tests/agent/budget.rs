//! Sessions that cost too much.

use crate::common::{Outcome, again, assert_balances, part, ready, until_ready, view};
use crate::traced::{PATIENCE, Place, spec, traces};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;
use tracepoint_controller::NamedSession;
use tracepoint_run_dir::Ack;
use tracepoint_session::Agent;
use tracepoint_session_spec::{BudgetSpec, Rule, SinkSpec, State};

tracepoint::define_trace! {
    provider = "costly";

    /// Comes as fast as can be.
    #[level(Debug)]
    pub flood(n: u64) { n: u64 = n }

    /// Comes now and then.
    #[level(Info)]
    pub rare(n: u64) { n: u64 = n }
}

/// The part of the process that a test starts. Returns `false` in the test itself.
fn is_costly() -> bool {
    if part() != "costly" {
        return false;
    }
    let _agent = Agent::start().expect("an agent");
    let stop = AtomicBool::new(false);
    scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                tracepoint::trace!(flood(n));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(|| {
            for n in 0.. {
                tracepoint::trace!(rare(n));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
        });
        ready();
        stop.store(true, Ordering::Relaxed);
    });
    true
}

/// Returns the acknowledgement of the process once it has disabled an event this many times.
fn until_over(place: &Place, session: &NamedSession<'_>, times: u64) -> Ack {
    loop {
        let ack = place.acks(session).remove(0);
        if ack.times_over_budget >= times {
            return ack;
        }
        sleep(Duration::from_millis(20));
    }
}

fn a_flood_is_off(test: &str, budget: BudgetSpec, part_of_reason: &str) -> Outcome {
    let place = Place::new();
    let child = until_ready(again(test, "costly").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let mut wanted = spec(&["costly:rare"], &[SinkSpec::ctf(place.out("over")).into()]);
    // Far more events are fired than the budget allows, and few are recorded, because the trace is decoded twice below.
    assert!(wanted.add_rule(&Rule::new("costly:flood").limit("50000/s"))?);
    wanted.budget = Some(budget);
    let session = place.controller.create("over", &wanted)?;
    let ack = until_over(&place, &session, 1);
    assert_eq!((ack.events, ack.over_budget.len()), (1, 1), "{ack:?}");
    assert_eq!(ack.over_budget[0].event, "costly:flood");
    assert!(ack.over_budget[0].reason.contains(part_of_reason), "{}", ack.over_budget[0]);
    assert_eq!(place.on(), ["costly:rare"]);
    assert!(session.log()?.lines().any(|line| line.contains(": budget: costly:flood is off: ")), "{}", session.log()?);

    // Only rare events stay on.
    let before = place.until_recorded(&session, 1).remove(0).counters;
    let ack = place.until_recorded(&session, 20).remove(0);
    assert!(ack.counters.fired - before.fired < 1000, "{before:?} {:?}", ack.counters);
    assert_eq!((ack.times_over_budget, ack.events), (1, 1));

    // An unrelated change leaves it disabled.
    session.change("limits", |spec| {
        spec.limits.keep_dead += 1;
        Ok(())
    })?;
    assert_eq!(place.acks(&session)[0].over_budget.len(), 1);
    session.change("enable", |spec| {
        spec.renew_budget();
        Ok(())
    })?;
    let ack = until_over(&place, &session, 2);
    assert_eq!((ack.events, ack.over_budget.len()), (1, 1), "it floods still");

    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty(), "{removed:?}");
    assert_eq!(removed.acks[0].over_budget[0].event, "costly:flood", "it is reported at the end as well");
    let traces = traces(&place.out("over"));
    assert_eq!(traces.len(), 1);
    assert_balances(&traces[0]);
    let viewed = view(&[&traces[0]]);
    assert!(viewed.count(" costly:rare:") >= 20 && viewed.count(" costly:flood:") > 0);
    assert!(child.end());
    Ok(())
}

#[test]
fn a_flood_of_bytes_is_switched_off() -> Outcome {
    if is_costly() {
        return Ok(());
    }
    let budget = BudgetSpec::new(None, Some(64 << 10));
    a_flood_is_off("budget::a_flood_of_bytes_is_switched_off", budget, "the budget allows 65536")
}

#[test]
fn a_flood_of_events_is_switched_off() -> Outcome {
    if is_costly() {
        return Ok(());
    }
    let budget = BudgetSpec::new(Some("2%".parse()?), None);
    a_flood_is_off("budget::a_flood_of_events_is_switched_off", budget, "the budget allows 2 %")
}

/// Also without a sink: the bytes written to the rings count.
#[test]
fn a_flight_recorder_has_a_budget() -> Outcome {
    if is_costly() {
        return Ok(());
    }
    let place = Place::new();
    let test = "budget::a_flight_recorder_has_a_budget";
    let child = until_ready(again(test, "costly").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let mut wanted = spec(&["costly:*"], &[]);
    "overwrite".clone_into(&mut wanted.channel.policy);
    wanted.budget = Some(BudgetSpec::new(None, Some(64 << 10)));
    let session = place.controller.create("over", &wanted)?;
    assert_eq!(until_over(&place, &session, 1).over_budget[0].event, "costly:flood");
    // A restarted session begins anew, and floods again.
    for (state, times) in [(State::Stopped, 1), (State::Active, 2)] {
        session.change("state", |spec| {
            spec.state = state;
            Ok(())
        })?;
        // The switched-off event is reported while the session is stopped, too.
        assert_eq!(until_over(&place, &session, times).over_budget.len(), 1);
    }
    session.destroy(PATIENCE, true)?;
    assert!(child.end());
    Ok(())
}
