//! Traced processes whose environment differs from, or changes after, the start of their agent: another time namespace, a `chroot`, another user.
//! These tests need root.

use super::{Outcome, Place, Traced, is_traced, program, until};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The directory for `chroot`, called once the agent runs.
const CHROOT: &str = "TEST_CHROOT";
/// The user that the process then becomes.
const USER: &str = "TEST_USER";
/// Set if that user may debug the process afterwards.
const DUMPABLE: &str = "TEST_DUMPABLE";

/// In a traced process: performs the requested changes after its agent has started.
#[expect(unsafe_code, reason = "the safe interface changes the user of one thread only")]
pub(super) fn change() {
    if let Some(root) = env::var_os(CHROOT) {
        std::os::unix::fs::chroot(root).expect("root");
        env::set_current_dir("/").expect("the new root");
    }
    if let Ok(user) = env::var(USER) {
        // SAFETY: takes a plain number.
        assert_eq!(unsafe { libc::setuid(user.parse().expect("a number")) }, 0, "only root can");
    }
    if env::var_os(DUMPABLE).is_some() {
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("it is permitted");
    }
}

/// Records a process for a moment; returns the number of events, and the first and the last time.
fn recorded(place: &Place, process: &Traced) -> Result<(usize, [Duration; 2]), Box<dyn std::error::Error>> {
    let pid = process.0.id().to_string();
    let out = format!("of-{pid}");
    let report = place.well(&["record", "-e", "shop:paid", "-p", &pid, "--duration", "200ms", "-o", &out, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report)?;
    let has_events = |process: &&serde_json::Value| process["counters"]["recorded"].as_u64() > Some(0);
    assert_eq!(report["processes"].as_array().map(|all| all.iter().filter(has_events).count()), Some(1), "{report}");
    place.verifies(&out);
    let shown = place.well(&["view", &out, "--json"]);
    let lines = shown.lines().map(serde_json::from_str).collect::<Result<Vec<serde_json::Value>, _>>()?;
    let times: Vec<u64> = lines.iter().filter_map(|line| line["time_ns"].as_u64()).collect();
    let [Some(first), Some(last)] = [times.first(), times.last()] else { return Err("no events".into()) };
    Ok((times.len(), [*first, *last].map(Duration::from_nanos)))
}

/// Its clocks are a day ahead, as in a container that was migrated to this machine. Data shared with processes of this namespace is not
/// shifted.
#[test]
fn a_process_of_another_time_namespace_is_recorded_at_the_right_time() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "identity::a_process_of_another_time_namespace_is_recorded_at_the_right_time";
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let apart = |offset: &str| {
        let traced = program(test, 0);
        let mut apart = Command::new("unshare");
        apart.args(["--time", "--monotonic", offset, "--boottime", offset]).arg(traced.get_program());
        apart.args(traced.get_args()).envs(traced.get_envs().filter_map(|(name, value)| Some((name, value?))));
        place.start_as(apart)
    };
    // The first one creates the shared files.
    for process in [apart("86400"), place.start(test), apart("172800")] {
        let (_, times) = recorded(&place, &process)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        assert!(times[0] >= began && times[1] <= now, "{began:?}, {times:?}, {now:?}");
    }
    Ok(())
}

#[test]
fn a_process_that_has_called_chroot_is_recorded() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    fs::create_dir(place.path("jail"))?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut jailed = program("identity::a_process_that_has_called_chroot_is_recorded", 0);
    jailed.env(CHROOT, place.path("jail"));
    let process = place.start_as(jailed);
    let (events, times) = recorded(&place, &process)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    assert!(events > 0 && times[0] >= began && times[1] <= now, "{began:?}, {times:?}, {now:?}");
    // A session applied to it later.
    place.well(&["create", "flight", "-e", "shop:paid", "--start"]);
    assert_eq!(place.on(), ["shop:paid"]);
    let (code, said, notes) = place.tracectl(&["snapshot", "flight", "-o", "snapshot"]);
    assert_eq!(code, Some(0), "{said}{notes}");
    place.verifies("snapshot");
    place.well(&["destroy", "flight"]);
    assert_eq!(fs::read_dir(place.path("jail"))?.count(), 0, "nothing is made where no controller looks");
    Ok(())
}

/// A service that starts as root: its agent continues in the run directory of its user, or both sides report why it does not.
#[test]
fn a_process_that_has_changed_its_user_goes_on_or_says_why() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "identity::a_process_that_has_changed_its_user_goes_on_or_says_why";
    let place = Place::new();
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755))?;
    let notices = place.path("notices");
    let user = "65531";
    let own = Path::new("/dev/shm/tracepoint-65531");
    let start = |in_default: bool, dumpable: bool| -> Result<Traced, Box<dyn std::error::Error>> {
        let mut service = program(test, 0);
        service.env(USER, user).stderr(fs::File::create(&notices)?);
        if dumpable {
            service.env(DUMPABLE, "1");
        }
        if in_default {
            // As under systemd: root's run directory, and none for the user.
            service.env_remove("XDG_RUNTIME_DIR").env_remove("RUNTIME_DIRECTORY");
            service.env_remove("TRACEPOINT_RUN_DIR").stdin(Stdio::piped()).stdout(Stdio::piped());
            return Ok(super::ready(service));
        }
        Ok(place.start_as(service))
    };
    for (in_default, dumpable) in [(false, false), (true, false), (true, true)] {
        let process = start(in_default, dumpable)?;
        let pid = process.0.id().to_string();
        let err = place.refused(&["record", "-e", "shop:paid", "-p", &pid, "-o", "out"]);
        // Its agent reports it by itself, perhaps a moment later.
        let left = "the process has become user 65531, who may not use the run directory";
        until(|| fs::read_to_string(&notices).is_ok_and(|said| said.contains(left)));
        let said = fs::read_to_string(&notices)?;
        if in_default && !dumpable {
            // Its user could not debug it: its memory may contain secrets of root.
            assert!(said.contains("it is not dumpable") && said.contains("`prctl(PR_SET_DUMPABLE, 1)`"), "{said}");
            assert!(
                err.contains(&format!(
                    "process {pid} offers no control to user 65531, who may not debug it: it is not dumpable"
                )),
                "{err}"
            );
            for arguments in
                [&["--user", user, "list", "-p", &pid][..], &["--user", user, "record", "-p", &pid, "-o", "no"]]
            {
                let output = place.command(arguments).env_remove("TRACEPOINT_RUN_DIR").output()?;
                let err = String::from_utf8(output.stderr)?;
                assert!(output.status.code() == Some(3) && err.contains("it is not dumpable"), "{arguments:?}: {err}");
            }
        } else if in_default {
            assert!(said.contains("it is controllable in /dev/shm/tracepoint-65531"), "{said}");
            assert!(err.contains("`tracectl --user 65531`"), "{err}");
            let arguments = ["--user", user, "record", "-p", &pid, "--duration", "100ms", "-o", "out", "--json"];
            let output = place.command(&arguments).env_remove("TRACEPOINT_RUN_DIR").output()?;
            assert!(output.status.success(), "{output:?}");
            let report = String::from_utf8(output.stdout)?;
            let report: serde_json::Value = serde_json::from_str(&report)?;
            assert!(report["counters"]["recorded"].as_u64() > Some(0), "{report}");
        } else {
            assert!(said.contains("start the agent after the change of the user"), "{said}");
            assert!(
                err.contains(&format!("process {pid} is of user 65531, who may not use its run directory")),
                "{err}"
            );
            assert_eq!(place.on(), [""; 0]);
        }
    }
    fs::remove_dir_all(own)?;
    Ok(())
}
