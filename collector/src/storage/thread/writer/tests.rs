use super::*;
use crate::storage::{Packet, Storage};
use tokio::sync::mpsc::unbounded_channel;
use tracepoint_wire::relay::{Index, IndexFile};

#[test]
fn packets_that_wait_together_are_stored_as_far_as_there_is_room() {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let (sender, mut done) = unbounded_channel();
    // A packet occupies the thread until the others are queued behind it.
    let storage = Storage::start(0, Some(4500), Some(10_000), sender).expect("a thread");
    let index = |number: u8| Index { packet_number: number.into(), ..Index::default() };
    let packet = |number: u8| {
        let padding = u32::from(number) * 100;
        let packet = Packet::new(vec![number; 1000 - padding as usize], padding, None);
        Job::Packet(SequencedPacket { sequence: number.into(), packet, index: Some(index(number)) })
    };
    let answer = |sequence, size| Some((7, JobResult::Packet { sequence, size, stream_class: Some(0) }));
    let path = place.path().join("stream");
    let files = Files::create(&path, IndexFile { is_long: true }, true).expect("files");
    let segment = files.segment();
    storage.give(7, Job::Open { files, from: None });
    (0..3).for_each(|number| storage.give(7, packet(number)));
    (0..3).for_each(|sequence| assert_eq!(done.blocking_recv(), answer(sequence, Some(1000))));
    (3..6).for_each(|number| storage.give(7, packet(number)));
    assert_eq!(done.blocking_recv(), answer(3, Some(1000)));
    assert!(matches!(done.blocking_recv(), Some((7, JobResult::Full(Some(_))))));
    // The sender of the stream no longer waits.
    storage.drop_waiting(7);
    assert_eq!(done.blocking_recv(), Some((7, JobResult::Full(None))));
    assert_eq!(done.blocking_recv(), answer(4, None));
    let bytes = fs::read(&path).expect("a file");
    assert_eq!(bytes.len(), 4000);
    for number in 0..4_u8 {
        let (offset, entry) = segment.entry(number.into()).expect("an entry");
        assert_eq!((offset, entry.packet_number), (u64::from(number) * 1000, number.into()));
        let content = 1000 - usize::from(number) * 100;
        let expected = [vec![number; content], vec![0; 1000 - content]].concat();
        assert_eq!(bytes[offset as usize..][..1000], expected);
    }
    assert!(segment.entry(4).is_err());
}

#[test]
fn a_removal_does_not_wait_behind_the_packet_that_needs_its_room() {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let old = place.path().join("old");
    fs::create_dir(&old).and_then(|()| fs::write(old.join(METADATA_CHANNEL), [1; 60])).expect("a file");
    let (sender, mut done) = unbounded_channel();
    let storage = Storage::start(60, Some(100), None, sender).expect("a thread");
    let packet = |sequence, size| {
        Job::Packet(SequencedPacket { sequence, packet: Packet::new(vec![7; size], 0, None), index: None })
    };
    let path = place.path().join("stream");
    let files = Files::create(&path, IndexFile { is_long: true }, false).expect("a file");
    let stored = |sequence, size| JobResult::Packet { sequence, size: Some(size), stream_class: None };
    storage.give(7, Job::Open { files, from: None });
    for (sequence, size) in [(0, 50), (1, 1)] {
        storage.give(7, packet(sequence, size));
    }
    assert!(matches!(done.blocking_recv(), Some((7, JobResult::Full(Some(_))))));
    storage.give(1, Job::Remove { directory: old.clone(), bytes: 50 });
    assert_eq!(done.blocking_recv(), Some((1, JobResult::Removed { bytes: 50, is_gone: true, failed: None })));
    for expected in [JobResult::Full(None), stored(0, 50), stored(1, 1)] {
        assert_eq!(done.blocking_recv(), Some((7, expected)));
    }
    assert_eq!((storage.used(), old.exists()), (51, false));
    // First nothing to remove; then metadata that cannot be removed, so that the rest stays.
    for is_gone in [true, false] {
        storage.give(1, Job::Remove { directory: old.clone(), bytes: 50 });
        let removed = done.blocking_recv().expect("an answer").1;
        assert!(
            matches!(removed, JobResult::Removed { failed: Some(_), is_gone: gone, .. } if gone == is_gone),
            "{removed:?}"
        );
        fs::create_dir_all(old.join(METADATA_CHANNEL)).expect("a directory");
    }
    assert_eq!(storage.used(), 51);
}

#[test]
fn a_removal_within_a_batch_is_measured_apart() {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let old = place.path().join("old");
    fs::create_dir(&old).and_then(|()| fs::write(old.join(METADATA_CHANNEL), [1; 60])).expect("a file");
    let packet =
        |sequence| Job::Packet(SequencedPacket { sequence, packet: Packet::new(vec![7; 10], 0, None), index: None });
    let ((jobs, receiver), (done, _answers)) = (std::sync::mpsc::channel(), unbounded_channel());
    let mut writer = Writer {
        jobs: receiver,
        later: VecDeque::new(),
        streams: HashMap::new(),
        shared: Arc::default(),
        quota: None,
        rate: None,
        busy: Instant::now(),
        removing: Duration::ZERO,
        done,
    };
    let path = place.path().join("stream");
    let files = Files::create(&path, IndexFile { is_long: true }, false).expect("a file");
    writer.work(7, Job::Open { files, from: None });
    assert_eq!((writer.work(7, packet(0)), writer.removing), (10, Duration::ZERO));
    for job in [Job::Remove { directory: old.clone(), bytes: 60 }, packet(2)] {
        jobs.send((7, job)).expect("the writer has the receiver");
    }
    assert_eq!((writer.work(7, packet(1)), old.exists()), (20, false), "one batch, and a removal in it");
    assert!(writer.removing > Duration::ZERO);
}
