//! Each field expression is evaluated once per event, however many subscribers there are, and not at all without one.

use crate::common::Recorded;
use std::cell::Cell;

struct Counted {
    first: Cell<u32>,
    second: Cell<u32>,
}

impl Counted {
    fn first(&self) -> u32 {
        self.first.set(self.first.get() + 1);
        self.first.get()
    }

    fn second(&self) -> &'static str {
        self.second.set(self.second.get() + 1);
        "second"
    }
}

tracepoint::define_trace! {
    provider = "evaluation";
    event(counted: &Counted, wanted: bool) if wanted { first: u32 = counted.first(), second: str = counted.second() }
}

#[test]
fn fields_are_evaluated_once_per_event() {
    let counted = Counted { first: Cell::new(0), second: Cell::new(0) };
    let evaluations = || (counted.first.get(), counted.second.get());
    tracepoint::trace!(event(&counted, true));
    assert_eq!(evaluations(), (0, 0), "off");
    let probe = register_trace_event(|_, _| {}).unwrap();
    tracepoint::trace!(event(&counted, true));
    assert_eq!(evaluations(), (0, 0), "a probe alone needs no field");
    let recorded = [(); 3].map(|()| Recorded::of("evaluation:event"));
    tracepoint::trace!(event(&counted, true));
    assert_eq!(evaluations(), (1, 1), "three subscribers");
    tracepoint::trace!(event(&counted, false));
    assert_eq!(evaluations(), (1, 1), "the condition does not hold");
    for recorded in recorded {
        assert_eq!(recorded.all(), [["1", "second"]]);
    }
    unregister_trace_event(probe);
}
