//! `record --on`: the same recording on several hosts, collected here.
//!
//! Each host is reached by a [remote shell](host), which starts [`tracectl remote`](super::remote) there. When all hosts have answered, a
//! [collector] listens [at an address that they can reach](address), and each host gets the [arguments](forwarded) of this command with
//! `--stream` to that collector. Nothing is switched on before that: an unreachable host makes the command fail without side effects. A host that
//! fails later does not end the recording on the others.

mod address;
mod collector;
mod forwarded;
mod host;
mod report;

use super::conclude::stopped_at;
use crate::failure::Failure;
use crate::interrupt::WaitingInterrupt;
use crate::message;
use crate::shared_key::random_key;
use address::{CollectAt, address_for, collect_at, common};
use clap::Args;
use collector::CollectorThread;
use host::Host;
use report::HostsReport;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::SharedKey;

/// How often the maximum size and the remote shells are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The hosts to record on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other hosts")]
pub(super) struct HostArguments {
    /// Record on these hosts in place of this one, with the same rules and options, or run the command on each, and collect here, in one
    /// directory. Each host needs tracectl of this version. The output of the programs is forwarded to the standard error
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', group = "streaming", value_parser = host_name,
        conflicts_with_all = ["pid", "key_file", "dt", "udp", "text", "rotate_size", "rotate_every", "keep", "retry"])]
    on: Vec<String>,
    /// The command that reaches a host: it is run by the shell as `CMD HOST tracectl remote`
    #[arg(long, value_name = "CMD", requires = "on", default_value = "ssh")]
    rsh: String,
    /// The program on the hosts, for example `sudo tracectl` or a path
    #[arg(long, value_name = "CMD", requires = "on", default_value = "tracectl")]
    remote_tracectl: String,
    /// The address of this machine to which the hosts send; with PORT also the port for control, and data use the next port. Only these hosts can
    /// store traces there, with a key for this recording [default: the source address of a route to the host, free ports]
    #[arg(long, value_name = "ADDR[:PORT]", requires = "on", value_parser = collect_at)]
    collect_at: Option<CollectAt>,
}

/// Parses a host name; refuses one that a remote shell would take for an option.
fn host_name(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && !text.starts_with('-') && !text.chars().any(|c| c.is_control() || c.is_whitespace());
    if is_name { Ok(text.to_owned()) } else { Err("expected the name of a host, as `--rsh` takes it".to_owned()) }
}

impl HostArguments {
    pub(super) const fn any(&self) -> bool {
        !self.on.is_empty()
    }

    /// Records on all hosts until Ctrl-C, until all have ended, or until the traces have the maximum size. Hosts that do not end within
    /// `end_time` are abandoned.
    pub(super) fn record(&self, out: &Path, max_size: u64, end_time: Duration) -> Result<HostsReport, Failure> {
        let mut seen = HashSet::new();
        if let Some(twice) = self.on.iter().find(|host| !seen.insert(*host)) {
            return Err(Failure::Usage(format!("{twice} is named twice in `--on`")));
        }
        let arguments = forwarded::arguments()?;
        let mut interrupt = WaitingInterrupt::new()?;
        let mut hosts = self.reach(&mut interrupt)?;
        let addresses = self.addresses(&hosts)?;
        let listen = self.collect_at.map_or_else(|| [SocketAddr::new(common(&addresses), 0); 2], CollectAt::listen);
        let key = random_key()?;
        let shared =
            SharedKey::new(key.as_bytes()).ok_or_else(|| Failure::Refused("the key is too short".to_owned()))?;
        let collecting = CollectorThread::start(out, listen, shared, max_size)?;
        let at = collecting.addresses;
        message::note(&format!("collecting at {}; viewers: tracectl view net://{}", at.control, at.live));
        for (host, ip) in hosts.iter_mut().zip(addresses) {
            let stream = format!("--stream={}:{}", SocketAddr::new(ip, at.control.port()), at.data.port());
            let [verb, rest @ ..] = &arguments[..] else { continue };
            let own = [verb.clone(), stream, "--json".to_owned()];
            host.record(own.into_iter().chain(rest.iter().cloned()).collect(), &key);
        }
        let mut ending: Option<Instant> = None;
        while hosts.iter().any(|host| !host.is_over()) {
            interrupt.wait(LOOK_INTERVAL);
            self.update(&mut hosts)?;
            if ending.is_none() && (interrupt.is_requested() || collecting.is_at_end()) {
                hosts.iter_mut().for_each(Host::end);
                ending = Some(Instant::now());
            }
            if ending.is_some_and(|since| since.elapsed() >= end_time) {
                break;
            }
        }
        if collecting.is_full() {
            message::note(&stopped_at(max_size));
        }
        for host in &mut hosts {
            if !host.is_over() && host.exit_code.is_none() {
                let failure = || format!("it has not ended within {}", humantime::format_duration(end_time));
                host.failure.get_or_insert_with(failure);
            }
            host.kill();
        }
        Ok(HostsReport::new(hosts, collecting.finish()?))
    }

    /// Starts the remote shells, and waits until all hosts have answered.
    fn reach(&self, interrupt: &mut WaitingInterrupt) -> Result<Vec<Host>, Failure> {
        let mut hosts = Vec::new();
        for name in &self.on {
            let waker = std::sync::Arc::new(interrupt.waker()?);
            hosts.push(Host::start(name, &self.rsh, &self.remote_tracectl, move || waker())?);
        }
        while hosts.iter().any(|host| host.ready.is_none() && host.failure.is_none()) {
            interrupt.wait(LOOK_INTERVAL);
            self.update(&mut hosts)?;
            if interrupt.is_requested() {
                let waiting = hosts.iter().filter(|host| host.ready.is_none() && host.failure.is_none());
                let waiting: Vec<_> = waiting.map(|host| host.name.as_str()).collect();
                return Err(Failure::Refused(format!("ended before {} answered", waiting.join(", "))));
            }
        }
        let failures = hosts.iter().filter_map(|host| Some(format!("{}: {}", host.name, host.failure.as_ref()?)));
        let failures: Vec<_> = failures.collect();
        if failures.is_empty() {
            return Ok(hosts);
        }
        Err(Failure::Refused(format!(
            "{}\nnothing was recorded; leave these hosts out of `--on`, or mend them",
            failures.join("\n")
        )))
    }

    fn update(&self, hosts: &mut [Host]) -> Result<(), Failure> {
        Ok(hosts.iter_mut().try_for_each(|host| host.update(&self.rsh))?)
    }

    /// The addresses at which the hosts reach this machine.
    fn addresses(&self, hosts: &[Host]) -> Result<Vec<IpAddr>, Failure> {
        let of = |host: &Host| match self.collect_at {
            Some(at) => Ok(at.ip),
            None => address_for(&host.name, host.seen_as()),
        };
        hosts.iter().map(of).collect()
    }
}
