//! Three hosts in network namespaces, a cluster of three `nats-server`s, two collectors, and a store. One process is killed at a random time; the
//! store must then hold what the senders account for, losses included. Repeated without brokers. Each round has a seed.
//!
//! ```text
//!   host 1, 10.77.1.2 ──┐                                    ┌─▶ collector 0 ─┐
//!   host 2, 10.77.2.2 ──┼─▶ 10.77.N.1: nats-server × 3 ──────┤                ├─▶ store ─▶ DuckDB
//!   host 3, 10.77.3.2 ──┘                                    └─▶ collector 1 ─┘
//! ```

#[path = "../../../cli/tests/network/hosts.rs"]
#[expect(dead_code, reason = "it is shared with tests of the network, which also cut cables")]
mod hosts;
#[path = "../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tracepoint_query_tests::fleet::day::{HOURS, Random};
use tracepoint_query_tests::fleet::{Balance, Chain, Day, Host, Outcome, Settings, Transport, tracectl};

use hosts::Hosts;
use skip::skip;

const HOSTS: u8 = 3;
const BROKERS: Transport = Transport { brokers: 3, collectors: 2 };
const DIRECT: Transport = Transport { brokers: 0, collectors: 2 };

/// The process to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The services program of a host.
    Services(usize),
    Broker(usize),
    Collector(usize),
}

impl Victim {
    /// A random process of the chain.
    fn random(random: &mut Random, transport: Transport) -> Self {
        let [hosts, brokers] = [usize::from(HOSTS), transport.brokers];
        match random.below((hosts + brokers + transport.collectors) as u64) as usize {
            number if number < hosts => Self::Services(number),
            number if number < hosts + brokers => Self::Broker(number - hosts),
            number => Self::Collector(number - hosts - brokers),
        }
    }

    fn kill(self, chain: &mut Chain, away: Duration) -> Outcome {
        match self {
            Self::Services(host) => {
                Ok(kill_process(Pid::from_raw(chain.pid(host)?).ok_or("no process")?, Signal::KILL)?)
            }
            Self::Broker(number) => chain.replace_broker(number, away),
            Self::Collector(number) => chain.replace_collector(number, away),
        }
    }
}

/// Plays one day of a chain, and kills one process meanwhile.
fn round(seed: u64, transport: Transport, namespaces: &Hosts) -> Outcome<(Victim, Balance)> {
    let mut random = Random::new(seed);
    let place = tempfile::tempdir_in("/dev/shm")?;
    let day = Day { seed, rate: 1000.0, played: Duration::from_millis(200) };
    let settings = Settings::new(Path::new(env!("CARGO_BIN_EXE_tracepoint-fleet")), place.path(), day, transport)?;
    let host = |number: u8| {
        let enter =
            ["ip", "netns", "exec", &namespaces.namespace(number), "unshare", "--uts", "sh", "-c"].map(str::to_owned);
        let name = format!("hostname host{}; exec \"$@\"", number - 1);
        Host { enter: enter.into_iter().chain([name, "sh".to_owned()]).collect(), servers: Hosts::middle(number) }
    };
    let victim = Victim::random(&mut random, transport);
    let mut chain = Chain::start(settings, (1..=HOSTS).map(host).collect())?;
    chain.playing()?;
    sleep(day.played * HOURS * (random.below(750) as u32) / 1000);
    victim.kill(&mut chain, Duration::from_millis(random.below(1500)))?;
    Ok((victim, chain.finish()?.1))
}

/// Runs one round per seed: three seeds, or `TRACEPOINT_CHAINS`.
fn balances(transport: Transport) {
    if let Err(error) = tracectl() {
        return skip(&error.to_string(), "scripts/query.sh does that");
    }
    if transport.brokers > 0 && Command::new("nats-server").arg("--version").output().is_err() {
        return skip("there is no nats-server", "Run scripts/setup.sh");
    }
    let count = std::env::var("TRACEPOINT_CHAINS").map_or(3, |count| count.parse().expect("a number"));
    for seed in seed::campaign(count) {
        let Some(namespaces) = Hosts::new(HOSTS) else { return };
        let told = format!("TRACEPOINT_SEED={seed}");
        // Servers and store run in the middle namespace, which is linked to all hosts.
        let result =
            namespaces.in_the_middle(|| round(seed, transport, &namespaces).map_err(|error| error.to_string()));
        let (victim, balance) = result.unwrap_or_else(|error| panic!("{told}: {error}"));
        let fired: u64 = balance.senders.values().map(|counts| counts.fired).sum();
        println!("{told}: {victim:?} killed; {fired} events, {} of them lost", balance.lost());
        assert_eq!(balance.senders.len(), usize::from(HOSTS), "{told}");
        assert!(balance.senders.values().all(|counts| counts.fired > 0), "{told}: {balance:?}");
        balance.check().unwrap_or_else(|error| panic!("{told}, {victim:?}: {error}"));
    }
}

#[test]
fn what_brokers_and_collectors_that_are_killed_have_stored_balances() {
    balances(BROKERS);
}

#[test]
fn what_collectors_that_are_killed_have_stored_balances() {
    balances(DIRECT);
}
