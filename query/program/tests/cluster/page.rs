//! The commands of `docs/query.md` for a cluster on one machine, executed as written, except for ports and paths.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tracepoint_query_tests::processes::{Process, errors};
use tracepoint_query_tests::stores;

use crate::PROGRAM;

const PAGE: &str = include_str!("../../../../docs/query.md");

#[test]
fn the_commands_of_the_page_work() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 300);
    stores::store(&store, &trace, 1000);
    // Stands in for `tracectl query`, which runs the program in the same way.
    let tracectl = place.path().join("tracectl");
    fs::write(&tracectl, format!("#!/bin/sh\nshift\nexec {PROGRAM} \"$@\"\n")).expect("it is written");
    fs::set_permissions(&tracectl, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = std::env::var("PATH").expect("PATH");
    let path = format!("{}:{path}", place.path().display());
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");

    let section = PAGE.split("## Beyond one machine").nth(1).expect("a section");
    let block = section.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).expect("commands");
    let commands: Vec<_> = block.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let [scheduler, executor, query] = commands[..] else { panic!("{commands:?}") };
    let shell = |command: &str| {
        let command = command.replace("50050", &free.port().to_string());
        let command = command.replace("/srv/traces", store.to_str().expect("UTF-8"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {}", command.trim_end_matches(" &"))]).env("PATH", &path);
        shell
    };
    let _scheduler = Process::start(&mut shell(scheduler));
    let _executor = Process::start(&mut shell(executor));
    let output = shell(query).output().expect("the shell runs");
    assert!(output.status.success(), "{}", errors(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in ["| /      | 98 ", "| /cart  | 99 ", "| /login | 99 "] {
        assert!(table.contains(row), "{table}");
    }
}
