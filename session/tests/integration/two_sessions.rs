//! Two concurrent sessions record one event each into separate traces, and end independently.

use crate::common::{Outcome, assert_balances, event, place, view};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "shared";
    pub seen(n: u32) { n: u32 = n }
    pub other(n: u32) { n: u32 = n }
}

#[test]
fn sessions_do_not_see_each_other() -> Outcome {
    own_process!();
    let place = place();
    let [long, short] = ["long", "short"].map(|name| place.path().join(name));
    let first = Session::builder("long").events("shared:*").sink(CtfSink::create(&long)?).start()?;
    tracepoint::trace!(seen(1));
    let channel = Channel::overwrite(64 << 10).name("recorder");
    let second =
        Session::builder("short").events("shar*:seen").channel(channel).sink(CtfSink::create(&short)?).start()?;
    tracepoint::trace!(seen(2));
    tracepoint::trace!(other(3));
    let summary = second.stop()?;
    assert_eq!((summary.events().len(), event(&summary, "shared:seen").recorded), (1, 1));
    tracepoint::trace!(seen(4));
    let summary = first.stop()?;
    assert_eq!((event(&summary, "shared:seen").recorded, event(&summary, "shared:other").recorded), (3, 1));
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
    for (dir, lines) in [(&long, 4), (&short, 1)] {
        let viewed = view(&[dir]);
        assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (lines, ""));
        assert_balances(dir);
    }
    Ok(())
}
