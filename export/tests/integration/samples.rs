//! Samples of the processor: a handmade trace of the kernel, with mappings and call stacks.

use super::common;
use super::hand::{PREAMBLE, UUID};
use std::fs;
use tracepoint_export::FoldedStacks;
use tracepoint_reader::Trace;

/// An event: its id, and the bytes of its fields.
type Record = (u16, Vec<u8>);

fn mapping(address: u64, build_id: &str, path: &str) -> Record {
    let numbers = [address, 0x1000, 0x200].map(u64::to_le_bytes);
    (1, [numbers.as_flattened(), build_id.as_bytes(), b"\0", path.as_bytes(), b"\0"].concat())
}

fn sample(stack: &[u64]) -> Record {
    let addresses = stack.iter().flat_map(|address| address.to_le_bytes());
    (2, (stack.len() as u32).to_le_bytes().into_iter().chain(addresses).collect())
}

/// The folded stacks of events of the process 41.
fn folded(records: &[Record]) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let metadata = PREAMBLE.replace("vpid = 4242; procname = \"my proc\";", "");
    let metadata = format!(
        "{metadata}
stream {{ id = 0;
  packet.context := struct {{ ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; }};
  event.header := struct {{ u16 id; ts64 timestamp; }};
  event.context := struct {{ u32 pid; u32 tid; }};
}};
event {{ name = \"perf:mmap\"; id = 1; stream_id = 0; fields := struct {{ u64 address; u64 length; u64 offset; string build_id; string path; }}; }};
event {{ name = \"perf:sample\"; id = 2; stream_id = 0; fields := struct {{ u32 _callstack_length; u64 _callstack[_callstack_length]; }}; }};
"
    );
    let mut events = Vec::new();
    for (time, (id, fields)) in (1_u64..).zip(records) {
        events.extend(id.to_le_bytes().into_iter().chain(time.to_le_bytes()));
        events.extend([41_u32, 42].map(u32::to_le_bytes).as_flattened());
        events.extend(fields);
    }
    let header = [&0xC1FC_1FC1_u32.to_le_bytes()[..], &UUID, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat();
    let bits = (header.len() as u64 + 32 + events.len() as u64) * 8;
    let context = [1, records.len() as u64, bits, bits].map(u64::to_le_bytes).concat();
    fs::write(place.path().join("metadata"), metadata).unwrap();
    fs::write(place.path().join("stream"), [header, context, events].concat()).unwrap();
    let items: Vec<_> = Trace::open(place.path()).unwrap().items().collect();
    let mut out = Vec::new();
    let summary = common::export(&items, FoldedStacks::of_samples(&mut out));
    assert_eq!((summary.events, summary.damage), (records.len() as u64, 0));
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn samples_have_the_functions_of_the_code_that_was_mapped() {
    let kernel = [0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000];
    let lines = folded(&[
        // Before the mapping is known: it was there when the process was attached.
        sample(&[0x5010]),
        mapping(0x5000, "", "/none/a"),
        sample(&[0x5010]),
        // Return addresses are those after the call.
        sample(&[kernel[0], kernel[1], 0x5021, 0x9000, 0x9100]),
        // The same mapping again, and other code at its address.
        mapping(0x5000, "", "/none/a"),
        sample(&[0x5010]),
        mapping(0x5800, "00ff", "/none/b"),
        sample(&[0x5010]),
        sample(&[0x5810]),
        sample(&[]),
    ]);
    assert_eq!(lines, ["41 1", "41;[unknown];a+0x220;[kernel] 1", "41;a+0x210 4", "41;b+0x210 1"]);
}
