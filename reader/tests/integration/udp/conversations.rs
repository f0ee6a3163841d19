//! Two conversations, byte for byte: the datagrams, their times, and the client's reports. `TRACEPOINT_BLESS=1` rewrites them
//! after an intended change.

use crate::udp::link::Faults;
use crate::udp::server::Plan;
use crate::udp::simulation::Simulation;
use std::num::NonZeroU64;
use std::path::Path;
use tracepoint_reader::udp::{Options, SessionEnd};

fn hold(name: &str, options: Options, plan: Plan, faults: [Faults; 2]) {
    let mut simulation = Simulation::new(11, options, plan, faults);
    simulation.log = Some(String::new());
    assert_eq!(simulation.run(), SessionEnd::Ended);
    simulation.run_until_server_is_idle();
    let log = simulation.log.unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/udp/golden").join(name);
    if std::env::var_os("TRACEPOINT_BLESS").is_some() {
        std::fs::write(&path, &log).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (line, (kept, now)) in kept.lines().zip(log.lines()).enumerate() {
        assert_eq!(kept, now, "line {} of {}", line + 1, path.display());
    }
    assert_eq!(kept.lines().count(), log.lines().count(), "{}", path.display());
}

#[test]
fn legacy() {
    let plan = Plan { trusted: true, offers: true, events: 6, rate: 1, ends: false, grows: 0 };
    let options = Options { legacy: true, events_limit: NonZeroU64::new(5), ..Options::default() };
    hold("legacy.txt", options, plan, [Faults::default(); 2]);
}

#[test]
fn batch_from_an_address_that_is_not_trusted_with_losses() {
    let plan = Plan { trusted: false, offers: true, events: 150, rate: 1, ends: true, grows: 0 };
    let back = Faults { loss: 300, duplicates: 100, reordering: 2, ..Faults::default() };
    hold("batch.txt", Options::default(), plan, [Faults::default(), back]);
}
