//! The background thread of a session: moves packets from the rings to the sinks, keeps spare rings ready, and steers the clock.

pub(crate) mod shared;
pub(crate) mod streams_file;
mod supply_thread;

use shared::SharedDrain;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use streams_file::StreamsFile;
use supply_thread::SupplyThread;
use tracepoint_core::clock;
use tracepoint_run_dir::session_dir::{FlushedFile, ProcessDir};
use tracepoint_run_dir::tsc;
use tracepoint_sinks::consumer_loop::{PollInterval, Round};
use tracepoint_sinks::{Drain, RingSupplier, own_thread};

/// Thread name, as shown by `top -H`.
const NAME: &str = "tracepoint-drain";
/// Maximum interval between two rounds, also if a recorder takes the packets: a round then closes old packets and supplies rings.
const LONGEST: Duration = Duration::from_millis(200);
const LONGEST_BESIDE_RECORDER: Duration = Duration::from_millis(400);
/// Interval between checks for old packets.
const FLUSH: Duration = Duration::from_millis(100);
/// Interval between checks of the clock's source.
const CLOCK: Duration = Duration::from_secs(10);
/// Interval at which the thread shows that the process records.
const TOUCH: Duration = Duration::from_secs(1);

/// The thread, and the drain that it shares.
#[derive(Debug)]
pub(crate) struct DrainThread {
    drain: Arc<SharedDrain>,
    thread: Option<JoinHandle<()>>,
    /// Processor time of the thread in ns, as of the end of its last round.
    taken: Arc<AtomicU64>,
    supplier: RingSupplier,
    /// The reason why the last round could not create spare rings for new threads, if it could not.
    unsupplied: Arc<Mutex<Option<io::ErrorKind>>>,
}

impl DrainThread {
    /// Starts the thread, which publishes its progress in these files, and touches the directory of the rings.
    pub(crate) fn start(
        drain: Arc<SharedDrain>,
        dir: Option<Arc<ProcessDir>>,
        (publish, streams): (Option<FlushedFile>, Option<StreamsFile>),
    ) -> io::Result<Self> {
        let taken = Arc::<AtomicU64>::default();
        let unsupplied = Arc::<Mutex<_>>::default();
        // Registered before the thread runs: events may start to wait for the drain before that.
        let begin = |drain: &mut Drain| (drain.register_consumers(), drain.supplier(), drain.leaves_all_packets());
        let (consumers, supplier, is_supplier) =
            drain.with(begin).ok_or_else(|| io::Error::other("the session has ended"))?;
        let mut rounds = Rounds {
            drain: Arc::clone(&drain),
            taken: Arc::clone(&taken),
            unsupplied: Arc::clone(&unsupplied),
            supply_thread: (!is_supplier).then(|| SupplyThread::start(supplier.clone())).transpose()?,
            looked: Instant::now(),
            flushed: Instant::now(),
            flush_age: Duration::ZERO,
            publish,
            streams,
            dir,
            touched: Instant::now(),
        };
        // Threads that need a ring wake it.
        let is_rarely_needed = is_supplier && !supplier.is_never_woken();
        let longest = if is_rarely_needed { LONGEST_BESIDE_RECORDER } else { LONGEST };
        let body = move || {
            let drain = Arc::clone(&rounds.drain);
            drain.rounds().run(PollInterval::new(longest), || rounds.round());
            drop(consumers);
        };
        let thread = own_thread::spawn(NAME, body)?;
        Ok(Self { drain, thread: Some(thread), taken, supplier, unsupplied })
    }

    /// Returns the processor time of the thread, without its current round.
    pub(crate) fn taken(&self) -> Duration {
        Duration::from_nanos(self.taken.load(Ordering::Relaxed))
    }

    /// Returns the number of additional rings that threads have taken so far because their own were full.
    pub(crate) fn overflowed(&self) -> u64 {
        self.supplier.overflowed()
    }

    /// Returns the reason why there were no spare rings for new threads after the last round; `None` if there were.
    pub(crate) fn unsupplied(&self) -> Option<io::ErrorKind> {
        *self.unsupplied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread, and waits until it has ended.
    pub(crate) fn stop(mut self) {
        self.drain.rounds().stop();
        // Panics are caught inside the thread, so `join` has none to report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for DrainThread {
    /// Ends the thread, after its current round.
    fn drop(&mut self) {
        self.drain.rounds().stop();
    }
}

/// The work of the thread in a round.
struct Rounds {
    drain: Arc<SharedDrain>,
    taken: Arc<AtomicU64>,
    unsupplied: Arc<Mutex<Option<io::ErrorKind>>>,
    /// `None` where the drain's only work is to supply rings.
    supply_thread: Option<SupplyThread>,
    /// The last check of the clock's source.
    looked: Instant,
    /// The last check for old packets, and the age at which they are closed.
    flushed: Instant,
    flush_age: Duration,
    /// The file in which a recorder reads the time before which all packets are closed; `None` if it is not needed.
    publish: Option<FlushedFile>,
    /// The file in which recovery reads the progress of the senders; `None` if there is no directory for it, or a recorder writes it.
    streams: Option<StreamsFile>,
    /// The directory of the rings, if they are in files, and the last time that it was touched.
    dir: Option<Arc<ProcessDir>>,
    touched: Instant,
}

impl Rounds {
    fn round(&mut self) -> Option<Round> {
        let flush = self.flushed.elapsed() >= FLUSH.min(self.flush_age / 5);
        if flush {
            self.flushed = Instant::now();
        }
        let round = |drain: &mut Drain| {
            if flush {
                drain.flush(drain.flush_age());
            }
            match &self.supply_thread {
                Some(thread) if drain.fullness() > 0 => thread.watched(|| drain.drain()),
                _ => drain.drain(),
            }
        };
        // Without memory for spare rings, new threads get none, and the channel counts their lost events. A round that panicked is
        // repeated: packets that it had not released are still in the rings.
        let drained = catch_unwind(AssertUnwindSafe(|| self.drain.round(round))).ok().flatten();
        if let Some(drained) = &drained {
            *self.unsupplied.lock().unwrap_or_else(PoisonError::into_inner) = drained.unsupplied;
        }
        clock::steer();
        self.taken.store(own_thread::cpu_time().as_nanos() as u64, Ordering::Relaxed);
        if self.looked.elapsed() >= CLOCK {
            tsc::check_source();
            self.looked = Instant::now();
        }
        if let Some(dir) = self.dir.as_ref().filter(|_| self.touched.elapsed() >= TOUCH) {
            dir.touch();
            self.touched = Instant::now();
        }
        let (flush_age, flushed, wait_limit) =
            self.drain.with(|drain| (drain.flush_age(), drain.flushed(), drain.wait_limit())).unwrap_or_default();
        self.flush_age = flush_age;
        self.publish.as_mut().map_or(Ok(()), |file| file.write(flushed)).unwrap_or_default();
        if let Some(file) = &mut self.streams {
            file.write();
        }
        // Two rounds within the age.
        let is_early = flush_age < LONGEST * 2;
        let wait_limit = wait_limit.into_iter().chain(is_early.then_some(flush_age * 2)).min();
        drained.map(|drained| Round { packets: drained.packets, fullness: drained.fullness, wait_limit })
    }
}
