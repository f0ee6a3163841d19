//! `tracectl recover` on the ring files of a process that was killed.

use crate::ring_file::{Consumer, Remains, Shape, Tracer};
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

fn tracectl<A: AsRef<OsStr>>(arguments: &[A]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// `tracectl recover` of the session, with options.
fn recover(remains: &Remains, options: &[&str]) -> (Option<i32>, String, String) {
    let (session, out) = (remains.session(), remains.out());
    let mut arguments = vec![OsStr::new("recover"), session.as_os_str(), OsStr::new("-o"), out.as_os_str()];
    arguments.extend(options.iter().map(OsStr::new));
    tracectl(&arguments)
}

/// A process that was killed while it wrote.
fn killed() -> Tracer {
    let mut tracer = Tracer::new(Shape::default());
    (0..60).for_each(|_| tracer.fire(20));
    tracer.drain(Consumer::Keeps);
    (0..10).for_each(|_| tracer.fire(20));
    tracer.fuse = 1;
    tracer.fire(20);
    tracer
}

#[test]
fn kept_and_lost_events_are_counted() {
    let tracer = killed();
    let remains = Remains::of(&tracer);
    let (code, out, err) = recover(&remains, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let path = remains.out().display().to_string();
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["process", "4242,", "session", "shop:", &path]);
    assert_eq!(lines[1], ["kept", &tracer.committed().to_string(), "events"]);
    assert!(out.contains(" packets that a sink had written\n") && out.contains(" of them were still open\n"), "{out}");
    assert!(
        lines.contains(&vec!["lost", "1", "killed"]) && lines.iter().any(|l| l.last() == Some(&"ring_full")),
        "{out}"
    );

    let (code, _, err) = tracectl(&[OsStr::new("verify"), remains.out().as_os_str()]);
    assert_eq!(code, Some(0), "{err}");
    let (code, out, _) = tracectl(&[OsStr::new("view"), remains.out().as_os_str()]);
    assert_eq!(code, Some(0));
    assert_eq!(out.lines().filter(|line| line.contains(" p:e1 ")).count() as u64, tracer.committed());
}

#[test]
fn events_that_no_ring_and_no_output_has_are_no_success() {
    let mut tracer = Tracer::new(Shape::default());
    (0..60).for_each(|_| tracer.fire(20));
    tracer.drain(Consumer::Forgets);
    (0..60).for_each(|_| tracer.fire(20));
    let remains = Remains::of(&tracer);
    let (code, out, err) = recover(&remains, &["--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let missing = object["processes"][0]["missing"].as_u64().unwrap();
    assert!(missing > 0 && object["complete"] == true, "{out}");
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!(": {missing} events were committed, and neither a ring nor an output")), "{err}");
}

#[test]
fn json_has_the_same_counts() {
    let tracer = killed();
    let remains = Remains::of(&tracer);
    let (code, out, err) = recover(&remains, &["--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["complete"], &object["failed"]), (&true.into(), &serde_json::json!([])));
    let process = &object["processes"][0];
    assert_eq!((&process["records"], &process["lost"]["killed"]), (&tracer.committed().into(), &1.into()));
    // Packets that are still in the ring have no checksum.
    assert_eq!(process["unchecked"], process["packets_from_rings"]);
    assert_eq!(process["output"], remains.out().to_str().unwrap());
}

#[test]
fn unreadable_files_are_reported() {
    let tracer = killed();
    let remains = Remains::of(&tracer);
    fs::write(remains.process.join("0-1.ring"), "no ring at all").unwrap();
    let (code, out, err) = recover(&remains, &[]);
    assert_eq!(code, Some(1));
    assert!(out.contains("  kept "), "{out}");
    assert!(err.contains("0-1.ring: byte 0: this is not a ring file") && err.contains("error: "), "{err}");

    let (code, out, err) = recover(&remains, &[]);
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert!(err.contains("is not empty") && err.contains("name a new directory"), "{err}");
}

#[test]
fn view_of_rings_points_to_recover() {
    let remains = Remains::of(&killed());
    for verb in ["view", "verify"] {
        for path in [remains.session(), remains.process.clone()] {
            let (code, out, err) = tracectl(&[OsStr::new(verb), path.as_os_str()]);
            assert_eq!((code, out.as_str()), (Some(3), ""));
            assert!(err.contains("`tracectl recover ") && err.contains(" -o OUT`"), "{err}");
        }
    }
}

#[test]
fn invalid_command_lines_are_refused_and_help_has_examples() {
    for arguments in [&["recover"][..], &["recover", "x"], &["recover", "-o", "x"]] {
        let (code, out, err) = tracectl(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains("Usage: tracectl recover"), "{err}");
    }
    let (code, _, err) = tracectl(&["recover", "/nowhere at all", "-o", "/nowhere at all/out"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("there is no such directory; name the directory of a process"), "{err}");
    let (code, out, _) = tracectl(&["recover", "--help"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("Examples:\n  tracectl recover ") && out.contains("Exit codes:\n  0 "), "{out}");
}
