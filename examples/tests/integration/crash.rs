//! The rings left by a crashed program contain the events before the crash, including the last one.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use tracepoint::control::Controller;
use tracepoint::session::{Rule, RunDir, SessionSpec, State};

#[test]
fn a_crash_leaves_the_events_before_it() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let run_dir = place.path().join("run");
    let controller = Controller::at(RunDir::at(&run_dir).unwrap()).unwrap();
    let mut spec = SessionSpec::new();
    spec.channel.policy = "overwrite".to_owned();
    spec.state = State::Active;
    spec.add_rule(&Rule::new("bank:*")).unwrap();
    let session = controller.create("flight", &spec).unwrap();
    for (how, signal) in [("segfault", Some(11)), ("kill", Some(9)), ("exit", None)] {
        let mut program = Command::new(crate::common::program::built("crash"));
        let status = program.arg(how).env("TRACEPOINT_RUN_DIR", &run_dir).status().unwrap();
        assert_eq!(status.signal(), signal, "{how}");
        if signal.is_none() {
            continue;
        }
        let out = place.path().join(how);
        let snapshot = session.snapshot(&out).unwrap();
        let trace = snapshot.traces.last().unwrap();
        let viewed = Command::new("babeltrace2").arg(trace).env("LC_ALL", "C").output();
        let viewed = viewed.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
        assert!(viewed.status.success());
        let viewed = String::from_utf8(viewed.stdout).unwrap();
        let last = viewed.lines().last().unwrap();
        assert!(last.contains("bank:transfer") && last.contains("number = 2000, account = 13"), "{how}: {last}");
        for dead in session.rings_of_dead().unwrap() {
            session.remove_rings_of_dead(&dead).unwrap();
        }
    }
    session.destroy(std::time::Duration::from_secs(20), true).unwrap();
}
