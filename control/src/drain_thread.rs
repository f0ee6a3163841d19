//! The background thread of a session: it moves packets from the rings to the sinks, keeps spare rings ready, and steers the clock.

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

/// Its name, as `top -H` shows it.
const NAME: &str = "tracepoint-drain";
/// How old an open packet gets: a slow trickle of events reaches the sinks after this time, and a little more.
const AGE: Duration = Duration::from_millis(500);
/// The pause between two looks for such packets.
const FLUSH: Duration = Duration::from_millis(100);
/// The pause between two looks at what the clock is made from.
const CLOCK: Duration = Duration::from_secs(10);

/// The thread, and the way to wake it.
#[derive(Debug)]
pub(crate) struct DrainThread {
    /// Dropping it wakes the thread, and ends it.
    stop: Sender<()>,
    thread: JoinHandle<()>,
    /// The processor time that it has taken, in ns: as of the end of its last round.
    taken: Arc<AtomicU64>,
    /// Why the last round could not make rings for threads to come, if it could not.
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
        // From here on, and not from when the thread runs: events may come to wait for it before.
        let begin = |drain: &mut Drain| (drain.attend(), PollInterval::new(drain.wait_limit()));
        let (attending, interval) = drain.with(begin).ok_or_else(|| io::Error::other("the session has ended"))?;
        let body = move || {
            run(&drain, &stopped, &own, &wanting, interval);
            drop(attending);
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body)?;
        Ok(Self { stop, thread, taken, unsupplied })
    }

    /// The processor time that it has taken, but for the round that it is in.
    pub(crate) fn taken(&self) -> Duration {
        Duration::from_nanos(self.taken.load(Ordering::Relaxed))
    }

    /// Why there are no rings for threads to come, as of its last round; `None`: there are.
    pub(crate) fn unsupplied(&self) -> Option<io::ErrorKind> {
        *self.unsupplied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread, and waits until it has ended.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // A panic was caught inside; there is nothing left that could come out here.
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
        // Without memory for another ring threads to come have none, which the channel counts. A round that panicked is tried
        // again: what it had not released is still in the rings.
        let drained = catch_unwind(AssertUnwindSafe(|| drain.round(round)));
        pause = match drained {
            Ok(Some(drained)) => {
                *unsupplied.lock().unwrap_or_else(PoisonError::into_inner) = drained.unsupplied;
                interval.after(&drained)
            }
            Ok(None) | Err(_) => interval.pause(),
        };
        clock::steer();
        taken.store(own_thread::taken().as_nanos() as u64, Ordering::Relaxed);
        if looked.elapsed() >= CLOCK {
            tsc::look_after();
            looked = Instant::now();
        }
    }
}
