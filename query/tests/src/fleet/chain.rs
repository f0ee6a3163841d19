//! The chain on this machine: hosts, servers, the store.
//!
//! ```text
//!   host 1: tracectl record ── services ─┐
//!   host 2: …                            ├─▶ [nats-server × 3] ─▶ tracectl collect × N ─▶ store ─▶ `DuckDB`
//!   host 3: …                            ┘
//! ```
//!
//! Without brokers each host streams to one of the collectors over TCP. The caller decides which processes are killed and restarted meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

use super::balance::{Balance, Counts};
use super::brokers::{Brokers, free_port};
use super::figures::processor_seconds;
use super::programs::{ChildProgram, tracectl, wait_for};
use super::services::ServiceReport;
use super::{Day, Figures, Outcome};

/// The processes between the hosts and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Number of NATS servers. With 0, hosts stream to the collectors directly.
    pub brokers: usize,
    /// Number of collectors.
    pub collectors: usize,
}

/// A host of the fleet.
#[derive(Clone, Debug)]
pub struct Host {
    /// The command, with arguments, that runs a program on this host.
    pub enter: Vec<String>,
    /// The address of the servers as seen from this host.
    pub servers: String,
}

/// Configuration of a chain.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the program `tracectl`.
    pub tracectl: PathBuf,
    /// Path and first arguments of the services program.
    pub services: PathBuf,
    /// A directory on tmpfs for all files.
    pub place: PathBuf,
    /// The load.
    pub day: Day,
    /// Ring size of each thread.
    pub ring: String,
    /// The processes between the hosts and the store.
    pub transport: Transport,
}

/// A running chain.
#[derive(Debug)]
pub struct Chain {
    settings: Settings,
    hosts: Vec<Host>,
    brokers: Option<Brokers>,
    collectors: Vec<Collector>,
    recordings: Vec<ChildProgram>,
}

#[derive(Debug)]
struct Collector {
    running: ChildProgram,
    /// The ports for control and for data.
    ports: [u16; 2],
    seconds: f64,
}

impl Settings {
    /// Settings that use the programs of this checkout.
    ///
    /// # Errors
    /// If `tracectl` was not built.
    pub fn new(services: &Path, place: &Path, day: Day, transport: Transport) -> Outcome<Self> {
        let (services, place) = (services.to_owned(), place.to_owned());
        Ok(Self { tracectl: tracectl()?, services, place, day, ring: "64K".to_owned(), transport })
    }

    fn output(&self, collector: usize) -> PathBuf {
        self.place.join(format!("collected{collector}"))
    }

    fn collector(&self, number: usize, ports: [u16; 2], brokers: Option<&Brokers>) -> Outcome<ChildProgram> {
        let mut command = Command::new(&self.tracectl);
        command.args(["collect", "--json", "--no-key", "--live", "127.0.0.1:0", "--gap-time", "30s"]);
        for (option, port) in ["--control", "--data"].into_iter().zip(ports) {
            command.args([option, &format!("0.0.0.0:{port}")]);
        }
        if let Some(brokers) = brokers {
            command.args(["--lease", "3s", "--nats", &brokers.url("127.0.0.1")]);
        }
        let log = self.place.join(format!("collector{number}"));
        let lines = || fs::read_to_string(&log).unwrap_or_default().lines().count();
        let before = lines();
        let running = ChildProgram::start(command.arg("-o").arg(self.output(number)), &log)?;
        wait_for("a collector listens", || Ok((lines() > before).then_some(())))?;
        Ok(running)
    }

    fn recording(&self, number: usize, host: &Host, to: [&str; 2]) -> Outcome<ChildProgram> {
        let place = self.place.join(format!("host{number}"));
        fs::create_dir_all(&place)?;
        let mut command = Command::new(&host.enter[0]);
        command.args(&host.enter[1..]).arg(&self.tracectl).args(["record", "--json", "-e", "fleet:*"]);
        command.args(["--ring-size", &self.ring, "--sync-interval", "1s", "--retry", "60s"]).args(to).arg("--");
        command
            .arg(&self.services)
            .args(["services", "--host", &number.to_string()])
            .arg("--pid")
            .arg(place.join("pid"));
        command.args(["--seed", &self.day.seed.to_string(), "--rate", &self.day.rate.to_string()]);
        command.args(["--played", &self.day.played.as_millis().to_string()]);
        ChildProgram::start(command.env("TRACEPOINT_RUN_DIR", place.join("run")), &place.join("record"))
    }
}

impl Chain {
    /// Starts the servers, then a recording on each host.
    ///
    /// # Errors
    /// If a program cannot be started.
    pub fn start(settings: Settings, hosts: Vec<Host>) -> Outcome<Self> {
        let Transport { brokers, collectors } = settings.transport;
        let brokers = if brokers > 0 { Some(Brokers::start(&settings.place, brokers)?) } else { None };
        let mut chain = Self { settings, hosts, brokers, collectors: Vec::new(), recordings: Vec::new() };
        for number in 0..collectors {
            let ports = [free_port()?, free_port()?];
            let running = chain.settings.collector(number, ports, chain.brokers.as_ref())?;
            chain.collectors.push(Collector { running, ports, seconds: 0.0 });
        }
        for (number, host) in chain.hosts.iter().enumerate() {
            let [control, data] = chain.collectors[number % collectors].ports;
            let to = match &chain.brokers {
                Some(brokers) => ["--nats", &brokers.url(&host.servers)],
                None => ["--stream", &format!("{}:{control}:{data}", host.servers)],
            };
            chain.recordings.push(chain.settings.recording(number, host, to)?);
        }
        Ok(chain)
    }

    /// Waits until the services program runs on each host.
    ///
    /// # Errors
    /// If it does not start on one of them.
    pub fn playing(&self) -> Outcome {
        for number in 0..self.hosts.len() {
            wait_for("a host plays", || Ok(self.pid(number).ok()))?;
        }
        Ok(())
    }

    /// The process id of a host's services program.
    ///
    /// # Errors
    /// If it has not started yet.
    pub fn pid(&self, host: usize) -> Outcome<i32> {
        Ok(fs::read_to_string(self.settings.place.join(format!("host{host}/pid")))?.parse()?)
    }

    /// Kills a broker, and restarts it after `away` with its existing files.
    ///
    /// # Errors
    /// If there is none, or it does not start.
    pub fn replace_broker(&mut self, number: usize, away: Duration) -> Outcome {
        let brokers = self.brokers.as_mut().ok_or("there are no brokers")?;
        brokers.kill(number)?;
        std::thread::sleep(away);
        brokers.restart(number)
    }

    /// Kills a collector, and restarts it after `away` with its existing files.
    ///
    /// # Errors
    /// If it does not start.
    pub fn replace_collector(&mut self, number: usize, away: Duration) -> Outcome {
        self.collectors[number].running.kill()?;
        std::thread::sleep(away);
        let running = self.settings.collector(number, self.collectors[number].ports, self.brokers.as_ref())?;
        self.collectors[number].running = running;
        Ok(())
    }

    /// Waits for the end of the day, stops the servers, and writes the collected traces into a store. Returns the cost of each stage, and the counts
    /// of each host's events.
    ///
    /// # Errors
    /// If a program fails, or a trace cannot be written.
    pub fn finish(mut self) -> Outcome<(Figures, Balance)> {
        let mut figures = Figures::default();
        let mut balance = Balance::default();
        let recordings = std::mem::take(&mut self.recordings);
        for (number, mut recording) in recordings.into_iter().enumerate() {
            let (_, seconds) = recording.wait()?;
            let (counts, played) = report(&recording)?;
            let of_services = played.map_or(0.0, |played| played.processor_seconds);
            figures.services_seconds += of_services;
            figures.recorder_seconds += seconds - of_services;
            balance.senders.insert(format!("host{number}"), counts);
        }
        if let Some(brokers) = &self.brokers {
            wait_for("the brokers have no message", || Ok((brokers.messages() == Some(0)).then_some(())))?;
        }
        for collector in &mut self.collectors {
            let (_, seconds) = collector.running.interrupt()?;
            collector.seconds = seconds;
            figures.collector_seconds += seconds;
            let said = collector.running.said()?;
            let last: Value = serde_json::from_str(said.lines().last().ok_or("a collector says nothing")?)?;
            figures.wire_bytes += last["counts"]["stored_bytes"].as_u64().ok_or("a collector has no counts")?;
            balance.collectors.push(last["counts"].clone());
        }
        if let Some(brokers) = &mut self.brokers {
            figures.broker_seconds = brokers.end()?;
        }
        self.store(&mut figures, &mut balance)?;
        Ok((figures, balance))
    }

    /// Writes all traces into a store, then reads it.
    fn store(&self, figures: &mut Figures, balance: &mut Balance) -> Outcome {
        let path = self.settings.place.join("store");
        let store = Store::create(&path)?;
        for trace in (0..self.collectors.len()).flat_map(|number| traces(&self.settings.output(number))) {
            figures.ctf_bytes += tracepoint_reader::stream_files(&trace)?.iter().map(size).sum::<u64>();
            let began = processor_seconds();
            let stored = ingest(&store, &Trace::open(&trace)?, IngestOptions::default(), &mut |_, _| {})?;
            figures.store_seconds += processor_seconds() - began;
            figures.events += stored.events;
            figures.parquet_bytes += stored.bytes;
            figures.files += files(&path, ".parquet") as u64 - figures.files;
            if stored.damage > 0 {
                return Err(format!("{} is damaged: {stored:?}", trace.display()).into());
            }
        }
        figures.traces = balance.senders.len() as u64;
        balance.read(&path, figures)
    }
}

/// Parses the final report of a recording, and the services' report before it.
fn report(recording: &ChildProgram) -> Outcome<(Counts, Option<ServiceReport>)> {
    let said = recording.said()?;
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut counts, mut played) = (None, None);
    for line in lines {
        if line.get("processor_seconds").is_some() {
            played = Some(serde_json::from_value::<ServiceReport>(line)?);
        } else if let Some(numbers) = line.get("counters") {
            counts = Some(serde_json::from_value::<Counts>(numbers.clone())?);
        }
    }
    let counts =
        counts.ok_or_else(|| format!("a recording has no report: {}", recording.messages().unwrap_or_default()))?;
    match played {
        Some(played) if played.fired != counts.fired => {
            Err(format!("{} events were fired, and {counts:?} are accounted for", played.fired).into())
        }
        played => Ok((counts, played)),
    }
}

/// The traces below a directory in sorted order; each chunk of a trace is a separate entry.
fn traces(directory: &Path) -> Vec<PathBuf> {
    if directory.join("metadata").exists() {
        return vec![directory.to_owned()];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter(|path| path.is_dir()).flat_map(|path| traces(&path)).collect();
    found.sort();
    found
}

fn size(path: &PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Number of files below a directory whose names end with `end`.
fn files(directory: &Path, end: &str) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .map(|path| if path.is_dir() { files(&path, end) } else { path.to_string_lossy().ends_with(end) as usize })
        .sum()
}
