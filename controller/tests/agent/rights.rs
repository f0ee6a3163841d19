//! Access rights of controllers: the matrix of SECURITY.md. A user who could not debug a process must get nothing from its agent, neither
//! its events nor files opened with its rights.
//!
//! One program runs repeatedly: as another user, with more rights than its user, or with rights that change. Four users try to control it:
//! its user, another user, a member of the group in `TRACEPOINT_GROUP`, and root. These tests need root.

mod matrix;
mod members;
mod parts;
mod place;
mod told;

use crate::common::{Outcome, names};
use parts::is_told;
use place::{Place, run_dir_of};
use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use told::Told;

/// The user of the processes, another one, and the group that they share. None of them has an entry in the user database.
const USER: u32 = 64_201;
const OTHER: u32 = 64_202;
const GROUP: u32 = 64_210;
/// The group of a set-group-ID program: `shadow` on Debian.
const SHADOW: u32 = 42;

/// The line that a process prints when it leaves its run directory.
const LEFT: &str = "the process is not controllable any more";

#[test]
fn a_process_that_changes_its_rights_offers_no_control_any_more() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let mut place = Place::new()?;
    let errors = place.temp.path().join("target.txt");
    let start = |place: &Place, user| -> Result<Told, Box<dyn Error>> {
        let mut target = Told::start(&mut place.as_user(user, USER, &["--clear-groups"], "target"), &errors)?;
        assert_eq!(target.tell("start")?, "done");
        Ok(target)
    };

    // Without a recording: the change is detected before the next description is read.
    let mut target = start(&place, USER)?;
    target.tell("not dumpable")?;
    place.judge("not dumpable later", &target, &["its user"], &["no answer"])?;
    place.judge("not dumpable later", &target, &["its user", "another user", "root"], &["not dumpable"; 3])?;
    assert_eq!(target.said().matches(LEFT).count(), 1, "{}", target.said());
    // It does not return.
    target.tell("dumpable")?;
    place.judge("dumpable again", &target, &["its user"], &["is not traced"])?;

    // A session that records ends.
    let mut target = start(&place, USER)?;
    let out = place.shared().join("kept");
    fs::create_dir(&out)?;
    chown(&out, Some(USER), Some(USER))?;
    let user = place.controllers.iter_mut().find(|(who, _)| *who == "its user").ok_or("nobody")?;
    assert_eq!(user.1.tell(&format!("begin {}", out.display()))?, "1 recording:");
    target.tell("not dumpable")?;
    target.until_said(LEFT);
    let run_dir = run_dir_of(USER);
    assert_eq!(names(&run_dir.join("apps")), [""; 0]);
    assert_eq!(names(&run_dir.join("sessions/kept/rings")), [""; 0]);
    assert!(out.join("kept.txt").exists());
    assert_eq!(user.1.tell("end")?, "done");

    // A service that begins as root.
    let mut target = start(&place, 0)?;
    target.tell("become the user")?;
    place.judge("setuid later", &target, &["root", "its user"], &["not dumpable"; 2])?;
    assert!(target.said().contains("the process has become user 64201"), "{}", target.said());
    let mut target = start(&place, 0)?;
    target.tell("become the user")?;
    target.tell("dumpable")?;
    place.judge("setuid later, dumpable", &target, &["root"], &["`tracectl --user 64201`"])?;
    target.until_said("it is controllable in /dev/shm/tracepoint-64201");
    place.judge("setuid later, dumpable", &target, &["its user"], &["controlled"])?;
    Ok(())
}

/// Root decides which users a process with more rights trusts: by a run directory owned by root and shared by a group.
#[test]
fn root_shares_a_process_with_more_rights() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let mut place = Place::new()?;
    let run_dir = place.shared().join("run");
    fs::create_dir(&run_dir)?;
    chown(&run_dir, Some(0), Some(GROUP))?;
    fs::set_permissions(&run_dir, Permissions::from_mode(0o770))?;
    let options = ["--groups=64210", "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"];
    let mut command = place.as_user(USER, USER, &options, "target");
    place.share(&mut command);
    let mut target = Told::start(&mut command, &place.temp.path().join("target.txt"))?;
    assert_eq!(target.tell("start")?, "done");
    place.judge("ambient capability, root's directory", &target, &["a member"], &["controlled"])
}

/// The rest is reserved for its own user and root: outputs are opened with the rights of the process.
#[test]
fn a_member_names_no_outputs() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let mut place = Place::new()?;
    let mut command = place.as_user(USER, USER, &["--groups=64210"], "target");
    place.share(&mut command);
    let mut target = Told::start(&mut command, &place.temp.path().join("target.txt"))?;
    assert_eq!(target.tell("start")?, "done");
    let mut command = place.as_user(USER, USER, &["--groups=64210"], "controller");
    place.share(&mut command);
    let mut user = Told::start(&mut command, &place.temp.path().join("user.txt"))?;
    let out = place.shared().join("out");
    fs::create_dir(&out)?;
    fs::set_permissions(&out, Permissions::from_mode(0o700))?;
    chown(&out, Some(USER), Some(USER))?;
    let begin = format!("begin {}", out.display());
    let description = place.shared().join("run/sessions/kept/session.toml");
    let member = &mut place.controllers.iter_mut().find(|(who, _)| *who == "a member").ok_or("nobody")?.1;
    let said = member.tell(&begin)?;
    assert!(said.starts_with("0 recording: ") && said.contains("user 64202 has written or can change it"), "{said}");
    assert_eq!(names(&out), [""; 0]);
    assert_eq!(member.tell("end")?, "done");
    assert_eq!(user.tell(&begin)?, "1 recording:");
    assert_eq!(names(&out).len(), 1);
    // A member can end that session, and cannot make it the member's own; the description cannot be changed in place.
    let said = member.tell("again")?;
    assert!(said.contains("user 64201 has written or can change its description"), "{said}");
    assert_eq!(fs::metadata(description)?.permissions().mode() & 0o777, 0o640);
    assert_eq!(member.tell("end")?, "done");
    Ok(())
}

/// A recording in code is for the program only: its rings are not in a directory that others read.
#[test]
fn rings_of_a_process_with_more_rights_are_in_memory() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let place = Place::new()?;
    for (attributes, word) in
        [(&["cap_dac_override+ep"][..], "(cap_dac_override)"), (&["2755", "0", "42"], "groups are")]
    {
        place.attribute(attributes)?;
        let mut command = place.as_user(USER, USER, &["--clear-groups"], "target");
        let mut target = Told::start(&mut command, &place.temp.path().join("target.txt"))?;
        let said = target.tell("record")?;
        assert!(said.contains("the rings are in memory") && said.contains(word), "{said}");
        assert_eq!(names(&run_dir_of(USER)), [""; 0], "{word}");
    }
    Ok(())
}

/// A caller could otherwise make a server of the program listen at a port that the caller may not use.
#[test]
fn a_program_that_gains_rights_ignores_the_port_of_its_caller() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let place = Place::new()?;
    for (attributes, port) in [(&[][..], "853"), (&["cap_net_bind_service+ep"], "5556"), (&["4755", "0", "0"], "5556")]
    {
        place.attribute(attributes)?;
        let mut command = place.as_user(USER, USER, &["--clear-groups"], "target");
        let errors = place.temp.path().join("target.txt");
        assert_eq!(
            Told::start(command.env("TRACE_SERVER_PORT", "853"), &errors)?.tell("port")?,
            port,
            "{attributes:?}"
        );
    }
    Ok(())
}

/// The next process trusts the group of a run directory: therefore it is not created with a group that its user may not have.
#[test]
fn no_run_directory_is_made_with_a_group_of_others() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let place = Place::new()?;
    // Users of containers often have no entry in the user database, and group 0.
    for (group, agent) in [(SHADOW, "its group 42 is none of user 64201"), (0, "done"), (USER, "done")] {
        fs::remove_dir_all(run_dir_of(USER))?;
        let mut command = place.as_user(USER, group, &["--clear-groups"], "target");
        let said = Told::start(&mut command, &place.temp.path().join("target.txt"))?.tell("start")?;
        assert!(said.contains(agent), "{group}: {said}");
        assert_eq!(run_dir_of(USER).exists(), agent == "done", "{group}");
        fs::create_dir_all(run_dir_of(USER))?;
    }
    Ok(())
}
