//! Prints a trace as text: `print DIRECTORY`.

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tracepoint_reader::Trace;
use tracepoint_reader::text::{TextOptions, TextWriter};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::args_os().nth(1).ok_or("usage: print DIRECTORY")?;
    let trace = Trace::open(Path::new(&directory))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut writer = TextWriter::new(TextOptions::default());
    for item in trace.items() {
        writer.write_item(&mut out, &item)?;
    }
    out.flush()?;
    Ok(())
}
