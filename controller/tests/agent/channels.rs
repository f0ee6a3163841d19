//! Sessions with several channels in a running process.

use crate::common::{Outcome, assert_balances, ring_files, view};
use crate::traced::{PATIENCE, Place, is_traced, spec, traces};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tracepoint_controller::NamedSession;
use tracepoint_reader::{Item, RecoverySummary, Trace, recover, verify};
use tracepoint_run_dir::{AckState, Counters, RuleAck};
use tracepoint_session::sinks::account::Account;
use tracepoint_session_spec::{ChannelSpec, Rule, SinkSpec, State};

fn rule(event: &str, channel: &str, filter: Option<&str>) -> Rule {
    filter.into_iter().fold(Rule::new(event).channel(channel), Rule::filter)
}

fn flight() -> ChannelSpec {
    let mut flight = ChannelSpec::overwrite(64 << 10).named("flight");
    flight.contexts = vec!["thread_name".to_owned()];
    flight
}

/// Returns how often each event is in each stream class of a trace.
fn decoded(dir: &Path) -> Result<BTreeMap<(u64, String), u64>, Box<dyn std::error::Error>> {
    let mut counts = BTreeMap::new();
    for item in Trace::open(dir)?.items() {
        if let Item::Event(event) = item {
            *counts.entry((event.stream.class.id, event.name().to_owned())).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Returns the current contents of the session's rings and sinks.
fn snapshot(session: &NamedSession<'_>, out: &Path) -> Result<RecoverySummary, Box<dyn std::error::Error>> {
    let taken = recover(&session.path(), out)?;
    assert_eq!(taken.processes.len(), 1, "{taken:?}");
    Ok(taken)
}

#[test]
fn a_flight_recorder_beside_a_channel_with_a_sink() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("channels::a_flight_recorder_beside_a_channel_with_a_sink");
    let mut wanted = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("mixed")).into()]);
    wanted.channels.push(flight());
    let session = place.controller.create("mixed", &wanted)?;
    place.until_recorded(&session, 50);
    session.change("into the other one", |spec| {
        assert_eq!(spec.add_rule(&rule("traced:tock", "flight", None)), Ok(true));
        assert_eq!(spec.add_rule(&rule("traced:tick", "flight", Some("!(n & 3)"))), Ok(true));
        Ok(())
    })?;
    let acks = place.until_recorded(&session, 50);
    assert_eq!((acks[0].state, acks[0].events), (AckState::Recording, 2), "events, and not where they go");
    assert_eq!(acks[0].rules, [1, 1, 1].map(|count| Some(RuleAck::Events(count))));
    assert!(acks[0].counters.filtered > 0, "{:?}", acks[0]);
    assert_eq!(place.on(), ["traced:tick", "traced:tock"]);

    // A snapshot contains the packets that the sink got from one channel, and the rings of both.
    sleep(Duration::from_secs(1));
    let out = place.temp.path().join("snapshot");
    let taken = snapshot(&session, &out)?;
    assert!(taken.processes[0].packets_from_outputs > 0 && taken.processes[0].packets_from_rings > 0, "{taken:?}");
    let counts = decoded(&out)?;
    let keys: Vec<_> = counts.keys().map(|(class, name)| (*class, name.as_str())).collect();
    assert_eq!(keys, [(0, "traced:tick"), (1, "traced:tick"), (1, "traced:tock")], "{counts:?}");
    assert_eq!(view(&[&out]).lines.len() as u64, counts.values().sum::<u64>());
    assert!(verify(&out).is_ok());

    // Removed from one channel, but not from the other.
    session.change("out", |spec| {
        assert_eq!(spec.remove_rule(&rule("traced:tick", "flight", Some("!(n & 3)"))), 1);
        assert_eq!(spec.remove_rule(&rule("traced:tock", "channel0", None)), 0);
        Ok(())
    })?;
    assert_eq!(place.acks(&session)[0].events, 2);
    let removed = session.destroy(PATIENCE, false)?;
    let traces = traces(&place.out("mixed"));
    assert_eq!(traces.len(), 1);
    assert_balances(&traces[0]);
    let account = Account::open(&traces[0])?;
    let recorded: Vec<u64> =
        account.channels.iter().map(|channel| channel.events.iter().map(|event| event.recorded).sum()).collect();
    let ack = &removed.acks[0];
    assert_eq!(recorded.iter().sum::<u64>(), ack.counters.recorded);
    let counters: Vec<_> = ack.channels.iter().map(|(name, counters)| (name.as_str(), counters.recorded)).collect();
    assert_eq!(counters, [("channel0", recorded[0]), ("flight", recorded[1])]);
    assert_eq!(ack.channels.values().map(Counters::total_lost).sum::<u64>(), ack.counters.total_lost());
    let viewed = view(&[&traces[0]]);
    assert!(viewed.count(" traced:tock:") > 0 && viewed.count("procname = ") >= viewed.count(" traced:tock:"));
    assert!(child.end());
    Ok(())
}

#[test]
fn a_snapshot_has_all_channels_without_a_sink() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "channels::a_snapshot_has_all_channels_without_a_sink";
    let mut child = place.start(test);
    let mut wanted = spec(&["traced:tick"], &[]);
    wanted.channel = ChannelSpec::overwrite(1 << 20);
    wanted.channels.push(flight());
    wanted.add_rule(&rule("traced:tock", "flight", None))?;
    let session = place.controller.create("rings", &wanted)?;
    place.until_recorded(&session, 50);
    let out = place.temp.path().join("living");
    snapshot(&session, &out)?;
    assert_eq!(decoded(&out)?.len(), 2);
    child.kill();
    let out = place.temp.path().join("dead");
    assert!(snapshot(&session, &out)?.processes[0].complete);
    assert_balances(&out);
    assert_eq!(decoded(&out)?.keys().map(|(class, _)| *class).collect::<Vec<_>>(), [0, 1]);
    session.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn channels_and_sinks_are_added_and_removed_while_recording() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("channels::channels_and_sinks_are_added_and_removed_while_recording");
    let session = place.record("live", &["traced:tick"]);
    place.until_recorded(&session, 5);
    let late: SinkSpec = SinkSpec::ctf(place.out("late")).into();
    session.change("a channel and a sink more", |spec| {
        spec.channels.push(flight());
        spec.sinks.push(late.clone());
        assert_eq!(spec.add_rule(&rule("traced:tock", "flight", None)), Ok(true));
        Ok(())
    })?;
    let ack = place.until_recorded(&session, 5).remove(0);
    assert_eq!((ack.state, ack.error.as_ref(), ack.events, ack.outputs.len()), (AckState::Recording, None, 2, 2));
    session.change("the first sink and the channel go", |spec| {
        assert_eq!(spec.remove_sink(&SinkSpec::ctf(place.out("live")).into()), 1);
        assert!(spec.remove_channel("flight"));
        Ok(())
    })?;
    let ack = place.until_recorded(&session, 5).remove(0);
    assert_eq!((ack.error.as_ref(), ack.events), (None, 1));
    assert_eq!(place.on(), ["traced:tick"]);
    // It is finished, while the session continues.
    let first = traces(&place.out("live")).remove(0);
    assert_balances(&first);
    let account = Account::open(&first)?;
    assert!(account.complete && account.channels.len() == 2, "{account:#?}");
    let ack = session.destroy(PATIENCE, false)?.acks.remove(0);
    assert_eq!((ack.state, ack.error.as_ref()), (AckState::Ended, None));
    let second = traces(&place.out("late")).remove(0);
    assert_balances(&second);
    let both = [decoded(&first)?, decoded(&second)?].map(|counts| counts.into_keys().collect::<Vec<_>>());
    let all = vec![(0, "traced:tick".to_owned()), (1, "traced:tock".to_owned())];
    assert_eq!(both, [all.clone(), all], "those that the channel held when it was removed, too");
    Ok(())
}

/// With added channels, the packets of a late sink and those in the rings form one trace.
#[test]
fn a_killed_process_whose_session_has_changed_is_recovered() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut child = place.start("channels::a_killed_process_whose_session_has_changed_is_recovered");
    let session = place.record("live", &["traced:tick"]);
    place.until_recorded(&session, 5);
    session.change("more, and less", |spec| {
        spec.channels.push(flight());
        spec.sinks.push(SinkSpec::ctf(place.out("late")).into());
        assert_eq!(spec.add_rule(&rule("traced:tock", "flight", None)), Ok(true));
        Ok(())
    })?;
    place.until_recorded(&session, 50);
    session.change("the first sink goes", |spec| {
        assert_eq!(spec.remove_sink(&SinkSpec::ctf(place.out("live")).into()), 1);
        Ok(())
    })?;
    place.until_recorded(&session, 50);
    child.kill();
    let out = place.temp.path().join("recovered");
    let recovered = recover(&session.path(), &out)?;
    let report = verify(&recovered.processes[0].output)?;
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}\n{recovered:#?}");
    let counts = decoded(&recovered.processes[0].output)?;
    assert_eq!(counts.keys().map(|(class, _)| *class).collect::<Vec<_>>(), [0, 1]);
    session.destroy(PATIENCE, false)?;
    Ok(())
}

/// Only the sink that cannot be created is refused; recording continues.
#[test]
fn a_sink_that_cannot_be_added_is_reported() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("channels::a_sink_that_cannot_be_added_is_reported");
    let session = place.record("live", &["traced:tick"]);
    place.until_recorded(&session, 5);
    let bad: SinkSpec = SinkSpec::text(place.temp.path().join("nowhere/lines.txt")).into();
    session.change("one more", |spec| {
        spec.sinks.push(bad.clone());
        Ok(())
    })?;
    let ack = place.until_recorded(&session, 5).remove(0);
    assert_eq!(ack.state, AckState::Recording);
    assert!(ack.error.as_ref().is_some_and(|error| error.contains("nowhere")), "{ack:?}");
    session.change("away", |spec| {
        assert_eq!(spec.remove_sink(&bad), 1);
        Ok(())
    })?;
    assert_eq!(place.until_recorded(&session, 5).remove(0).error, None);
    session.destroy(PATIENCE, false)?;
    assert_balances(&traces(&place.out("live"))[0]);
    Ok(())
}

/// The cost of an event in all channels counts, and if it is too high the event is disabled in all.
#[test]
fn a_budget_counts_all_channels() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("channels::a_budget_counts_all_channels");
    let mut wanted = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("budget")).into()]);
    wanted.channels.push(flight());
    wanted.add_rule(&rule("traced:*", "flight", None))?;
    wanted.budget = Some(tracepoint_session_spec::BudgetSpec::new(None, Some(4 << 10)));
    let session = place.controller.create("budget", &wanted)?;
    while place.acks(&session)[0].times_over_budget == 0 {
        sleep(Duration::from_millis(20));
    }
    let acks = place.acks(&session);
    assert_eq!(acks[0].over_budget[0].event, "traced:tick", "it is in both, and the more often");
    assert!(!place.on().contains(&"traced:tick".to_owned()));
    session.destroy(PATIENCE, false)?;
    for trace in traces(&place.out("budget")) {
        assert_balances(&trace);
    }
    Ok(())
}

/// A change of a channel's settings is reported, and applies when the session is stopped and started again.
#[test]
fn changed_settings_of_a_channel_apply_to_the_next_recording() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("channels::changed_settings_of_a_channel_apply_to_the_next_recording");
    let mut flight_recorder = spec(&["traced:tick"], &[]);
    flight_recorder.channel = ChannelSpec::overwrite(1 << 20);
    let sessions = [place.record("live", &["traced:tick"]), place.controller.create("flight", &flight_recorder)?];
    for session in &sessions {
        place.until_recorded(session, 5);
        session.change("another size", |spec| {
            (spec.channel.ring_size, spec.channel.packets) = (Some(128 << 10), 4);
            spec.limits.memory = 32 << 20;
            Ok(())
        })?;
        let ack = place.until_recorded(session, 5).remove(0);
        assert_eq!((ack.state, ack.error), (AckState::Recording, None));
        let told = &ack.notices[0];
        let name = session.name();
        assert_eq!((ack.notices.len(), told.kind()), (2, "channel_settings_pending"));
        let limits = &ack.notices[1];
        assert!(
            limits.kind() == "limits_pending" && limits.to_string().starts_with("limits: `memory` changed"),
            "{limits}"
        );
        assert_eq!(
            told.to_string(),
            format!(
                "channel `channel0`: `packets`, `ring_size` changed, which applies to the next recording: `tracectl stop {name}`, \
                 then `tracectl start {name}`"
            )
        );
        for state in [State::Stopped, State::Active] {
            session.change("stop and start", |spec| {
                spec.state = state;
                Ok(())
            })?;
            // Otherwise the agent may see both changes at once, and notice no difference.
            place.acks(session);
        }
        let ack = place.until_recorded(session, 5).remove(0);
        assert_eq!((ack.state, &ack.error, ack.notices.len()), (AckState::Recording, &None, 0), "{ack:?}");
        let rings = ack.rings.ok_or("no directory of rings")?;
        let ring = ring_files(&rings).first().ok_or("no ring")?.metadata()?.len();
        assert!(ring < 1 << 20, "{ring}");
    }
    Ok(())
}
