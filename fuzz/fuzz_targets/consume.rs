//! The directory of a process that is recorded from outside: the text up to the first NUL is its metadata, two bytes behind it say how
//! much to leave out, and the rest is a ring. What is handed on comes in order, and no more of it than was recorded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tracepoint_reader::consume::{Consumer, TakenPacket};

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|b| *b == 0) else {
        return;
    };
    let (metadata, rest) = bytes.split_at(end);
    let Some((length, rest)) = rest[1..].split_first_chunk() else {
        return;
    };
    let skip = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let Ok(mut consumer) = Consumer::new(metadata.to_vec()) else {
        return;
    };
    consumer.add("0-0.ring", Path::new("ring"), file(&rest[skip..]));
    // The same streams once more: they are not taken twice.
    consumer.add("0-1.ring", Path::new("again"), file(&rest[skip..]));
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
    assert!(end.notes.is_empty() == end.account.complete || end.account.complete, "{:?}", end.notes);
});

/// A file without a name.
fn file(bytes: &[u8]) -> File {
    let place = Path::new("/dev/shm").join(format!("consume-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&place).unwrap();
    std::fs::remove_file(&place).unwrap();
    file.write_all(bytes).unwrap();
    file
}
