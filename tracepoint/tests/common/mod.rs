//! Shared by the tests of the macros: a subscriber that stores every event as text.
#![allow(dead_code)] // each test is a crate of its own and uses a part

use std::sync::{Arc, Mutex};
use tracepoint::Marker;
use tracepoint::field::Value;
use tracepoint::marker::{Aggregate, FieldView, Subscriber, Subscription};

/// The events of one marker since the creation of this value; each is the list of its fields' values.
pub(crate) struct Recorded {
    events: Arc<Events>,
    _subscription: Subscription,
}

#[derive(Default)]
struct Events(Mutex<Vec<Vec<String>>>);

impl Aggregate for Events {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        let values = (0..).map_while(|index| event.get(index)).map(text).collect();
        self.0.lock().unwrap().push(values);
    }
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Text(text) => text.to_owned(),
        Value::Path(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Elements(elements) => {
            let elements: Vec<String> = (0..elements.len()).filter_map(|i| elements.get(i)).map(text).collect();
            format!("[{}]", elements.join(", "))
        }
        other => panic!("a kind of value that these tests do not know: {other:?}"),
    }
}

impl Recorded {
    /// Subscribes to the field block of the tracepoint called `provider:name`.
    pub(crate) fn of(name: &str) -> Self {
        Self::subscribe(tracepoint::find(name).unwrap().marker().expect("a field block"))
    }

    /// Subscribes to the `trace_mark!` called `name`.
    pub(crate) fn of_marker(name: &str) -> Self {
        Self::subscribe(marker(name))
    }

    fn subscribe(marker: &'static Marker) -> Self {
        let events = Arc::<Events>::default();
        let subscription = marker.subscribe(Subscriber::aggregate(Arc::clone(&events) as _)).expect("switches");
        Self { events, _subscription: subscription }
    }

    /// All events so far.
    pub(crate) fn all(&self) -> Vec<Vec<String>> {
        self.events.0.lock().unwrap().clone()
    }

    /// The last event.
    pub(crate) fn last(&self) -> Vec<String> {
        self.all().pop().expect("an event")
    }
}

/// Returns the `trace_mark!` called `name`.
pub(crate) fn marker(name: &str) -> &'static Marker {
    tracepoint::runtime::markers()
        .find(|marker| marker.name() == name && !marker.is_of_tracepoint())
        .unwrap_or_else(|| panic!("no marker is called {name}"))
}
