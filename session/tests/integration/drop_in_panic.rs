//! A session that is dropped during a panic is complete.

use crate::common::{Outcome, assert_balances, place, view};
use std::panic::catch_unwind;
use tracepoint_session::Session;
use tracepoint_session::sinks::CtfSink;

tracepoint::define_trace! {
    provider = "crash";
    pub last_words(text: &str) { text: str = text }
}

#[test]
fn unwinding_ends_the_session() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let sink = CtfSink::create(&dir)?;
    let unwound = catch_unwind(move || {
        let _session = Session::builder("crash").events("crash:*").sink(sink).start().expect("a session");
        tracepoint::trace!(last_words("aber schnell"));
        panic!("the program's own");
    });
    assert!(unwound.is_err());
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
    let viewed = view(&[&dir]);
    assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (1, ""));
    assert_balances(&dir);
    Ok(())
}
