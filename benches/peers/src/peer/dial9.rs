//! `dial9-core`: an event bus with buffers for each thread and a thread that writes them to a file.

use crate::kernel::Compiled;
use crate::peer::{memory_directory, workload};
use crate::site::Site;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use crate::{cpu, tally};
use dial9_core::buffer::DiskBuffer;
use dial9_core::clock::clock_monotonic_ns;
use dial9_core::recorder::recorder;
use dial9_core::recording::Recorder;
use dial9_trace_format::TraceEvent;
use dial9_trace_format::decoder::Decoder;
use dial9_trace_format::types::FieldValueRef;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

#[derive(TraceEvent)]
pub(super) struct Small {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    // The format has no signed 32-bit numbers.
    pub(super) a: i64,
    pub(super) b: i64,
    pub(super) c: i64,
}

#[derive(TraceEvent)]
pub(super) struct Named<'a> {
    #[traceevent(timestamp)]
    pub(super) timestamp_ns: u64,
    pub(super) name: &'a str,
    pub(super) n: u64,
}

/// The recorder. There is at most one at a time, and it owns a thread, so it exists only while it is measured.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());

/// `record_event_with`.
#[derive(Clone, Copy, Debug)]
pub struct Dial9;

impl Site for Dial9 {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        // SAFETY: it is freed after it was taken out of here, by the thread that runs the events.
        if let Some(recorder) = unsafe { RECORDER.load(Ordering::Acquire).as_ref() } {
            recorder.handle().record_event_with(|| Small {
                timestamp_ns: clock_monotonic_ns(),
                a: a.into(),
                b: b.into(),
                c,
            });
        }
    }
}

/// `record_event_with`, with text.
#[derive(Clone, Copy, Debug)]
pub struct Dial9Text;

impl Site for Dial9Text {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        // SAFETY: as above.
        if let Some(recorder) = unsafe { RECORDER.load(Ordering::Acquire).as_ref() } {
            recorder.handle().record_event_with(|| Named {
                timestamp_ns: clock_monotonic_ns(),
                name: workload::name(),
                n: workload::sum(a, b, c),
            });
        }
    }
}

fn recording(paused: bool) -> Result<Armed, Unusable> {
    let unusable = |error: io::Error| Unusable(format!("dial9 cannot record: {error}"));
    let directory = memory_directory().join(format!("tracepoint-peers-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(unusable)?;
    let writer = DiskBuffer::single_file(directory.join("trace.bin")).map_err(unusable)?;
    let builder = recorder(writer);
    let recorder = cpu::anywhere(|| if paused { builder.paused().build() } else { builder.build() });
    RECORDER.store(Box::into_raw(Box::new(recorder)), Ordering::Release);
    Ok(Armed::until(move || {
        // SAFETY: made by `into_raw` above; events run on this thread only, and it is not inside one.
        let recorder = unsafe { Box::from_raw(RECORDER.swap(ptr::null_mut(), Ordering::AcqRel)) };
        recorder.graceful_shutdown(Duration::from_secs(10));
        for file in files(&directory) {
            read(&file);
        }
        fs::remove_dir_all(&directory).expect("a directory of our own");
    }))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Adds the events of a file to the tally.
fn read(file: &Path) {
    add_to_tally(&fs::read(file).expect("a file of our own"));
}

/// Adds encoded events to the tally. An event with another text is not counted.
pub(super) fn add_to_tally(bytes: &[u8]) {
    let Some(mut decoder) = Decoder::new(bytes) else { return };
    tally::add_bytes(bytes.len() as u64);
    let all = decoder.for_each_event(|event| {
        if event.name != Small::event_name() && event.name != Named::event_name() {
            return;
        }
        let values = event.fields.iter().map(|field| match field {
            FieldValueRef::I64(value) => Some(*value),
            FieldValueRef::Varint(value) => Some(value.cast_signed()),
            FieldValueRef::String(text) => (*text == workload::NAME).then_some(0),
            _ => None,
        });
        if let Some(values) = values.collect::<Option<Vec<_>>>() {
            tally::add(0, 0, values.into_iter().fold(0, i64::wrapping_add));
        }
    });
    all.expect("dial9 reads its own file");
}

const COUNT: Arm = || recording(false);

const PAUSED: Variant = Variant {
    name: "dial9",
    mode: Mode::Off,
    does: "record_event_with, the recorder paused",
    kernels: Compiled::of::<Dial9>(),
    arm: || recording(true),
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

const RECORD: Variant = Variant {
    name: "dial9-record",
    mode: Mode::Recorded,
    counts_losses: true,
    does: "time, encoding into a buffer of the thread; another thread writes the file, and drops batches if it is too slow",
    arm: COUNT,
    limit: 200_000,
    recording: Some(Recording { floor: "floor", warm: 1_000, thread: AS_IT_IS, sustained: true }),
    ..PAUSED
};

/// Paused and recording.
pub const VARIANTS: &[Variant] = &[
    PAUSED,
    RECORD,
    Variant {
        name: "dial9-record-text",
        does: "as dial9-record",
        kernels: Compiled::of::<Dial9Text>(),
        recording: Some(Recording { floor: "floor-text", warm: 1_000, thread: AS_IT_IS, sustained: true }),
        ..RECORD
    },
];
