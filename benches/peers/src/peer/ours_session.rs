//! This library in a session: a thread drains the rings into a CTF trace, and events are lost if it is too slow.

use crate::kernel::Compiled;
use crate::peer::record::{Numbers, Text};
use crate::peer::{babeltrace, memory_directory};
use crate::variant::{AS_IT_IS, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use crate::{cpu, tally};
use std::fs;
use tracepoint_ring::channel::Channel;
use tracepoint_session::Session;
use tracepoint_sinks::CtfSink;

/// Records an event into a trace. If `marks` are given, babeltrace2 reads the trace at the end.
fn session(event: &str, marks: &'static [&'static str], named: bool) -> Result<Armed, Unusable> {
    let directory = memory_directory().join(format!("tracepoint-peers-session-{}", std::process::id()));
    let sink = CtfSink::create(&directory).map_err(|error| Unusable(error.to_string()))?;
    let builder = Session::builder("peers")
        .events(event)
        // A ring for each of the threads that are measured at once.
        .channel(Channel::discard(1 << 20).spares(2))
        .in_memory()
        .sink(sink);
    let session = cpu::anywhere(|| builder.start()).map_err(|error| Unusable(error.to_string()))?;
    Ok(Armed::until(move || {
        let summary = session.stop().expect("the sink accepts all packets");
        if marks.is_empty() {
            tally::add_hits(summary.events().iter().map(|event| event.recorded).sum());
        } else {
            babeltrace::add_to_tally(&directory, marks, named);
        }
        fs::remove_dir_all(&directory).expect("a directory of our own");
    }))
}

const NUMBERS: Variant = Variant {
    name: "ours-session",
    mode: Mode::Recorded,
    does: "a record of 24 bytes in a ring of 1 MiB; the session's thread writes a CTF trace; what finds the ring full is lost",
    kernels: Compiled::of::<Numbers>(),
    arm: || session("record:numbers", &[], false),
    count: || session("record:numbers", &["{ a = ", ", b = ", ", c = "], false),
    proof: Proof::Values,
    counts_losses: true,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Some(Recording { floor: "floor", warm: 12_000, thread: AS_IT_IS, sustained: true }),
};

/// Both workloads.
pub const VARIANTS: &[Variant] = &[
    NUMBERS,
    Variant {
        name: "ours-session-text",
        does: "the same with 49 bytes, 32 of text",
        kernels: Compiled::of::<Text>(),
        arm: || session("record:text", &[], false),
        count: || session("record:text", &[", n = "], true),
        recording: Some(Recording { floor: "floor-text", warm: 6_000, thread: AS_IT_IS, sustained: true }),
        ..NUMBERS
    },
];
