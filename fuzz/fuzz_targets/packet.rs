//! Metadata and a packet: the text up to the first NUL describes the bytes after it. All decoded items are also
//! written, as text and as JSON.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::text::{Style, TextOptions, TextWriter, TimeFormat};
use tracepoint_reader::{Item, Metadata, PacketDecoder, json};

/// Limits the events of an input, because more would only make it slow.
const MAX_EVENTS: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|b| *b == 0) else {
        return;
    };
    let Ok(metadata) = Metadata::parse(&bytes[..end]) else {
        return;
    };
    let Ok(decoder) = PacketDecoder::new(&metadata, &bytes[end + 1..]) else {
        return;
    };
    let mut writers = [Style::Compact, Style::Babeltrace].map(|style| {
        let mut options = TextOptions::from(style);
        (options.time, options.color) = (TimeFormat::Utc, true);
        TextWriter::new(options)
    });
    for step in decoder.take(MAX_EVENTS) {
        let item = match step {
            Ok(event) => Item::Event(event),
            Err(damage) => Item::Damage(damage),
        };
        for writer in &mut writers {
            writer.write_item(&mut io::sink(), &item).unwrap();
        }
        json::write_item(&mut io::sink(), &item).unwrap();
    }
});
