//! Wrong command lines, programs that are not trace servers, and outputs that cannot be written.

use crate::read::link::Faults;
use crate::read::server::Plan;
use crate::read::serving::Serving;
use crate::read::{read, result_of};
use std::net::UdpSocket;
use std::thread;

/// A port without a listening program.
fn closed_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn invalid_command_lines_are_refused() {
    for (arguments, reason) in [
        (&["--events-limit", "0"][..], "for no limit, leave the option out"),
        (&["--events-limit", "many"], "expected a number of events, 1 or more"),
        (&["--events-limit=-5"], "expected a number of events, 1 or more"),
        (&["--events-limit", "99999999999999999999999"], "expected a number of events, 1 or more"),
        (&["--server-port", "0"], "0 is not in 1..=65535"),
        (&["--server-port", "70000"], "70000 is not in 1..=65535"),
        (&["--client-port", "x"], "invalid digit"),
        (&["--mtu", "100"], "100 is not in 512..=65507"),
        (&["--idle", "0"], "0 is not in 1..=86400"),
        (&["--json", "-o", "x"], "cannot be used with"),
        (&["--legacy", "-o", "x"], "cannot be used with"),
        (&["--dt-slots", "4"], "--output <OUT>"),
        (&["--dt-slots", "4", "-o", "x"], "--dt-slots needs a dt file"),
        (&["--dt-slots", "0", "-o", "x.dt"], "0 is not in 1..=2147483647"),
        (&["--no-such"], "unexpected argument"),
        (&["localhost"], "unexpected argument"),
    ] {
        let (code, out, err) = result_of(&read(closed_port(), arguments).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.contains(reason), "{arguments:?}: {err}");
    }
    let (code, _, err) = result_of(&read(1, &[]).env("TRACE_SERVER_PORT", "none").output().unwrap());
    assert!(code == Some(2) && err.contains("--server-port"), "{err}");
}

#[test]
fn help_has_the_exit_codes_and_examples() {
    for argument in ["-h", "--help"] {
        let (code, out, err) = result_of(&read(1, &[argument]).output().unwrap());
        assert_eq!((code, err.as_str()), (Some(0), ""));
        for part in ["--server-address", "--server-port", "--client-port", "--events-limit", "Examples:", "Exit codes:"]
        {
            assert!(out.contains(part), "{part} in {out}");
        }
    }
}

#[test]
fn no_server_has_an_exit_code() {
    let port = closed_port();
    let (code, out, err) = result_of(&read(port, &[]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(5), ""));
    assert!(err.contains(&format!("no server listens at 127.0.0.1:{port}")), "{err}");
    let (code, _, err) = result_of(&read(port, &["--server-address", "no.such.host.invalid"]).output().unwrap());
    assert!(code == Some(5) && err.contains("cannot find the server `no.such.host.invalid`"), "{err}");
    let (code, _, err) = result_of(&read(1, &["--server-address", &format!("127.0.0.1:{port}")]).output().unwrap());
    assert!(code == Some(5) && err.contains(&format!("no server listens at 127.0.0.1:{port}")), "{err}");
}

#[test]
fn another_program_has_the_same_exit_code() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let echo = thread::spawn(move || {
        let mut buffer = [0; 100];
        // Answers every START, and the STOP that the client sends when it times out.
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(b"SSH-2.0-something", from).unwrap();
            if buffer[..length] == [2] {
                break;
            }
        }
    });
    let (code, out, err) = result_of(&read(port, &[]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(5), ""));
    assert!(err.contains("is not a trace server"), "{err}");
    echo.join().unwrap();
}

#[test]
fn an_unusable_output_is_refused_before_the_first_datagram() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("mine"), "").unwrap();
    let (code, _, err) = result_of(&read(closed_port(), &["-o", place.path().to_str().unwrap()]).output().unwrap());
    assert!(code == Some(3) && err.contains("is not empty"), "{err}");
}

#[test]
fn a_legacy_server_gives_no_directory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let plan = Plan { trusted: true, offers: false, events: 300, rate: 1, ends: false, grows: 0 };
    let server = Serving::start(8, plan, [Faults::NONE; 2]);
    let (code, _, err) = result_of(&read(server.port, &["-o", path.to_str().unwrap()]).output().unwrap());
    assert!(code == Some(5) && err.contains("without --output"), "{err}");
    server.wait();
}

#[test]
fn the_client_port_can_be_chosen() {
    let taken = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, _, err) = result_of(&read(closed_port(), &["--client-port", &port]).output().unwrap());
    assert!(code == Some(5) && err.contains("in use"), "{err}");
}
