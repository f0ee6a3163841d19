//! Traces of other tracers, made by hand for each construct of CTF 1.8. The output of this crate is compared with babeltrace2's line by line;
//! where babeltrace2 refuses a trace, the test explains why and checks the events.

mod bits;
mod clocks;
mod headers;
mod metadata;
mod order;
mod types;

use bits::Bits;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tracepoint_reader::metadata::types::ByteOrder::{self, Big, Little};

const ORDERS: [ByteOrder; 2] = [Little, Big];
const MAGIC: u64 = 0xC1FC_1FC1;

/// Metadata of one stream without packet header, packet context and event header, in the given byte order; its only event has `fields`.
fn bare(order: ByteOrder, fields: &str) -> String {
    let order = if order == Big { "be" } else { "le" };
    format!(
        "/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
typealias integer {{ size = 16; align = 16; signed = false; }} := u16;
typealias integer {{ size = 32; align = 32; signed = false; }} := u32;
typealias integer {{ size = 64; align = 64; signed = false; }} := u64;
trace {{ major = 1; minor = 8; byte_order = {order}; packet.header := struct {{ u32 magic; u32 stream_id; }}; }};
stream {{ id = 0; }};
event {{ name = \"p:x\"; fields := struct {{ {fields} }}; }};
"
    )
}

/// A packet of such a stream, up to its first event.
fn begin(order: ByteOrder) -> Bits {
    let mut bits = Bits::new(order);
    bits.put(MAGIC, 32, 32).put(0, 32, 32);
    bits
}

/// A trace directory with one stream file.
fn one_file(metadata: &str, bytes: Vec<u8>) -> TempDir {
    crate::hand::trace(metadata, &[("s", &[bytes])])
}

/// The error message of babeltrace2 when it refuses a trace.
fn refused(directory: &Path) -> String {
    let output = Command::new("babeltrace2")
        .arg(directory)
        .output()
        .expect("babeltrace2 does not run: install it with scripts/setup.sh");
    assert!(!output.status.success(), "babeltrace2 reads it: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
