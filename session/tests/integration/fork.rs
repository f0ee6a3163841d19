//! A child that is forked while a session runs does not take part in it, and does not disturb it.

use crate::common::{Outcome, assert_balances, event, exit_status, place, view};
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Session, SessionError};

tracepoint::define_trace! {
    provider = "family";
    pub spoke(who: &str) { who: str = who }
}

/// Returns whether ring files are mapped into this process.
fn rings_in_maps() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains(".ring"))
}

/// A session of the child with the same name.
fn own_session() -> bool {
    let session = Session::builder("family").events("family:*").sink(TextSink::new(Vec::new())).start();
    tracepoint::trace!(spoke("child, in a session of its own"));
    session.and_then(Session::stop).is_ok_and(|summary| event(&summary, "family:spoke").recorded == 1)
}

#[test]
fn a_child_does_not_touch_its_parents_session() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let mut session = Some(Session::builder("family").events("family:*").sink(CtfSink::create(&dir)?).start()?);
    tracepoint::trace!(spoke("parent, before"));
    assert!(rings_in_maps());
    // One child drops the session, the other calls `stop`.
    for stops in [false, true] {
        // SAFETY: the child calls what is safe after fork in a program with threads, as far as the C library goes: it
        // allocates, which glibc allows; it traces, and it ends.
        match unsafe { libc::fork() } {
            0 => {
                let has_rings = rings_in_maps();
                tracepoint::trace!(spoke("child"));
                let session = session.take();
                let refused = if stops {
                    matches!(session.map(Session::stop), Some(Err(SessionError::Forked { .. })))
                } else {
                    drop(session);
                    true
                };
                std::process::exit(i32::from(!refused || has_rings || !own_session()));
            }
            child => assert_eq!(exit_status(child), Some(0)),
        }
    }
    tracepoint::trace!(spoke("parent, after"));
    let summary = session.take().ok_or("the parent has its session")?.stop()?;
    assert_eq!(event(&summary, "family:spoke").recorded, 2);
    assert!(!rings_in_maps(), "nothing is left");
    let viewed = view(&[&dir]);
    assert_eq!(viewed.warnings, "");
    assert_eq!((viewed.lines.len(), viewed.count("child")), (2, 0));
    assert_balances(&dir);
    Ok(())
}
