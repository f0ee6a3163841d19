//! A trace in a dt file. The text up to the first NUL is its metadata; then the empty packets, the account and the slots follow, each with its
//! length in two bytes in front. The file is built with valid checksums, so that they do not stop the input. All items are also written, as
//! text and as JSON. Bytes that begin like a dt file are used as the file itself.

#![no_main]

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use datatrace::{DtWriter, Layout, Storage, Version, tagged};
use libfuzzer_sys::fuzz_target;
use tracepoint_reader::dt::{ACCOUNT_TAG, EDGES_TAG, METADATA_TAG};
use tracepoint_reader::text::{Style, TextOptions, TextWriter, TimeFormat};
use tracepoint_reader::{DtTrace, Trace, json};

/// Limits the items of an input, because more would only make it slow.
const MAX_ITEMS: usize = 256;
const SLOTS: u32 = 8;
const SLOT: u32 = 2048;

#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Storage for Memory {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.0.borrow_mut();
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        let length = file.len().max(end);
        file.resize(length, 0);
        file[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().resize(length as usize, 0);
        Ok(())
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }
}

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(&[2, 0, 0, 0]) {
        return look(bytes.to_vec());
    }
    let Some(end) = bytes.iter().position(|b| *b == 0) else {
        return;
    };
    let (metadata, mut rest) = (&bytes[..end], &bytes[end + 1..]);
    let mut pieces = std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let piece;
        (piece, rest) = behind.split_at(length);
        Some(piece)
    });
    let file = Memory::default();
    let layout = Layout::new(SLOT, SLOTS).version(Version::Framed).full_size();
    let mut writer = DtWriter::create(file.clone(), layout).unwrap();
    writer.append_postamble(tagged(METADATA_TAG, metadata));
    for (tag, contents) in [EDGES_TAG, ACCOUNT_TAG].into_iter().zip(&mut pieces) {
        writer.append_postamble(tagged(tag, contents));
    }
    for packet in pieces {
        if !packet.is_empty() && packet.len() < SLOT as usize - 8 {
            writer.put_slot(packet).unwrap();
        }
    }
    writer.flush(true).unwrap();
    drop(writer);
    look(file.0.take());
});

fn look(bytes: Vec<u8>) {
    let Ok(trace) = DtTrace::from_bytes(bytes) else {
        return;
    };
    let summary = trace.summary();
    let trace = Trace::from(trace);
    let mut writers = [Style::Compact, Style::Babeltrace].map(|style| {
        let mut options = TextOptions::from(style);
        (options.time, options.color) = (TimeFormat::Utc, true);
        TextWriter::new(options)
    });
    for item in trace.items().take(MAX_ITEMS) {
        for writer in &mut writers {
            writer.write_item(&mut io::sink(), &item).unwrap();
        }
        json::write_item(&mut io::sink(), &item).unwrap();
    }
    if let Ok(summary) = summary {
        assert!(summary.packets <= summary.slots);
    }
}
