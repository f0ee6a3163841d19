//! Programs on two hosts are recorded, a third host stores their streams, and a viewer merges them.

use crate::hosts::Hosts;
use crate::proxy::TcpProxy;
use crate::running::{Collect, Running, TRACECTL};
use crate::{TRACED, is_traced, wait_for};
use serde_json::Value;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Records a program with `events` events of each of its two threads on a host, and streams them to `relay`.
fn record(hosts: &Hosts, host: u8, place: &Path, relay: &str, test: &str, events: u64) -> Running {
    let run = place.join(format!("run{host}"));
    let mut command = hosts.command(host, TRACECTL);
    command.args(["record", "-e", "network:*", "--relay", relay, "--retry", "20s", "--sync-interval", "100ms", "--"]);
    command.arg(env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", run).env(TRACED, format!("{events} 1000"));
    Running::start(&mut command, &place.join(format!("record{host}")))
}

/// The events in the lines of `view --json`: host, thread and number.
fn events(text: &str) -> Vec<(String, u64, u64)> {
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let events = events.filter(|item| item["type"] == "event");
    let (mut last, mut found) = (0, Vec::new());
    for event in events {
        let time = event["time_ns"].as_i64().unwrap();
        assert!(time >= last, "time goes back: {event}");
        last = time;
        let number = |field: &str| event["fields"][field].as_u64().unwrap();
        let stream = event["stream"].to_string();
        found.push((stream, number("thread"), number("n")));
    }
    found
}

#[test]
fn programs_on_two_hosts_are_collected_on_a_third() {
    if is_traced() {
        return;
    }
    let Some(hosts) = Hosts::new(3) else { return };
    let place = TempDir::new_in("/dev/shm").unwrap();
    let path = |name: &str| -> PathBuf { place.path().join(name) };
    let own = Hosts::address(1);
    let collect = Collect::on(&hosts, 1, place.path(), "collect", &[]);
    let server = |port| -> SocketAddr { format!("{own}:{port}").parse().unwrap() };
    let proxies: Vec<TcpProxy> = hosts.in_the_middle(|| {
        let ends = [2, 3].into_iter().flat_map(|host| [5342, 5343].map(|port| (host, port)));
        ends.map(|(host, port)| TcpProxy::start(&Hosts::middle(host), port, server(port))).collect()
    });
    let test = "whole::programs_on_two_hosts_are_collected_on_a_third";
    let mut records: Vec<_> =
        [2, 3].map(|host| record(&hosts, host, place.path(), &Hosts::middle(host), test, 1500)).into();
    // TCP resumes after the link of a host was down for a while.
    wait_for(|| fs::read_dir(path("stored")).is_ok_and(|mut hosts| hosts.next().is_some()).then_some(()));
    hosts.set_cable(2, false);
    sleep(Duration::from_secs(1));
    hosts.set_cable(2, true);
    for (index, record) in records.iter_mut().enumerate() {
        let errors = path(&format!("record{}.errors", index + 2));
        let status = wait_for(|| record.0.try_wait().unwrap());
        assert!(status.success(), "{status}: {}", fs::read_to_string(errors).unwrap());
    }
    assert!(proxies.iter().all(|proxy| proxy.connections() >= 1), "everything passes the middle");
    let status = collect.end();
    assert!(status.success(), "{}", fs::read_to_string(path("collect.errors")).unwrap());
    let view = Command::new(TRACECTL).args(["view", "--json"]).arg(path("stored")).output().unwrap();
    assert!(view.status.success(), "{}", String::from_utf8_lossy(&view.stderr));
    let found = events(&String::from_utf8(view.stdout).unwrap());
    assert_eq!(found.len(), 2 * 2 * 1500, "each event of each thread of each host");
}
