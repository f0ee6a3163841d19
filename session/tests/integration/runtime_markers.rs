//! Markers that are registered at run time, like those of other libraries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::field::{
    AnyBuffer, AnyFields, AnyValue, Base, ByteOrder, FieldDescriptor, FieldType, IntegerType, Value,
};

use tracepoint_core::internal::{MarkerParts, RuntimeMarker, ValuesType, object_generation, on_switch, update_lock};
use tracepoint_core::marker::{Aggregate, FieldView, Subscriber};
use tracepoint_core::{Level, Location, markers};
use tracepoint_ring::channel::{AnonymousMemory, Channel, Loss, OpenChannel};

enum Pair {}

impl ValuesType for Pair {
    type Values<'a> = (u64, AnyFields<'a>);
}

const U64: FieldType =
    FieldType::Integer(IntegerType { bits: 64, signed: false, base: Base::Decimal, order: ByteOrder::Little });
const FIELDS: [FieldDescriptor; 2] =
    [FieldDescriptor { name: "id", ty: U64, doc: "" }, FieldDescriptor { name: "what", ty: FieldType::Any, doc: "" }];

struct Sum(AtomicU64);

impl Aggregate for Sum {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        if let (Some(Value::Unsigned(id)), Some(Value::Text("x"))) = (event.get(0), event.by_name("what")) {
            self.0.fetch_add(id, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_marker_of_run_time_is_listed_switched_and_recorded() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    static SWITCHES: AtomicU64 = AtomicU64::new(0);
    on_switch(|| {
        SWITCHES.fetch_add(1, Ordering::Relaxed);
    });
    let before = object_generation();
    let parts = MarkerParts {
        provider: "runtime",
        name: "pair",
        level: Level::Info,
        fields: &FIELDS,
        format: "",
        doc: "",
        location: Location { package: "", version: "", module: "", file: "", line: 0 },
    };
    let marker = RuntimeMarker::<Pair>::register(parts, &update_lock()).ok_or("no room")?;
    assert_ne!(object_generation(), before, "lists are out of date");
    let listed = markers().find(|marker| marker.full_name() == "runtime:pair").ok_or("listed")?;
    let sum = Arc::new(Sum(AtomicU64::new(0)));
    assert!(!marker.is_on());
    let subscription = listed.subscribe(Subscriber::aggregate(sum.clone()))?;
    assert!(marker.is_on());
    for (id, what) in [(5, AnyValue::Text("x")), (7, AnyValue::Absent)] {
        let mut fields = AnyBuffer::new();
        fields.push(what);
        marker.record(&(id, fields.fields()));
    }
    drop(subscription);
    assert!(!marker.is_on());
    assert_eq!(sum.0.load(Ordering::Relaxed), 5);
    assert!(SWITCHES.load(Ordering::Relaxed) >= 2, "both changes are told");

    // A full ring loses its events like those of other markers, until it has space.
    let config = Channel::discard(1 << 13).packets(4).spares(1).max_rings(1).overflow(0);
    let channel = OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory))?;
    let subscription = listed.subscribe(Subscriber::record(Arc::clone(&channel), channel.add_event()?))?;
    let mut fits = 0;
    for round in 1..=2 {
        (0..1000).for_each(|id| marker.record(&(id, AnyBuffer::new().fields())));
        let event = channel.account().events[0].clone();
        fits = fits.max(event.recorded / round);
        assert_eq!((event.fired, event.recorded), (1000 * round, fits * round));
        assert_eq!(event.lost(Loss::RingFull), event.fired - event.recorded);
        channel.flush(u64::MAX);
        channel.drain(|_| {});
    }
    assert!(fits > 0);
    drop(subscription);
    channel.close();
    Ok(())
}
