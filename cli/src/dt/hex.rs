//! Bytes as lines of hexadecimal numbers.

use std::io::{self, Read, Write};

/// Bytes in a line.
const WIDTH: usize = 16;

/// Writes one line for each 16 bytes: where they are, the bytes, and the characters that they may be.
pub(crate) fn write_lines(out: &mut impl Write, mut bytes: impl Read, mut offset: u64) -> io::Result<()> {
    let mut line = Vec::with_capacity(WIDTH);
    loop {
        line.clear();
        if bytes.by_ref().take(WIDTH as u64).read_to_end(&mut line)? == 0 {
            return Ok(());
        }
        write!(out, "{offset:08x} ")?;
        for place in 0..WIDTH {
            let gap = if place % 8 == 0 { " " } else { "" };
            match line.get(place) {
                Some(byte) => write!(out, "{gap}{byte:02x} ")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        writeln!(out, " |{}|", line.iter().map(shown).collect::<String>())?;
        offset += line.len() as u64;
    }
}

/// Writes the bytes as one run of hexadecimal digits.
pub(crate) fn write_digits(out: &mut impl Write, mut bytes: impl Read) -> io::Result<()> {
    let mut chunk = vec![0; 4096];
    loop {
        let there = bytes.read(&mut chunk)?;
        if there == 0 {
            return Ok(());
        }
        for byte in &chunk[..there] {
            write!(out, "{byte:02x}")?;
        }
    }
}
