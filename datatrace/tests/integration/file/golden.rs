//! Golden files, which must be reproduced byte for byte. `DATATRACE_GOLDEN=write` regenerates them. The text files next to them are compared with the
//! output of the independent decoder, and are changed by hand.

use crate::file::independent::decode;
use crate::file::memory::Memory;
use datatrace::{DtWriter, Error, Format, Layout, Version, tagged};
use std::fmt::Write;
use std::path::PathBuf;

type Scenario = fn(&mut DtWriter<Memory>) -> Result<(), Error>;

/// A name, a layout, and the calls.
fn scenarios() -> [(&'static str, Layout, Scenario); 7] {
    let framed = |logsize, filesize| Layout::new(logsize, filesize).version(Version::Framed);
    [
        ("empty", Layout::new(10, 3), |_| Ok(())),
        ("part", Layout::new(10, 3), |dt| {
            dt.trace2(0x0102_0304i32, -2i16)?;
            dt.flush(false)
        }),
        ("grown", Layout::new(10, 3), |dt| {
            dt.append_postamble(*b"second");
            dt.insert_postamble(*b"first");
            dt.trace_buf(b"01234567")?;
            dt.trace_buf(b"89abcdef")?;
            dt.flush(true)
        }),
        ("wrapped", Layout::new(10, 3), |dt| {
            (b'a'..=b'l').try_for_each(|letter| dt.trace_buf(&[letter; 4]))?;
            dt.append_postamble(*b"the end");
            dt.flush(true)
        }),
        ("framed-wrapped", framed(24, 3), |dt| {
            (0u32..12).try_for_each(|n| dt.trace3(n, true, f64::from(n) / 4.0))?;
            dt.flush(false)?;
            dt.trace_buf(b"!")?;
            dt.flush(false)
        }),
        ("framed-full-size", framed(20, 4).full_size(), |dt| {
            let format: Format = "n:u32 addr:u64/x".parse().expect("a format");
            dt.append_postamble(format.to_postamble());
            dt.flush(true)?;
            dt.trace2(1u32, 0x0A00_0001u64)?;
            dt.trace2(2u32, 0x0A00_0002u64)?;
            dt.append_postamble(tagged(*b"note", b"two entries"));
            dt.flush(true)
        }),
        ("framed-ended", framed(24, 3), |dt| {
            dt.trace1(1u8)?;
            dt.end_slot()?;
            datatrace::trace!(dt, 2u8, 3u16, 4u32, 5i8)?;
            dt.end_slot()
        }),
    ]
}

fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn files_equal_the_golden_files() {
    let anew = std::env::var("DATATRACE_GOLDEN").is_ok_and(|word| word == "write");
    for (name, layout, scenario) in scenarios() {
        let file = Memory::default();
        let mut writer = DtWriter::create(file.clone(), layout).unwrap();
        scenario(&mut writer).unwrap();
        // Copy now, because dropping the writer flushes.
        let bytes = file.0.borrow().bytes.clone();
        let path = golden(&format!("{name}.dt"));
        if anew {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
    }
}

#[test]
fn the_independent_decoder_reads_golden_files() {
    for (name, ..) in scenarios() {
        let decoded = decode(&std::fs::read(golden(&format!("{name}.dt"))).unwrap());
        let mut text = format!("header {:?}\n", decoded.header);
        for (slot, bytes) in &decoded.slots {
            writeln!(text, "slot {slot} {}", hex(bytes)).unwrap();
        }
        assert_eq!(decoded.torn, [], "{name}");
        writeln!(text, "postambles {}", hex(&decoded.postambles)).unwrap();
        assert_eq!(std::fs::read_to_string(golden(&format!("{name}.txt"))).unwrap(), text, "{name}");
    }
}
