//! `record --on`: hosts that cannot be reached, have no tracectl or another version, and the arguments of a remote shell. Recordings on several
//! hosts are in `cli/tests/network`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const TRACECTL: &str = env!("CARGO_BIN_EXE_tracectl");

/// Joins its words into a shell command as ssh does, with special cases for some hosts.
const SSH: &str = r#"#!/bin/sh
host=$1; shift
case $host in
gone*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
older) echo '{"remote":7,"version":"9.9.9","seen_as":null}'; exec sleep 100;;
broken) echo '{"remote":2,"version":"1","seen_as":null}'; read -r request; echo lost >&2; exit 255;;
*) export SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22"; exec sh -c "$*";;
esac
"#;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = TempDir::new_in("/dev/shm").unwrap();
        let ssh = place.path().join("ssh");
        fs::write(&ssh, SSH).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn record(&self, hosts: &str, options: &[&str]) -> Output {
        let mut command = Command::new(TRACECTL);
        command.args(["record", "--on", hosts, "-e", "x:*", "-o"]).arg(self.path("out")).args(options);
        if !options.contains(&"--rsh") {
            command.arg("--rsh").arg(self.path("ssh"));
        }
        command.env("NO_COLOR", "1").env("TRACEPOINT_RUN_DIR", self.path("run")).output().unwrap()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn hosts_that_cannot_take_part_are_all_named_and_nothing_is_recorded() {
    let place = Place::new();
    let output = place.record("gone1,here,gone2,older", &["--remote-tracectl", TRACECTL]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for host in ["gone1", "gone2"] {
        let why = format!(
            "{host}: it cannot be reached by `{}` (ssh: connect to host {host} port 22",
            place.path("ssh").display()
        );
        assert!(text.contains(&why), "{text}");
    }
    let versions = format!("older: its tracectl is version 9.9.9, and this one {}", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&versions) && text.contains("nothing was recorded"), "{text}");
    assert!(!text.contains("here:"), "{text}");
    assert!(!place.path("out").exists() && !place.path("run").join("sessions").exists());
}

#[test]
fn missing_programs_are_named_with_the_mend() {
    let place = Place::new();
    let absent = place.path("absent");
    let output = place.record("here", &["--remote-tracectl", absent.to_str().unwrap()]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("here: ") && text.contains("install tracectl there"), "{text}");
    assert!(text.contains("absent: not found"), "{text}");
    let output = place.record("here", &["--rsh", absent.to_str().unwrap()]);
    assert!(errors(&output).contains("is not found"), "{}", errors(&output));
    // The remote shell's own options are split and quoted by a shell.
    let rsh = "sh -c 'echo \"two  words: $0\" >&2; exit 9' 'a b'";
    let output = place.record("here", &["--rsh", rsh]);
    assert!(
        errors(&output).contains("ended with exit status: 9") && errors(&output).contains("two  words: a b"),
        "{}",
        errors(&output)
    );
}

#[test]
fn a_host_that_fails_later_is_reported_with_the_others() {
    let place = Place::new();
    let output = place.record("here,broken", &["--remote-tracectl", TRACECTL, "--collect-at", "127.0.0.1"]);
    let (text, report) = (errors(&output), String::from_utf8_lossy(&output.stdout));
    assert!(text.contains("here: error: `x:*` matches nothing"), "{text}");
    assert!(text.contains("broken: the connection by `") && text.contains("before its report came"), "{text}");
    assert!(report.contains("exit code 3") && report.contains("no report"), "{report}");
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(!place.path("out").exists() || is_empty(&place.path("out")));
}

#[test]
fn names_and_addresses_are_checked_before_anything_is_started() {
    let place = Place::new();
    for (hosts, options, expected) in [
        ("a,-oProxyCommand=x", &[][..], "expected the name of a host"),
        ("a,,b", &[], "expected the name of a host"),
        ("a,b,a", &[], "a is named twice in `--on`"),
        ("a", &["--collect-at", "0.0.0.0"], "at which the hosts reach this machine"),
        ("a", &["--stream", "b"], "cannot be used with"),
        ("a", &["-p", "1"], "cannot be used with"),
    ] {
        let output = place.record(hosts, options);
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(errors(&output).contains(expected), "{}", errors(&output));
        assert!(!place.path("out").exists());
    }
    let output = place.record("here", &["--remote-tracectl", TRACECTL, "--collect-at", "192.0.2.1"]);
    assert!(errors(&output).contains("give an address of this machine"), "{}", errors(&output));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let output = place
        .record("here", &["--remote-tracectl", TRACECTL, "--collect-at", &taken.local_addr().unwrap().to_string()]);
    assert!(errors(&output).contains("cannot listen on 127.0.0.1:"), "{}", errors(&output));
}
