//! The process that is killed at a point. After each event it writes its progress to the shared page.

use crate::case::{Case, Life, NESTED_PACKETS, PACKET, PACKETS, Side, THREADS};
use crate::common::oracle::{SharedPage, Words};
use crate::common::{process_dirs, ring_files};
use crate::{NESTED, PAGE, RINGLESS};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "crash";
    tick(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    nested(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

/// Events of a thread that then idles, or ends.
const FEW: u64 = 60;
/// Maximum run time of a child that is not killed.
const PATIENCE: Duration = Duration::from_secs(20);

static WORDS: OnceLock<&'static Words> = OnceLock::new();

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// Fires an event in the middle of an event of the interrupted thread.
extern "C" fn handle(_: i32) {
    let Some(words) = WORDS.get() else { return };
    let thread = THREAD.get();
    let word = &words[NESTED + thread];
    let n = word.load(Ordering::Relaxed) + 1;
    trace_nested(thread as u64, n);
    word.store(n, Ordering::Release);
}

/// The file of a ring.
struct Ring(File);

impl Ring {
    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).expect("a ring has a header");
        u64::from_le_bytes(bytes)
    }

    /// Returns whether the next event might find no space: half of the packets of a stream are closed and not released.
    fn is_filling(&self) -> bool {
        let waiting = |closed, released| self.word(closed) - self.word(released);
        waiting(328, 448) >= PACKETS as u64 / 2 || waiting(392, 456) >= NESTED_PACKETS as u64 / 2
    }

    /// Returns whether it is in the pool again. The state is changed before that; the point shows when it is complete.
    fn is_spare(&self, last_point: u64) -> bool {
        use tracepoint_ring::channel::failpoint::Point;
        let before = [Point::RecycleClosed, Point::RingSpare, Point::HandOnClosed, Point::HandedOn]
            .map(|point| point as u64 + 1);
        self.word(256) as u32 == 0 && !before.contains(&last_point)
    }
}

struct Producer {
    thread: usize,
    ring: Ring,
    /// True if the thread has to wait when the ring fills up.
    drained: bool,
    /// True if the thread has to fill its ring before that is drained.
    overflows: bool,
}

impl Producer {
    /// Fires, up to the event numbered `last`.
    fn run(&self, words: &Words, last: u64) {
        THREAD.set(self.thread);
        let word = &words[self.thread];
        for n in word.load(Ordering::Relaxed) + 1..=last {
            while self.drained && self.ring.is_filling() {
                thread::sleep(Duration::from_micros(300));
            }
            trace_tick(self.thread as u64, n);
            word.store(n, Ordering::Release);
            if n.is_multiple_of(64) && !self.overflows {
                // Lets the other thread run.
                thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

fn session(case: &Case, dir: &Path) -> SessionBuilder {
    let channel =
        (case.policy.channel)(PACKETS * PACKET).packets(PACKETS).spares(case.spares()).max_rings(case.rings());
    let channel = if case.loses() { channel.overflow(0) } else { channel };
    let builder = Session::builder("crash").events("crash:*").dir(dir.join("session")).channel(channel);
    if case.policy.drained {
        builder.sink(CtfSink::create(dir.join("ctf")).expect("a new directory"))
    } else {
        builder.sink(TextSink::new(std::io::sink()))
    }
}

/// Runs the case until the process is killed.
pub(crate) fn run(case: &Case, dir: &Path) {
    let words = *WORDS.get_or_init(|| SharedPage::open(&dir.join(PAGE)).expect("the test made it").leak());
    tracepoint_ring::channel::failpoint::watch(&words[crate::WATCHED..]);
    // SAFETY: the handler fires a tracepoint and stores a number, both of which are allowed there.
    unsafe { libc::signal(libc::SIGUSR1, handle as extern "C" fn(i32) as usize) };
    case.arm(libc::SIGUSR1);
    let _session = session(case, dir).start().expect("starts");

    let dirs = process_dirs(&dir.join("session"));
    let files = ring_files(&dirs[0]);
    for thread in 0..THREADS {
        let name = format!("0-{thread}.ring");
        let path = files.iter().find(|path| path.ends_with(&name)).expect("a spare ring for each thread");
        let ring = Ring(File::open(path).expect("a ring"));
        let overflows = case.overflows(thread);
        let producer = Producer { thread, ring, drained: case.policy.drained && !overflows, overflows };
        let life = case.life(thread);
        let point = &words[crate::WATCHED + 2 * thread];
        thread::spawn(move || match life {
            Life::Busy => producer.run(words, u64::MAX),
            Life::Idle => {
                producer.run(words, FEW);
                thread::sleep(PATIENCE);
            }
            Life::Succeeded => {
                let first = || {
                    producer.run(words, FEW);
                    // The ring is handed on when this thread ends: the other threads have theirs by then.
                    while words[..THREADS].iter().any(|word| word.load(Ordering::Acquire) == 0) {
                        thread::sleep(Duration::from_micros(100));
                    }
                };
                thread::scope(|scope| drop(scope.spawn(first)));
                while !producer.ring.is_spare(point.load(Ordering::Relaxed)) {
                    thread::sleep(Duration::from_micros(300));
                }
                producer.run(words, u64::MAX);
            }
        });
        // The next thread finds this one's ring taken.
        while words[thread].load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
    }
    if case.side == Side::Ringless {
        (1..=FEW).for_each(|n| {
            trace_tick(THREADS as u64, n);
            words[RINGLESS].store(n, Ordering::Release);
        });
    }
    thread::sleep(PATIENCE);
    std::process::exit(0);
}
