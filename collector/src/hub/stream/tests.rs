//! Tests of a stream whose sender requests files faster than the storage opens them.

use super::*;
use crate::shares::{Address, Holder, Shares};
use std::net::IpAddr;
use tempfile::TempDir;
use tracepoint_wire::relay::{IndexFile, METADATA_CHANNEL};

const HOLDER: Holder = Holder { address: Address::Host(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)), sender: Some(1) };

/// A stream, and a storage that has not run its jobs.
struct Waiting {
    place: TempDir,
    shares: Shares,
    stream: Stream,
    given: Vec<Job>,
}

impl Waiting {
    fn new(channel: &str, files: usize) -> Self {
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let place = Place {
            path: "trace".into(),
            directory: directory.path().to_owned(),
            channel: channel.to_owned(),
            format: Some(IndexFile { is_long: true }),
            limit: (0, 0),
        };
        let shares = Shares::new(files);
        let share = shares.take(HOLDER, 2).expect("a share");
        let (files, mut given) = (place.create(0).expect("files").with(share), Vec::new());
        let stream = Stream::new(1, 1, place, files, |job| given.push(job));
        Self { place: directory, shares, stream, given }
    }

    fn replace(&mut self) -> io::Result<()> {
        self.stream.replace(|job| self.given.push(job))
    }

    fn rotate(&mut self, from: u64, to: &str) -> io::Result<()> {
        let directory = self.place.path().join(to);
        std::fs::create_dir_all(&directory).expect("a directory");
        self.stream.rotate(from, directory, |job| self.given.push(job))
    }

    /// Lets the storage open the next files and close those before them.
    fn opens(&mut self) {
        self.given.remove(0);
        let _ = self.stream.done(&JobResult::Opened { entries: 0, bytes: 0, moved: 0 }, Instant::now(), |_| {});
    }
}

#[test]
fn metadata_that_is_replaced_without_end_takes_one_pair_of_files_beyond_the_share() {
    let mut waiting = Waiting::new(METADATA_CHANNEL, 40);
    let others: Vec<_> = std::iter::from_fn(|| waiting.shares.take(HOLDER, 2)).collect();
    let has = waiting.shares.used();
    assert_eq!((has, others.len()), (10, 4));
    for _ in 0..3 {
        waiting.replace().expect("one is lent");
        for _ in 0..100 {
            let error = waiting.replace().expect_err("the storage has not come to the first");
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            assert_eq!(waiting.shares.used(), has + 2);
        }
        assert!(waiting.place.path().join(".metadata").exists(), "what was refused removes nothing");
        waiting.opens();
        assert_eq!(waiting.shares.used(), has);
    }
    // With enough room, several wait.
    drop(others);
    let mut waiting = Waiting::new(METADATA_CHANNEL, 1000);
    let taken = (0..100).take_while(|_| waiting.replace().is_ok()).count();
    assert_eq!((taken, waiting.shares.used()), (8, 18));
}

#[test]
fn rotations_that_wait_take_one_pair_of_files_beyond_the_share() {
    let mut waiting = Waiting::new("c_0", 40);
    let _others: Vec<_> = std::iter::from_fn(|| waiting.shares.take(HOLDER, 2)).collect();
    let has = waiting.shares.used();
    // No packet before these has arrived.
    for number in 0..20 {
        waiting.rotate(u64::MAX, &number.to_string()).expect("it takes the place of the one before");
        assert_eq!(waiting.shares.used(), has + 2);
    }
    waiting.rotate(0, "due").expect("it takes the place of the one before");
    let error = waiting.rotate(0, "next").expect_err("the storage has not come to the first");
    assert_eq!((error.kind(), waiting.shares.used()), (io::ErrorKind::WouldBlock, has + 2));
    assert_eq!(waiting.given.len(), 2);
    waiting.opens();
    assert_eq!(waiting.shares.used(), has);
    waiting.rotate(0, "later").expect("the storage has come to the first");
}
