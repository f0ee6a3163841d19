//! `tracectl read` of the original server.

use crate::read::original_server::OriginalServer;
use crate::read::{read, result_of};
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;

/// Shorter than the original's 100 ms.
const PACE: Duration = Duration::from_millis(2);
/// Padding that looks like the offer of the batch layout.
const LIKE_AN_OFFER: u8 = 0xb1;

fn events(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![b'e', b' ', b'0' + n / 10, b'0' + n % 10]).collect()
}

#[test]
fn the_original_server_is_read_whatever_its_padding_is() {
    for padding in [0, 0x5a, LIKE_AN_OFFER] {
        let server = OriginalServer::start(0, padding, PACE, events(50));
        let (code, out, err) = result_of(&read(server.port, &[]).output().unwrap());
        let lines: Vec<_> = (0..50).map(|n| format!("(1.{n:06}): size=4, content=e {n:02}\n")).collect();
        let lines = lines.concat();
        let expected = format!("Receive session begins.\nTrace begins.\n{lines}Trace ends.\nReceive session ends.\n");
        assert_eq!(out, expected, "padding {padding:x}: {err}");
        assert_eq!(code, Some(0), "padding {padding:x}: {err}");
        server.wait();
    }
}

#[test]
fn numbers_of_16_bits_go_on_beyond_them() {
    let server = OriginalServer::start(0x2_ffe0, 0xff, PACE, events(90));
    let (code, out, err) = result_of(&read(server.port, &["--json"]).output().unwrap());
    let objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> =
        objects.iter().filter(|object| object["type"] == "event").map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0x2_ffe2..0x2_ffe2 + 90).collect::<Vec<_>>(), "{out}");
    let end = objects.last().unwrap();
    assert_eq!((&end["ending"], &end["lost_messages"], &end["foreign"]), (&"ended".into(), &0.into(), &0.into()));
    assert_eq!(code, Some(0), "{err}");
    server.wait();
}

#[test]
fn a_limit_ends_the_session_and_the_next_client_goes_on() {
    let server = OriginalServer::start(0, 7, Duration::from_millis(20), events(90));
    // The first client has a delay at the beginning, during which events arrive.
    let (code, out, _) = result_of(&read(server.port, &["--events-limit", "60"]).output().unwrap());
    assert!(
        out.contains("\nSend STOP command to the server.\n") && out.ends_with("\nReceive session ends.\n"),
        "{out}"
    );
    let first = out.matches("content=").count();
    assert!(code == Some(0) && (60..90).contains(&first), "{out}");
    let (code, out, err) = result_of(&read(server.port, &[]).output().unwrap());
    assert!(!out.contains("Trace begins.") && out.ends_with("Trace ends.\nReceive session ends.\n"), "{out}");
    assert_eq!((code, out.matches("content=").count()), (Some(0), 90 - first), "{err}");
    server.wait();
}

#[test]
fn messages_of_other_ports_and_addresses_are_no_events_of_a_server_that_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let intruders = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| UdpSocket::bind(address).unwrap());
    let port = server.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (_, client) = server.recv_from(&mut [0; 100]).unwrap();
        let message = |seq: u8, kind: u8| [0, 0, 0, seq, 2, 0, 0, 0, kind];
        for intruder in &intruders {
            for (seq, kind) in [(5, 3), (6, 1)] {
                intruder.send_to(&message(seq, kind), client).unwrap();
            }
        }
        for (seq, kind) in [(0, 3), (1, 2), (2, 4)] {
            server.send_to(&message(seq, kind), client).unwrap();
        }
    });
    let (code, out, err) = result_of(&read(port, &[]).output().unwrap());
    assert_eq!(out, "Receive session begins.\nTrace ends.\nReceive session ends.\n");
    assert_eq!(code, Some(0), "{err}");
    serving.join().unwrap();
}
