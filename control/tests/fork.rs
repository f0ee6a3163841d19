//! A child that is forked while a session runs has no part in it, and does it no harm.

mod common;

use common::{Outcome, assert_balances, event, place, view};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use tracepoint_control::{Session, SessionError, sinks::CtfSink};

tracepoint::define_trace! {
    provider = "family";
    pub spoke(who: &str) { who: str = who }
}

#[test]
fn a_child_leaves_the_session_alone() -> Outcome {
    let place = place();
    let dir = place.path().join("trace");
    let mut session = Some(Session::builder("family").sink(CtfSink::create(&dir)?).start()?);
    tracepoint::trace!(spoke("parent, before"));
    // One child drops the session, the other asks it to stop.
    for stops in [false, true] {
        // SAFETY: the child calls what is safe after fork in a program with threads, as far as the C library goes: it
        // allocates, which glibc allows; it traces, and it ends.
        match unsafe { fork() }? {
            ForkResult::Child => {
                tracepoint::trace!(spoke("child"));
                let session = session.take();
                let refused = if stops {
                    matches!(session.map(Session::stop), Some(Err(SessionError::Forked { .. })))
                } else {
                    drop(session);
                    true
                };
                std::process::exit(i32::from(!refused));
            }
            ForkResult::Parent { child } => assert_eq!(waitpid(child, None)?, WaitStatus::Exited(child, 0)),
        }
    }
    tracepoint::trace!(spoke("parent, after"));
    let summary = session.take().ok_or("the parent has its session")?.stop()?;
    assert_eq!(event(&summary, "family:spoke").recorded, 2);
    let viewed = view(&[&dir]);
    assert_eq!(viewed.warnings, "");
    assert_eq!((viewed.lines.len(), viewed.count("child")), (2, 0));
    assert_balances(&dir);
    Ok(())
}
