//! Networks that lose, repeat, reorder, truncate and corrupt datagrams: the client delivers sent events in order, and reports the others.

use crate::seed;
use crate::udp::accounting::{BatchBooks, check_legacy};
use crate::udp::link::{Random, Weather};
use crate::udp::server::Plan;
use crate::udp::world::World;
use std::time::Duration;
use tracepoint_reader::udp::{Ending, Layout, Options, Report};

const PLAN: Plan = Plan { trusted: true, offers: true, events: 2000, rate: 4, ends: true, grows: 100 };
/// How many seeds each campaign runs over.
fn seeds() -> u64 {
    std::env::var("TRACEPOINT_UDP_SEEDS").map_or(100, |seeds| seeds.parse().expect("TRACEPOINT_UDP_SEEDS is a number"))
}

#[test]
fn a_good_network_loses_no_event() {
    for trusted in [true, false] {
        let mut world = World::new(1, Options::default(), Plan { trusted, ..PLAN }, [Weather::GOOD; 2]);
        assert_eq!(world.run(), Ending::Ended);
        let books = BatchBooks::of(&world.server, &world.reports);
        assert_eq!((books.delivered, books.lost), (2000, 0));
        assert!(!world.client.counts().any_lost());
        assert_eq!(world.reports.last(), Some(&Report::SessionEnd));
        world.settle();
    }
}

#[test]
fn delivered_and_lost_events_add_up_on_any_network() {
    for seed in seed::campaign(seeds()) {
        let mut random = Random::new(seed);
        let weather = [Weather::of(&mut random), Weather::of(&mut random)];
        let plan = Plan { trusted: random.chance(500), rate: random.below(100) + 1, ..PLAN };
        let window = [0, 16, 64, 1000][random.below(4) as usize];
        let options = Options { window, ..Options::default() };
        let told = format!("seed {seed}: {plan:?}, window {window}, {weather:?}");
        println!("{told}");
        let mut world = World::new(seed, options, plan, weather);
        let ending = world.run();
        if matches!(ending, Ending::NoServer { .. }) {
            assert!(world.reports.is_empty());
            continue;
        }
        if world.reports.first() == Some(&Report::SessionBegin(Layout::Legacy)) {
            // The offers were lost or spoilt, and what came was in the legacy layout.
            if weather[1].corruption == 0 {
                check_legacy(&world.server, &world.reports);
            }
            continue;
        }
        let books = BatchBooks::of(&world.server, &world.reports);
        let counts = world.client.counts();
        assert_eq!((counts.events, counts.lost_events), (books.delivered, books.lost));
        assert!(books.late == counts.late_events && books.late <= books.lost);
        if ending == Ending::Ended {
            assert_eq!(books.delivered + books.lost, world.server.sent);
        } else {
            assert!(books.delivered + books.lost <= world.server.sent);
        }
        world.settle();
    }
}

#[test]
fn every_gap_of_the_legacy_layout_is_reported_on_any_network() {
    for seed in seed::campaign(seeds()) {
        let mut random = Random::new(seed);
        // Nothing guards the legacy layout from what keeps its shape.
        let weather = [(); 2].map(|()| Weather { corruption: 0, ..Weather::of(&mut random) });
        let plan = Plan { offers: random.chance(500), rate: random.below(100) + 1, ..PLAN };
        println!("seed {seed}: {plan:?}, {weather:?}");
        let options = Options { legacy: true, idle: Duration::from_secs(10), ..Options::default() };
        let mut world = World::new(seed, options, plan, weather);
        let ending = world.run();
        let delivered = check_legacy(&world.server, &world.reports);
        assert_eq!(delivered, world.client.counts().events);
        if ending == Ending::Ended && world.back.done.lost == 0 && world.back.done.truncated == 0 {
            assert!(delivered > 0, "all that was sent arrived");
        }
    }
}
