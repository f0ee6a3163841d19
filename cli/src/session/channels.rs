//! The channels of a session on the command line.

use super::memory::MemoryArguments;
use crate::argument_error::ArgumentError;
use crate::units;
use clap::{Args, ValueEnum};
use std::time::Duration;
use tracepoint_session_spec::{ChannelSpec, DrainedBy, SessionSpec};

/// The longest wait of `--lossless` without a time: [`ChannelSpec::LOSSLESS_WAIT`].
const LOSSLESS: &str = "1s";

/// The policy for full rings.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// New events are lost
    Discard,
    /// The oldest packet is overwritten
    Overwrite,
    /// New events wait for space, for 50 ms at most
    Wait,
}

/// The default channel, and additional channels.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rings and channels")]
pub(crate) struct ChannelArguments {
    /// Policy for full rings [default: discard with an output, overwrite without]
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// Lose no event when a ring is full: its thread waits until the consumer has made room, for TIME at most [default: 1s]; then events are lost
    /// until there is room. Slows the program down to the speed of the outputs: a thread that only fires took 91 ns per event instead of 24, and lost
    /// nothing instead of 86 %. Short for `--policy wait` with that time
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = LOSSLESS,
        conflicts_with = "policy",
        value_parser = units::duration
    )]
    lossless: Option<Duration>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Contexts to record in addition to the fields: `process`, `thread`, `thread_name`, `cpu`, `user`, `call_stack`
    #[arg(long = "context", value_name = "CONTEXT", value_delimiter = ',')]
    contexts: Vec<String>,
    /// No event wakes the consumer when a ring gets full while it sleeps: no event makes a system call, and bursts may lose more
    #[arg(long)]
    no_wake: bool,
    #[command(flatten)]
    added: AddedChannels,
}

/// Additional channels.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rings and channels")]
pub(crate) struct AddedChannels {
    /// Add a channel, for rules with `--channel`, here or in `enable`: `flight`, or with settings
    /// `flight:policy=overwrite,ring-size=64K,packets=8,spares=2,max-rings=100,max-wait=50ms,contexts=thread+cpu,overflow=8M,no-wake`. May be given
    /// several times
    #[arg(long = "add-channel", value_name = "NAME[:KEY=VALUE,…]", value_parser = added_channel)]
    added: Vec<AddedChannel>,
}

impl AddedChannels {
    pub(crate) const fn any(&self) -> bool {
        !self.added.is_empty()
    }

    /// Adds the channels to a session, whose sinks must already be set.
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        let default = default_policy(spec);
        spec.channels.extend(self.added.iter().map(|added| added.spec(default)));
    }
}

/// The default policy of a session's channels. For a session with a recorder, the outputs are those of the recorder.
fn default_policy(spec: &SessionSpec) -> &'static str {
    if spec.sinks.is_empty() && spec.drain != DrainedBy::Recorder { "overwrite" } else { "discard" }
}

impl ChannelArguments {
    /// Sets the channels of a session, which must already have its sinks or its recorder.
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        let default = default_policy(spec);
        let policy =
            self.lossless.map_or(self.policy, |_| Some(Policy::Wait)).and_then(|policy| policy.to_possible_value());
        spec.channel.policy = policy.map_or_else(|| default.to_owned(), |policy| policy.get_name().to_owned());
        spec.channel.max_wait_ms = self.lossless.map(milliseconds);
        self.memory.apply(spec);
        spec.channel.contexts.clone_from(&self.contexts);
        spec.channel.no_wake = self.no_wake;
        self.added.apply(spec);
    }
}

/// An additional channel. Settings that are not given have the values of a `ChannelSpec`; the policy depends on the outputs.
#[derive(Clone, Debug)]
struct AddedChannel {
    spec: ChannelSpec,
    policy: Option<String>,
}

impl AddedChannel {
    fn spec(&self, default_policy: &str) -> ChannelSpec {
        let mut spec = self.spec.clone();
        spec.policy = self.policy.clone().unwrap_or_else(|| default_policy.to_owned());
        spec
    }
}

/// Parses `NAME` or `NAME:KEY=VALUE,…`. The values are checked with the session.
fn added_channel(text: &str) -> Result<AddedChannel, ArgumentError> {
    let (name, keys) = text.split_once(':').unwrap_or((text, ""));
    let mut added = AddedChannel { spec: ChannelSpec::default().named(name), policy: None };
    let spec = &mut added.spec;
    for part in keys.split(',').filter(|part| !part.is_empty()) {
        if part == "no-wake" {
            spec.no_wake = true;
            continue;
        }
        let (key, value) = part.split_once('=').ok_or_else(|| format!("expected `KEY=VALUE`, not `{part}`"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("`{key}` takes a number, not `{value}`"));
        let size = || units::size(value).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let invalid = |error: ArgumentError| format!("`{key}`: {error}");
        match key {
            "policy" => added.policy = Some(value.to_owned()),
            "ring-size" => spec.ring_size = Some(size().map_err(invalid)?),
            "packets" => spec.packets = number()?,
            "overflow" => spec.overflow = Some(if value == "0" { 0 } else { size().map_err(invalid)? }),
            "spares" => spec.spares = Some(number()?),
            "max-rings" => spec.max_rings = Some(number()?),
            "max-wait" => {
                spec.max_wait_ms = Some(milliseconds(units::duration(value).map_err(invalid)?));
            }
            "contexts" => spec.contexts = value.split('+').map(str::to_owned).collect(),
            _ => {
                return Err(ArgumentError::from(format!(
                    "a channel has no setting `{key}`; there are policy, ring-size, packets, spares, max-rings, max-wait, contexts, overflow and no-wake"
                )));
            }
        }
    }
    Ok(added)
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The channels of a session, a line for each.
pub(crate) fn describe(spec: &SessionSpec) -> impl Iterator<Item = String> {
    let several = !spec.channels.is_empty();
    spec.all_channels().map(move |channel| {
        let name = if several { format!("channel {}: ", channel.name) } else { String::new() };
        let with = if channel.contexts.is_empty() { "" } else { ", with " };
        let size = units::bytes(channel.first_ring_size() as u64);
        format!("{name}rings of {size}, {}{with}{}", channel.policy, channel.contexts.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_as_long_as_in_a_lossless_channel_in_code() -> Result<(), ArgumentError> {
        assert_eq!(units::duration(LOSSLESS)?, ChannelSpec::LOSSLESS_WAIT);
        Ok(())
    }

    #[test]
    fn channels_are_parsed() -> Result<(), ArgumentError> {
        assert_eq!(added_channel("flight")?.spec("discard"), ChannelSpec::default().named("flight"));
        let all = "a:policy=wait,ring-size=64K,packets=4,spares=2,max-rings=9,max-wait=2s,contexts=thread+cpu,overflow=8M,no-wake"
            .to_owned();
        let mut expected = ChannelSpec::default().named("a");
        (expected.ring_size, expected.packets, expected.spares) = (Some(64 << 10), 4, Some(2));
        (expected.max_rings, expected.max_wait_ms) = (Some(9), Some(2000));
        expected.policy = "wait".to_owned();
        (expected.no_wake, expected.overflow) = (true, Some(8 << 20));
        expected.contexts = vec!["thread".to_owned(), "cpu".to_owned()];
        assert_eq!(added_channel(&all)?.spec("overwrite"), expected);
        for (wrong, part) in [
            ("a:size=1", "has no setting `size`; there are policy, ring-size"),
            ("a:packets", "expected `KEY=VALUE`, not `packets`"),
            ("a:packets=many", "`packets` takes a number, not `many`"),
            ("a:ring-size=big", "`ring-size`: expected a size"),
            ("a:max-wait=long", "`max-wait`: expected a time"),
        ] {
            let error = added_channel(wrong).expect_err(wrong);
            assert!(error.to_string().contains(part), "{wrong}: {error}");
        }
        Ok(())
    }
}
