//! From a program over a broker to a collector.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record};
use crate::stored::{accounts, assert_once, assert_verified, traces};
use crate::{is_traced, wait_for};
use tempfile::TempDir;

#[test]
fn a_trace_is_stored_whole_and_the_broker_forgets_it() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    let test = "collecting::a_trace_is_stored_whole_and_the_broker_forgets_it";
    let report = Record::start(place, "record", &broker.url(), (test, "20000 10"), &[]).finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    let counts = collect.end();
    assert_eq!((counts["late"].as_u64(), counts["missing"].as_u64()), (Some(0), Some(0)), "{counts}");
    assert_once(&[&output], 20_000, "one collector");
    assert_eq!(accounts(&[&output]), (40_000, 0));
    assert_verified(place, &[&output]);
    assert_eq!(traces(&output).len(), 1);
}
