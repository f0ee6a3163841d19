//! A recorder and a traced process in different PID namespaces, as inside and outside a container: a process id of one is meaningless in the
//! other.

use super::remote_recording::written;
use super::skip::skip;
use super::{Outcome, Place, TRACED, is_traced, program, until};
use std::process::{Command, Stdio};

/// This command in a separate PID namespace; `None` if that is not possible and tests may be skipped.
fn apart(command: &Command) -> Option<Command> {
    let apart = |command: &Command| {
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        apart.arg(command.get_program()).args(command.get_args());
        apart.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.get_current_dir().map(|dir| apart.current_dir(dir));
        apart
    };
    if apart(&Command::new("true")).output().is_ok_and(|output| output.status.success()) {
        return Some(apart(command));
    }
    skip(
        "`unshare --user --pid` cannot make a pid namespace",
        "Run as root, or allow user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`",
    );
    None
}

/// The sites are switched off when the recorder is killed, and the next command removes its session.
#[test]
fn a_killed_recorder_of_another_namespace_leaves_nothing_on() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "namespaces::a_killed_recorder_of_another_namespace_leaves_nothing_on";
    for recorder_is_apart in [false, true] {
        let place = Place::new();
        let traced = program(test, 0);
        let record = place.command(&["record", "-e", "shop:paid", "-o", "out"]);
        let (traced, mut record) = if recorder_is_apart {
            let Some(record) = apart(&record) else { return Ok(()) };
            (traced, record)
        } else {
            let Some(traced) = apart(&traced) else { return Ok(()) };
            (traced, record)
        };
        assert!(traced.get_envs().any(|(name, _)| name == TRACED));
        let _traced = place.start_as(traced);
        let mut record = record.stdout(Stdio::null()).spawn()?;
        until(|| written(&place.path("out")) > 1 << 12);
        assert_eq!(place.on(), ["shop:paid"]);
        // Together with `unshare`, whose end also ends its children.
        record.kill()?;
        record.wait()?;
        until(|| place.on().is_empty());
        let report: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json"]))?;
        assert_eq!(
            (&report["sessions"], report["leftovers"].as_array().map(Vec::len)),
            (&serde_json::json!([]), Some(1))
        );
    }
    Ok(())
}
