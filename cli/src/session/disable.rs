//! `tracectl disable`: removes rules, channels and outputs from a session.

use super::outputs::{is_standard_error, peer_of, socket_address};
use super::rules::{RouteArguments, RuleArguments, first_few, with_each};
use super::{ChangeArguments, acks, controller};
use crate::failure::{Failure, VerbResult};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tracepoint_session_spec::{Rule, RuleStatistic, SessionSpec, SinkSpec, StreamSinkSpec, StreamSpec};

/// Removes rules, channels and outputs from a session
///
/// The session may be recording. Rules are named by their events, programs, process and channel. With `--level`, `--filter`, `--limit` or
/// `--statistic`, only rules that have that condition are removed. An output is named as it was given, and is complete when this command returns.
/// Removing a channel removes the rules that name it; the packets in its rings are written to the outputs. To exclude some of the events that a rule
/// matches, enable a rule that begins with `!`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl disable flight -e 'net:*'
  tracectl disable flight -e 'net:*' --statistic 'hist(bytes) by peer'
  tracectl disable flight -o /var/tmp/flight
  tracectl disable both --remove-channel flight")]
pub(crate) struct Disable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    reply: ChangeArguments,
    #[command(flatten)]
    rules: RuleArguments,
    /// Only rules with this statistic. May be given several times
    #[arg(long = "statistic", help_heading = "Events", value_name = "STATISTIC", value_parser = str::parse::<RuleStatistic>)]
    statistics: Vec<RuleStatistic>,
    #[command(flatten)]
    route: RouteArguments,
    /// Remove this channel, and the rules that name it. May be given several times
    #[arg(long = "remove-channel", help_heading = "Rings and channels", value_name = "NAME")]
    channels: Vec<String>,
    #[command(flatten)]
    outputs: OutputNames,
}

/// Outputs, named as they were given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Outputs")]
struct OutputNames {
    /// Stop writing CTF traces into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Stop writing this circular file
    #[arg(long, value_name = "FILE")]
    dt: Option<PathBuf>,
    /// Stop writing text into this file; without FILE, or with `-`, on standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    text: Option<PathBuf>,
    /// Stop serving clients at this address
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = socket_address)]
    udp: Option<SocketAddr>,
    /// Stop streaming to this collector or relay
    #[arg(long, value_name = "HOST[:PORT[:DATA_PORT]]")]
    stream: Option<String>,
    /// Stop streaming to this relay
    #[arg(long, value_name = "HOST[:PORT[:DATA_PORT]]")]
    relay: Option<String>,
    /// Stop publishing to this broker
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "nats://HOST[:PORT]")]
    nats: Option<String>,
}

impl OutputNames {
    fn sinks(&self) -> std::io::Result<Vec<SinkSpec>> {
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        let text = match &self.text {
            Some(text) if is_standard_error(text) => Some(SinkSpec::standard_error()),
            text => absolute(text)?.map(SinkSpec::text),
        };
        let peers =
            self.stream.as_ref().map(StreamSpec::to).into_iter().chain(self.relay.as_ref().map(StreamSpec::relay));
        #[cfg(feature = "nats")]
        let peers = peers.chain(self.nats.as_ref().map(StreamSpec::to));
        let streams = peers.map(|peer| SinkSpec::stream(peer).into());
        let ctf = absolute(&self.output)?.map(|path| SinkSpec::ctf(path).into());
        let dt = absolute(&self.dt)?.map(|path| SinkSpec::dt(path).into());
        let udp = self.udp.map(|address| SinkSpec::udp(address).into());
        Ok([ctf, dt, text.map(SinkSpec::from), udp].into_iter().flatten().chain(streams).collect())
    }
}

impl Disable {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.rules.pid)?;
        let sinks = self.outputs.sinks()?;
        let default: &[&str] = if sinks.is_empty() && self.channels.is_empty() { &["*"] } else { &[] };
        // A latency names its own events.
        let default = if self.statistics.is_empty() { default } else { &["*"] };
        let rules = self.rules.rules(&controller, default)?;
        let rules = self.route.apply(with_each(&self.statistics, false, rules));
        // A limit or a channel beside a statistic is no conflict here: the rule may record as well.
        rules.iter().try_for_each(Rule::check_parts).map_err(|error| Failure::Refused(error.to_string()))?;
        let session = controller.session(&self.name)?;
        let events = rules.iter().map(|rule| rule.event.text());
        let names: Vec<_> = events
            .chain(self.channels.iter().map(String::as_str))
            .chain(sinks.iter().map(|sink| -> &str { sink.kind() }))
            .collect();
        let mut missing = None;
        let generation = session.change(&format!("disable {}", names.join(" ")), |spec| {
            let mut changed = spec.clone();
            missing = self.change(&mut changed, &rules, &sinks).err();
            if missing.is_none() {
                *spec = changed;
            }
            Ok(())
        })?;
        match missing {
            Some(missing) => Err(Failure::Refused(missing)),
            None => acks::wait(&session, generation, &self.reply),
        }
    }

    /// Removes everything that is named; the error lists what does not exist.
    fn change(&self, spec: &mut SessionSpec, rules: &[Rule], sinks: &[SinkSpec]) -> Result<(), String> {
        let no = |what: &str, known: Vec<String>| {
            let known = if known.is_empty() {
                "; it has none".to_owned()
            } else {
                format!("; it has {}", first_few(&known, ", "))
            };
            Err(format!("the session {} has no {what}{known}", self.name))
        };
        for rule in rules {
            if spec.disable(rule) == 0 {
                return no(&format!("rule {rule}"), spec.rules().flatten().map(ToString::to_string).collect());
            }
        }
        for channel in &self.channels {
            if !spec.remove_channel(channel) {
                let known = spec.channels.iter().map(|channel| format!("`{}`", channel.name)).collect();
                return no(&format!("additional channel `{channel}`"), known);
            }
        }
        for sink in sinks {
            if spec.remove_sink(sink) == 0 {
                return no(&format!("output {}", name(sink)), spec.sinks.iter().map(name).collect());
            }
        }
        Ok(())
    }
}

/// The output in the form of its command-line option.
fn name(sink: &SinkSpec) -> String {
    match sink {
        SinkSpec::Udp(sink) => format!("`--udp {}`", sink.socket_address()),
        SinkSpec::Stream(StreamSinkSpec { stream, .. }) => {
            format!("`--{} {}`", if stream.relay { "relay" } else { "stream" }, peer_of(stream))
        }
        sink => {
            let option = if let SinkSpec::Ctf(_) = sink { "-o".to_owned() } else { format!("--{}", sink.kind()) };
            format!("`{option} {}`", sink.path().unwrap_or(Path::new("-")).display())
        }
    }
}
