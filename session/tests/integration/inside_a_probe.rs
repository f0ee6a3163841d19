//! A session that a probe stops or drops still ends, and its account balances.

use crate::common::{Outcome, assert_balances, place, view};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Session, SessionError};

tracepoint::define_trace! {
    provider = "inside";
    pub enough(n: u64) { n: u64 = n }
}

/// Waits for the account, which a session writes last.
fn wait_for_account(dir: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !dir.join(".account/account.json").exists() {
        assert!(Instant::now() < deadline, "the session does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_probe_stops_the_session() -> Outcome {
    own_process!();
    let place = place();
    for stop in [true, false] {
        let dir = place.path().join(if stop { "stop" } else { "drop" });
        let session = Session::builder("inside").events("inside:*").sink(CtfSink::create(&dir)?).start()?;
        let session = Mutex::new(Some(session));
        let refused = std::sync::Arc::new(Mutex::new(None));
        let place_for_error = std::sync::Arc::clone(&refused);
        let probe = register_trace_enough(move |_| {
            if let Some(session) = session.lock().expect("not poisoned").take()
                && stop
            {
                *place_for_error.lock().expect("not poisoned") = session.stop().err();
            }
        })?;
        trace_enough(1);
        wait_for_account(&dir);
        trace_enough(2);
        drop(probe);
        let refused = refused.lock().expect("not poisoned").take();
        assert_eq!(matches!(refused, Some(SessionError::InsideProbe { .. })), stop, "{refused:?}");
        assert_eq!(view(&[&dir]).lines.len(), 1, "the event before is there, the one after is not");
        assert_balances(&dir);
    }
    Ok(())
}
