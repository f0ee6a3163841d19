//! The handlers around `fork` make no system call, except where a session records a fork in the child, which queries the id of its thread.

use crate::common::{Outcome, again, exit_status, part};
use crate::traced::{Place, tick};
use libc::{_exit, SYS_getpgid, fork, syscall};
use std::fs;
use std::path::Path;
use std::process::Command;
use tracepoint_session::{Agent, Channel, Session};

/// A process id that is not in use: a call with it is a mark in the log of system calls.
const MARK: i64 = 4_194_567;

fn mark() {
    // SAFETY: takes a plain number.
    let _ = unsafe { syscall(SYS_getpgid, MARK) };
}

/// Forks between two marks: the second is made by the parent and by the child.
fn fork_marked() -> Outcome {
    mark();
    // SAFETY: the child makes two system calls.
    match unsafe { fork() } {
        -1 => return Err(std::io::Error::last_os_error().into()),
        0 => {
            mark();
            // SAFETY: ends the process.
            unsafe { _exit(0) }
        }
        child => {
            mark();
            assert_eq!(exit_status(child), Some(0));
        }
    }
    Ok(())
}

/// Returns the names of the system calls of `fork` in the process that a test starts with this part, and in its child.
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
    // A call that is interrupted in the log has a second line; signals and ends have separate lines.
    let is_call = |call: &&str| !["<...", "---", "+++"].iter().any(|other| call.trim_start().starts_with(other));
    let of = |thread: &str| -> Vec<&str> {
        calls.iter().filter(|(other, _)| *other == thread).map(|(_, call)| *call).collect()
    };
    let in_parent = of(parent).into_iter().skip_while(|call| !is_mark(call)).skip(1).take_while(|call| !is_mark(call));
    let in_child = of(child).into_iter().take_while(|call| !is_mark(call));
    Ok([in_parent.filter(is_call).map(name).collect(), in_child.filter(is_call).map(name).collect()])
}

/// Returns whether a C library makes this call in `fork`.
fn is_of_libc(call: &str) -> bool {
    matches!(call, "rt_sigprocmask" | "set_robust_list" | "rseq")
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
    for (part, more) in [("plain", &[][..]), ("agent", &[]), ("session", &["gettid"])] {
        let [parent, child] = calls(&place, part)?;
        // A thread may have waited for the lock that is held around the fork.
        let parent: Vec<_> = parent.iter().filter(|call| *call != "futex" && !is_of_libc(call)).collect();
        assert!(parent.len() == 1 && (parent[0].starts_with("clone") || parent[0] == "fork"), "{part}: {parent:?}");
        let child: Vec<_> = child.iter().filter(|call| !is_of_libc(call)).collect();
        assert_eq!(child, more, "{part}");
    }
    Ok(())
}
