//! Sessions that change while they run: rules, filters, channels and sinks are added and removed, and every trace balances.

use crate::common::{Outcome, assert_balances, memory_place, place, process_dirs, view};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint::context::Context;
use tracepoint_reader::Metadata;
use tracepoint_run_dir::Notice;
use tracepoint_session::sinks::account::Account;
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError};
use tracepoint_session_spec::{BudgetSpec, Rule, SinkSpec};

tracepoint::define_trace! {
    provider = "changing";
    pub step(n: u64) { n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn builder(rings: &Path) -> SessionBuilder {
    Session::builder("changing").dir(rings).channel(Channel::discard(64 << 10).spares(2))
}

fn fire(numbers: std::ops::Range<u64>) {
    for n in numbers {
        trace_step(n);
        trace_other(n);
    }
}

fn on() -> Vec<String> {
    tracepoint::runtime::markers().filter(|marker| marker.is_on()).map(tracepoint::Marker::full_name).collect()
}

/// Returns the number of events of each name in a trace.
fn counts(dir: &Path) -> (usize, usize) {
    let viewed = view(&[dir]);
    (viewed.count("changing:step"), viewed.count("changing:other"))
}

#[test]
fn rules_are_added_and_removed_while_recording() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = place.path().join("trace");
    let session = builder(&rings.path().join("rings")).sink(CtfSink::create(&dir)?).start()?;
    assert_eq!(session.notices(), [Notice::NoRule]);
    fire(0..10);
    session.enable("changing:step")?;
    fire(0..10);
    session.enable("changing:other")?;
    session.disable("changing:step")?;
    assert_eq!(on(), ["changing:other"]);
    fire(0..10);
    // Another filter for the same events.
    session.enable(Rule::new("changing:other").filter("n > 7"))?;
    fire(0..10);
    session.enable(Rule::new("changing:other").limit("1/h"))?;
    fire(0..10);
    session.enable("!*:other")?;
    assert!(on().is_empty());
    let rules: Vec<_> = session.spec().rules().flatten().map(ToString::to_string).collect();
    assert_eq!(rules, ["`changing:other` --limit '1/h'", "`!*:other`"]);

    let message = session.enable("changing:stepp").expect_err("no such event").to_string();
    assert_eq!(message, "no event matches `changing:stepp`; did you mean changing:step?");
    let message = session.enable(Rule::new("changing:step").filter("m == 1")).expect_err("no such field").to_string();
    assert!(
        message.starts_with("rule `changing:step`: the filter cannot be used: no field is called `m`"),
        "{message}"
    );
    let message = session.disable("changing:step").expect_err("no such rule").to_string();
    assert!(
        message.starts_with("the session has no rule `changing:step`; it has `changing:other` --limit"),
        "{message}"
    );
    let message = session.disable(Rule::new("changing:other").level("loud")).expect_err("no such level").to_string();
    assert!(message.starts_with("rule `changing:other`: the level `loud` cannot be used"), "{message}");
    assert!(on().is_empty(), "nothing has changed");
    let summary = session.stop()?;
    let event = |name: &str| summary.events().iter().find(|event| event.name == name).cloned().unwrap_or_default();
    assert_eq!((event("changing:step").fired, event("changing:step").recorded), (10, 10));
    let other = event("changing:other");
    assert_eq!((other.fired, other.recorded, other.filtered, other.suppressed), (30, 13, 8, 9));
    assert_balances(&dir);
    assert_eq!(counts(&dir), (10, 13));
    Ok(())
}

/// The rule also records, and its event was enabled before the statistic failed.
#[test]
fn a_rule_whose_statistic_finds_no_memory_changes_nothing() -> Outcome {
    own_process!();
    let channel = Channel::overwrite(16 << 10).at_first(1);
    let builder = Session::builder("undone").events("changing:step").channel(channel);
    let session = builder.memory(256 << 10).in_memory().start()?;
    let rule = Rule::new("changing:other").statistic("hist(n) by n").record();
    let error = session.enable(rule).expect_err("there is no memory").to_string();
    assert!(error.contains("is not computed: the statistics of this process take 0 bytes"), "{error}");
    assert_eq!((on(), session.spec().rules().count()), (vec!["changing:step".to_owned()], 1));
    session.stop()?;
    Ok(())
}

/// One statistic is computed already when there is no memory for the other.
#[test]
fn a_start_that_fails_leaves_no_files_of_statistics() -> Outcome {
    own_process!();
    let rings = memory_place();
    let channel = Channel::overwrite(16 << 10).at_first(1);
    let builder = Session::builder("unstarted").channel(channel).memory(256 << 10).dir(rings.path());
    let builder = builder.events(Rule::new("changing:step").statistic("count").record());
    let error = builder.events(Rule::new("changing:other").statistic("hist(n) by n").record()).start();
    let error = error.expect_err("there is no memory").to_string();
    assert!(error.contains("is not computed"), "{error}");
    // The directory is removed with its last file.
    let left = std::fs::read_dir(rings.path().join("statistics")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files of statistics");
    Ok(())
}

#[test]
fn sinks_are_added_and_removed_while_recording() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = |name: &str| place.path().join(name);
    let session =
        builder(&rings.path().join("rings")).events("changing:*").sink(CtfSink::create(dir("all"))?).start()?;
    fire(0..100);
    let late = session.add_sink(CtfSink::create(dir("late"))?)?;
    let newest = session.add_sink(DtSink::create(dir("late.dt"), 100)?)?;
    let described = session.add_sink(SinkSpec::ctf(dir("described")).max_size(1 << 20))?;
    assert_eq!(session.sinks().len(), 4);
    fire(0..10);
    let report = session.remove_sink(late)?;
    assert_eq!((report.refused, report.error.is_none()), (0, true), "{report:?}");
    fire(0..1000);
    assert!(session.remove_sink(newest)?.error.is_none());
    assert!(matches!(session.remove_sink(late), Err(SessionError::NoSuchSink { .. })));
    let spec = session.spec();
    let kinds: Vec<_> = spec.sinks.iter().map(SinkSpec::kind).collect();
    assert_eq!(kinds, ["object", "ctf"]);
    assert!(spec.to_toml().is_err_and(|error| error.to_string().contains("is an object of a program")));
    session.stop()?;
    let _ = described;
    let made = std::fs::read_dir(dir("described"))?.next().ok_or("nothing was made")??.path();
    for trace in [dir("all"), dir("late"), dir("late.dt"), made.clone()] {
        assert_balances(&trace);
    }
    assert_eq!((counts(&dir("all")), counts(&made)), ((1110, 1110), (1010 + held(&made), 1010 + held(&made))));
    let (steps, others) = counts(&dir("late"));
    // The packets that were still in the rings when it was added are included.
    assert!((10..=110).contains(&steps) && (10..=110).contains(&others), "{steps} {others}");
    Ok(())
}

/// Recovery finds packets there that are no longer in the rings.
#[test]
fn the_list_of_outputs_follows_the_sinks() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let (dir, own) = (|name: &str| place.path().join(name), rings.path().join("rings"));
    let listed = || std::fs::read_to_string(process_dirs(&own).remove(0).join("outputs"));
    let line = |path: &Path| format!("ctf {}\n", path.display());
    let session = builder(&own).events("changing:*").sink(CtfSink::create(dir("first"))?).start()?;
    let first = session.sinks()[0].0;
    assert_eq!(listed()?, line(&dir("first")));
    let second = session.add_sink(CtfSink::create(dir("second"))?)?;
    assert_eq!(listed()?, line(&dir("first")) + &line(&dir("second")));
    session.add_sink(TextSink::new(Vec::new()))?;
    session.remove_sink(first)?;
    assert_eq!(listed()?, line(&dir("second")), "the text is no trace");
    session.add_sink(SinkSpec::ctf(file_in_the_way(&dir("file"))?)).expect_err("no directory");
    assert_eq!(listed()?, line(&dir("second")));
    session.remove_sink(second)?;
    assert_eq!(listed()?, "");
    session.stop()?;
    Ok(())
}

/// Returns a path below a file, where nothing can be created.
fn file_in_the_way(file: &Path) -> std::io::Result<std::path::PathBuf> {
    std::fs::write(file, "")?;
    Ok(file.join("below"))
}

/// Returns the number of events of each kind that were recorded before a sink was added, and still in the rings then.
fn held(dir: &Path) -> usize {
    counts(dir).0.saturating_sub(1010)
}

#[test]
fn a_flight_recorder_gets_a_sink_and_loses_it() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = place.path().join("trace");
    let session = Session::builder("flight")
        .events("changing:*")
        .dir(rings.path().join("rings"))
        .channel(Channel::overwrite(64 << 10).spares(2))
        .start()?;
    assert!(session.sinks().is_empty() && session.spec().sinks.is_empty());
    fire(0..10);
    let text = session.add_sink(TextSink::new(Vec::new()))?;
    session.remove_sink(text)?;
    session.add_sink(CtfSink::create(&dir)?)?;
    fire(0..10);
    let summary = session.stop()?;
    assert_eq!(summary.accounts.len(), 1);
    assert_balances(&dir);
    assert_eq!(counts(&dir), (20, 20), "what is in the rings at the end");
    // Without its sinks, the fired and recorded events are still counted, and its rings are released.
    let own = rings.path().join("again");
    let flight =
        Session::builder("flight").events("changing:*").dir(&own).channel(Channel::overwrite(64 << 10).spares(2));
    let session = flight.sink(TextSink::new(Vec::new())).start()?;
    let text = session.add_sink(TextSink::new(Vec::new()))?;
    fire(0..10);
    session.remove_sink(text)?;
    session.remove_sink(session.sinks()[0].0)?;
    assert!(session.sinks().is_empty());
    fire(0..10);
    assert_eq!(process_dirs(&own).len(), 1);
    let summary = session.stop()?;
    assert_eq!(summary.accounts.len(), 1);
    assert!(summary.account().is_some_and(|account| account.complete));
    assert!(summary.events().iter().all(|event| (event.fired, event.recorded) == (20, 20)), "{:?}", summary.events());
    assert_eq!(summary.bytes, 0, "no sink took anything");
    assert!(process_dirs(&own).is_empty());
    // A drained session needs a sink.
    let session = builder(&rings.path().join("other")).events("changing:*").sink(TextSink::new(Vec::new())).start()?;
    let message = session.remove_sink(session.sinks()[0].0).expect_err("the last one").to_string();
    assert!(message.contains("channel `channel0`: without a sink"), "{message}");
    session.stop()?;
    Ok(())
}

#[test]
fn channels_are_added_and_removed_while_recording() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let (dir, late) = (place.path().join("trace"), place.path().join("late"));
    let session = builder(&rings.path().join("rings"))
        .events("changing:step")
        .sink(CtfSink::create(&dir)?)
        .sink(TextSink::new(Vec::new()))
        .start()?;
    fire(0..10);
    session.add_channel(Channel::overwrite(64 << 10).spares(2).name("flight"))?;
    session.enable(Rule::new("changing:*").channel("flight"))?;
    fire(0..10);
    let message = session.add_channel(Channel::discard(64 << 10).name("flight")).expect_err("there is one").to_string();
    assert!(message.contains("two channels are called `flight`"), "{message}");
    session.add_sink(CtfSink::create(&late)?)?;
    session.remove_channel("flight")?;
    assert_eq!(on(), ["changing:step"]);
    assert_eq!(session.spec().rules().count(), 1);
    fire(0..10);
    let message = session.remove_channel("channel0").expect_err("the default one").to_string();
    assert!(message.contains("no channel `channel0`; it has none but the default one"), "{message}");
    let again = session.add_channel(Channel::discard(64 << 10).name("flight"));
    assert!(matches!(again, Err(SessionError::ChannelNameUsed { .. })), "its streams' files are called so");
    session.add_channel(Channel::discard(64 << 10).spares(2).name("further"))?;
    session.enable(Rule::new("changing:other").channel("further"))?;
    fire(0..10);
    let last = place.path().join("last");
    session.add_sink(CtfSink::create(&last)?)?;
    fire(0..10);
    let summary = session.stop()?;
    let account = summary.account().ok_or("no account")?;
    let of = |name: &str| account.channels.iter().find(|channel| channel.name == name).cloned().unwrap_or_default();
    let recorded = |name: &str| of(name).events.iter().map(|event| event.recorded).sum::<u64>();
    assert_eq!((recorded("channel0"), recorded("flight"), recorded("further")), (50, 20, 20));
    for trace in [&dir, &late, &last] {
        assert_balances(trace);
    }
    assert_eq!(counts(&dir), (60, 30));
    let names: Vec<_> = Account::open(&last)?.channels.into_iter().map(|channel| channel.name).collect();
    assert_eq!(names, ["channel0", "flight", "further"], "all that the trace has had");
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
    Ok(())
}

/// Returns the mapped code in the metadata of a trace.
fn modules(dir: &Path) -> Result<Vec<String>, tracepoint_reader::ReadError> {
    let metadata = Metadata::open(&dir.join("metadata"))?;
    Ok(metadata.modules().map(str::to_owned).collect())
}

#[test]
fn a_channel_with_call_stacks_that_is_added_later_has_modules() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let (dir, late, rings) = (place.path().join("trace"), place.path().join("late"), rings.path().join("rings"));
    let session = builder(&rings).events("changing:step").sink(CtfSink::create(&dir)?).start()?;
    session.add_channel(Channel::discard(64 << 10).spares(2).name("plain"))?;
    assert!(modules(&dir)?.is_empty(), "no channel needs them");
    let stacks = || Channel::discard(64 << 10).spares(2).context(Context::CallStack);
    session.add_channel(stacks().name("stacks"))?;
    let known = modules(&dir)?;
    let program = std::env::current_exe()?;
    assert_eq!(known.iter().filter(|module| module.ends_with(&program.display().to_string())).count(), 1, "{known:?}");
    let of_rings = process_dirs(&rings);
    assert_eq!(modules(of_rings.first().ok_or("no rings")?)?, known, "for recovery, too");
    session.add_channel(stacks().name("again"))?;
    session.add_sink(CtfSink::create(&late)?)?;
    session.enable(Rule::new("changing:other").channel("stacks"))?;
    // Babeltrace 2 aborts on a channel with call stacks that has no event.
    session.enable(Rule::new("changing:step").channel("again"))?;
    fire(0..10);
    session.stop()?;
    for trace in [&dir, &late] {
        assert_eq!(modules(trace)?, known, "each once");
        assert_eq!(counts(trace), (20, 10));
        assert_balances(trace);
    }
    Ok(())
}

#[test]
fn channels_and_sinks_that_cannot_be_added_are_errors() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let file = place.path().join("a.dt");
    let session =
        builder(&rings.path().join("rings")).events("changing:step").sink(DtSink::create(&file, 8)?).start()?;
    let message = session.add_channel(Channel::discard(1 << 20).name("more")).expect_err("its slots").to_string();
    assert!(
        message.contains("does not take the packets of up to 131072 bytes of a channel that is added"),
        "{message}"
    );
    session.add_channel(Channel::discard(64 << 10).name("more"))?;
    session.enable(Rule::new("changing:other").channel("more"))?;
    fire(0..10);
    let message = session.add_sink(SinkSpec::dt("relative.dt")).expect_err("no absolute path").to_string();
    assert!(message.contains("must be absolute"), "{message}");
    let message = session.add_sink(SinkSpec::ctf(file.join("below"))).expect_err("no directory").to_string();
    assert!(message.contains("a.dt"), "{message}");
    assert_eq!(session.sinks().len(), 1);
    session.stop()?;
    assert_balances(&file);
    Ok(())
}

/// As in a remotely controlled session.
#[test]
fn the_budget_of_a_session_in_code_switches_events_off() -> Outcome {
    own_process!();
    let rings = memory_place();
    let session = builder(&rings.path().join("rings"))
        .events("changing:*")
        .budget(BudgetSpec::new(None, Some(10 << 10)))
        .sink(TextSink::new(Vec::new()))
        .start()?;
    let began = Instant::now();
    while on().len() == 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing is switched off");
        (0..100).for_each(trace_step);
        trace_other(0);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(on(), ["changing:other"]);
    while !session.notices().iter().any(|notice| matches!(notice, Notice::OverBudget { .. })) {
        thread::yield_now();
    }
    // The next rule enables the event again that the budget has disabled.
    session.enable("changing:step")?;
    assert_eq!(on().len(), 2);
    session.stop()?;
    Ok(())
}
