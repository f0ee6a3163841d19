//! `tracectl read`, against correct and faulty servers, over good and bad networks.
#![expect(unreachable_pub, dead_code, reason = "modules of a test are no crate, and are shared with others")]

#[path = "../../../reader/tests/integration/udp/link.rs"]
mod link;
mod misuse;
mod network;
mod network_faults;
mod original;
mod original_server;
#[path = "../../../reader/tests/integration/udp/random_faults.rs"]
mod random_faults;
mod real;
mod recorded;
#[path = "../../../reader/tests/integration/udp/server.rs"]
mod server;
mod serving;
mod sessions;
#[path = "../../../reader/tests/integration/udp/trace.rs"]
mod trace;

use std::process::{Command, Output, Stdio};

/// `tracectl read` with these arguments.
fn read(port: u16, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("read").env("TRACE_SERVER_PORT", port.to_string()).args(arguments);
    command.stdin(Stdio::null());
    command
}

/// The exit code, the standard output and the standard error of a process.
fn result_of(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
