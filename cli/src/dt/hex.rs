//! Bytes in hexadecimal.

use serde_json::Value;
use std::io::{self, Read, Write};

/// Bytes per line.
const WIDTH: usize = 16;

/// Writes one line for each 16 bytes: their offset, the bytes, and their ASCII characters.
pub(super) fn write_lines(out: &mut impl Write, mut bytes: impl Read, mut offset: u64) -> io::Result<()> {
    let mut line = Vec::with_capacity(WIDTH);
    loop {
        line.clear();
        if bytes.by_ref().take(WIDTH as u64).read_to_end(&mut line)? == 0 {
            return Ok(());
        }
        write!(out, "{offset:08x} ")?;
        for column in 0..WIDTH {
            let gap = if column % 8 == 0 { " " } else { "" };
            match line.get(column) {
                Some(byte) => write!(out, "{gap}{byte:02x} ")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        writeln!(out, " |{}|", line.iter().map(shown).collect::<String>())?;
        offset += line.len() as u64;
    }
}

/// Writes a JSON object with these members and the bytes as `hex`, in one line. The bytes are streamed, because a slot may have gigabytes.
pub(super) fn write_json(out: &mut impl Write, members: &[(&str, Value)], mut bytes: impl Read) -> io::Result<()> {
    write!(out, "{{")?;
    for (name, value) in members {
        write!(out, "\"{name}\":{value},")?;
    }
    write!(out, "\"hex\":\"")?;
    let mut chunk = vec![0; 4096];
    loop {
        let read = bytes.read(&mut chunk)?;
        if read == 0 {
            return writeln!(out, "\"}}");
        }
        chunk[..read].iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
    }
}
