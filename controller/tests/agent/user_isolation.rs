//! Untrusted input: planted links, directories of other users, environments of callers with fewer rights.
//!
//! These tests act as several users, and need root.

use crate::common::{Outcome, assert_balances, memory_place, part, until_ready};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use tracepoint_controller::Controller;
use tracepoint_run_dir::{AckState, RunDir};
use tracepoint_session::Agent;
use tracepoint_session_spec::{ChannelSpec, SinkSpec};

/// Two users.
const USERS: [u32; 2] = [65_533, 65_534];

fn must_be_root() {
    assert!(rustix::process::geteuid().is_root(), "this test plays several users: run it as root");
}

/// Lets all users enter the directory.
fn open_to_all(dir: &Path) -> std::io::Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}

/// Returns the command that runs this test as that user, from a copy of the program that all users can run.
fn as_user(user: u32, program: &Path, test: &str, run_dir: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]).arg(program);
    command
        .args(["--exact", test, "--quiet", "--nocapture"])
        .env("TEST_PART", "traced")
        .env("TRACEPOINT_RUN_DIR", run_dir);
    command.stdin(Stdio::piped());
    command
}

/// Copies this program to `dir`.
fn copied(dir: &Path) -> std::io::Result<std::path::PathBuf> {
    let copy = dir.join("program");
    fs::copy(env::current_exe()?, &copy)?;
    fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
    Ok(copy)
}

#[test]
fn planted_links_and_foreign_directories_are_refused() -> Outcome {
    must_be_root();
    let temp = memory_place();
    let at = |name: &str| temp.path().join(name);
    RunDir::at(&at("real"))?;
    symlink(at("real"), at("link"))?;
    let refused = |path: &Path| RunDir::at(path).expect_err("it is refused").to_string();
    assert!(refused(&at("link")).contains("TRACEPOINT_RUN_DIR"), "{}", refused(&at("link")));
    fs::create_dir(at("foreign"))?;
    chown(at("foreign"), Some(USERS[0]), None)?;
    assert!(refused(&at("foreign")).contains("belongs to user 65533"), "{}", refused(&at("foreign")));
    fs::create_dir(at("open"))?;
    fs::set_permissions(at("open"), Permissions::from_mode(0o777))?;
    assert!(refused(&at("open")).contains("chmod go-w"), "{}", refused(&at("open")));

    // With files of other users in it.
    for place in ["apps", "sessions"] {
        let run_dir = RunDir::at(&at(&format!("with-{place}")))?;
        fs::create_dir_all(at("elsewhere"))?;
        symlink(at("elsewhere"), run_dir.path().join(place))?;
        let error = Agent::start_in(&run_dir).expect_err("it is refused").to_string();
        assert!(error.contains("cannot be controlled from outside") && error.contains(place), "{error}");
        assert!(Controller::at(run_dir).is_err());
        assert_eq!(fs::read_dir(at("elsewhere"))?.count(), 0);
    }
    // Afterwards the program can still start an agent.
    drop(Agent::start_in(&RunDir::at(&at("real"))?)?);
    Ok(())
}

#[test]
fn a_session_that_is_a_link_is_ignored() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("user_isolation::a_session_that_is_a_link_is_ignored");
    let real = place.record("real", &["nothing:*"]);
    let sessions = place.run_dir().join("sessions");
    fs::create_dir(place.temp.path().join("elsewhere"))?;
    let text = spec(&["traced:*"], &[SinkSpec::ctf(place.out("link")).into()]).to_toml()?;
    fs::write(place.temp.path().join("elsewhere/session.toml"), &text)?;
    symlink(place.temp.path().join("elsewhere"), sessions.join("link"))?;
    fs::create_dir(sessions.join("half"))?;
    symlink(place.temp.path().join("elsewhere/session.toml"), sessions.join("half/session.toml"))?;
    assert_eq!(place.on(), [""; 0]);
    assert_eq!(place.controller.sessions()?, ["half", "real"]);
    assert!(place.controller.session("half")?.spec().is_err());
    real.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn users_cannot_access_each_others_processes() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    must_be_root();
    let test = "user_isolation::users_cannot_access_each_others_processes";
    let place = Place::new();
    open_to_all(place.temp.path())?;
    let program = copied(place.temp.path())?;
    // Another user's run directory: the program continues without an agent.
    let output = as_user(USERS[0], &program, test, &place.run_dir()).stdin(Stdio::null()).output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(out.contains("name another run directory in TRACEPOINT_RUN_DIR"), "{out}");
    assert!(place.controller.processes()?.is_empty());

    // Its own: root detects that it is another user's, and does not use it.
    let own = place.temp.path().join("own");
    fs::create_dir(&own)?;
    fs::set_permissions(&own, Permissions::from_mode(0o700))?;
    chown(&own, Some(USERS[0]), Some(USERS[0]))?;
    let child = until_ready(&mut as_user(USERS[0], &program, test, &own));
    assert_eq!(fs::read_dir(own.join("apps"))?.count(), 1);
    let error = Controller::of_process(child.id()).expect_err("it is another user's").to_string();
    assert!(error.contains("belongs to user 65533, not to 0"), "{error}");
    assert!(child.end());
    Ok(())
}

/// Attempts of a group member to control another user's process.
fn control(run_dir: &Path) -> Outcome {
    let controller = Controller::at(RunDir::at(run_dir)?)?;
    // A member names no outputs: `rights::a_member_names_no_outputs`.
    let mut wanted = spec(&["traced:tick"], &[]);
    wanted.channel = ChannelSpec::overwrite(64 << 10);
    let session = controller.create("shared", &wanted)?;
    let answered = session.wait(1, PATIENCE)?;
    assert_eq!((answered.acks.len(), answered.silent.len()), (1, 0), "{answered:?}");
    assert_eq!(answered.acks[0].error, None);
    assert_eq!(answered.acks[0].state, AckState::Recording);
    assert!(controller.refresh(PATIENCE)?.is_empty());
    // Rings of another user can be read.
    tracepoint_reader::recover(&session.path(), &run_dir.with_file_name("snapshot"))?;
    assert!(session.destroy(PATIENCE, false)?.silent.is_empty());
    println!("controlled");
    Ok(())
}

#[test]
fn a_group_shares_a_run_directory() -> Outcome {
    if part() == "control" {
        return control(Path::new(&env::var_os("TRACEPOINT_RUN_DIR").ok_or("no run directory")?));
    }
    if is_traced() {
        return Ok(());
    }
    must_be_root();
    let test = "user_isolation::a_group_shares_a_run_directory";
    let temp = memory_place();
    open_to_all(temp.path())?;
    let program = copied(temp.path())?;
    let all = temp.path().join("all");
    fs::create_dir(&all)?;
    fs::set_permissions(&all, Permissions::from_mode(0o1777))?;
    let run_dir = all.join("run");
    let member = |user: u32, groups: &str, part: &str, named: bool| {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}"), groups.to_owned()]).arg(&program);
        command.args(["--exact", test, "--quiet", "--nocapture"]).stdin(Stdio::piped());
        command.env("TEST_PART", part).env("TRACEPOINT_RUN_DIR", &run_dir);
        if named {
            command.env("TRACEPOINT_GROUP", "60000");
        }
        command
    };
    let child = until_ready(&mut member(USERS[0], "--groups=60000", "traced", true));
    let mode = fs::metadata(&run_dir)?;
    assert_eq!((mode.permissions().mode() & 0o777, mode.gid()), (0o770, 60_000));
    let output = member(USERS[1], "--groups=60000", "control", true).output()?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && out.contains("controlled"), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert_balances(&all.join("snapshot"));
    // A process without the variable does not use the group, and a user outside the group has no access.
    for (groups, named) in [("--groups=60000", false), ("--clear-groups", true)] {
        assert!(!member(USERS[1], groups, "control", named).output()?.status.success(), "{groups}");
    }
    assert!(child.end());
    Ok(())
}

/// A set-user-id program does not write to a directory that its caller chooses. `rights` tests the users to whom it offers control.
#[test]
fn a_setuid_program_ignores_the_environment() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    must_be_root();
    // Memory file systems are often mounted such that programs on them gain no rights.
    let temp = tempfile::tempdir()?;
    open_to_all(temp.path())?;
    let program = copied(temp.path())?;
    fs::set_permissions(&program, Permissions::from_mode(0o4755))?;
    let target = temp.path().join("target");
    fs::create_dir(&target)?;
    fs::set_permissions(&target, Permissions::from_mode(0o777))?;
    let own = Path::new("/dev/shm/tracepoint-0");
    let test = "user_isolation::a_setuid_program_ignores_the_environment";
    let mut command = as_user(USERS[0], &program, test, &target.join("run"));
    let child = until_ready(command.env("TRACEPOINT", "traced:*").env("TRACEPOINT_OUT", target.join("out")));
    let published = fs::read_dir(own.join("apps"))?
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{}-", child.id())));
    assert!(published, "process {} is not in {}", child.id(), own.display());
    assert!(child.end());
    assert_eq!(fs::read_dir(&target)?.count(), 0, "nothing was written in the directory that the environment names");
    Ok(())
}
