//! A controller waits only for the processes that take part in a session.

use crate::common::Outcome;
use crate::traced::{PATIENCE, Place, go_on, is_traced, spec, stop};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;
use tracepoint_controller::Application;
use tracepoint_session_spec::{Rule, SinkSpec};

fn ids(processes: &[Application]) -> Vec<u32> {
    processes.iter().map(|process| process.info().pid).collect()
}

#[test]
fn a_stopped_process_outside_the_session_is_not_waited_for() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "participants::a_stopped_process_outside_the_session_is_not_waited_for";
    let (runs, stopped) = (place.start(test), place.start(test));
    stop(&stopped)?;

    let short = Duration::from_millis(50);
    let mut only = Rule::new("traced:tick");
    only.process = Some(place.controller.process(runs.id())?.info().key());
    let mut wanted = spec(&[], &[SinkSpec::ctf(place.out("s")).into()]);
    wanted.add_rule(&only)?;
    wanted.add_rule(&Rule::new("!*:other"))?;
    let session = place.controller.create("s", &wanted)?;
    // Waits for as long as one process takes, and not at all for the other one.
    assert_eq!(ids(&session.wait(1, PATIENCE)?.silent), [0; 0]);
    assert_eq!(ids(&session.refresh(PATIENCE)?), [0; 0]);
    assert_eq!(ids(&place.controller.refresh(short)?), [stopped.id()]);

    // With a rule for all events of the process.
    let all = Rule::new("traced:tock");
    let generation = session.change("enable", |spec| {
        spec.add_rule(&all).expect("a rule");
        Ok(())
    })?;
    assert_eq!(ids(&session.wait(generation, short)?.silent), [stopped.id()]);
    assert_eq!(ids(&session.refresh(short)?), [stopped.id()]);
    go_on(&stopped)?;
    assert_eq!(ids(&session.wait(generation, PATIENCE)?.silent), [0; 0]);

    // The controller waits for a recording process until it stops, even if no rule applies to it any more.
    stop(&stopped)?;
    let generation = session.change("disable", |spec| {
        assert_eq!(spec.remove_rule(&all), 1);
        Ok(())
    })?;
    assert_eq!(ids(&session.wait(generation, short)?.silent), [stopped.id()]);
    go_on(&stopped)?;
    assert_eq!(ids(&session.wait(generation, PATIENCE)?.silent), [0; 0]);
    assert_eq!(ids(&session.destroy(PATIENCE, false)?.silent), [0; 0]);
    assert!(runs.end() && stopped.end());
    Ok(())
}

/// Returns how often a file of this directory was opened since the last call.
fn opened(watch: &impl AsFd, name: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let mut buffer = [const { MaybeUninit::uninit() }; 4096];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    let mut count = 0;
    loop {
        match reader.next() {
            Ok(event) => count += usize::from(event.file_name().is_some_and(|file| file.to_bytes() == name.as_bytes())),
            Err(Errno::WOULDBLOCK) => return Ok(count),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// While the controller waits for other processes, it does not read the acknowledgements of those that have answered.
#[test]
fn the_answer_of_a_process_is_read_once() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "participants::the_answer_of_a_process_is_read_once";
    let (runs, stopped) = (place.start(test), place.start(test));
    let session = place.record("s", &["traced:tick"]);
    assert_eq!(ids(&session.wait(1, PATIENCE)?.silent), [0; 0]);
    stop(&stopped)?;
    let generation = session.change("enable", |spec| {
        spec.add_rule(&Rule::new("traced:tock")).expect("a rule");
        Ok(())
    })?;
    // Without the agent, which opens its own file as well.
    let running = place.controller.process(runs.id())?;
    while session.acks()?.iter().any(|ack| ack.process == running.info().key() && ack.generation < generation) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watch, session.path().join("acks"), inotify::WatchFlags::OPEN)?;
    assert_eq!(ids(&session.wait(generation, Duration::from_millis(500))?.silent), [stopped.id()]);
    // To find the participants, in the first check, and for the result.
    let count = opened(&watch, &format!("{}.json", running.name()))?;
    assert!(count <= 3, "{count} times");
    go_on(&stopped)?;
    assert!(runs.end() && stopped.end());
    Ok(())
}
