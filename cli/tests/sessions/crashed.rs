//! The user's view of a crash: `view` of the incomplete trace names the command that completes it, and `recover` takes the session's name.

use super::in_code::{NAME, start};
use super::{Outcome, Place, paid};
use std::env;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

/// Set to the directory of the trace of a process that dies.
const TRACE: &str = "TEST_TRACE";

/// In a process that dies: records 20 events, and returns `true` when its input ends, which does not happen.
fn dies() -> bool {
    let (Ok(name), Ok(trace)) = (env::var(NAME), env::var(TRACE)) else { return false };
    let sink = CtfSink::create(trace).expect("an empty directory");
    let session = Session::builder(name).events("shop:paid").channel(Channel::discard(1 << 20)).sink(sink).start();
    let session = session.expect("it starts");
    (0..20).for_each(|n| tracepoint::trace!(paid(n)));
    println!("ready");
    let _ = std::io::stdin().lines().count();
    drop(session);
    true
}

#[test]
fn a_trace_that_a_killed_process_left_is_recovered_by_name() -> Outcome {
    if dies() {
        return Ok(());
    }
    let place = Place::new();
    let test = "crashed::a_trace_that_a_killed_process_left_is_recovered_by_name";
    let killed = start(&place, test, "mysession", Some((TRACE, place.path("trace"))));
    let (code, _, err) = place.tracectl(&["view", "trace"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "the process goes on with it");
    let pid = killed.0.id();
    drop(killed);

    let (code, _, err) = place.tracectl(&["view", "trace"]);
    assert_eq!(code, Some(1), "{err}");
    let rings = err.split("`tracectl recover ").nth(1).and_then(|rest| rest.split(' ').next()).ok_or("no command")?;
    assert!(rings.contains(&format!("/sessions/mysession/rings/{pid}-")), "{err}");
    for verb in ["list", "status"] {
        let (_, shown, _) = place.tracectl(&[verb]);
        assert!(shown.contains("rings of sessions that are over") && shown.contains("\n  mysession "), "{shown}");
        assert!(shown.contains("/sessions/mysession -o OUT"), "{shown}");
    }
    for (from, out) in [(rings, "of-rings"), ("mysession", "of-name")] {
        // Exit code 0 says that nothing is lost.
        place.well(&["recover", from, "-o", out]);
        assert_eq!(super::viewed(&place.path(out), " shop:paid: "), 20);
        place.well(&["view", out]);
    }
    Ok(())
}
