//! `fork` in a process with an agent makes the system calls that it makes without one; with a session, one more.

use crate::common::{Outcome, again, part};
use crate::traced::{Place, tick};
use nix::libc::{_exit, SYS_getpgid, syscall};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::fs;
use std::path::Path;
use std::process::Command;
use tracepoint_control::{Agent, Channel, Session};

/// A process id that nothing has: a call with it is a mark in the log of system calls.
const MARK: i64 = 4_194_567;

fn mark() {
    // SAFETY: takes a plain number.
    let _ = unsafe { syscall(SYS_getpgid, MARK) };
}

/// Forks between two marks: the second is made by the parent and by the child.
fn fork_marked() -> Outcome {
    mark();
    // SAFETY: the child makes two system calls.
    match unsafe { fork() }? {
        ForkResult::Child => {
            mark();
            // SAFETY: ends the process.
            unsafe { _exit(0) }
        }
        ForkResult::Parent { child } => {
            mark();
            waitpid(child, None)?;
        }
    }
    Ok(())
}

/// The names of the system calls of `fork` in the process that a test starts with this part, and in its child.
fn calls(place: &Place, part: &str) -> Result<[Vec<String>; 2], Box<dyn std::error::Error>> {
    let log = place.temp.path().join(part);
    let program = again("fork_cost::the_handlers_of_fork_make_hardly_a_system_call", part);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg(program.get_program()).args(program.get_args());
    strace.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    strace.env("TRACEPOINT_RUN_DIR", place.run_dir());
    let output = strace.output().expect("strace is installed (see scripts/setup.sh)");
    assert!(output.status.success(), "{output:?}");
    between_marks(&log)
}

fn between_marks(log: &Path) -> Result<[Vec<String>; 2], Box<dyn std::error::Error>> {
    let text = fs::read_to_string(log)?;
    let calls: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let is_mark = |call: &str| call.trim_start().starts_with(&format!("getpgid({MARK}"));
    let (parent, _) = calls.iter().find(|(_, call)| is_mark(call)).ok_or("no mark")?;
    let (child, _) = calls.iter().rfind(|(thread, call)| thread != parent && is_mark(call)).ok_or("no child")?;
    let name = |call: &str| call.trim_start().split(['(', ' ']).next().unwrap_or_default().to_owned();
    // A call that others interrupt in the log has a second line.
    let is_call = |call: &&str| !call.trim_start().starts_with("<...");
    let of = |thread: &str| -> Vec<&str> {
        calls.iter().filter(|(other, _)| *other == thread).map(|(_, call)| *call).collect()
    };
    let in_parent = of(parent).into_iter().skip_while(|call| !is_mark(call)).skip(1).take_while(|call| !is_mark(call));
    let in_child = of(child).into_iter().take_while(|call| !is_mark(call));
    Ok([in_parent.filter(is_call).map(name).collect(), in_child.filter(is_call).map(name).collect()])
}

#[test]
fn the_handlers_of_fork_make_hardly_a_system_call() -> Outcome {
    match part().as_str() {
        "plain" => return fork_marked(),
        "agent" => {
            let _agent = Agent::start()?;
            return fork_marked();
        }
        "session" => {
            let _agent = Agent::start()?;
            let session = Session::builder("forks")
                .events("traced:tick")
                .channel(Channel::overwrite(1 << 20))
                .in_memory()
                .start()?;
            tracepoint::trace!(tick(1, 0));
            fork_marked()?;
            session.stop()?;
            return Ok(());
        }
        _ => {}
    }
    let place = Place::new();
    let [plain_parent, plain_child] = calls(&place, "plain")?;
    assert!(plain_parent.iter().any(|call| call.starts_with("clone")), "{plain_parent:?}");
    assert_eq!(calls(&place, "agent")?, [plain_parent.clone(), plain_child.clone()]);
    // In a session, a thread may have waited for the lock that is held around the fork, and the child learns the id of its thread.
    let [parent, child] = calls(&place, "session")?;
    assert!(parent.iter().filter(|call| *call != "futex").eq(&plain_parent), "{parent:?}");
    assert_eq!(child, [&plain_child[..], &["gettid".to_owned()]].concat());
    Ok(())
}
