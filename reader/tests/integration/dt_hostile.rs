//! Dt files whose lengths exceed their contents: they are refused, or reported as damaged, in bounded memory.

use std::error::Error;
use std::fs::File;
use std::io::Write;

use crate::hand::{Packet, one_event};
use datatrace::{DtWriter, FileStorage, Layout, Version, tagged};
use tracepoint_reader::dt::{EDGES_TAG, METADATA_TAG};
use tracepoint_reader::{DtTrace, Item, ReadError, Trace};

type Outcome = Result<(), Box<dyn Error>>;

/// A sparse file of `slots` unwritten slots, followed by metadata.
fn sparse(version: u32, size: u32, slots: u32) -> Result<tempfile::NamedTempFile, Box<dyn Error>> {
    let mut file = tempfile::NamedTempFile::new()?;
    let last = if version == 1 { [0, size] } else { [u32::MAX, 0] };
    let header: Vec<u8> = [version, size, slots, last[0], last[1]].into_iter().flat_map(u32::to_le_bytes).collect();
    file.write_all(&header)?;
    let end = 20 + u64::from(size) * u64::from(slots);
    file.as_file().set_len(end)?;
    let metadata = one_event("u8 n;");
    let mut behind = File::options().append(true).open(file.path())?;
    behind.write_all(&tagged(METADATA_TAG, metadata.as_bytes()))?;
    Ok(file)
}

#[test]
fn slots_too_small_for_a_packet_are_refused() -> Outcome {
    for (version, size, slots) in [(1, 1, i32::MAX as u32), (1, 4096, 1 << 20), (2, 9, i32::MAX as u32), (2, 103, 1)] {
        let file = sparse(version, size, slots)?;
        let error = DtTrace::open(file.path()).err().ok_or("it is taken for a trace")?;
        assert!(matches!(error, ReadError::PlainDt { .. }), "{error}");
    }
    DtTrace::open(sparse(2, 104, 1)?.path())?;
    Ok(())
}

/// The damage reported in a file with this number of slots, with metadata, and with the bytes written by `fill`.
fn damage_of(
    slots: u32,
    fill: impl FnOnce(&mut DtWriter<FileStorage>) -> Outcome,
) -> Result<Vec<String>, Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("hostile.dt");
    let layout = Layout::new(104, slots).version(Version::Framed).full_size();
    let mut writer = DtWriter::create(FileStorage::begin(&path)?, layout)?;
    writer.put_postamble(METADATA_TAG, one_event("u8 n;").as_bytes())?;
    fill(&mut writer)?;
    writer.publish(false)?;
    drop(writer);
    let items = Trace::open(&path)?.items();
    Ok(items.filter_map(|item| if let Item::Damage(damage) = item { Some(damage.reason) } else { None }).collect())
}

#[test]
fn repeated_damage_is_reported_once_and_counted() -> Outcome {
    let damage = damage_of(3000, |writer| {
        for _ in 0..3000 {
            writer.put_slot(b"this is no packet")?;
        }
        Ok(())
    })?;
    assert_eq!(damage.len(), 1001);
    assert_eq!(damage[1000], "and 2000 more places are damaged");
    Ok(())
}

#[test]
fn a_stream_has_two_packets_outside_the_slots() -> Outcome {
    let edges: Vec<u8> = (0..50_000).rev().flat_map(|number| Packet { number, ..Packet::of(&[]) }.bytes()).collect();
    let damage = damage_of(1, |writer| Ok(writer.put_postamble(EDGES_TAG, &edges)?))?;
    assert_eq!(damage, ["a stream has more than 2 packets outside the slots"]);
    Ok(())
}
