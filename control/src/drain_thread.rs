//! The background thread of a session: moves packets from the rings to the sinks, keeps spare rings ready, and steers the clock.

pub(crate) mod poll_interval;
pub(crate) mod shared;

use crate::own_thread::{self, leave_signals_to_the_program};
use crate::tsc;
use poll_interval::PollInterval;
use shared::SharedDrain;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tracepoint_core::clock;
use tracepoint_sinks::Drain;

/// Thread name, as shown by `top -H`.
const NAME: &str = "tracepoint-drain";
/// Maximum age of an open packet: events of a slow trickle reach the sinks after this time plus [`FLUSH`].
const AGE: Duration = Duration::from_millis(500);
/// Interval between checks for such packets.
const FLUSH: Duration = Duration::from_millis(100);
/// Interval between checks of the clock's source.
const CLOCK: Duration = Duration::from_secs(10);

/// The thread, and the channel that stops it.
#[derive(Debug)]
pub(crate) struct DrainThread {
    /// Dropping it wakes and ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
    /// Processor time of the thread in ns, as of the end of its last round.
    taken: Arc<AtomicU64>,
    /// Why the last round could not make spare rings for new threads, if it could not.
    unsupplied: Arc<Mutex<Option<io::ErrorKind>>>,
}

impl DrainThread {
    /// Starts the thread.
    pub(crate) fn start(drain: Arc<SharedDrain>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let taken = Arc::<AtomicU64>::default();
        let own = Arc::clone(&taken);
        let unsupplied = Arc::<Mutex<_>>::default();
        let wanting = Arc::clone(&unsupplied);
        // Registered before the thread runs: events may start to wait for the drain before that.
        let begin = |drain: &mut Drain| (drain.register_consumers(), PollInterval::new(drain.wait_limit()));
        let (consumers, interval) = drain.with(begin).ok_or_else(|| io::Error::other("the session has ended"))?;
        let body = move || {
            run(&drain, &stopped, &own, &wanting, interval);
            drop(consumers);
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body)?;
        Ok(Self { stop, thread, taken, unsupplied })
    }

    /// Processor time of the thread, without its current round.
    pub(crate) fn taken(&self) -> Duration {
        Duration::from_nanos(self.taken.load(Ordering::Relaxed))
    }

    /// Why there were no spare rings for new threads after the last round; `None` if there were.
    pub(crate) fn unsupplied(&self) -> Option<io::ErrorKind> {
        *self.unsupplied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread, and waits until it has ended.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // Panics are caught inside the thread, so `join` has none to report.
        let _ = self.thread.join();
    }
}

fn run(
    drain: &SharedDrain,
    stopped: &Receiver<()>,
    taken: &AtomicU64,
    unsupplied: &Mutex<Option<io::ErrorKind>>,
    mut interval: PollInterval,
) {
    tracepoint_core::private::never_trace_this_thread();
    leave_signals_to_the_program();
    let mut pause = interval.pause();
    let mut looked = Instant::now();
    let mut flushed = Instant::now();
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let flush = flushed.elapsed() >= FLUSH;
        if flush {
            flushed = Instant::now();
        }
        let round = |drain: &mut Drain| {
            if flush {
                drain.flush(AGE);
            }
            drain.drain()
        };
        // Without memory for spare rings, new threads get none, and the channel counts their lost events. A round that panicked is
        // repeated: packets that it had not released are still in the rings.
        let drained = catch_unwind(AssertUnwindSafe(|| drain.round(round)));
        pause = match drained {
            Ok(Some(drained)) => {
                *unsupplied.lock().unwrap_or_else(PoisonError::into_inner) = drained.unsupplied;
                interval.after(&drained)
            }
            Ok(None) | Err(_) => interval.pause(),
        };
        clock::steer();
        taken.store(own_thread::cpu_time().as_nanos() as u64, Ordering::Relaxed);
        if looked.elapsed() >= CLOCK {
            tsc::check_source();
            looked = Instant::now();
        }
    }
}
