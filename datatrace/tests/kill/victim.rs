//! The program that is killed: it writes consecutive numbers, flushes from time to time, and reports the flushed numbers to the judge.

use crate::Round;
use datatrace::{TraceOptions, tagged};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Entry `n` is the number `n` in eight bytes; postamble `n` is tagged, and contains `n`. The file `flushed`
/// in the same directory has the number of flushed bytes of entries and of flushed postambles.
pub(crate) fn write_for_ever(directory: &Path, round: Round) -> ! {
    let options = TraceOptions::new(round.layout()).directory(directory);
    let options = if round.maps_header { options.map_header() } else { options };
    let object = options.create("victim").expect("a file");
    let flushed = File::create(directory.join("flushed")).expect("a file");
    let write_flushed = |entries: u64, postambles: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(8 * entries).to_le_bytes());
        bytes[8..].copy_from_slice(&postambles.to_le_bytes());
        flushed.write_all_at(&bytes, 0).expect("room");
    };
    write_flushed(0, 0);
    let mut out = std::io::stdout();
    out.write_all(b"!").and_then(|()| out.flush()).expect("the parent reads it");
    let mut postambles = 0u64;
    for number in 0u64.. {
        object.trace1(number).expect("room");
        let between = u64::from(round.logsize) / 11;
        if number % (between + number % 7 + 1) == 0 {
            let also = number % 5 == 0;
            if also {
                object.append_postamble(tagged(*b"numb", &postambles.to_le_bytes())).expect("open");
                postambles += 1;
            }
            object.flush(also).expect("room");
            write_flushed(number + 1, postambles);
        }
    }
    unreachable!("it is killed before")
}
