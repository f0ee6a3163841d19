//! `tracing` that records: bytes in a plain ring, and lines of text.

use crate::kernel::Compiled;
use crate::lines::{self, CountLines};
use crate::peer::plain_ring::{self, SILENT, read_at_end};
use crate::peer::record::set_clock;
use crate::peer::tracing::{Tracing, TracingText, Wanted, want};
use crate::peer::workload::{NAME, tally_line, tally_text};
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use crate::{cpu, tally};
use std::fmt::Debug;
use std::io::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use tracepoint::clock::{self, Clock};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;

/// The largest size of an event in the ring.
const MAX: usize = 256;
/// The time.
const HEADER: usize = 8;

/// The fields of an event, packed.
struct Bytes {
    to: *mut u8,
    used: usize,
}

impl Bytes {
    fn put(&mut self, bytes: &[u8]) {
        if self.used + bytes.len() <= MAX {
            // SAFETY: `to` has room for MAX bytes, for this thread alone.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.to.add(self.used), bytes.len()) };
            self.used += bytes.len();
        }
    }
}

impl Visit for Bytes {
    fn record_i64(&mut self, _: &Field, value: i64) {
        self.put(&value.to_le_bytes());
    }

    fn record_u64(&mut self, _: &Field, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn record_str(&mut self, _: &Field, value: &str) {
        self.put(value.as_bytes());
        self.put(&[0]);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Keeps the time and the fields in this thread's ring.
pub(super) fn keep(event: &Event<'_>) {
    let Some(to) = plain_ring::room(MAX) else { return };
    let mut bytes = Bytes { to, used: 0 };
    bytes.put(&clock::now().to_le_bytes());
    event.record(&mut bytes);
    plain_ring::fill(bytes.used);
}

/// The subscriber that formats lines; null while there is none.
static PRINTER: AtomicPtr<Box<dyn Subscriber + Send + Sync>> = AtomicPtr::new(ptr::null_mut());

/// Formats the event as a line.
pub(super) fn print(event: &Event<'_>) {
    // SAFETY: it is freed after it was removed from here, when no thread is inside an event.
    if let Some(printer) = unsafe { PRINTER.load(Ordering::Acquire).as_ref() } {
        printer.event(event);
    }
}

/// Makes `fmt` print to `writer`.
fn printing<W>(writer: W, leave: impl FnOnce() + 'static) -> Armed
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let printer = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).with_writer(writer).finish();
    PRINTER.store(Box::into_raw(Box::new(Box::new(printer))), Ordering::Release);
    let wanted = want(Wanted::Line);
    Armed::until(move || {
        drop(wanted);
        // SAFETY: made by `into_raw` above, and every thread that ran events has ended.
        drop(unsafe { Box::from_raw(PRINTER.swap(ptr::null_mut(), Ordering::AcqRel)) });
        leave();
    })
}

/// The printed lines, for the proof.
static PRINTED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Keep;

impl Write for Keep {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        PRINTED.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds the printed lines to the tally.
fn add_to_tally(marks: &[&str], named: bool) {
    let printed = std::mem::take(&mut *PRINTED.lock().unwrap_or_else(PoisonError::into_inner));
    tally::add_bytes(printed.len() as u64);
    String::from_utf8_lossy(&printed).lines().for_each(|line| tally_line(line, marks, named));
}

fn tally_numbers_printed() {
    add_to_tally(&[" a=", " b=", " c="], false);
}

fn tally_text_printed() {
    add_to_tally(&[" n="], true);
}

/// Writes the lines on another thread.
fn non_blocking(to: impl Write + Send + 'static, leave: impl FnOnce() + 'static) -> Armed {
    let (writer, guard): (NonBlocking, WorkerGuard) = cpu::anywhere(|| tracing_appender::non_blocking(to));
    printing(writer, move || {
        // Waits at most a second until all lines are written.
        drop(guard);
        leave();
    })
}

/// The records of the ring have times of this library's clock, so that the clock is the same.
fn ringing(thread: Armed) -> Result<Armed, Unusable> {
    set_clock(Clock::Monotonic)?;
    let wanted = want(Wanted::Ring);
    Ok(Armed::until(move || drop((wanted, thread))))
}

fn tally_three(values: &[u8]) {
    let value = |at: usize| i64::from_le_bytes(values[at..at + 8].try_into().expect("eight bytes"));
    tally::add(0, 0, value(0).wrapping_add(value(8)).wrapping_add(value(16)));
}

const APPEND: Arm = || Ok(non_blocking(CountLines, || tally::add_hits(lines::take())));

const RING: Variant = Variant {
    name: "tracing-ring",
    mode: Mode::Recorded,
    does: "a subscriber of ours that writes the time (by this library's clock) and the fields into a plain ring of the thread",
    kernels: Compiled::of::<Tracing>(),
    arm: || ringing(Armed::as_it_is()),
    count: || ringing(read_at_end(HEADER + 24, |record| tally_three(&record[HEADER..]))),
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Some(Recording { floor: "floor", warm: 9_000, thread: SILENT, sustained: false }),
};

const TEXT: Option<Recording> = Some(Recording { floor: "floor-text", warm: 6_000, thread: SILENT, sustained: false });
/// A variant that formats lines needs no warm-up of a ring.
const LINE: Option<Recording> = Some(Recording { floor: "floor", warm: 200, thread: AS_IT_IS, sustained: true });
const LINE_TEXT: Option<Recording> =
    Some(Recording { floor: "floor-text", warm: 200, thread: AS_IT_IS, sustained: true });

/// A ring, `fmt` to `io::sink()`, and `fmt` to a thread that writes.
pub const VARIANTS: &[Variant] = &[
    RING,
    Variant {
        name: "tracing-fmt",
        does: "tracing-subscriber's fmt, a line of text to io::sink()",
        arm: || Ok(printing(io::sink, || {})),
        count: || Ok(printing(|| Keep, tally_numbers_printed)),
        recording: LINE,
        ..RING
    },
    Variant {
        name: "tracing-appender",
        does: "the same through tracing-appender's non_blocking (128,000 lines, lossy) to a thread that counts lines",
        arm: APPEND,
        count: || Ok(non_blocking(Keep, tally_numbers_printed)),
        counts_losses: true,
        recording: LINE,
        ..RING
    },
    Variant {
        name: "tracing-ring-text",
        does: "as tracing-ring",
        kernels: Compiled::of::<TracingText>(),
        count: || ringing(read_at_end(HEADER + NAME.len() + 1 + 8, |record| tally_text(&record[HEADER..]))),
        recording: TEXT,
        ..RING
    },
    Variant {
        name: "tracing-fmt-text",
        does: "as tracing-fmt",
        kernels: Compiled::of::<TracingText>(),
        arm: || Ok(printing(io::sink, || {})),
        count: || Ok(printing(|| Keep, tally_text_printed)),
        recording: LINE_TEXT,
        ..RING
    },
    Variant {
        name: "tracing-appender-text",
        does: "as tracing-appender",
        kernels: Compiled::of::<TracingText>(),
        arm: APPEND,
        count: || Ok(non_blocking(Keep, tally_text_printed)),
        counts_losses: true,
        recording: LINE_TEXT,
        ..RING
    },
];
