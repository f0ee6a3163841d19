//! The threads of the agent and of sessions do not inherit the priority and the processors of the thread that starts them.

use crate::common::{Outcome, again, until_ready};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use std::fs;
use std::process::Command;
use tracepoint_session_spec::SinkSpec;

/// The initial scheduling of the process: real-time priority 50, on processor 0.
const WRAPPER: [&str; 6] = ["chrt", "-f", "50", "taskset", "-c", "0"];

/// Name, policy, priority and processors of a thread.
type Thread = (String, u32, u32, String);

fn threads(process: u32) -> Result<Vec<Thread>, Box<dyn std::error::Error>> {
    let mut threads = Vec::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        let stat = fs::read_to_string(task.join("stat"))?;
        let (head, rest) = stat.rsplit_once(')').ok_or("no name")?;
        // Fields 40 and 41; the first after the name is the third.
        let field = |number: usize| rest.split_whitespace().nth(number - 3).unwrap_or_default().parse();
        let name = head.split_once('(').ok_or("no name")?.1.to_owned();
        let status = fs::read_to_string(task.join("status"))?;
        let processors = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).ok_or("no mask")?;
        threads.push((name, field(41)?, field(40)?, processors.trim().to_owned()));
    }
    Ok(threads)
}

/// Returns the threads of a process that is recorded and served, and starts at a real-time priority: those of this library, and the others.
fn started(name: &str, inherits: &str) -> Result<[Vec<Thread>; 2], Box<dyn std::error::Error>> {
    let place = Place::new();
    let program = again("scheduling::threads_leave_the_scheduling_of_their_starter", "traced");
    let mut command = Command::new(WRAPPER[0]);
    command.args(&WRAPPER[1..]).arg(program.get_program()).args(program.get_args()).stdin(std::process::Stdio::piped());
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("TRACEPOINT_RUN_DIR", place.run_dir()).env("TRACEPOINT_INHERIT_SCHEDULING", inherits);
    let process = until_ready(&mut command);
    let session = place.controller.create(
        name,
        &spec(&["traced:tick"], &[SinkSpec::ctf(place.out(name)).into(), SinkSpec::udp("127.0.0.1:0".parse()?).into()]),
    )?;
    place.until_recorded(&session, 1);
    let parts = threads(process.id())?.into_iter().partition(|(name, ..)| name.starts_with("tracepoint"));
    session.destroy(PATIENCE, false)?;
    Ok([parts.0, parts.1])
}

#[test]
fn threads_leave_the_scheduling_of_their_starter() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    if !Command::new(WRAPPER[0]).args(&WRAPPER[1..]).arg("true").status()?.success() {
        crate::skip::skip("no real-time priority on processor 0", "Run as root");
        return Ok(());
    }
    let is_real_time = |(_, policy, priority, processors): &Thread| (*policy, *priority, &**processors) == (1, 50, "0");
    let [ours, others] = started("left", "")?;
    assert!(ours.len() >= 4, "the agent, the drain, the supply and the server: {ours:?}");
    assert!(others.iter().all(is_real_time), "{others:?}");
    assert!(ours.iter().all(|(_, policy, priority, _)| (*policy, *priority) == (0, 0)), "{ours:?}");
    // A machine may have no other processor.
    if fs::read_to_string("/sys/devices/system/cpu/online")?.trim() != "0" {
        assert!(ours.iter().all(|(.., processors)| processors != "0"), "{ours:?}");
    }
    let [ours, _] = started("inherited", "1")?;
    assert!(ours.iter().all(is_real_time), "{ours:?}");
    Ok(())
}
