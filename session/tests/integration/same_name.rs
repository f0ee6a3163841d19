//! Several tracepoints with the same name: with the same layout they are one event, with different layouts several.

use crate::common::{Outcome, assert_balances, event, place, view};
use tracepoint_run_dir::Notice;
use tracepoint_session::Session;
use tracepoint_session::sinks::CtfSink;

mod first {
    tracepoint::define_trace! {
        provider = "twin";
        pub same(n: u32) { n: u32 = n }
        pub other(n: u32) { n: u32 = n }
    }
}

mod second {
    tracepoint::define_trace! {
        provider = "twin";
        pub same(n: u32) { n: u32 = n }
        pub other(n: u64) { n: u64 = n }
    }
}

#[test]
fn events_of_one_name_with_different_fields_are_distinct() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let session = Session::builder("twins").events("twin:*").sink(CtfSink::create(&dir)?).start()?;
    let notices = session.notices();
    tracepoint::trace!(first::same(1));
    tracepoint::trace!(second::same(2));
    tracepoint::trace!(first::other(3));
    tracepoint::trace!(second::other(4));
    let summary = session.stop()?;

    assert_eq!(event(&summary, "twin:same").recorded, 2);
    assert_eq!(event(&summary, "twin:other").recorded, 1);
    assert_eq!(event(&summary, "twin:other#2").recorded, 1);
    assert!(
        matches!(notices.as_slice(), [Notice::Renamed { name, recorded, .. }]
        if name == "twin:other" && recorded == "twin:other#2"),
        "{notices:?}"
    );
    let viewed = view(&[&dir]);
    assert_eq!(viewed.warnings, "");
    let ends = ["twin:same: { tid", "twin:same: { tid", "twin:other: { tid", "twin:other#2: { tid"];
    for ((line, start), n) in viewed.lines.iter().zip(ends).zip(1..) {
        assert!(line.contains(start) && line.ends_with(&format!("{{ n = {n} }}")), "{line}");
    }
    assert_balances(&dir);
    Ok(())
}
