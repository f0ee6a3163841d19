//! Snapshots that cannot be taken: each has a typed error, leaves no files, and does not disturb the session. Also snapshots of an agent's
//! sessions.

use crate::common::{Outcome, again_mounted, exit_status, memory_place, names, part, place};
use crate::flight::checked;
use std::path::Path;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use tracepoint_controller::Controller;
use tracepoint_reader::RecoverError;
use tracepoint_run_dir::RunDir;
use tracepoint_session::{Agent, Channel, Session, SessionBuilder, SessionError};
use tracepoint_session_spec::{ChannelSpec, Rule, SessionSpec, SinkSpec, State};

tracepoint::define_trace! {
    provider = "refused";
    pub step(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn flight(name: &str, bytes: usize) -> SessionBuilder {
    Session::builder(name).events("refused:step").channel(Channel::overwrite(bytes))
}

#[test]
fn what_cannot_be_is_a_typed_error() -> Outcome {
    own_process!();
    let place = place();
    let error = Session::builder("none").events("refused:step").channel(Channel::discard(64 << 10)).in_memory().start();
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("give the session a sink") && error.contains("overwrite"), "{error}");

    let session = flight("errors", 16 << 10).in_memory().start()?;
    let out = place.path().join("out");
    std::fs::create_dir(&out)?;
    session.snapshot(&out)?;
    let error = session.snapshot(&out).err();
    assert!(
        matches!(&error, Some(SessionError::Snapshot { source: RecoverError::NotEmpty { path, .. }, .. }) if *path == out),
        "{error:?}"
    );
    std::fs::write(place.path().join("file"), b"")?;
    let error = session.snapshot(place.path().join("file")).err();
    assert!(matches!(error, Some(SessionError::Snapshot { source: RecoverError::Write { .. }, .. })), "{error:?}");

    // Inside a probe.
    let found = thread::scope(|scope| -> Result<_, Box<dyn std::error::Error>> {
        let (send, receive) = mpsc::channel();
        let (session, path) = (Arc::new(session), place.path().join("probe"));
        let (inside, to) = (Arc::clone(&session), path.clone());
        let probe = register_trace_other(move |_| {
            let errors = [inside.snapshot(&to).err(), inside.flush().err(), inside.rotate().err()];
            let all = errors.iter().all(|error| matches!(error, Some(SessionError::InsideProbe { .. })));
            send.send(all).expect("it is received");
        })?;
        scope.spawn(|| tracepoint::trace!(other(1)));
        let found = receive.recv()?;
        unregister_trace_other(probe);
        assert!(found && !path.exists());
        Ok(Arc::into_inner(session))
    })?;
    let session = found.ok_or("the probe has released it")?;

    // In a forked child.
    let path = place.path().join("child");
    // SAFETY: the child calls only code that takes no lock of another thread, and exits.
    match unsafe { libc::fork() } {
        0 => {
            let is_right = matches!(session.snapshot(&path), Err(SessionError::Forked { .. }));
            // SAFETY: ends the child without destructors.
            unsafe { libc::_exit(i32::from(!is_right)) }
        }
        child => assert_eq!(exit_status(child), Some(0)),
    }
    session.stop()?;
    Ok(())
}

/// `stop` waits for a snapshot that is being written; a later one finds the session stopped.
#[test]
fn a_snapshot_of_a_stopped_session_is_an_error() -> Outcome {
    own_process!();
    let place = place();
    let rings = memory_place();
    for round in 0..20 {
        let session = flight("stopped", 64 << 10).dir(rings.path()).start()?;
        (0..3000).for_each(|n| tracepoint::trace!(step(0, n)));
        let out = place.path().join(round.to_string());
        // Another thread may hold the session; here a snapshot runs while the session is dropped.
        let session = Arc::new(session);
        let other = Arc::clone(&session);
        let (to, begun) = (out.clone(), Arc::new(Barrier::new(2)));
        let go = Arc::clone(&begun);
        let taken = thread::spawn(move || {
            go.wait();
            let taken = other.snapshot(&to);
            drop(other);
            taken
        });
        begun.wait();
        drop(session);
        match taken.join().map_err(|_| "a panic")? {
            Ok(summary) => assert_eq!(checked(&out)?.values().map(Vec::len).sum::<usize>() as u64, summary.events),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A full disk leaves no files, and is reported; the session continues.
#[test]
fn a_full_disk_leaves_nothing() -> Outcome {
    own_process!();
    if let Some(dir) = part().strip_prefix("full ") {
        let session = flight("full", 1 << 20).in_memory().start()?;
        (0..20_000).for_each(|n| tracepoint::trace!(step(1, n)));
        let out = Path::new(dir).join("out");
        let error = session.snapshot(&out).err();
        let is_full = |error: &RecoverError| matches!(error, RecoverError::Write { source, .. } if source.kind() == std::io::ErrorKind::StorageFull);
        assert!(matches!(&error, Some(SessionError::Snapshot { source, .. }) if is_full(source)), "{error:?}");
        assert!(names(Path::new(dir)).is_empty(), "{:?}", names(Path::new(dir)));
        tracepoint::trace!(step(1, 20_000));
        assert_eq!(session.stop()?.events()[0].recorded, 20_001);
        return Ok(());
    }
    let place = place();
    let part = format!("full {}", place.path().display());
    let test = "a_full_disk_leaves_nothing";
    if let Some(mut command) = again_mounted(test, &part, place.path(), "64k") {
        let output = command.output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// An agent takes snapshots of the events that its process records for remotely controlled sessions, and rotates and flushes them.
#[test]
fn an_agent_has_the_sessions_from_outside() -> Outcome {
    own_process!();
    let (run, place) = (memory_place(), place());
    let run_dir = RunDir::at(&run.path().join("run"))?;
    let agent = Agent::start_in(&run_dir)?;
    let controller = Controller::at(run_dir)?;
    let mut spec = SessionSpec::new();
    spec.add_rule(&Rule::new("refused:step"))?;
    (spec.state, spec.channel) = (State::Active, ChannelSpec::overwrite(64 << 10));
    let flight = controller.create("flight", &spec)?;
    let deadline = std::time::Duration::from_secs(60);
    flight.wait(flight.spec()?.generation, deadline)?;
    let mut drained = SessionSpec::new();
    drained.add_rule(&Rule::new("refused:step"))?;
    (drained.state, drained.sinks) = (State::Active, vec![SinkSpec::ctf(place.path().join("traces")).into()]);
    let drained = controller.create("drained", &drained)?;
    drained.wait(drained.spec()?.generation, deadline)?;
    (0..100).for_each(|n| tracepoint::trace!(step(1, n)));

    let summary = agent.snapshot("flight", place.path().join("inside"))?;
    assert!(summary.events == 100 && checked(&summary.path)?[&1].len() == 100, "{summary:?}");
    let summary = flight.snapshot(place.path().join("outside"))?;
    assert!(summary.events == 100 && checked(&summary.path)?[&1].len() == 100, "{summary:?}");
    assert!(matches!(agent.rotate("flight"), Err(SessionError::CannotRotate { .. })));
    agent.flush("drained")?;
    let [chunk] = &agent.rotate("drained")?[..] else { return Err("one chunk".into()) };
    assert_eq!(crate::flight::numbers(chunk)?[&1].len(), 100);
    assert_eq!(agent.snapshot("drained", place.path().join("both"))?.events, 100);
    let error = agent.snapshot("none", place.path().join("none")).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("this process does not record a session none; it records flight, drained"));
    flight.destroy(deadline, false)?;
    assert!(matches!(agent.snapshot("flight", place.path().join("none")), Err(SessionError::NotRecorded { .. })));
    drained.destroy(deadline, false)?;
    Ok(())
}
