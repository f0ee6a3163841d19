//! Call stacks with function names, in traces that list the code mappings of their process.
//!
//! The metadata comes from a recorded session. The packet is generated, with addresses of functions of this program, because this program is built
//! without frame pointers.

use super::common;
use super::hand::{PREAMBLE, UUID};
use std::fs;
use tempfile::TempDir;
use tracepoint::{Channel, context::Context};
use tracepoint_export::FoldedStacks;
use tracepoint_reader::{Item, Trace};

#[inline(never)]
fn outer_function(n: u64) -> u64 {
    std::hint::black_box(n + 1)
}

#[inline(never)]
fn inner_function(n: u64) -> u64 {
    std::hint::black_box(n + 2)
}

/// The code mappings in the metadata of a recorded session.
fn modules() -> Vec<String> {
    let channel = Channel::discard(1 << 20).context(Context::CallStack);
    let recorded = common::record(channel, || tracepoint::trace!(common::step(1, 0, "", &[], true, 0.0)));
    let (_, metadata) = recorded.trace.metadata().next().unwrap();
    let modules = metadata.modules().map(str::to_owned).collect();
    let without = common::record(Channel::discard(1 << 20), || {});
    assert_eq!(without.trace.metadata().next().unwrap().1.modules().count(), 0);
    modules
}

/// A trace of events with these call stacks, innermost address first.
fn trace(modules: &[String], stacks: &[&[u64]]) -> (TempDir, Vec<Item>) {
    let place = tempfile::tempdir().unwrap();
    let env =
        modules.iter().enumerate().fold(String::new(), |env, (n, module)| format!("{env}module_{n} = \"{module}\"; "));
    let metadata = format!(
        "{PREAMBLE}env {{ {env} }};
stream {{ id = 0;
  packet.context := struct {{ ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; }};
  event.header := struct {{ u16 id; ts64 timestamp; }};
  event.context := struct {{ u32 _callstack_length; u64 _callstack[_callstack_length]; }};
}};
event {{ name = \"hand:sample\"; id = 7; stream_id = 0; fields := struct {{ u8 n; }}; }};
"
    );
    let mut events = Vec::new();
    for (time, stack) in (1_u64..).zip(stacks) {
        events.extend(7_u16.to_le_bytes().into_iter().chain(time.to_le_bytes()));
        events.extend((stack.len() as u32).to_le_bytes());
        events.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        events.push(0);
    }
    let header = [&0xC1FC_1FC1_u32.to_le_bytes()[..], &UUID, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat();
    let bits = (header.len() as u64 + 32 + events.len() as u64) * 8;
    let context = [1, stacks.len() as u64, bits, bits].map(u64::to_le_bytes).concat();
    fs::write(place.path().join("metadata"), metadata).unwrap();
    fs::write(place.path().join("stream"), [header, context, events].concat()).unwrap();
    let items = Trace::open(place.path()).unwrap().items().collect();
    (place, items)
}

fn folded(modules: &[String], stacks: &[&[u64]]) -> String {
    let (_place, items) = trace(modules, stacks);
    let mut out = Vec::new();
    let summary = common::export(&items, FoldedStacks::of_call_stacks(&mut out));
    assert_eq!((summary.events, summary.damage), (stacks.len() as u64, 0));
    String::from_utf8(out).unwrap()
}

#[test]
fn addresses_get_the_names_of_their_functions() {
    let modules = modules();
    let [outer, inner] = [outer_function as fn(u64) -> u64, inner_function].map(|function| function as usize as u64);
    // A return address is the address after the call, which may be the function's last instruction.
    let stacks: [&[u64]; 4] = [&[inner, outer + 1], &[inner + 1, outer + 2], &[], &[0x10]];
    let text = folded(&modules, &stacks);
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[..2], ["[no call stack] 1", "my proc;0x10;hand:sample 1"]);
    let frames: Vec<_> = lines[2].split(';').collect();
    assert!(frames[1].ends_with("calls::outer_function") && frames[2].ends_with("calls::inner_function"), "{text}");
    assert_eq!((frames[0], frames[3]), ("my proc", "hand:sample 2"));
}

#[test]
fn a_file_that_has_changed_gives_no_names() {
    let program = std::env::current_exe().unwrap();
    let inner = inner_function as fn(u64) -> u64 as usize as u64;
    let module = format!("{:x}-{:x} 1000 00ff {}", inner - 16, inner + 16, program.display());
    let missing = "1000-2000 0 - /nonexistent/lib c.so".to_owned();
    let text = folded(&[module, missing, "nonsense".to_owned()], &[&[inner], &[0x1234]]);
    let name = program.file_name().unwrap().to_str().unwrap();
    let expected = [format!("my proc;{name}+0x1010;hand:sample 1"), "my proc;lib c.so+0x234;hand:sample 1".to_owned()];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
