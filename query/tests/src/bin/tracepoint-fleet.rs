//! `tracepoint-fleet`: plays a day of a fleet on this machine, or computes what larger fleets need.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tracepoint_query_tests::fleet::{Chain, Day, Host, Outcome, Plan, Settings, Transport, services};

#[derive(Debug, Parser)]
#[command(name = "tracepoint-fleet", about = "A day of a fleet, by simulation and on paper")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Play a day on this machine through the whole chain, check that every event is accounted for, and print what each stage costs
    Play(Play),
    /// Print what fleets of 10, 1,000 and 100,000 hosts need, from `figures.json`
    Plan,
    /// Be the traced program of a host
    #[command(hide = true)]
    Services(Services),
}

#[derive(Debug, Args)]
struct Load {
    /// The seed that determines all events
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Events of a host in a second, on average over the day
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Milliseconds of each hour that are played
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000)]
    played: u64,
}

impl Load {
    fn day(&self) -> Day {
        Day { seed: self.seed, rate: self.rate, played: Duration::from_millis(self.played) }
    }
}

#[derive(Debug, Args)]
struct Play {
    #[command(flatten)]
    load: Load,
    /// Hosts
    #[arg(long, default_value_t = 10)]
    hosts: usize,
    /// Servers of NATS between hosts and collectors; 0: hosts stream to the collectors
    #[arg(long, default_value_t = 3)]
    brokers: usize,
    /// Collectors
    #[arg(long, default_value_t = 2)]
    collectors: usize,
    /// Print the figures as JSON, for `figures.json`
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Services {
    #[command(flatten)]
    load: Load,
    #[arg(long)]
    host: u64,
    /// A file for the number of this process
    #[arg(long)]
    pid: PathBuf,
}

impl Play {
    fn run(&self) -> Outcome {
        let place = tempfile::tempdir_in("/dev/shm")?;
        let transport = Transport { brokers: self.brokers, collectors: self.collectors };
        let settings = Settings::new(&std::env::current_exe()?, place.path(), self.load.day(), transport)?;
        // Each host has a UTS namespace with its own host name. Root may create one directly, other users inside a user namespace.
        let host = |number: usize| Host {
            enter: ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("hostname host{number}; exec \"$@\""), "sh".to_owned()])
                .collect(),
            servers: "127.0.0.1".to_owned(),
        };
        let chain = Chain::start(settings, (0..self.hosts).map(host).collect())?;
        let (figures, balance) = chain.finish()?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&figures)?);
        } else {
            println!("{}", figures.table());
        }
        balance.check()?;
        eprintln!(
            "{} events were fired, {} of them lost and counted: every host balances",
            figures.events + balance.lost(),
            balance.lost()
        );
        Ok(())
    }
}

fn main() -> Outcome {
    match Arguments::parse().verb {
        Verb::Play(play) => play.run()?,
        Verb::Plan => print!("{}", Plan::of_the_page()?.text()),
        Verb::Services(of) => {
            let played = services::play(&of.load.day(), of.host, &of.pid)?;
            println!("{}", serde_json::to_string(&played)?);
        }
    }
    Ok(())
}
