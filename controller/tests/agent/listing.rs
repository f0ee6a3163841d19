//! The published description of a process without any rules, and its cost.

use crate::common::{Outcome, again, assert_balances, until_ready};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tracepoint_controller::Controller;
use tracepoint_run_dir::{AckState, RunDir, TracepointKind};
use tracepoint_session::{Agent, AgentError};
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{Rule, SinkSpec};

#[test]
fn a_process_is_listed_with_its_tracepoints() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("listing::a_process_is_listed_with_its_tracepoints");
    let processes = place.controller.processes()?;
    let [process] = &processes[..] else { return Err(format!("{processes:?}").into()) };
    let info = process.info();
    assert_eq!(info.pid, child.id());
    assert_eq!(process.name(), info.key().to_string());
    assert!(info.platform.starts_with("sites: "), "{}", info.platform);
    assert_eq!(info.boot.len(), 36);

    let tracepoints = process.tracepoints()?;
    let traced: Vec<_> = tracepoints.iter().filter(|tracepoint| tracepoint.name.starts_with("traced:")).collect();
    let shown: Vec<_> = traced
        .iter()
        .map(|t| (t.name.as_str(), t.kind, t.level.as_str(), t.condition.as_str(), t.doc.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("traced:bare", TracepointKind::Hook, "DebugLine", "", "Nothing to record."),
            ("traced:tick", TracepointKind::Event, "Info", "", "Comes again and again."),
            ("traced:tock", TracepointKind::Event, "Debug", "n % 2 == 0", "Comes with it."),
        ]
    );
    let fields: Vec<_> = traced[1].fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    assert_eq!(fields, ["n: u64", "half: hex u32"]);
    assert_eq!((traced[0].arguments[0].name.as_str(), traced[0].arguments[0].ty.as_str()), ("n", "u64"));
    assert!(traced[0].declared.contains("traced.rs:"), "{}", traced[0].declared);

    assert_eq!(place.on(), [""; 0]);
    let mode =
        |path: PathBuf| fs::symlink_metadata(path).map(|file| (file.permissions().mode() & 0o777, file.file_type()));
    let entry = place.run_dir().join("apps").join(process.name());
    assert_eq!(mode(entry.clone())?.0, 0o700);
    assert!(mode(entry.join("bell"))?.1.is_socket());
    assert_eq!(mode(entry.join("process.json"))?.0, 0o600);

    // As that process sees it.
    let found = Controller::of_process(child.id())?;
    assert_eq!(found.path(), place.run_dir());
    assert_eq!(found.process(child.id())?.name(), process.name());
    assert!(child.end());
    assert!(place.controller.processes()?.is_empty());
    assert!(!entry.exists());
    Ok(())
}

/// A process with its own pid namespace and mounts, whose id is 1 there.
#[test]
fn a_process_in_a_pid_namespace_is_found_by_its_outer_id() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    assert!(rustix::process::geteuid().is_root(), "this test makes namespaces: run it as root");
    let place = Place::new();
    let test = "listing::a_process_in_a_pid_namespace_is_found_by_its_outer_id";
    // Its run directory is on a file system of its own mount namespace.
    let within = place.temp.path().join("within");
    fs::create_dir(&within)?;
    let own = again(test, "traced");
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c", "mount -t tmpfs tmpfs \"$0\" && exec \"$@\""])
        .arg(&within);
    command.arg(own.get_program()).args(own.get_args()).stdin(Stdio::piped());
    command.env("TEST_PART", "traced").env("TRACEPOINT_RUN_DIR", within.join("run"));
    let outer = until_ready(&mut command);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", outer.id()))?;
    let pid: u32 = children.trim().parse()?;

    assert_eq!(fs::read_dir(&within)?.count(), 0, "it cannot be seen from here");
    let controller = Controller::of_process(pid)?;
    let process = controller.process(pid)?;
    assert_eq!(process.info().pid, 1);
    assert!(process.is_alive());
    let mut spec = spec(&[], &[SinkSpec::ctf(within.join("out")).into()]);
    let mut rule = Rule::new("traced:tick");
    rule.process = Some(process.info().key());
    spec.add_rule(&rule)?;
    let session = controller.create("inside", &spec)?;
    let acks = session.wait(1, PATIENCE)?.acks;
    assert_eq!((acks[0].process.pid, acks[0].state), (1, AckState::Recording));
    assert!(session.destroy(PATIENCE, false)?.silent.is_empty());
    let out = format!("/proc/{pid}/root{}/out", within.display());
    assert_balances(&fs::read_dir(out)?.next().ok_or("no trace")??.path());
    assert!(outer.end());
    assert!(!process.is_alive());
    Ok(())
}

/// Returns the number of voluntary context switches of the agent's thread.
fn switches(pid: u32) -> Result<String, Box<dyn std::error::Error>> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        if status.starts_with("Name:\ttracepoint-agen") {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
            return Ok(line.ok_or("no count")?.to_owned());
        }
    }
    Err("no agent".into())
}

#[test]
fn an_idle_agent_does_not_wake_up() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("listing::an_idle_agent_does_not_wake_up");
    assert!(place.on().is_empty());
    // Until it sleeps again after its answer.
    let mut before = switches(child.id())?;
    loop {
        sleep(Duration::from_millis(20));
        let now = switches(child.id())?;
        if now == before {
            break;
        }
        before = now;
    }
    sleep(Duration::from_secs(1));
    assert_eq!(switches(child.id())?, before);
    Ok(())
}

#[test]
fn ended_processes_are_not_listed() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "listing::ended_processes_are_not_listed";
    let (mut killed, stays) = (place.start(test), place.start(test));
    assert_eq!(place.controller.processes()?.len(), 2);
    killed.kill();
    // An entry of a reused id, an incomplete entry, and a file that is not an entry.
    let apps = place.run_dir().join("apps");
    let entry = |name: &str| fs::create_dir(apps.join(name));
    entry(&format!("{}-1", stays.id()))?;
    entry(&format!("{}-2", stays.id()))?;
    entry("other")?;
    let ids: Vec<u32> = place.controller.processes()?.iter().map(|process| process.info().pid).collect();
    assert_eq!(ids, [stays.id()]);
    assert_eq!(fs::read_dir(&apps)?.count(), 2);
    let error = place.controller.process(killed.id()).expect_err("it is gone");
    assert!(matches!(error, ControlError::NoProcess { .. }), "{error}");
    let error = place.controller.process(std::process::id()).expect_err("it has no agent");
    assert!(error.to_string().contains("Agent::start"), "{error}");
    Ok(())
}

#[test]
fn a_second_agent_is_refused() -> Outcome {
    let temp = crate::common::memory_place();
    let run_dir = RunDir::at(&temp.path().join("run"))?;
    let agent = Agent::start_in(&run_dir)?;
    assert!(matches!(Agent::start_in(&run_dir), Err(AgentError::Running)));
    assert!(agent.path().join("bell").exists());
    drop(agent);
    let agent = Agent::start_in(&run_dir)?;
    assert_eq!(fs::read_dir(run_dir.path().join("apps"))?.count(), 1);
    drop(agent);
    assert_eq!(fs::read_dir(run_dir.path().join("apps"))?.count(), 0);
    Ok(())
}
