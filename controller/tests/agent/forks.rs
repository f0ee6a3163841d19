//! Forked children of a remotely controlled process.

use crate::common::{Other, Outcome, again, assert_balances, exit_status, names, part, until_ready, view};
use crate::traced::{PATIENCE, Place, spec, traces};
use rustix::process::{WaitOptions, getppid, wait};
use std::env;
use std::io::stdin;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::Duration;
use tracepoint_session::{Agent, AgentError, state_dump};
use tracepoint_session_spec::SinkSpec;

tracepoint::define_trace! {
    provider = "family";

    /// Comes again and again, in each process.
    #[level(Info)]
    pub alive(pid: u32) { pid: u32 = pid }

    /// Where it came from.
    pub came(from: &str) { from: str = from }
}

/// The variable that makes a process follow its children.
const FOLLOW: &str = "TEST_FOLLOW";
/// The variable that makes it run threads that allocate.
const BUSY: &str = "TEST_BUSY";
/// The variable with the path of a file whose presence ends the process.
const END: &str = "TEST_END";

/// Fires until it is time to end, or until the parent has died.
fn fire_until(end: &Path) {
    let parent = getppid();
    while !end.exists() && getppid() == parent {
        tracepoint::trace!(alive(std::process::id()));
        sleep(Duration::from_micros(500));
    }
}

/// Holds the allocator's locks most of the time.
fn allocate_until(end: &Path) {
    while !end.exists() {
        for size in 1..2000_usize {
            std::hint::black_box(vec![0_u8; size * 37 % 9001]);
        }
    }
}

/// The part of the process that a test starts: forks children of the kind in each line. Returns `false` in the test itself.
fn is_parent() -> bool {
    if part() != "parent" {
        return false;
    }
    let follow = env::var(FOLLOW).is_ok();
    let end = PathBuf::from(env::var(END).expect("where to look"));
    let mut agent = Some(Agent::builder().follow_fork(follow).start().expect("an agent"));
    let _dump = state_dump("came", |_| tracepoint::trace!(came("a dump")));
    scope(|scope| {
        scope.spawn(|| fire_until(&end));
        if env::var(BUSY).is_ok() {
            scope.spawn(|| allocate_until(&end));
            scope.spawn(|| allocate_until(&end));
        }
        println!("ready");
        for line in stdin().lines().map_while(Result::ok) {
            // SAFETY: the child does what C libraries allow after a fork in a program with threads: it allocates, traces, and ends or
            // becomes another program. The lock of the standard input that its parent holds is not touched there.
            match unsafe { libc::fork() } {
                0 => {
                    if line == "exec" {
                        let _ = Command::new("/bin/sh").args(["-c", "sleep 0.4; exit 7"]).exec();
                    }
                    fire_until(&end);
                    drop(agent.take());
                    // SAFETY: takes a plain number, and ends the process.
                    unsafe { libc::_exit(0) };
                }
                child if line == "exec" => {
                    assert_eq!(exit_status(child), Some(7));
                    println!("the other program has ended");
                }
                child => assert!(child > 0),
            }
        }
    });
    while let Ok(Some((_, status))) = wait(WaitOptions::empty()) {
        assert_eq!(status.exit_status(), Some(0));
    }
    true
}

fn parent(place: &Place, test: &str, follow: bool) -> Other {
    until_ready(&mut command(place, test, follow))
}

fn command(place: &Place, test: &str, follow: bool) -> Command {
    let mut command = again(&format!("forks::{test}"), "parent");
    command.env("TRACEPOINT_RUN_DIR", place.run_dir()).env(END, place.temp.path().join("end"));
    if follow {
        command.env(FOLLOW, "1");
    }
    command
}

/// Returns the ids of the listed processes once there are this many.
fn listed(place: &Place, count: usize) -> Vec<u32> {
    loop {
        let all: Vec<_> =
            place.controller.processes().expect("processes").iter().map(|process| process.info().pid).collect();
        if all.len() == count {
            return all;
        }
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn followed_children_have_their_own_agent() -> Outcome {
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let mut parent = parent(&place, "followed_children_have_their_own_agent", true);
    let session = place.record("family", &["family:*"]);
    place.until_recorded(&session, 20);
    parent.say("live")?;
    parent.say("live")?;
    let pids = listed(&place, 3);
    assert!(pids.contains(&parent.id()));
    let acks = place.until_recorded(&session, 20);
    assert_eq!(acks.len(), 3);
    assert!(acks.iter().all(|ack| ack.events == 2 && ack.error.is_none()), "{acks:?}");
    assert!(acks.iter().all(|ack| ack.state_dumps.len() == 1 && ack.state_dumps[0].ran == 1), "{acks:?}");
    // No process has two recordings, and no recording is disturbed.
    assert_eq!(place.on().iter().filter(|name| *name == "family:alive").count(), 3);

    // They end by themselves, and end their parts of the session.
    std::fs::write(place.temp.path().join("end"), "")?;
    assert!(parent.end());
    assert_eq!(names(&place.run_dir().join("apps")), [""; 0]);
    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty() && removed.dead.is_empty(), "{removed:?}");
    let traces = traces(&place.out("family"));
    assert_eq!(traces.len(), 3);
    for (trace, ack) in traces.iter().zip(pids) {
        assert_balances(trace);
        let viewed = view(&[trace]);
        assert_eq!(viewed.warnings, "");
        let own = viewed.count(&format!("pid = {ack} }}"));
        assert!(own >= 20, "{own} of {ack}");
        assert_eq!(own, viewed.count(" family:alive:"), "nothing of another process's");
        assert_eq!((viewed.count(" family:came:"), viewed.count(" tracepoint:state_")), (1, 2));
    }
    let all = removed.acks.iter().map(|ack| ack.counters.clone());
    assert!(all.clone().all(|counters| counters.total_lost() == 0), "{:?}", all.collect::<Vec<_>>());
    Ok(())
}

/// A child that calls `exec` immediately is not listed, and the new program runs normally.
#[test]
fn a_child_that_calls_exec_is_not_followed() -> Outcome {
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let mut parent = parent(&place, "a_child_that_calls_exec_is_not_followed", true);
    let session = place.record("family", &["family:*"]);
    parent.say("exec")?;
    assert!(parent.says("the other program has ended"));
    // If it had been listed, its entry would still exist: no entry has been removed.
    assert_eq!(names(&place.run_dir().join("apps")).len(), 1);
    assert_eq!(place.acks(&session).len(), 1);
    std::fs::write(place.temp.path().join("end"), "")?;
    assert!(parent.end());
    Ok(())
}

#[test]
fn a_child_that_is_not_followed_is_not_listed() -> Outcome {
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let mut parent = parent(&place, "a_child_that_is_not_followed_is_not_listed", false);
    let session = place.record("family", &["family:*"]);
    place.until_recorded(&session, 5);
    parent.say("live")?;
    place.until_recorded(&session, 200);
    assert_eq!(listed(&place, 1), [parent.id()]);
    std::fs::write(place.temp.path().join("end"), "")?;
    assert!(parent.end());
    session.destroy(PATIENCE, false)?;
    let trace = &traces(&place.out("family"))[0];
    assert_balances(trace);
    Ok(())
}

/// Children of a program whose other threads are inside the allocator and in its sites during the fork.
#[test]
fn many_children_are_forked_under_load() -> Outcome {
    const CHILDREN: usize = 12;
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let mut wanted = spec(&["family:*"], &[SinkSpec::ctf(place.out("family")).into()]);
    (wanted.channel.ring_size, wanted.channel.spares) = (Some(64 << 10), Some(2));
    let session = place.controller.create("family", &wanted)?;
    let mut parent = until_ready(command(&place, "many_children_are_forked_under_load", true).env(BUSY, "1"));
    for _ in 0..CHILDREN {
        parent.say("live")?;
    }
    listed(&place, CHILDREN + 1);
    place.until_recorded(&session, 3);
    std::fs::write(place.temp.path().join("end"), "")?;
    assert!(parent.end());
    let removed = session.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty() && removed.dead.is_empty(), "{removed:?}");
    let traces = traces(&place.out("family"));
    assert_eq!(traces.len(), CHILDREN + 1);
    for trace in &traces {
        assert_balances(trace);
    }
    Ok(())
}

/// A later session also records the child.
#[test]
fn a_child_joins_later_sessions() -> Outcome {
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let mut parent = parent(&place, "a_child_joins_later_sessions", true);
    let session = place.record("family", &["family:alive"]);
    parent.say("live")?;
    let child = listed(&place, 2).into_iter().find(|pid| *pid != parent.id()).ok_or("a child")?;
    place.until_recorded(&session, 5);
    let (stopped, another) = (session.destroy(PATIENCE, false)?, place.record("another", &["family:alive"]));
    assert_eq!(stopped.acks.len(), 2);
    let acks = place.until_recorded(&another, 5);
    assert!(acks.iter().any(|ack| ack.process.pid == child && ack.counters.recorded > 0), "{acks:?}");
    // The child detects that its parent has died, and ends as well.
    parent.kill();
    std::fs::write(place.temp.path().join("end"), "")?;
    listed(&place, 0);
    Ok(())
}

#[test]
fn a_second_agent_is_refused_with_or_without_following_forks() -> Outcome {
    if is_parent() {
        return Ok(());
    }
    let place = Place::new();
    let run_dir = tracepoint_run_dir::RunDir::at(&place.run_dir())?;
    let first = Agent::builder().follow_fork(true).start_in(&run_dir)?;
    assert!(matches!(Agent::start_in(&run_dir), Err(AgentError::Running)));
    drop(first);
    drop(Agent::start_in(&run_dir)?);
    Ok(())
}
