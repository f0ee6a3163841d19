//! A handmade trace of `tracectl record --waits`: a process, and the kernel's events of its threads.

use super::hand::{PREAMBLE, UUID};
use std::fs;
use tempfile::TempDir;
use tracepoint_reader::{Item, Trace};

/// The process of the traces, and one that is not traced otherwise.
pub(crate) const PID: u32 = 4242;
pub(crate) const OTHER: u32 = 77;

/// An event of the kernel: its time, its id, the process and the thread of its context, and the bytes of its fields. The second thread runs on a CPU
/// of its own.
pub(crate) type Kernel = (u64, u16, u32, u32, Vec<u8>);
/// An event of the process: its time, its thread, its id, and the numbers of its fields.
pub(crate) type User = (u64, u32, u16, Vec<u64>);

/// The same event of a thread of another process.
pub(crate) fn of(pid: u32, (time, id, _, tid, fields): Kernel) -> Kernel {
    (time, id, pid, tid, fields)
}

/// Events are missing between the one before and the one after.
pub(crate) fn lost() -> Kernel {
    (0, 0, 0, 0, Vec::new())
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// A thread is recorded from now on.
pub(crate) fn thread(time: u64, pid: u32, tid: u32, name: &str, state: &str) -> Kernel {
    (time, 1, pid, tid, [text(name), text(state)].concat())
}

pub(crate) fn switch(time: u64, tid: u32, state: &str) -> Kernel {
    (time, 2, PID, tid, text(state))
}

/// The tracepoint of a switch, which comes before the event above.
pub(crate) fn switched_out(time: u64, tid: u32, name: &str, state: u64) -> Kernel {
    (time, 3, PID, tid, [&text(name)[..], &tid.to_le_bytes(), &state.to_le_bytes()].concat())
}

/// The first thread wakes the second one.
pub(crate) fn wake(time: u64, by: u32, tid: u32) -> Kernel {
    (time, 4, if by == 0 { 0 } else { PID }, by, [&tid.to_le_bytes()[..], &0_u16.to_le_bytes()].concat())
}

pub(crate) const FUTEX: u16 = 202;
pub(crate) const FSYNC: u16 = 74;

pub(crate) fn enter(time: u64, tid: u32, call: u16) -> Kernel {
    (time, 5, PID, tid, call.to_le_bytes().to_vec())
}

pub(crate) fn exit(time: u64, tid: u32) -> Kernel {
    (time, 6, PID, tid, Vec::new())
}

pub(crate) fn fault(time: u64, tid: u32) -> Kernel {
    (time, 7, PID, tid, Vec::new())
}

pub(crate) fn end(time: u64) -> Kernel {
    (time, 8, 0, 0, Vec::new())
}

pub(crate) const OUTER: u16 = 10;
pub(crate) const INNER: u16 = 20;

pub(crate) fn begin(time: u64, tid: u32, span: u16, id: u64, parent: u64) -> User {
    (time, tid, span, vec![id, parent])
}

/// The end of a span that took `took`.
pub(crate) fn ends(time: u64, tid: u32, span: u16, id: u64, took: u64) -> User {
    (time, tid, span + 1, vec![id, took])
}

pub(crate) fn step(time: u64, tid: u32) -> User {
    (time, tid, 30, Vec::new())
}

/// An event of a provider of the process that has the name of an event of the kernel.
pub(crate) const OWN_END: u16 = 40;

/// Writes one stream of a trace, with a packet for each of these lists of records. A packet is missing between two of them.
fn stream(directory: &std::path::Path, metadata: &str, uuid: [u8; 16], packets: &[Vec<(u64, Vec<u8>)>]) {
    let id = uuid.map(|byte| format!("{byte:02x}")).concat();
    let id = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
    let metadata = metadata.replace("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", &id);
    let packet = |(number, records): (usize, &Vec<(u64, Vec<u8>)>)| {
        let (first, last) = (records.first().map_or(0, |record| record.0), records.last().map_or(0, |record| record.0));
        let events: Vec<_> = records.iter().flat_map(|(_, bytes)| bytes).copied().collect();
        let header = [&0xC1FC_1FC1_u32.to_le_bytes()[..], &uuid, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat();
        let bits = (header.len() as u64 + 40 + events.len() as u64) * 8;
        let context = [first, last, bits, bits, 2 * number as u64].map(u64::to_le_bytes).concat();
        [header, context, events].concat()
    };
    let packets: Vec<_> = packets.iter().enumerate().map(packet).collect();
    fs::create_dir(directory).unwrap();
    fs::write(directory.join("metadata"), metadata).unwrap();
    fs::write(directory.join("stream"), packets.concat()).unwrap();
}

const STREAM: &str = "stream { id = 0;
  packet.context := struct { ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num; };
  event.header := struct { u16 id; ts64 timestamp; };
";

/// The traces of these events, which are in the order of times.
pub(crate) fn traces(kernel: &[Kernel], user: &[User]) -> (TempDir, Vec<Item>) {
    traces_of(&[kernel], user)
}

/// The traces of several recordings of the kernel, and of a process.
pub(crate) fn traces_of(recordings: &[&[Kernel]], user: &[User]) -> (TempDir, Vec<Item>) {
    let place = tempfile::tempdir().unwrap();
    let event = |name: &str, id: u16, fields: &str| {
        format!("event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {fields} }}; }};\n")
    };
    let calls = format!("enum : u16 {{ fsync = {FSYNC}, futex = {FUTEX} }} id;");
    let metadata = [
        PREAMBLE.replace("vpid = 4242; procname = \"my proc\";", ""),
        format!("{STREAM}  event.context := struct {{ u32 pid; u32 tid; u32 cpu_id; }};\n}};\n"),
        event("perf:thread", 1, "string comm; string state;"),
        event("perf:switch", 2, "string state;"),
        event("sched:sched_switch", 3, "string prev_comm; u32 prev_pid; u64 prev_state;"),
        event("sched:sched_waking", 4, "u32 pid; u16 common_flags;"),
        event("raw_syscalls:sys_enter", 5, &calls),
        event("raw_syscalls:sys_exit", 6, ""),
        event("perf:major_fault", 7, ""),
        event("perf:end", 8, ""),
    ];
    let record = |(time, id, pid, tid, fields): &Kernel| {
        let cpu = u32::from(tid % 100 == 42);
        let numbers = [*pid, *tid, cpu].map(u32::to_le_bytes);
        let record = [&id.to_le_bytes()[..], &time.to_le_bytes(), numbers.as_flattened(), fields];
        (*time, record.concat())
    };
    let (mut paths, mut losses) = (Vec::new(), 0);
    for (number, kernel) in recordings.iter().enumerate() {
        let packets: Vec<Vec<_>> =
            kernel.split(|event| *event == lost()).map(|events| events.iter().map(record).collect()).collect();
        losses += packets.len() - 1;
        paths.push(place.path().join(if number == 0 { "waits".to_owned() } else { format!("waits-{number}") }));
        stream(&paths[number], &metadata.concat(), [7 + number as u8; 16], &packets);
    }

    let span = |name: &str, id| {
        let begin = event(&format!("hand:{name}_begin"), id, "u64 span_id; u64 parent_id;");
        begin + &event(&format!("hand:{name}_end"), id + 1, "u64 span_id; u64 duration_ns;")
    };
    let metadata = [
        PREAMBLE.to_owned(),
        format!("{STREAM}  event.context := struct {{ u32 vtid; }};\n}};\n"),
        span("outer", OUTER),
        span("inner", INNER),
        event("hand:step", 30, ""),
        event("perf:end", OWN_END, ""),
    ];
    let record = |(time, tid, id, fields): &User| {
        let fields = fields.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        (*time, [&id.to_le_bytes()[..], &time.to_le_bytes(), &tid.to_le_bytes(), &fields].concat())
    };
    paths.push(place.path().join("process"));
    stream(&paths[recordings.len()], &metadata.concat(), UUID, &[user.iter().map(record).collect()]);
    let items: Vec<_> = Trace::open_all(&paths).unwrap().items().collect();
    let events = items.iter().filter(|item| matches!(item, Item::Event(_))).count();
    let fired = recordings.iter().map(|kernel| kernel.len()).sum::<usize>() - losses + user.len();
    assert_eq!((events, items.len()), (fired, fired + losses), "{items:?}");
    (place, items)
}

/// The traces of a process whose first thread waits for a lock that the second one holds, which waits for the disk; for a page; and for something
/// unknown. It fires events, in spans, only after the kernel's first ones. A third thread has no events of its own, and another process none at all.
pub(crate) fn shop() -> (TempDir, Vec<Item>) {
    let kernel = [
        thread(100, PID, 41, "first", "R"),
        thread(100, PID, 42, "second", "S"),
        thread(100, OTHER, 78, "alone", "S"),
        switch(110, 41, "running"),
        switch(115, 42, "running"),
        enter(205, 41, FUTEX),
        switched_out(210, 41, "first", 1),
        switch(210, 41, "blocked"),
        enter(220, 42, FSYNC),
        switched_out(230, 42, "second", 2),
        switch(231, 42, "blocked"),
        wake(280, 0, 42),
        switch(285, 42, "running"),
        exit(286, 42),
        wake(300, 42, 41),
        switch(304, 41, "running"),
        exit(305, 41),
        // A page fault is known at its end.
        switched_out(310, 41, "first", 2),
        switch(310, 41, "blocked"),
        wake(330, 0, 41),
        switch(331, 41, "running"),
        fault(332, 41),
        switch(340, 41, "ready"),
        switch(350, 41, "running"),
        // Blocked outside of a system call.
        switch(360, 41, "blocked"),
        switch(370, 41, "running"),
        // The second one has ended: another one runs on its CPU.
        of(OTHER, switch(380, 142, "running")),
        end(500),
    ];
    let user = [
        begin(200, 41, OUTER, 1, 0),
        begin(203, 41, INNER, 2, 1),
        ends(307, 41, INNER, 2, 104),
        step(308, 41),
        ends(400, 41, OUTER, 1, 200),
    ];
    traces(&kernel, &user)
}
