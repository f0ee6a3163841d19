//! The processes of these tests: the target of control, and the processes that try to control it.

use super::{SHADOW, USER, members};
use crate::common::part;
use crate::traced::{PATIENCE, spec};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_thread_res_uid};
use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tracepoint_controller::{Controller, NamedSession};
use tracepoint_run_dir::RunDir;
use tracepoint_session::sinks::udp::port_from_environment;
use tracepoint_session::{Agent, Channel, Session};
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{ChannelSpec, Rule, SinkSpec, State};

pub(super) type Said = Result<String, Box<dyn Error>>;

fn answer(text: &str) {
    println!("answer: {}", text.replace('\n', " "));
}

/// The part of a process that a test starts.
pub(super) fn is_told() -> Result<bool, Box<dyn Error>> {
    let act: fn(&mut Option<Agent>, &str) -> Said = match part().as_str() {
        "target" => change,
        "controller" => |_, line| Ok(control(line).unwrap_or_else(|error| error.to_string())),
        _ => return Ok(false),
    };
    let mut agent = None;
    answer("there");
    std::thread::spawn(|| {
        for n in 0.. {
            crate::traced::fire_once(n);
            sleep(Duration::from_millis(1));
        }
    });
    for line in std::io::stdin().lines() {
        answer(&act(&mut agent, &line?)?);
    }
    Ok(true)
}

/// The outcome of a call of the C library.
fn succeeded(result: i32) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The target: changes its rights, and starts its agent.
fn change(agent: &mut Option<Agent>, line: &str) -> Said {
    match line {
        "start" => match Agent::start() {
            Ok(started) => *agent = Some(started),
            Err(error) => return Ok(error.to_string()),
        },
        "not dumpable" => set_dumpable_behavior(DumpableBehavior::NotDumpable)?,
        "dumpable" => set_dumpable_behavior(DumpableBehavior::Dumpable)?,
        // SAFETY: takes plain numbers.
        "become the user" => succeeded(unsafe { libc::setresuid(USER, USER, USER) })?,
        // Of this thread only, as in file servers.
        "become the user here" => {
            let user = rustix::process::Uid::from_raw(USER);
            set_thread_res_uid(user, user, user)?;
        }
        "port" => return Ok(port_from_environment()?.to_string()),
        "record" => {
            let channel = Channel::overwrite(64 << 10);
            let session = Session::builder("own").events("traced:tick").channel(channel).start()?;
            let notices: Vec<_> = session.notices().iter().map(ToString::to_string).collect();
            session.stop()?;
            return Ok(format!("notices: {}", notices.join("; ")));
        }
        // SAFETY: takes plain numbers.
        "become the group" => succeeded(unsafe { libc::setresgid(SHADOW, SHADOW, SHADOW) })?,
        "drop capabilities" => {
            let none = CapabilitySet::empty();
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        }
        _ => return Err(format!("unknown: {line}").into()),
    }
    Ok("done".to_owned())
}

/// A controller: tries to make the process with this id record into files in this directory, and to read its rings: `PID DIRECTORY`. Or
/// starts such a session, and leaves it: `begin DIRECTORY`; and removes it: `end`. Or performs [the commands of members](members::act).
fn control(line: &str) -> Said {
    if let Some(said) = members::act(line) {
        return said;
    }
    let found = || Controller::at(RunDir::at(&own_run_dir())?);
    let mut wanted = spec(&[], &[]);
    wanted.add_rule(&Rule::new("traced:tick").exe("program"))?;
    let (pid, directory) = match line.split_once(' ') {
        None if line == "again" => {
            let controller = found()?;
            let session = controller.session("kept")?;
            for state in [State::Stopped, State::Active] {
                session.change("again", |spec| {
                    spec.state = state;
                    Ok(())
                })?;
            }
            return recording(&session);
        }
        None => {
            found()?.session("kept")?.destroy(PATIENCE, false)?;
            return Ok("done".to_owned());
        }
        Some(("begin", directory)) => {
            wanted.sinks.push(SinkSpec::text(Path::new(directory).join("kept.txt")).into());
            let controller = found()?;
            return recording(&controller.create("kept", &wanted)?);
        }
        Some(attacked) => attacked,
    };
    let found = Controller::of_process(pid.parse()?);
    let mut outcomes = vec![match found.and_then(|found| found.process(pid.parse().unwrap_or(0)).map(|_| found)) {
        Ok(controller) => attack(&controller, pid, Path::new(directory))?,
        Err(error) => error.to_string(),
    }];
    // Without reading `/proc`: a directory that this user can write to.
    let own = own_run_dir();
    if !rustix::process::geteuid().is_root() && own.exists() {
        let controller = RunDir::at(&own).map_err(ControlError::from).and_then(Controller::at)?;
        outcomes.push(attack(&controller, pid, Path::new(directory))?);
    }
    Ok(if outcomes.iter().any(|outcome| outcome == "controlled") {
        "controlled".to_owned()
    } else {
        outcomes.remove(0)
    })
}

/// Returns how many processes record for the session, and why others do not.
pub(super) fn recording(session: &NamedSession<'_>) -> Said {
    let generation = session.spec()?.generation;
    let acks = session.wait(generation, PATIENCE)?.acks;
    let (failed, recording): (Vec<_>, Vec<_>) = acks.into_iter().map(|ack| ack.error).partition(Option::is_some);
    Ok(format!("{} recording: {}", recording.len(), failed.into_iter().flatten().collect::<Vec<_>>().join("; ")))
}

pub(super) fn own_run_dir() -> PathBuf {
    let default = || format!("/dev/shm/tracepoint-{}", rustix::process::geteuid().as_raw()).into();
    env::var_os("TRACEPOINT_RUN_DIR").map_or_else(default, PathBuf::from)
}

fn attack(controller: &Controller, pid: &str, directory: &Path) -> Said {
    let pid: u32 = pid.parse()?;
    let mut wanted = spec(
        &[],
        &[SinkSpec::text(directory.join("events.txt")).into(), SinkSpec::ctf(directory.join("trace")).into()],
    );
    wanted.add_rule(&Rule::new("traced:tick").exe("program"))?;
    if env::var_os("TRACEPOINT_GROUP").is_some() {
        // A member may have the rings.
        wanted.sinks.clear();
        wanted.channel = ChannelSpec::overwrite(64 << 10);
    }
    let session = controller.create(&format!("attack-{pid}"), &wanted)?;
    let generation = session.spec()?.generation;
    let answered = session.wait(generation, PATIENCE)?;
    let acks = answered.acks.iter().filter(|ack| ack.process.pid == pid);
    let outcome = match acks.map(|ack| ack.error.clone()).next() {
        Some(None) => "controlled".to_owned(),
        Some(Some(error)) => format!("refused: {error}"),
        None => "no answer".to_owned(),
    };
    session.destroy(PATIENCE, false)?;
    Ok(outcome)
}
