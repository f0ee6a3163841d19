//! Sessions with several channels: the assignment of events, the policies, and the balance of the whole trace.

use crate::common::{
    Outcome, again, assert_balances, memory_place, names, part, place, process_dirs, ready, until_ready, view,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use tracepoint::context::Context;
use tracepoint_reader::{Item, Trace, recover, verify};
use tracepoint_session::sinks::account::{Account, ChannelAccount, EventAccount, Policy};
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder, state_dump};
use tracepoint_session_spec::Rule;

tracepoint::define_trace! {
    provider = "routed";

    /// Rare, and worth a disk.
    pub order(n: u64) { n: u64 = n }

    /// A flood, of which the newest is enough.
    pub step(n: u64) { n: u64 = n }

    /// Both.
    pub both(n: u64) { n: u64 = n }
}

const STEPS: u64 = 5000;

fn channel<'a>(account: &'a Account, name: &str) -> &'a ChannelAccount {
    let found = account.channels.iter().find(|channel| channel.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in {account:#?}"))
}

fn event<'a>(account: &'a Account, of: &str, name: &str) -> &'a EventAccount {
    let found = channel(account, of).events.iter().find(|event| event.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in {of}: {account:#?}"))
}

fn event_names(account: &Account, of: &str) -> Vec<String> {
    channel(account, of).events.iter().map(|event| event.name.clone()).collect()
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

/// A drained channel, and a small flight recorder in addition.
fn builder(dir: &Path) -> SessionBuilder {
    Session::builder("routed")
        .dir(dir)
        .channel(Channel::discard(256 << 10).spares(2))
        .events("routed:order")
        .events("routed:both")
        .channel(Channel::overwrite(8 << 10).packets(4).spares(2).context(Context::Thread).name("flight"))
        .events(Rule::new("routed:step").channel("flight"))
        .events(Rule::new("routed:both").channel("flight").filter("!(n & 1)"))
}

fn fire() {
    for n in 0..STEPS {
        trace_step(n);
        if n % 100 == 0 {
            trace_order(n);
            trace_both(n / 100);
        }
    }
}

#[test]
fn each_event_is_in_the_stream_of_its_channel() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = place.path().join("trace");
    let dt = place.path().join("trace.dt");
    let session = builder(&rings.path().join("rings"))
        .sink(CtfSink::create(&dir)?)
        .sink(DtSink::create(&dt, 1000)?)
        .sink(TextSink::new(Vec::new()))
        .start()?;
    fire();
    thread::spawn(fire).join().expect("well");
    assert_eq!(session.status().events().iter().map(|event| event.fired).sum::<u64>(), 2 * (STEPS + 150));
    let summary = session.stop()?;
    assert_eq!(summary.events().len(), 4, "channel by channel: {:?}", summary.events());
    let account = summary.account().ok_or("no account")?;
    assert_eq!(event_names(account, "channel0"), ["routed:both", "routed:order"]);
    assert_eq!(event_names(account, "flight"), ["routed:both", "routed:step"]);
    assert_eq!(
        (channel(account, "channel0").policy, channel(account, "flight").policy),
        (Policy::Discard, Policy::Overwrite)
    );
    // Each with the filter of its own rule.
    let both = event(account, "channel0", "routed:both");
    assert_eq!((both.fired, both.recorded, both.filtered), (100, 100, 0));
    let both = event(account, "flight", "routed:both");
    assert_eq!((both.fired, both.recorded, both.filtered), (100, 50, 50));
    let overwritten: u64 = channel(account, "flight").streams.iter().map(|stream| stream.overwritten).sum();
    assert!(overwritten > STEPS, "{overwritten}: a ring of 8 KiB");
    assert_eq!(channel(account, "channel0").streams.iter().map(|stream| stream.written).sum::<u64>(), 200);

    assert_balances(&dir);
    assert_balances(&dt);
    let counts = decoded(&dir)?;
    let in_trace = |class: u64, name: &str| counts.get(&(class, name.to_owned())).copied().unwrap_or(0);
    assert_eq!((in_trace(0, "routed:order"), in_trace(0, "routed:both"), in_trace(0, "routed:step")), (100, 100, 0));
    assert_eq!(in_trace(1, "routed:order"), 0);
    assert!(in_trace(1, "routed:step") > 100, "{counts:?}");
    let viewed = view(&[&dir]);
    assert_eq!(viewed.lines.len() as u64, counts.values().sum::<u64>());
    // The contexts of the channels differ.
    let of = |name: &str| viewed.lines.iter().filter(|line| line.contains(name)).collect::<Vec<_>>();
    assert!(of("routed:step").iter().all(|line| line.contains("vtid = ")));
    assert!(of("routed:order").iter().all(|line| !line.contains("vtid = ")));
    assert!(viewed.warnings.is_empty() || viewed.discarded_packets() > 0, "{}", viewed.warnings);
    assert_eq!(names(rings.path()), ["rings"]);
    assert_eq!(names(&rings.path().join("rings")), [""; 0], "both channels' rings are gone");
    Ok(())
}

/// An exclusion without a channel applies to all channels; a limit applies to its rule.
#[test]
fn exclusions_apply_to_one_channel_or_to_all() -> Outcome {
    own_process!();
    let rings = memory_place();
    let session = Session::builder("out")
        .dir(rings.path().join("rings"))
        .channel(Channel::discard(64 << 10).spares(2).name("main"))
        .channel(Channel::discard(64 << 10).spares(2).name("second"))
        .channel(Channel::discard(1 << 20).spares(2).name("third"))
        .events("routed:*")
        .events(Rule::new("!routed:step").channel("main"))
        .events(Rule::new("routed:*").channel("second").limit("10/h"))
        .events(Rule::new("routed:*").channel("third"))
        .events("!routed:both")
        .sink(TextSink::new(Vec::new()))
        .start()?;
    fire();
    let summary = session.stop()?;
    let account = summary.account().ok_or("no account")?;
    assert_eq!(event_names(account, "main"), ["routed:order"]);
    assert_eq!(event_names(account, "second"), ["routed:order", "routed:step"]);
    assert_eq!(event_names(account, "third"), ["routed:order", "routed:step"]);
    let recorded = |of: &str| channel(account, of).events.iter().map(|event| event.recorded).sum::<u64>();
    assert_eq!((recorded("main"), recorded("second"), recorded("third")), (50, 10, STEPS + 50));
    Ok(())
}

#[test]
fn invalid_channels_are_errors() {
    own_process!();
    let session = || {
        Session::builder("bad")
            .events("routed:*")
            .in_memory()
            .channel(Channel::discard(64 << 10).spares(1))
            .sink(TextSink::new(Vec::new()))
    };
    let further = |name: &str| Channel::discard(64 << 10).spares(1).name(name);
    let error = session().events(Rule::new("routed:*").channel("flight")).start().expect_err("no such channel");
    assert_eq!(error.to_string(), "rule `routed:*`: the session has no channel `flight`; it has channel0");
    for name in ["", "a/b", &"n".repeat(65)] {
        let error = session().channel(further(name)).start().expect_err("no name").to_string();
        assert!(error.contains(&format!("`{name}` is not a channel name: use 1 to 64")), "{error}");
    }
    let rule = Rule::new("routed:x").channel("b");
    let error = session().channel(further("b")).events(rule).start().expect_err("no event");
    assert!(error.to_string().starts_with("no event matches `routed:x`"), "{error}");
    // The channels that were opened before the one that fails are closed again.
    let with = |count| (1..count).fold(session(), |session, n| session.channel(further(&format!("n{n}"))));
    let error = with(40).start().expect_err("40 channels").to_string();
    assert!(error.contains("the session has 40 channels, and may have at most 16"), "{error}");
    let others = [with(16).start().expect("16 channels"), with(8).start().expect("24 channels")];
    let error = with(9).start().expect_err("33 channels").to_string();
    assert!(error.contains("24 channels open, the session needs 9 more, and 32 are allowed"), "{error}");
    assert!(with(8).start().and_then(Session::stop).is_ok());
    assert!(others.into_iter().all(|session| session.stop().is_ok()));
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
}

/// All recording channels get the state dump, with its begin and end events.
#[test]
fn state_dumps_reach_all_channels() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let dump = state_dump("orders", |_| {
        trace_order(1);
        trace_both(2);
    });
    let session = Session::builder("state")
        .in_memory()
        .channel(Channel::discard(64 << 10).spares(2))
        .channel(Channel::discard(64 << 10).spares(2).name("second"))
        .channel(Channel::discard(64 << 10).spares(2).name("unused"))
        .events("routed:order")
        .events(Rule::new("routed:both").channel("second"))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    while session.state_dumps().iter().any(|dump| dump.ran == 0) {
        thread::yield_now();
    }
    drop(dump);
    let summary = session.stop()?;
    let account = summary.account().ok_or("no account")?;
    let around = ["tracepoint:state_begin", "tracepoint:state_end"];
    for (of, own) in [("channel0", "routed:order"), ("second", "routed:both")] {
        for name in around.into_iter().chain([own]) {
            assert_eq!(event(account, of, name).recorded, 1, "{name} in {of}");
        }
    }
    assert_eq!(event_names(account, "unused"), [""; 0]);
    assert_balances(&dir);
    assert_eq!(view(&[&dir]).lines.len(), 6);
    Ok(())
}

/// The memory cap and the location of the rings belong to the session, not to each channel.
#[test]
fn the_memory_cap_counts_all_channels() {
    own_process!();
    let rings = memory_place();
    let start = |cap| {
        let channel = || Channel::discard(256 << 10).spares(2);
        let session = Session::builder("cap").events("routed:*").dir(rings.path().join("rings")).channel(channel());
        let session = session.channel(channel().name("second")).memory_cap(cap).sink(TextSink::new(Vec::new()));
        session.start().and_then(Session::stop)
    };
    assert!(start(2 << 20).is_ok());
    // Enough for one of them.
    let error = start(1 << 20).expect_err("four rings of 256 KiB and more").to_string();
    assert!(error.contains("exceed its cap of 1048576"), "{error}");
}

/// A program that rotates: the contents of the flight recorder are written at the end, to the last chunk.
#[test]
fn the_account_of_each_chunk_balances() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = place.path().join("trace");
    let session = builder(&rings.path().join("rings")).sink(CtfSink::create(&dir)?).start()?;
    for _ in 0..3 {
        fire();
        assert_eq!(session.rotate()?.len(), 1);
    }
    fire();
    let summary = session.stop()?;
    let account = summary.account().ok_or("no account")?;
    assert_eq!(channel(account, "channel0").streams.iter().map(|stream| stream.recorded).sum::<u64>(), 400);
    assert_eq!(names(&dir).len(), 4, "{:?}", names(&dir));
    assert_balances(&dir);
    let last = decoded(&dir.join("chunk-000004"))?;
    assert!(last.keys().any(|(class, _)| *class == 1), "{last:?}");
    let first = decoded(&dir.join("chunk-000001"))?;
    assert!(!first.is_empty() && first.keys().all(|(class, _)| *class == 0), "{first:?}");
    Ok(())
}

/// The other process: records into both channels, and waits for its end.
fn record(place: &Path) -> Outcome {
    let session = builder(&place.join("session")).sink(CtfSink::create(place.join("trace"))?).start()?;
    fire();
    // The events of the drained channel are partly in the sink, partly in its ring.
    session.rotate()?;
    trace_order(STEPS);
    trace_step(STEPS);
    ready();
    Ok(())
}

#[test]
fn both_channels_of_a_killed_process_are_recovered() -> Outcome {
    const TEST: &str = "both_channels_of_a_killed_process_are_recovered";
    own_process!();
    let part = part();
    if !part.is_empty() {
        return record(Path::new(&part));
    }
    let place = memory_place();
    let mut child = until_ready(&mut again(TEST, &place.path().display().to_string()));
    child.kill();
    let dirs = process_dirs(&place.path().join("session"));
    assert_eq!(dirs.len(), 1);
    let files = names(&dirs[0]);
    assert!(
        ["0-0.ring", "0-orphans.ring", "1-0.ring", "1-orphans.ring"]
            .iter()
            .all(|name| files.contains(&(*name).to_owned())),
        "{files:?}"
    );
    let out = place.path().join("recovered");
    let recovered = recover(&place.path().join("session"), &out)?;
    let [process] = &recovered.processes[..] else { return Err(format!("one process: {recovered:?}").into()) };
    assert!(process.complete, "{process:?}");
    assert!(process.packets_from_outputs > 0 && process.packets_from_rings > 0, "{process:?}");
    let account = Account::open(&process.output)?;
    let counts = decoded(&process.output)?;
    assert_eq!(counts[&(0, "routed:order".to_owned())], 51);
    assert_eq!(counts[&(0, "routed:both".to_owned())], 50);
    assert_eq!(event(&account, "flight", "routed:step").recorded, STEPS + 1);
    assert_eq!(event(&account, "flight", "routed:both").filtered, 25);
    assert_eq!(
        (channel(&account, "channel0").policy, channel(&account, "flight").policy),
        (Policy::Discard, Policy::Overwrite)
    );
    let written: u64 = channel(&account, "flight").streams.iter().map(|stream| stream.written).sum();
    assert_eq!(counts.iter().filter(|((class, _), _)| *class == 1).map(|(_, count)| count).sum::<u64>(), written);
    let report = verify(&process.output)?;
    assert!(report.passed(), "{:#?}", report.failures().collect::<Vec<_>>());
    let viewed = view(&[&process.output]);
    assert_eq!(viewed.lines.len() as u64, counts.values().sum::<u64>());
    Ok(())
}
