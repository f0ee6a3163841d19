//! A recorded trace with spans of every kind, and its contents according to the reader.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::thread;

use tempfile::TempDir;
use tracepoint::span::{FutureExt, SpanId};
use tracepoint::{Channel, Session, session::SessionBuilder, sinks::CtfSink};
use tracepoint_export::{Exporter, Format, Summary};
use tracepoint_reader::account::Account;
use tracepoint_reader::{Event, Item, SpanPart, Trace, Value};

tracepoint::define_trace! {
    provider = "shop";

    pub(crate) span request(id: u64, path: &str) { id, path }
    pub(crate) span query(text: &str) { text }
    pub(crate) async span job(id: u64) { id }
    pub(crate) told(id: u64, span_id: u64) {
        pid: u64 = id, vtid: u64 = id, procname: str = "told", span_id, parent_id: u64 = id, duration_ns: u64 = id,
        _x_length: u64 = id, data: [u8] = &[1, 2],
    }
    pub(crate) step(n: u64, depth: i32, note: &str, data: &[u8], on: bool, part: f64) {
        n: u64 = n, depth: i32 = depth, note: str = note, data: [u8] = data, on: bool = on, part: f64 = part
    }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// A recorded trace; its items are in the order of times.
pub(crate) struct Recorded {
    pub(crate) items: Vec<Item>,
    pub(crate) account: Account,
    pub(crate) trace: Trace,
    pub(crate) place: TempDir,
}

/// A span by name, begin and end. The time of a missing event is `None`.
pub(crate) type Times = (String, Option<i64>, Option<i64>);

/// A future that is ready at the third poll.
struct Third(u8);

impl Future for Third {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0 += 1;
        if self.0 == 3 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Nested spans, spans on two threads, overlapping spans, a future, a span that is open at the end, and other events.
pub(crate) fn shop() -> Recorded {
    let mut open = None;
    record(Channel::discard(8 << 20), || {
        for id in 0..20 {
            let _request = tracepoint::span!(request(id, "/cart"));
            for _ in 0..id % 3 {
                let _query = tracepoint::span!(query("select \"1\""));
                tracepoint::trace!(step(id, -3, "inside, \"quoted\"\n", &[1, 0xFF], true, 0.5));
            }
        }
        let request = tracepoint::span!(request(100, "/elsewhere"));
        let parent = SpanId::from(&request);
        thread::spawn(move || drop(tracepoint::span!(parent: parent, query("on another thread")))).join().unwrap();
        drop(request);
        let first = tracepoint::span!(request(200, "/first"));
        let second = tracepoint::span!(request(201, "/second"));
        drop(first);
        drop(second);
        let mut job = pin!(Third(0).traced(tracepoint::span!(job(7))));
        while job.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tracepoint::trace!(step(0, 5, "between polls", &[], false, f64::NAN));
        }
        open = Some(tracepoint::span!(request(300, "/open")));
        drop(tracepoint::span!(query("in the open one")));
    })
}

/// 2,000 events. 20 of them do not fit into a packet, and are lost.
pub(crate) fn lossy() -> Recorded {
    let large = vec![0; 8 << 20];
    // Large enough for all other events.
    record(Channel::discard(4 << 20), || {
        for n in 0..2000 {
            let data = if n % 100 == 50 { &large[..] } else { &[] };
            tracepoint::trace!(step(n, 0, "", data, true, 0.0));
        }
    })
}

/// Records the events of `fire`.
pub(crate) fn record(channel: Channel, fire: impl FnOnce()) -> Recorded {
    record_into(|session| session.events("shop:*").channel(channel), fire)
}

/// Records the events of `fire`, with rules and channels that `with` adds.
pub(crate) fn record_into(with: impl FnOnce(SessionBuilder) -> SessionBuilder, fire: impl FnOnce()) -> Recorded {
    let _alone = RECORDING.lock().unwrap();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let sink = CtfSink::create(&directory).unwrap();
    let session = with(Session::builder("shop")).sink(sink).start().unwrap();
    fire();
    session.stop().unwrap();
    let trace = Trace::open(&directory).unwrap();
    let items = trace.items().collect();
    Recorded { items, account: Account::open(&directory).unwrap(), trace, place }
}

impl Recorded {
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.items.iter().filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None })
    }

    /// The number of recorded events, as the tracer counted them.
    pub(crate) fn counted(&self) -> u64 {
        self.account.channels.iter().flat_map(|channel| &channel.events).map(|event| event.recorded).sum()
    }

    /// Pairs the events of spans by id, without the code under test.
    pub(crate) fn spans(&self) -> Vec<Times> {
        let mut all: BTreeMap<u64, Times> = BTreeMap::new();
        for event in self.events() {
            let Some((name, part)) = event.class.span() else { continue };
            let span = all.entry(number(event, "span_id")).or_insert_with(|| (name.to_owned(), None, None));
            match part {
                SpanPart::Begin => span.1 = Some(event.time_ns),
                _ => span.2 = Some(event.time_ns),
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort();
        all
    }

    /// The number of events that do not belong to spans, by name.
    pub(crate) fn others(&self) -> HashMap<String, u64> {
        let mut all = HashMap::new();
        for event in self.events().filter(|event| event.class.span().is_none()) {
            *all.entry(event.name().to_owned()).or_default() += 1;
        }
        all
    }

    pub(crate) fn export(&self, format: impl Format) -> Summary {
        export(&self.items, format)
    }
}

pub(crate) fn export(items: &[Item], format: impl Format) -> Summary {
    let mut exporter = Exporter::new(format);
    items.iter().try_for_each(|item| exporter.item(item)).unwrap();
    exporter.finish().unwrap().1
}

pub(crate) fn number(event: &Event, field: &str) -> u64 {
    event.fields.as_ref().and_then(|fields| fields.get(field)).and_then(Value::as_u64).unwrap_or(0)
}
