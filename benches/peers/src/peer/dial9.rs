//! `dial9-core`: an event bus with buffers for each thread and a thread that writes them to a file.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{Arm, Armed, Hold, Mode, Proof, Unusable, Variant};
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
struct Small {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    // The format has no signed 32-bit numbers.
    a: i64,
    b: i64,
    c: i64,
}

/// The recorder. There can be one at a time, and while there is one it owns a thread: it exists while it is measured.
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

fn recording(paused: bool) -> Result<Armed, Unusable> {
    let unusable = |error: io::Error| Unusable(format!("dial9 cannot record: {error}"));
    // Memory if there is a place for it: the cost of a disk is not what is asked here.
    let shared = Path::new("/dev/shm");
    let parent = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
    let directory = parent.join(format!("tracepoint-peers-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(unusable)?;
    let writer = DiskBuffer::single_file(directory.join("trace.bin")).map_err(unusable)?;
    let builder = recorder(writer);
    let recorder = if paused { builder.paused().build() } else { builder.build() };
    RECORDER.store(Box::into_raw(Box::new(recorder)), Ordering::Release);
    Ok(Armed::until(move || {
        // SAFETY: made by `into_raw` above; whoever runs events is on this thread and not inside one.
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

/// Adds up what was written.
fn read(file: &Path) {
    let bytes = fs::read(file).expect("a file of our own");
    let Some(mut decoder) = Decoder::new(&bytes) else { return };
    let all = decoder.for_each_event(|event| {
        if event.name == Small::event_name() {
            let values = event.fields.iter().map(|field| match field {
                FieldValueRef::I64(value) => *value,
                FieldValueRef::Varint(value) => value.cast_signed(),
                _ => 0,
            });
            tally::add(0, 0, values.fold(0, i64::wrapping_add));
        }
    });
    all.expect("dial9 reads what it wrote");
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
    tells: false,
    hold: Hold::Sample,
    limit: u64::MAX,
};

/// Paused and recording.
pub const VARIANTS: &[Variant] = &[
    PAUSED,
    Variant {
        name: "dial9-record",
        mode: Mode::On,
        tells: true,
        does: "time, encoding into a buffer of the thread; another thread writes the file, and drops batches if it is too slow",
        arm: COUNT,
        limit: 200_000,
        ..PAUSED
    },
];
