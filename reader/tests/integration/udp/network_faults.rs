//! Networks that lose, repeat, reorder, truncate and corrupt datagrams: the client delivers the sent events in order, and reports the missing ones.

use crate::seed;
use crate::udp::accounting::{BatchAccounting, check_legacy};
use crate::udp::link::{Faults, Random};
use crate::udp::random_faults::random_faults;
use crate::udp::server::Plan;
use crate::udp::simulation::Simulation;
use std::time::Duration;
use tracepoint_reader::udp::{Layout, Options, Report, SessionEnd};

const PLAN: Plan = Plan { trusted: true, offers: true, events: 2000, rate: 4, ends: true, grows: 100 };
/// Number of seeds that each campaign runs over.
fn seeds() -> u64 {
    std::env::var("TRACEPOINT_UDP_SEEDS").map_or(100, |seeds| seeds.parse().expect("TRACEPOINT_UDP_SEEDS is a number"))
}

#[test]
fn a_good_network_loses_no_event() {
    for trusted in [true, false] {
        let mut simulation = Simulation::new(1, Options::default(), Plan { trusted, ..PLAN }, [Faults::NONE; 2]);
        assert_eq!(simulation.run(), SessionEnd::Ended);
        let accounting = BatchAccounting::of(&simulation.server, &simulation.reports);
        assert_eq!((accounting.delivered, accounting.lost), (2000, 0));
        assert!(!simulation.client.counts().any_lost());
        assert_eq!(simulation.reports.last(), Some(&Report::SessionEnd));
        simulation.run_until_server_is_idle();
    }
}

#[test]
fn delivered_and_lost_events_add_up_on_any_network() {
    for seed in seed::campaign(seeds()) {
        let mut random = Random::new(seed);
        let faults = [random_faults(&mut random), random_faults(&mut random)];
        let plan = Plan { trusted: random.chance(500), rate: random.below(100) + 1, ..PLAN };
        let window = [0, 16, 64, 1000][random.below(4) as usize];
        let options = Options { window, ..Options::default() };
        println!("seed {seed}: {plan:?}, window {window}, {faults:?}");
        let mut simulation = Simulation::new(seed, options, plan, faults);
        let ending = simulation.run();
        if matches!(ending, SessionEnd::NoServer { .. }) {
            assert!(simulation.reports.is_empty());
            continue;
        }
        if simulation.reports.first() == Some(&Report::SessionBegin(Layout::Legacy)) {
            // The offers were lost or corrupted, so the session is in the legacy layout.
            if faults[1].corruption == 0 {
                check_legacy(&simulation.server, &simulation.reports);
            }
            continue;
        }
        let accounting = BatchAccounting::of(&simulation.server, &simulation.reports);
        let counts = simulation.client.counts();
        assert_eq!((counts.events, counts.lost_events), (accounting.delivered, accounting.lost));
        assert!(accounting.late == counts.late_events && accounting.late <= accounting.lost);
        if ending == SessionEnd::Ended {
            assert_eq!(accounting.delivered + accounting.lost, simulation.server.sent);
        } else {
            assert!(accounting.delivered + accounting.lost <= simulation.server.sent);
        }
        simulation.run_until_server_is_idle();
    }
}

#[test]
fn every_gap_of_the_legacy_layout_is_reported_on_any_network() {
    for seed in seed::campaign(seeds()) {
        let mut random = Random::new(seed);
        // The legacy layout has no checksum: corrupted messages are not detected.
        let faults = [(); 2].map(|()| Faults { corruption: 0, ..random_faults(&mut random) });
        let plan = Plan { offers: random.chance(500), rate: random.below(100) + 1, ..PLAN };
        println!("seed {seed}: {plan:?}, {faults:?}");
        let options = Options { legacy: true, idle: Duration::from_secs(10), ..Options::default() };
        let mut simulation = Simulation::new(seed, options, plan, faults);
        let ending = simulation.run();
        let delivered = check_legacy(&simulation.server, &simulation.reports);
        assert_eq!(delivered, simulation.client.counts().events);
        if ending == SessionEnd::Ended && simulation.back.lost == 0 && simulation.back.truncated == 0 {
            assert!(delivered > 0, "all sent events arrived");
        }
    }
}
