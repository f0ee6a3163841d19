//! The next collector repairs the files of a killed one.

use super::running::{PATIENCE, Running};
use super::sender::{Sender, packet, session, stream};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::Instant;
use tracepoint_collector::{Addresses, Options};
use tracepoint_wire::relay::{Command, DataPending, IndexFile, Reply};

/// Environment variable of the collector's process: its output directory.
const OUTPUT: &str = "TRACEPOINT_COLLECTOR_OUTPUT";
/// Environment variable: the speed of a slow disk in bytes per second.
const RATE: &str = "TRACEPOINT_COLLECTOR_RATE";

/// Runs the collector in its own process; an empty test elsewhere.
#[test]
fn collector_process() {
    let Some(output) = std::env::var_os(OUTPUT) else { return };
    let write_rate = std::env::var(RATE).ok().map(|rate| rate.parse().expect("a number"));
    let mut collector = Running::with(Options { write_rate, ..Options::new(output) });
    let Addresses { control, data, live, .. } = collector.addresses;
    println!("\nlistening {control} {data} {live}");
    collector.until(|_| false);
}

pub(crate) fn start(output: &Path) -> (Child, [SocketAddr; 2]) {
    let (child, [control, data, _]) = start_with(output, None);
    (child, [control, data])
}

/// Starts a collector whose disk has this speed in bytes per second. Returns its addresses: control, data, live.
pub(crate) fn start_with(output: &Path, rate: Option<u64>) -> (Child, [SocketAddr; 3]) {
    let mut process = Process::new(std::env::current_exe().expect("this program"));
    process.args(["restart::collector_process", "--exact", "--nocapture"]).env(OUTPUT, output);
    process.envs(rate.map(|rate| (RATE, rate.to_string())));
    let mut child = process.stdout(Stdio::piped()).spawn().expect("this program again");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let line = lines.find_map(|line| line.expect("text").strip_prefix("listening ").map(str::to_owned));
    let addresses: Vec<_> = line.expect("addresses").split(' ').map(|it| it.parse().expect("an address")).collect();
    // The rest of the output is read until the process ends.
    std::thread::spawn(move || lines.for_each(drop));
    (child, [addresses[0], addresses[1], addresses[2]])
}

#[test]
fn what_a_killed_collector_has_acknowledged_is_whole() {
    for round in 0..5_u64 {
        let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let (mut child, [control, data]) = start(place.path());
        let mut sender = Sender { control: super::sender::connect(control), data: super::sender::connect(data) };
        let path = sender.open(session("killed"));
        let handles = [sender.add(stream("c_0")), sender.add(stream("c_1"))];
        let mut acknowledged = [0_u64; 2];
        let mut sent = 0_u64;
        let deadline = Instant::now() + PATIENCE;
        // Returns whether some packet of each stream has been acknowledged.
        let mut step = || -> Option<bool> {
            for (handle, acknowledged) in handles.iter().zip(&mut acknowledged) {
                let (bytes, index) = packet(*handle, *handle, sent, 3000);
                sender.data(*handle, sent, &bytes).ok()?;
                sender.command(&Command::SendIndex(index)).ok()?;
                if sender.command(&Command::DataPending { handle: *handle, last: sent }).ok()?
                    == Reply::Pending(DataPending::No)
                {
                    *acknowledged = sent + 1;
                }
            }
            sent += 1;
            Some(!acknowledged.contains(&0))
        };
        // The moment of the kill differs between rounds.
        for _ in 0..20 + round * 37 {
            step().expect("the collector answers");
        }
        while !step().expect("the collector answers") {
            assert!(Instant::now() < deadline, "nothing is acknowledged");
        }
        let killer = std::thread::spawn(move || {
            child.kill().expect("it runs");
            child.wait().expect("it ends")
        });
        while step().is_some() {
            assert!(Instant::now() < deadline, "it was not killed");
        }
        killer.join().expect("no panic");
        let (counts, messages) = Running::below(place.path()).end();
        assert!(
            messages.iter().any(|message| message.contains("1 sessions of a killed collector whole")),
            "{messages:?}"
        );
        assert_eq!(counts.sessions, 0);
        for (number, acknowledged) in acknowledged.into_iter().enumerate() {
            check(&place.path().join(&path).join("trace"), &format!("c_{number}"), handles[number], acknowledged);
        }
    }
}

/// Checks that the file has complete packets from the first one on, at least all acknowledged ones, and a matching index.
fn check(directory: &Path, name: &str, handle: u64, acknowledged: u64) {
    let bytes = std::fs::read(directory.join(name)).expect("a file");
    assert!(acknowledged >= 1, "nothing was stored before the end");
    let count = bytes.len() as u64 / 3000;
    assert_eq!(bytes.len() % 3000, 0, "an incomplete packet");
    assert!(count >= acknowledged, "{count} packets of {acknowledged}");
    for (sequence, stored) in (0..).zip(bytes.chunks(3000)) {
        assert_eq!(stored, packet(handle, handle, sequence, 3000).0);
    }
    let index: PathBuf = [directory, Path::new("index"), Path::new(&format!("{name}.idx"))].iter().collect();
    let index = std::fs::read(index).expect("an index");
    assert_eq!(index.len() as u64, IndexFile::HEADER as u64 + 72 * count);
}

/// Senders wait while the quota is used up; when the collector ends, unwritten packets are counted.
#[test]
fn a_used_up_quota_stops_senders_and_is_told() {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let mut collector = Running::with(Options { quota: Some(10_000), ..Options::new(place.path()) });
    let mut sender = Sender::connect(&collector.addresses);
    let path = sender.open(session("full"));
    let handle = sender.add(stream("c_0"));
    for sequence in 0..4 {
        sender.packet(handle, sequence);
    }
    let report = collector.until(|report| report.full.is_some());
    assert_eq!(report.counts.stored, 2);
    assert!(report.memory >= 4096 && report.disk <= 10_000, "{report:?}");
    let (counts, messages) = collector.end();
    assert_eq!((counts.stored, counts.unwritten), (2, 2));
    assert!(messages.iter().any(|message| message.starts_with("cannot write: ")), "{messages:?}");
    let file = place.path().join(path).join("trace/c_0");
    assert_eq!(file.metadata().expect("a file").len(), 2 * 4096);
}
