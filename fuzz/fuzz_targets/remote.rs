//! The directory of a process recorded by another process: the last part is a ring. Packets are passed on in order, with at most as many events as
//! were recorded.

#![no_main]

mod directory;

use fileguard::CheckedFd;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tracepoint_reader::internal::{RemoteConsumer, TakenPacket};

fuzz_target!(|bytes: &[u8]| {
    let Some([metadata, _, ring]) = directory::parts(bytes) else {
        return;
    };
    let Ok(mut consumer) = RemoteConsumer::new(metadata.to_vec()) else {
        return;
    };
    consumer.add("0-0.ring", Path::new("ring"), file(ring));
    // The same streams again: they are not taken twice.
    consumer.add("0-1.ring", Path::new("again"), file(ring));
    let mut streams: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
    let mut take = |packet: TakenPacket<'_>| {
        assert!(packet.bytes.len() >= 96 && packet.first_packet().len() == 96);
        let (after, sum) = streams.entry((packet.class, packet.instance)).or_default();
        assert!(*after <= packet.events_before && packet.events_before <= packet.events_after);
        *after = packet.events_after;
        *sum += packet.events_after - packet.events_before;
    };
    let full = consumer.look();
    let round = consumer.take(&mut take);
    assert!(full > 0 || round.packets == 0);
    let end = consumer.end(bytes.len() % 2 == 0, &mut take);
    let lines = end.account.channels.iter().flat_map(|channel| channel.streams.iter().map(|line| (channel.id, line)));
    for (class, line) in lines {
        let (_, sum) = streams.get(&(class as u32, line.instance)).copied().unwrap_or_default();
        assert!(sum <= line.recorded, "{sum} of {}", line.recorded);
    }
    assert!(end.account.complete || !end.notes.is_empty(), "incomplete, and nothing says why");
});

/// An unlinked file.
fn file(bytes: &[u8]) -> CheckedFd<File> {
    let place = Path::new("/dev/shm").join(format!("remote-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&place).unwrap();
    std::fs::remove_file(&place).unwrap();
    file.write_all(bytes).unwrap();
    CheckedFd::of(file).unwrap()
}
