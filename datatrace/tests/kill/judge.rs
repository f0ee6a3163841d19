//! Checks the file of a killed program.

use crate::Round;
use datatrace::DtReader;
use std::path::Path;

pub(crate) fn judge(directory: &Path, round: Round) -> Result<bool, String> {
    let flushed = std::fs::read(directory.join("flushed")).map_err(|error| error.to_string())?;
    let word = |at: usize| u64::from_le_bytes(flushed[at..at + 8].try_into().expect("eight bytes"));
    let (flushed, posted) = (word(0), word(8));
    let file = DtReader::open(&directory.join("victim.dt")).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    let mut slots = 0;
    for slot in file.slots() {
        let bytes = slot.and_then(|slot| slot.bytes()).map_err(|error| error.to_string())?;
        entries.extend(bytes);
        slots += 1;
    }
    let begin = begin_of(&entries).ok_or("the entries are not numbers one after the other")?;
    let end = begin + entries.len() as u64;
    if begin % round.capacity() != 0 {
        return Err(format!("the oldest slot begins at byte {begin} of all entries, which no slot does"));
    }
    if end < flushed {
        return Err(format!("{flushed} bytes of entries were flushed, and they end at {end}"));
    }
    let least = (flushed / round.capacity()).min(u64::from(round.filesize) - 1);
    if slots < least {
        return Err(format!("{slots} slots are left of {least}"));
    }
    judge_postambles(&file, round, posted)?;
    Ok(file.header().in_progress().is_some())
}

/// The begin of these bytes in the stream of all entries; `None` if they are not a part of it.
fn begin_of(bytes: &[u8]) -> Option<u64> {
    let is_at = |begin: u64| (begin..).zip(bytes).all(|(at, byte)| (at / 8).to_le_bytes()[(at % 8) as usize] == *byte);
    if is_at(0) {
        return Some(0);
    }
    (0..8).find_map(|before| {
        let number = u64::from_le_bytes(bytes.get(before..before + 8)?.try_into().ok()?);
        number.checked_mul(8)?.checked_sub(before as u64).filter(|begin| is_at(*begin))
    })
}

/// Checks that the postambles are the appended ones in order. In a file of full size, no flushed postamble may be missing.
fn judge_postambles(file: &DtReader, round: Round, posted: u64) -> Result<(), String> {
    let mut next = 0u64;
    for tagged in file.tagged_postambles() {
        let tagged = tagged.map_err(|error| error.to_string())?;
        if tagged.contents != next.to_le_bytes() {
            return Err(format!("postamble {next} contains {:?}", tagged.contents));
        }
        next += 1;
    }
    let left = file.postamble_size() - next * 24;
    if left >= 24 {
        return Err(format!("{left} bytes behind {next} postambles"));
    }
    if round.full_size && next < posted {
        return Err(format!("{posted} postambles were flushed, and {next} are left"));
    }
    Ok(())
}
