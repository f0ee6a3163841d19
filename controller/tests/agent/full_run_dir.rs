//! A full run directory: sessions can still be stopped, and processes still answer.

use crate::common::{Outcome, again_mounted, fill_up, memory_place, names, part};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tracepoint_run_dir::AckState;
use tracepoint_session::Channel;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{DrainedBy, SessionSpec, State};

/// Runs the test again with a small file system, in which it creates its run directory. Returns `None` in the process that only starts it.
fn small_place(test: &str) -> Option<Place> {
    if let Some(mounted) = part().strip_prefix("at ") {
        return Some(Place::at(tempfile::tempdir_in(mounted).expect("a directory")));
    }
    let place = memory_place();
    let part = format!("at {}", place.path().display());
    let test = again_mounted(test, &part, place.path(), "16m");
    assert!(test.is_none_or(|mut test| test.status().is_ok_and(|status| status.success())));
    None
}

/// Rings of ended sessions are removed when new ones are created, except the newest; rings that cannot be recovered are removed as well.
#[test]
fn rings_of_sessions_that_are_over_are_bounded() -> Outcome {
    let Some(place) = small_place("full_run_dir::rings_of_sessions_that_are_over_are_bounded") else { return Ok(()) };
    let sessions = place.run_dir().join("sessions");
    let make = |dir: &Path| DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let leave = |name: &str, age: u64| -> Outcome {
        // No process has this id.
        let dir = sessions.join(name).join("rings/4194999-1");
        make(&dir)?;
        fs::write(dir.join("metadata"), "")?;
        fs::write(dir.join("0-0.ring"), vec![0; 3 << 20])?;
        Ok(File::open(dir)?.set_modified(SystemTime::now() - Duration::from_secs(age))?)
    };
    for (name, age) in [("old", 30), ("older", 40), ("newest", 20)] {
        leave(name, age)?;
    }
    make(&sessions.join("cut/rings/4194999-1"))?;
    fs::write(sessions.join("cut/rings/4194999-1/0-0.ring"), "x")?;
    // A quarter of the file system can hold one of them.
    assert!(place.controller.sessions()?.is_empty());
    assert_eq!(names(&sessions), ["newest"]);
    let left = place.controller.leftovers()?;
    assert_eq!((left.len(), left[0].processes), (1, 1), "{left:?}");
    assert!((3 << 20..4 << 20).contains(&left[0].bytes) && left[0].age() < Duration::from_secs(3600), "{left:?}");
    assert!(place.controller.remove_leftover("newest")? && names(&sessions).is_empty());
    Ok(())
}

/// A session that keeps its events in small rings.
fn flight() -> SessionSpec {
    let mut spec = spec(&["traced:*"], &[]);
    spec.channel = (&Channel::overwrite(64 << 10).spares(1)).into();
    spec
}

fn change_to(state: State) -> impl FnOnce(&mut SessionSpec) -> Result<(), ControlError> {
    move |spec| {
        spec.state = state;
        Ok(())
    }
}

/// Removes the spares that allow files to be replaced on a full file system, as if it had been full from the beginning.
fn remove_spares(dir: &Path) -> Outcome {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_spares(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "spare") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[test]
fn sessions_are_stopped_and_destroyed_without_room() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "full_run_dir::sessions_are_stopped_and_destroyed_without_room";
    let Some(place) = small_place(test) else { return Ok(()) };
    let _children = [place.start(test), place.start(test)];
    let session = place.controller.create("flight", &flight())?;
    place.until_recorded(&session, 5);
    let ballast = fill_up(place.temp.path())?;

    // Each of them answers repeatedly.
    for _ in 0..5 {
        assert_eq!(place.acks(&session).len(), 2);
    }
    for state in [State::Stopped, State::Active, State::Stopped] {
        let generation = session.change("change", change_to(state))?;
        let waited = session.wait(generation, PATIENCE)?;
        assert!(waited.silent.is_empty(), "{:?}", waited.silent);
        assert!(waited.acks.iter().all(|ack| ack.generation == generation && ack.error.is_none()), "{waited:?}");
        assert_eq!(place.on().is_empty(), state == State::Stopped);
    }
    session.change("start", change_to(State::Active))?;
    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty() && removed.dead.is_empty(), "{removed:?}");
    assert!(removed.acks.iter().all(|ack| ack.state == AckState::Ended), "{removed:?}");
    assert_eq!(place.on(), [""; 0]);
    assert!(!place.run_dir().join("sessions/flight").exists());
    fs::remove_file(ballast)?;

    // Even if the spares are gone, the session can be destroyed.
    let session = place.controller.create("flight", &flight())?;
    place.until_recorded(&session, 5);
    remove_spares(&place.run_dir().join("sessions"))?;
    fill_up(place.temp.path())?;
    let error = session.change("stop", change_to(State::Stopped)).err().ok_or("there is room")?;
    assert!(matches!(&error, ControlError::RunDirFull { .. }) && error.to_string().contains("make room"), "{error}");
    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty(), "{removed:?}");
    assert_eq!(place.on(), [""; 0]);
    assert!(!place.run_dir().join("sessions/flight").exists());
    Ok(())
}

/// A session whose rings take all space leaves its processes the space to report this, and to be stopped.
#[test]
fn rings_that_fill_the_run_directory_do_not_keep_it_on() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "full_run_dir::rings_that_fill_the_run_directory_do_not_keep_it_on";
    let Some(place) = small_place(test) else { return Ok(()) };
    let _children = [(); 6].map(|()| place.start(test));
    let mut spec = spec(&["traced:*"], &[]);
    spec.channel = (&Channel::overwrite(1 << 20).spares(16)).into();
    let session = place.controller.create("large", &spec)?;
    assert_eq!(place.acks(&session).len(), 6);
    fill_up(place.temp.path())?;
    let generation = session.change("stop", change_to(State::Stopped))?;
    let waited = session.wait(generation, PATIENCE)?;
    assert!(waited.silent.is_empty(), "{:?}", waited.silent);
    assert_eq!(place.on(), [""; 0]);
    assert!(session.destroy(PATIENCE, false)?.silent.is_empty());
    assert_eq!(place.on(), [""; 0]);
    Ok(())
}

/// Each of many processes finds free space when it starts; together they leave a quarter of it, and each has rings.
#[test]
fn processes_of_a_session_leave_a_quarter_together() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "full_run_dir::processes_of_a_session_leave_a_quarter_together";
    let Some(place) = small_place(test) else { return Ok(()) };
    let traced: Vec<_> = (0..12).map(|_| place.start(test)).collect();
    let mut wanted = spec(&["traced:*"], &[]);
    wanted.drain = DrainedBy::Recorder;
    let session = place.controller.create("s", &wanted)?;
    let began = Instant::now();
    loop {
        let acks = place.acks(&session);
        let without: Vec<_> = acks.iter().filter(|ack| ack.state != AckState::Recording).collect();
        if acks.len() == 12 && without.is_empty() {
            break;
        }
        // One that is refused because of what others reserve at the moment tries again.
        assert!(began.elapsed() < PATIENCE, "{without:?}");
    }
    place.until_recorded(&session, 100);
    let found = rustix::fs::statvfs(place.temp.path())?;
    // Other files next to the rings take some of it.
    assert!(found.f_bavail * 32 >= found.f_blocks * 7, "{} of {} blocks are left", found.f_bavail, found.f_blocks);
    assert!(traced.into_iter().all(crate::common::Other::end));
    Ok(())
}
