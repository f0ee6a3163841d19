//! A program built with only the feature `session`: its status, its refusals, and recording it with `record`, which needs no other feature of it.

use crate::fixture::Build;
use crate::running::{ANY, Collect};
use crate::streams::tracectl;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The program. It ends with its input.
struct Program(Child);

impl Program {
    fn start(place: &Path) -> Self {
        let mut command = Command::new(Build::dev().binary("session-alone"));
        command.env("TRACEPOINT_RUN_DIR", place.join("run")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_with_sessions_alone_refuses_other_outputs_and_is_recorded_into_them() {
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let program = Program::start(place);
    let pid = program.0.id();

    let listed = tracectl(place, &["list", "--json"]).stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed["processes"][0]["sinks"], serde_json::json!(["ctf", "text"]));
    let shown = String::from_utf8(tracectl(place, &["list", "-v"]).stdout).unwrap();
    assert!(shown.contains("outputs of its own: ctf, text"), "{shown}");

    let dt = place.join("own.dt");
    let dt = dt.to_str().unwrap();
    let built_without = |what: &str, feature: &str| {
        format!("built without {what}: build it with the cargo feature `{feature}` of tracepoint")
    };
    let outputs: [(&[&str], &str, &str); 3] = [
        (&["--stream", "127.0.0.1:1"], "streaming", "stream"),
        (&["--udp", ANY], "the UDP trace server", "udp"),
        (&["--dt", dt], "dt files", "dt"),
    ];
    for (output, what, feature) in outputs {
        let create = [&["create", "own", "-e", "alone:*", "--start"], output].concat();
        let refused = tracectl(place, &create);
        let message = format!("process {pid} (session-alone) was {}", built_without(what, feature));
        assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
        assert!(
            stderr(&refused).contains(&message) && stderr(&refused).contains("`tracectl record`"),
            "{}",
            stderr(&refused)
        );

        // A session that waits for other processes is created, and this one answers once with what it cannot do.
        let waits = tracectl(place, &[&create[..], &["--wait"]].concat());
        let message = format!(
            "process {pid} (session-alone): the session does not start: this program was {}",
            built_without(what, feature)
        );
        assert!(!waits.status.success() && stderr(&waits).contains(&message), "{}", stderr(&waits));
        assert!(tracectl(place, &["destroy", "own"]).status.success());
    }

    // The recorder takes the packets from the rings, so the output is done by `tracectl`.
    let collect = Collect::start(place);
    let to = collect.to();
    let recorded: [&[&str]; 3] = [&["--stream", &to], &["--udp", ANY], &["--dt", dt]];
    for output in recorded {
        let record = [&["record", "-e", "alone:*", "--duration", "300ms"], output].concat();
        let recorded = tracectl(place, &record);
        assert!(recorded.status.success(), "{output:?}: {}", stderr(&recorded));
    }
    for trace in [dt, place.join("stored").to_str().unwrap()] {
        let view = tracectl(place, &["view", trace]);
        assert!(String::from_utf8_lossy(&view.stdout).contains(" alone:ticked "), "{trace}: {}", stderr(&view));
        let verify = tracectl(place, &["verify", trace]);
        assert!(verify.status.success(), "{trace}: {}", stderr(&verify));
    }
    assert!(collect.end().success());
}
