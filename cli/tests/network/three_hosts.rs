//! Programs on two hosts stream datagrams to a third, through networks that lose up to 30 % of the datagrams, repeat and reorder them, and cut
//! connections. In every other network the collector is killed and restarted. Each network has a seed.
//!
//! ```text
//!   host 2 ── control, TCP ──▶ proxy, which cuts and restores ──▶ host 1: collect
//!          ── data, UDP ─────▶ proxy with faults ───────────────▶
//!   host 3    likewise
//! ```

use crate::datagrams::{EVENTS, account, finish, stored, trace_below};
use crate::hosts::Hosts;
use crate::link::{Faults, Random};
use crate::proxy::{TcpProxy, UdpProxy};
use crate::running::{Collect, Running, TRACECTL};
use crate::{TRACED, is_traced, seed, wait_for};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const SENDERS: [u8; 2] = [2, 3];

/// Starts the collector.
fn collect(hosts: &Hosts, place: &Path, number: usize) -> Collect {
    Collect::on(hosts, 1, place, &format!("collect{number}"), &["--gap-time", "10s"])
}

/// Records a program on a host, and streams it to the proxies in the middle.
fn record(hosts: &Hosts, host: u8, place: &Path, test: &str) -> Running {
    let mut command = hosts.command(host, TRACECTL);
    command.args(["record", "-e", "network:*", "--stream-udp", "--sync-interval", "100ms"]);
    command.args(["--add-channel", "small:ring-size=256K,packets=64", "--channel", "small"]);
    command.args(["--stream", &Hosts::middle(host), "--"]);
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, format!("{EVENTS} 600"));
    fs::create_dir(place).unwrap();
    Running::start(&mut command, &place.join("record"))
}

/// True if there is a stream below a directory.
fn has_stream(directory: &Path) -> bool {
    let below = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    directory.join("index").exists() || below.filter(|path| path.is_dir()).any(|path| has_stream(&path))
}

/// Runs one network.
fn passes(seed: u64, test: &str) {
    let Some(hosts) = Hosts::new(3) else { return };
    let mut random = Random::new(seed);
    let place = TempDir::new_in("/dev/shm").unwrap();
    let mut collector = collect(&hosts, place.path(), 0);
    let loss = random.below(301);
    let faults = Faults { loss, duplicates: random.below(100), reordering: 1 + random.below(30), ..Faults::NONE };
    let server = |port| -> SocketAddr { format!("{}:{port}", Hosts::address(1)).parse().unwrap() };
    let (tcp, udp): (Vec<_>, Vec<_>) = hosts.in_the_middle(|| {
        let proxies = SENDERS.map(|host| {
            let middle = Hosts::middle(host);
            let front = format!("{middle}:5343").parse().unwrap();
            let faults = [faults, Faults::NONE];
            (TcpProxy::start(&middle, 5342, server(5342)), UdpProxy::start(front, server(5343), seed, faults))
        });
        proxies.into_iter().unzip()
    });
    let of = |host: u8| place.path().join(format!("host{host}"));
    let records = SENDERS.map(|host| record(&hosts, host, &of(host), test));
    let stored_of = |host: u8| place.path().join(format!("stored/host{host}"));
    // A sender whose first connection fails before it streams begins a new session.
    wait_for(|| SENDERS.iter().all(|host| has_stream(&stored_of(*host))).then_some(()));
    for step in 1..=3 {
        sleep(Duration::from_millis(random.below(600)));
        let cut = &tcp[random.below(2) as usize];
        cut.cut();
        sleep(Duration::from_millis(random.below(400)));
        cut.restore();
        if seed % 2 == 1 {
            // Its parents, `ip` and the shell, have executed it in place.
            collector.program.0.kill().unwrap();
            collector.program.0.wait().unwrap();
            collector = collect(&hosts, place.path(), step);
        }
    }
    let told = format!("TRACEPOINT_SEED={seed}, {faults:?}");
    for (host, record) in SENDERS.into_iter().zip(records) {
        finish(record, &of(host), &told);
    }
    let status = collector.end();
    // 1: data arrived late or not at all.
    assert!(matches!(status.code(), Some(0 | 1)), "{told}: {status}");
    for (host, udp) in SENDERS.into_iter().zip(udp) {
        let trace = trace_below(&stored_of(host));
        let threads = stored(&trace, &told);
        let sums = account(&trace);
        let told = format!("{told}, host {host}: {sums:?}, {} datagrams, {} lost", udp.received(), udp.lost());
        println!("{told}");
        let delivered: u64 = threads.iter().map(|numbers| numbers.len() as u64).sum();
        assert_eq!(delivered, sums.written, "{told}");
        assert_eq!(sums.written + sums.network + sums.other, 2 * EVENTS, "{told}");
        assert!(loss > 50 || delivered == 2 * EVENTS, "{told}: what is lost is sent again");
    }
}

/// Runs over three networks, or `TRACEPOINT_NETWORKS`.
#[test]
fn what_bad_networks_between_three_hosts_lose_is_sent_again_or_counted() {
    if is_traced() {
        return;
    }
    let test = "three_hosts::what_bad_networks_between_three_hosts_lose_is_sent_again_or_counted";
    let count = std::env::var("TRACEPOINT_NETWORKS").map_or(3, |count| count.parse().expect("a number"));
    seed::campaign(count).for_each(|seed| passes(seed, test));
}
