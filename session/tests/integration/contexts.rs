//! Channels with contexts: each record has its thread and process, and all readers decode them.

use crate::common::{
    Outcome, again, assert_balances, event, lost, memory_place, part, place, ready, until_ready, view,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use tracepoint::context::{self, Context};
use tracepoint_reader::{Item, Trace, Value, recover};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_session_spec::Rule;

mod events {
    tracepoint::define_trace! {
        provider = "contexts";
        pub done(n: u32, what: &str) { n: u32 = n, what: str = what }
        pub empty() {}
    }
}

fn named(name: &str, fire: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.to_owned()).spawn(fire).expect("starts").join().expect("fires");
}

#[test]
fn every_context_is_in_every_record() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let channel = Context::ALL.iter().fold(Channel::discard(256 << 10), |channel, context| channel.context(*context));
    let session = Session::builder("all").events("contexts:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    for (number, name) in ["first", "a name that is too long", "xünïcödé näme"].into_iter().enumerate() {
        named(name, move || {
            events::trace_empty();
            for n in 0..3 {
                context::set(u64::MAX - number as u64);
                assert_eq!(context::get(), u64::MAX - number as u64);
                events::trace_done(n, "it");
            }
        });
    }
    let summary = session.stop()?;
    assert_eq!((event(&summary, "contexts:done").recorded, event(&summary, "contexts:empty").recorded), (9, 3));
    assert_balances(&dir);

    let viewed = view(&[&dir]);
    assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (12, ""));
    let pid = std::process::id();
    assert_eq!(viewed.count(&format!("{{ vpid = {pid}, vtid = ")), 12, "{:#?}", viewed.lines);
    // The kernel keeps 15 bytes, which may end in the middle of a character.
    for (name, number) in [("first", 0), ("a name that is ", 1), ("xünïcödé n", 2)] {
        let user = u64::MAX - number;
        assert_eq!(viewed.count(&format!("procname = \"{name}\", cpu_id = ")), 4, "{name}: {:#?}", viewed.lines);
        assert_eq!(viewed.count(&format!("user = {user}, _callstack")), 3, "{:#?}", viewed.lines);
    }
    assert_eq!(viewed.count("user = 0, _callstack"), 3);

    let mut threads = BTreeSet::new();
    for item in Trace::open(&dir)?.items() {
        let Item::Event(event) = item else { panic!("nothing was lost: {item:?}") };
        let context = event.stream_context.ok_or("no context")?;
        assert_eq!(context.get("vpid").and_then(Value::as_u64), Some(pid.into()));
        threads.insert(context.get("vtid").and_then(Value::as_u64).ok_or("no thread")?);
        let processor = context.get("cpu_id").and_then(Value::as_u64).ok_or("no processor")?;
        assert!(processor < 1 << 20, "{processor}");
    }
    assert_eq!(threads.len(), 3);
    Ok(())
}

/// Two channels record one event, with contexts and without, by a filter and without; sizes are those of the record.
#[test]
fn channels_have_contexts_of_their_own() -> Outcome {
    own_process!();
    let place = place();
    let [with, without] = ["with", "without"].map(|name| place.path().join(name));
    let channel = Channel::discard(8 * 4096).context(Context::User);
    let most = channel.max_record_size();
    let first = Session::builder("with").events(Rule::new("*:done").filter("n != 3")).channel(channel);
    let first = first.sink(CtfSink::create(&with)?).start()?;
    let second = Session::builder("without").events("*:done").sink(CtfSink::create(&without)?).start()?;
    context::set(7);
    (0..5).for_each(|n| events::trace_done(n, "this"));
    // Header word, context, number, text and NUL.
    let fits = most - 8 - 8 - 4 - 1;
    events::trace_done(5, &"x".repeat(fits));
    events::trace_done(6, &"x".repeat(fits + 1));
    let (first, second) = (first.stop()?, second.stop()?);
    let done = event(&first, "contexts:done");
    assert_eq!((done.fired, done.recorded, done.filtered, lost(done)), (7, 5, 1, 1));
    assert_eq!(event(&second, "contexts:done").recorded, 7);
    assert_balances(&with);
    assert_balances(&without);
    assert_eq!(view(&[&with]).count("{ user = 7 }, { n = "), 5);
    assert_eq!(view(&[&without]).count("user"), 0);
    context::set(0);
    Ok(())
}

/// A killed process leaves its contexts as well.
#[test]
fn contexts_are_recovered() -> Outcome {
    const TEST: &str = "contexts_are_recovered";
    own_process!();
    let session = |place: &Path| {
        let channel = Channel::discard(64 << 10).spares(1).context(Context::ThreadName).context(Context::User);
        Session::builder("killed").events("*:done").channel(channel).dir(place.join("session"))
    };
    if !part().is_empty() {
        let place = part();
        let sink = CtfSink::create(Path::new(&place).join("trace"))?;
        let _session = session(Path::new(&place)).sink(sink).start()?;
        named("worker", || {
            context::set(5);
            (0..100).for_each(|n| events::trace_done(n, "before the end"));
        });
        ready();
        return Ok(());
    }
    let place = memory_place();
    until_ready(&mut again(TEST, &place.path().display().to_string())).kill();
    let out = place.path().join("recovered");
    recover(&place.path().join("session"), &out)?;
    assert_balances(&out);
    let viewed = view(&[&out]);
    assert_eq!(viewed.count("{ procname = \"worker\", user = 5 }, { n = "), 100, "{:#?}", viewed.lines);
    Ok(())
}
