//! Rules that compute statistics in remotely controlled sessions: exact, released, and readable after the process was killed.

use crate::common::{
    Other, Outcome, again, again_mounted, exit_status, fill_up, memory_place, names, part, until_ready,
};
use crate::traced::{PATIENCE, Place};
use std::env;
use std::fs::{self, File};
use std::io::stdin;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;
use tracepoint_controller::NamedSession;
use tracepoint_probes::snapshot::{Distribution, Results};
use tracepoint_run_dir::{Ack, AckState, RuleAck, TriggerAck};
use tracepoint_session::Agent;
use tracepoint_session_io::statistics::StatisticResult;
use tracepoint_session_spec::{Rule, SessionSpec, SinkSpec, State, TriggerAction, TriggerCondition};

tracepoint::define_trace! {
    provider = "shop";

    pub asked(id: u64) { id: u64 = id }
    pub answered(id: u64, path: &str, size: u64) { id: u64 = id, path: str = path, size: u64 = size }
    pub other(id: u64) { id: u64 = id }
}

/// The variable with the path of the file to which a process writes how many events it has fired.
const ACCOUNT: &str = "TEST_ACCOUNT";

fn fire(id: u64) {
    tracepoint::trace!(asked(id));
    tracepoint::trace!(answered(id, if id.is_multiple_of(4) { "/cart" } else { "/" }, id));
    tracepoint::trace!(other(id));
}

/// The part of the process that a test starts: fires the number of events in each line, `forever`, or in a forked child. Returns `false` in
/// the test itself.
fn is_shop() -> bool {
    if part() != "shop" {
        return false;
    }
    let agent = Agent::start().expect("an agent");
    println!("ready");
    for line in stdin().lines().map_while(Result::ok) {
        match line.strip_prefix("child ").map_or_else(|| line.parse(), str::parse) {
            // SAFETY: the child traces and ends.
            Ok(count) if line.starts_with("child") => match unsafe { libc::fork() } {
                0 => {
                    (0..count).for_each(fire);
                    // SAFETY: takes a plain number, and ends the process.
                    unsafe { libc::_exit(0) };
                }
                child => assert_eq!(exit_status(child), Some(0)),
            },
            Ok(count) => (0..count).for_each(fire),
            Err(_) => {
                let account = File::create(env::var(ACCOUNT).expect("a file")).expect("a file");
                for id in 1_u64.. {
                    tracepoint::trace!(other(id));
                    account.write_all_at(&id.to_le_bytes(), 0).expect("it is written");
                }
            }
        }
        println!("done");
    }
    drop(agent);
    true
}

fn start(place: &Place, test: &str) -> Other {
    let account = place.temp.path().join("account");
    until_ready(again(test, "shop").env("TRACEPOINT_RUN_DIR", place.run_dir()).env(ACCOUNT, account))
}

fn spec(rules: &[Rule]) -> SessionSpec {
    let mut spec = SessionSpec::new();
    spec.state = State::Active;
    for rule in rules {
        spec.add_rule(rule).expect("a rule");
    }
    spec
}

fn until_done(shop: &mut Other, line: &str) -> Outcome {
    shop.say(line)?;
    assert!(shop.says("done"));
    Ok(())
}

fn find<'a>(results: &'a [StatisticResult], statistic: &str, event: &str) -> &'a Results {
    let found = results.iter().find(|result| result.snapshot.statistic == statistic && result.event == event);
    &found.unwrap_or_else(|| panic!("{statistic} of {event} in {results:?}")).snapshot.results
}

fn count(results: &[StatisticResult], statistic: &str, event: &str) -> u64 {
    match find(results, statistic, event) {
        Results::Count(rows) => rows.values().sum(),
        other => panic!("{other:?}"),
    }
}

fn files(session: &NamedSession<'_>) -> Vec<String> {
    let dir = session.path().join("statistics");
    if dir.exists() { names(&dir) } else { Vec::new() }
}

fn only(acks: Vec<Ack>) -> Ack {
    let [ack] = <[Ack; 1]>::try_from(acks).expect("one process");
    ack
}

#[test]
fn rules_compute_what_their_events_say() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let test = "statistics::rules_compute_what_their_events_say";
    let mut shops = [start(&place, test), start(&place, test)];
    let rules = [
        Rule::new("shop:*").statistic("count"),
        Rule::new("shop:*").statistic("hist(size) by path"),
        Rule::new("shop:answered").statistic("count by path").filter("size >= 8"),
        Rule::new("shop:*").statistic("latency(shop:asked, shop:answered by id)"),
        Rule::new("!shop:other"),
    ];
    let session = place.controller.create("numbers", &spec(&rules))?;
    for ack in place.acks(&session) {
        assert_eq!((ack.state, ack.statistics, ack.events, ack.ring_memory), (AckState::Recording, 5, 0, 0), "{ack:?}");
        assert!(ack.rings.is_none() && ack.error.is_none() && ack.statistic_memory > 15_000, "{ack:?}");
        let applies: Vec<_> = ack.rules.into_iter().flatten().collect();
        assert_eq!(applies, [3, 1, 1, 2, 1].map(RuleAck::Events));
    }
    assert!(!session.path().join("rings").exists(), "nothing is recorded");
    for shop in &mut shops {
        until_done(shop, "16")?;
    }
    let results = session.statistics()?;
    assert!(results.unreadable.is_empty() && results.processes.iter().all(|process| process.is_alive), "{results:?}");
    assert_eq!(results.processes.len(), 2);
    let merged = results.merged();
    assert_eq!(merged.len(), 5);
    assert_eq!((count(&merged, "count", "shop:asked"), count(&merged, "count", "shop:answered")), (32, 32));
    assert_eq!(count(&merged, "count by path", "shop:answered"), 16);
    let Results::Histogram(sizes) = find(&merged, "hist(size) by path", "shop:answered") else { panic!("{merged:?}") };
    let cart = sizes.groups.iter().find(|row| row.keys[0].to_string() == "/cart").expect("a group");
    assert_eq!((cart.value.count(), cart.value.max(), sizes.events), (8, Some(12.0), 32));
    let latency = "latency(shop:asked, shop:answered by id)";
    let Results::Latency { durations, operations } = find(&merged, latency, "shop:answered") else {
        panic!("{merged:?}")
    };
    let measured = durations.all.as_ref().map(Distribution::count);
    assert_eq!((measured, operations.begun, operations.in_flight, operations.unmatched), (Some(32), 32, 0, 0));
    // A change of the rules: remaining statistics continue, removed ones end, added ones begin.
    session.change("change", |spec| {
        assert_eq!(spec.disable(&Rule::new("shop:*").statistic("count")), 1);
        spec.enable(&Rule::new("shop:asked").statistic("top(id, 3)")).expect("a rule");
        Ok(())
    })?;
    place.acks(&session);
    until_done(&mut shops[0], "16")?;
    let merged = session.statistics()?.merged();
    assert_eq!((merged.len(), count(&merged, "count by path", "shop:answered")), (4, 16 + 8));
    assert!(matches!(find(&merged, "top(id, 3)", "shop:asked"), Results::Top { values } if values.len() == 3));
    Ok(())
}

#[test]
fn the_numbers_of_a_killed_process_are_those_of_its_events() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let test = "statistics::the_numbers_of_a_killed_process_are_those_of_its_events";
    let (mut killed, mut ended) = (start(&place, test), start(&place, test));
    let latency = "latency(shop:other, shop:other by id)";
    let rules = ["count", "hist(id)", "rate", latency].map(|statistic| Rule::new("shop:other").statistic(statistic));
    let session = place.controller.create("numbers", &spec(&rules))?;
    assert!(place.acks(&session).iter().all(|ack| ack.statistics == 4));
    until_done(&mut ended, "100")?;
    assert!(ended.end());
    killed.say("forever")?;
    let account = place.temp.path().join("account");
    let fired = || fs::read(&account).ok()?.try_into().ok().map(u64::from_le_bytes);
    while fired().is_none_or(|fired| fired < 5000) {
        sleep(Duration::from_millis(1));
    }
    killed.kill();
    let fired = fired().expect("a number");
    let results = session.statistics()?;
    assert!(results.processes.len() == 2 && results.processes.iter().all(|process| !process.is_alive), "{results:?}");
    let process = results.processes.iter().find(|process| process.process.pid == killed.id()).expect("the process");
    let numbers = process.statistics.iter().map(|result| match &result.snapshot.results {
        Results::Count(rows) => rows.values().sum(),
        Results::Histogram(rows) => rows.values().map(Distribution::count).sum(),
        Results::Rate(rate) => rate.events,
        Results::Latency { operations, .. } => {
            let known = operations.in_flight + operations.no_room;
            assert!((known..=known + 1).contains(&operations.begun), "{operations:?}");
            operations.begun
        }
        other => panic!("{other:?}"),
    });
    let numbers: Vec<u64> = numbers.collect();
    // It may have been killed between the event and its account, or between two statistics.
    assert!(
        numbers.len() == 4 && numbers.iter().all(|number| (fired..=fired + 1).contains(number)),
        "{numbers:?} {fired}"
    );
    let sum = count(&results.merged(), "count", "shop:other");
    assert!((fired + 100..=fired + 101).contains(&sum), "those of the other process as well: {sum}");
    session.destroy(PATIENCE, false)?;
    assert!(!session.path().exists());
    Ok(())
}

#[test]
fn stopping_keeps_the_numbers_and_starting_begins_anew() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let mut shop = start(&place, "statistics::stopping_keeps_the_numbers_and_starting_begins_anew");
    // With an output, and an event that is both recorded and counted.
    let mut spec =
        spec(&[Rule::new("shop:asked").statistic("count").record(), Rule::new("shop:other").statistic("sample(1/10)")]);
    spec.sinks = vec![SinkSpec::ctf(place.out("numbers")).into()];
    let session = place.controller.create("numbers", &spec)?;
    place.acks(&session);
    until_done(&mut shop, "100")?;
    let ack = only(place.acks(&session));
    assert_eq!((ack.events, ack.statistics), (2, 1));
    assert_eq!((ack.counters.recorded, ack.counters.suppressed), (100 + 10, 90), "{ack:?}");
    let change = |state| {
        session.change("state", |spec| {
            spec.state = state;
            Ok(())
        })
    };
    change(State::Stopped)?;
    assert_eq!(only(place.acks(&session)).statistic_memory, 0);
    until_done(&mut shop, "7")?;
    assert_eq!(count(&session.statistics()?.merged(), "count", "shop:asked"), 100);
    change(State::Active)?;
    assert_eq!(only(place.acks(&session)).statistics, 1);
    until_done(&mut shop, "5")?;
    assert_eq!(count(&session.statistics()?.merged(), "count", "shop:asked"), 5);
    assert_eq!(files(&session).len(), 2);
    session.destroy(PATIENCE, false)?;
    assert!(!session.path().exists() && place.on().is_empty());
    Ok(())
}

#[test]
fn forked_children_are_not_counted() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let mut shop = start(&place, "statistics::forked_children_are_not_counted");
    let rules = ["count", "top(id)"].map(|statistic| Rule::new("shop:other").statistic(statistic));
    let session = place.controller.create("numbers", &spec(&rules))?;
    place.acks(&session);
    until_done(&mut shop, "10")?;
    until_done(&mut shop, "child 1000")?;
    until_done(&mut shop, "10")?;
    assert_eq!(count(&session.statistics()?.merged(), "count", "shop:other"), 20);
    Ok(())
}

#[test]
fn what_cannot_be_computed_is_told() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let mut shop = start(&place, "statistics::what_cannot_be_computed_is_told");
    let mut spec = spec(&[
        Rule::new("shop:*").statistic("hist(sise)"),
        Rule::new("shop:answered").statistic("hist(path)"),
        Rule::new("shop:*").statistic("latency(shop:asked, shop:answered by id)").filter("size > 1"),
        Rule::new("shop:*").statistic("count").filter("sise > 1"),
        Rule::new("shop:*").statistic("latency(shop:asked, shop:none by id)"),
        Rule::new("shop:other").statistic("count"),
    ]);
    spec.limits.memory = 4 << 20;
    let session = place.controller.create("numbers", &spec)?;
    let ack = only(place.acks(&session));
    let told: Vec<_> = ack.rules.iter().map(|rule| format!("{rule:?}")).collect();
    for (told, part) in told.iter().zip([
        "no selected event has a field `sise`; did you mean size?",
        "the field `path` of shop:answered is not a number",
        "must fit both of its events",
        "sise",
        "Events(0)",
        "Events(1)",
    ]) {
        assert!(told.contains(part), "{told}: {part}");
    }
    until_done(&mut shop, "3")?;
    assert_eq!(count(&session.statistics()?.merged(), "count", "shop:other"), 3);
    // More than a quarter of the session's memory: an error of that rule only.
    session.change("too much", |spec| {
        spec.add_rule(&Rule::new("shop:*").statistic("last(id, 4000)")).expect("a rule");
        spec.add_rule(&Rule::new("shop:asked").statistic("count")).expect("a rule");
        Ok(())
    })?;
    let ack = only(place.acks(&session));
    assert_eq!(ack.statistics, 2, "{ack:?}");
    let error = ack.error.unwrap_or_default();
    assert!(
        error.contains("`last(id, 4000)` of `shop:*` ")
            && error.contains("is not computed: the statistics of this process take"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_full_run_directory_leaves_the_program_alone() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let test = "statistics::a_full_run_directory_leaves_the_program_alone";
    let Some(mounted) = part().strip_prefix("at ").map(PathBuf::from) else {
        let place = memory_place();
        let part = format!("at {}", place.path().display());
        let test = again_mounted(test, &part, place.path(), "16m");
        assert!(test.is_none_or(|mut test| test.status().is_ok_and(|status| status.success())));
        return Ok(());
    };
    let place = Place::at(tempfile::tempdir_in(mounted)?);
    let mut shop = start(&place, test);
    let session = place.controller.create("numbers", &spec(&[Rule::new("shop:other").statistic("count")]))?;
    place.acks(&session);
    let ballast = fill_up(place.temp.path())?;
    let more = place.controller.create("more", &spec(&[Rule::new("shop:*").statistic("hist(id)")]));
    drop(ballast);
    if let Ok(more) = more {
        let ack = only(place.acks(&more));
        assert!(ack.statistics > 0 || ack.error.is_some(), "{ack:?}");
    }
    until_done(&mut shop, "10")?;
    assert_eq!(count(&session.statistics()?.merged(), "count", "shop:other"), 10);
    Ok(())
}

/// A statistic that crosses a limit stops a session that records nothing.
#[test]
fn a_statistic_over_its_limit_is_a_condition() -> Outcome {
    if is_shop() {
        return Ok(());
    }
    let place = Place::new();
    let mut shop = start(&place, "statistics::a_statistic_over_its_limit_is_a_condition");
    let mut spec = spec(&[Rule::new("shop:answered").statistic("hist(size) by path")]);
    spec.trigger(TriggerCondition::Statistic("max of hist(size) by path > 500".parse()?), TriggerAction::Stop)?;
    spec.trigger(TriggerCondition::Statistic("rate of count > 1".parse()?), TriggerAction::Stop)?;
    let session = place.controller.create("numbers", &spec)?;
    let ack = only(place.acks(&session));
    assert_eq!((&ack.triggers["t1"], &ack.triggers["t2"]), (&TriggerAck::Events(1), &TriggerAck::Events(0)));
    let state = || session.spec().map(|spec| spec.state);
    let mut times = 0;
    while state()? == State::Active {
        // Below the limit twice, then above it.
        until_done(&mut shop, if times < 2 { "400" } else { "1000" })?;
        times += 1;
        sleep(Duration::from_millis(100));
    }
    assert!(times > 2, "{times}");
    let triggers = session.triggers()?;
    let occurred: Vec<_> = triggers.iter().map(|trigger| trigger.state.occurred).collect();
    assert!(occurred[0] > 0 && occurred[1] == 0, "{triggers:?}");
    Ok(())
}
