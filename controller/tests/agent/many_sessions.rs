//! Many sessions in one run directory: sessions for other programs cost a process only a check of each.
//!
//! `TRACEPOINT_SESSIONS` sets their number.

use crate::common::{Outcome, again, part, until_ready};
use crate::traced::{PATIENCE, Place, fire, is_traced, spec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::fs;
use std::time::{Duration, Instant};
use tracepoint_controller::NamedSession;
use tracepoint_run_dir::AckState;
use tracepoint_session_io::owner::end_with_this_process;
use tracepoint_session_spec::{ChannelSpec, SessionSpec, SinkSpec};

/// Maximum number of channels of a process.
const CHANNELS: usize = 32;
/// Maximum number of files that the process may have open: fewer than there are sessions.
const FILES: u64 = 64;

#[test]
fn a_program_may_have_fewer_files_than_there_are_sessions() -> Outcome {
    if part() == "limited" {
        setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), ..getrlimit(Resource::Nofile) })?;
        fire();
        return Ok(());
    }
    let sessions: u64 = env::var("TRACEPOINT_SESSIONS").map_or(Ok(100), |sessions| sessions.parse())?;
    let place = Place::new();
    // The session ends with this process, which owns it: an agent watches the owners of the sessions that record in its process.
    let mut wanted = spec(&["other:*"], &[SinkSpec::ctf(place.out("none")).into()]);
    end_with_this_process(&mut wanted);
    let look = || {
        let began = Instant::now();
        place.controller.session("s0").and_then(|session| session.spec()).map(|_| began.elapsed())
    };
    let fastest = || (0..20).map(|_| look()).min_by_key(|time| time.as_ref().map_or(Duration::MAX, |time| *time));
    let mut with_few = None;
    for number in 0..sessions {
        place.controller.create(&format!("s{number}"), &wanted.another())?;
        if number == 4 {
            with_few = fastest();
        }
    }
    // Reading one session does not read the others.
    let (with_few, with_all) = (with_few.ok_or("too few")??, fastest().ok_or("none")??);
    assert!(with_all < with_few * 5, "{with_few:?} among 5 sessions, {with_all:?} among {sessions}");
    let test = "many_sessions::a_program_may_have_fewer_files_than_there_are_sessions";
    let child = until_ready(again(test, "limited").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let last = place.controller.session(&format!("s{}", sessions - 1))?;
    let silent = last.wait(1, PATIENCE)?.silent;
    assert!(silent.is_empty(), "{silent:?}");
    let open = fs::read_dir(format!("/proc/{}/fd", child.id()))?.count();
    assert!(open < 32, "{open} descriptors are open");
    assert!(child.end());
    Ok(())
}

/// Memory that another process has released is used without a command.
#[test]
fn a_process_that_was_refused_tries_again_by_itself() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "many_sessions::a_process_that_was_refused_tries_again_by_itself";
    let (first, second) = (place.start(test), place.start(test));
    let mut wanted: SessionSpec = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("one")).into()]);
    (wanted.channel.ring_size, wanted.channel.spares) = (Some(1 << 20), Some(2));
    wanted.limits.memory_cap = Some(4 << 20);
    let session = place.controller.create("one", &wanted)?;
    let states = || -> Result<Vec<_>, Box<dyn std::error::Error>> {
        Ok(session.acks()?.into_iter().map(|ack| (ack.process.pid, ack.state)).collect())
    };
    session.wait(1, PATIENCE)?;
    let refused = states()?.into_iter().find(|(_, state)| *state == AckState::Refused);
    let (pid, _) = refused.ok_or_else(|| format!("both record: {:?}", states()))?;
    let (waits, records) = if first.id() == pid { (first, second) } else { (second, first) };
    assert!(records.end());
    let patience = Instant::now() + PATIENCE;
    while !states()?.contains(&(pid, AckState::Recording)) {
        assert!(Instant::now() < patience, "{:?}", session.acks()?);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(waits.end());
    Ok(())
}

/// A process has a limited number of channels. A session beyond the limit is refused before anything is created, once, until another
/// session has ended.
#[test]
fn a_session_beyond_the_bound_is_refused_until_another_one_ends() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("many_sessions::a_session_beyond_the_bound_is_refused_until_another_one_ends");
    let mut wanted = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("all")).into()]);
    (wanted.channel.ring_size, wanted.channel.spares) = (Some(32 << 10), Some(1));
    let create = |number: usize| place.controller.create(&format!("s{number}"), &wanted.another());
    let sessions = (0..=CHANNELS).map(create).collect::<Result<Vec<_>, _>>()?;
    let last = sessions.last().ok_or("there is one")?;
    let ack = place.acks(last).remove(0);
    let error = ack.error.unwrap_or_default();
    assert!(ack.state == AckState::Refused && error.contains("32 are allowed"), "{error}");
    // An attempt would create the directory of the rings.
    let changed = || fs::metadata(last.path()).and_then(|dir| dir.modified());
    let before = changed()?;
    for _ in 0..3 {
        place.acks(last);
    }
    assert_eq!(changed()?, before, "it was tried again");
    assert!(!last.path().join("rings").exists() && crate::common::names(&place.out("all")).len() == CHANNELS);
    assert!(sessions[0].destroy(PATIENCE, false)?.silent.is_empty());
    until_recording(last)?;
    assert!(child.end());
    Ok(())
}

/// Reads the acknowledgement of the process without waking it.
fn until_recording(session: &NamedSession<'_>) -> Outcome {
    let patience = Instant::now() + PATIENCE;
    while session.acks()?.iter().any(|ack| ack.state != AckState::Recording) {
        assert!(Instant::now() < patience, "{:?}", session.acks()?);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Two sessions wait, and are retried before the channels are removed that make room for them. The second one waits until the first has
/// been retried.
#[test]
fn sessions_wait_for_channels_that_another_one_gives_up() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("many_sessions::sessions_wait_for_channels_that_another_one_gives_up");
    let small = |mut channel: ChannelSpec| {
        (channel.ring_size, channel.spares) = (Some(32 << 10), Some(1));
        channel
    };
    let wanted = |name: &str| {
        let mut wanted = spec(&["traced:tick"], &[SinkSpec::ctf(place.out(name)).into()]);
        wanted.channel = small(wanted.channel);
        wanted
    };
    // As many channels as two sessions may have.
    let mut holding = Vec::new();
    for name in ["y", "z"] {
        let mut many = wanted(name);
        many.channels = (1..CHANNELS / 2)
            .map(|number| small(ChannelSpec::overwrite(32 << 10).named(format!("c{number}"))))
            .collect();
        holding.push(place.controller.create(name, &many)?);
    }
    for session in &holding {
        assert_eq!(place.acks(session)[0].state, AckState::Recording);
    }
    let waiting = ["a", "b"].map(|name| place.controller.create(name, &wanted(name)));
    for session in &waiting {
        assert_eq!(place.acks(session.as_ref().expect("a session"))[0].state, AckState::Refused);
    }
    holding[1].change("two channels less", |spec| {
        spec.channels.truncate(CHANNELS / 2 - 3);
        Ok(())
    })?;
    for session in waiting {
        until_recording(&session?)?;
    }
    assert!(child.end());
    Ok(())
}
