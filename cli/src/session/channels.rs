//! The channels of a session, as the command line says them.

use crate::units;
use clap::{Args, ValueEnum};
use tracepoint_control::{ChannelSpec, Rule, SessionSpec};

/// What happens when a ring is full.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// New events are lost.
    Discard,
    /// The oldest packet is overwritten.
    Overwrite,
    /// New events wait for room, for 50 ms at most.
    Wait,
}

/// The default channel, and those beside it.
#[derive(Debug, Args)]
pub(crate) struct ChannelArguments {
    /// What happens when a ring is full [default: discard with an output, overwrite without]
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// The size of a thread's ring
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1M")]
    ring_size: u64,
    /// What each record says beside its event's fields: `process`, `thread`, `thread_name`, `cpu`, `user`, `call_stack`
    #[arg(long = "context", value_name = "CONTEXT", value_delimiter = ',')]
    contexts: Vec<String>,
    #[command(flatten)]
    added: AddedChannels,
}

/// Channels beside the default one.
#[derive(Debug, Args)]
pub(crate) struct AddedChannels {
    /// One more channel, for the rules that name it by `--channel`, here or in `enable`: `flight`, or with any of
    /// `flight:policy=overwrite,ring-size=64K,packets=8,spares=16,max-rings=100,patience=50ms,contexts=thread+cpu`. May be given several
    /// times
    #[arg(long = "add-channel", value_name = "NAME[:KEY=VALUE,…]", value_parser = added)]
    added: Vec<Added>,
}

impl AddedChannels {
    /// Whether there is any.
    pub(crate) const fn any(&self) -> bool {
        !self.added.is_empty()
    }

    /// Adds them to a session, whose sinks are there already.
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        let usual = usual_policy(spec);
        spec.channels.extend(self.added.iter().map(|added| added.spec(usual)));
    }
}

/// The policy of a session's channels unless one is given.
const fn usual_policy(spec: &SessionSpec) -> &'static str {
    if spec.sinks.is_empty() { "overwrite" } else { "discard" }
}

impl ChannelArguments {
    /// Puts them into what is wanted of a session, whose sinks are there already.
    pub(crate) fn apply(&self, spec: &mut SessionSpec) {
        let usual = usual_policy(spec);
        let policy = match self.policy {
            Some(Policy::Discard) => "discard",
            Some(Policy::Overwrite) => "overwrite",
            Some(Policy::Wait) => "wait",
            None => usual,
        };
        policy.clone_into(&mut spec.channel.policy);
        spec.channel.ring_size = usize::try_from(self.ring_size).unwrap_or(usize::MAX);
        spec.channel.contexts.clone_from(&self.contexts);
        self.added.apply(spec);
    }
}

/// Which of the session's channels rules are for.
#[derive(Debug, Args)]
pub(crate) struct Route {
    /// The events of these rules go into this channel of the session [default: the default one, `channel0`]. What is left out by `!…` is
    /// left out of this one [default: of all]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
}

impl Route {
    /// The rules for this channel.
    pub(crate) fn of(&self, mut rules: Vec<Rule>) -> Vec<Rule> {
        for rule in &mut rules {
            rule.channel.clone_from(&self.channel);
        }
        rules
    }
}

/// A channel beside the default one; what is not said is as there, or usual.
#[derive(Clone, Debug)]
struct Added {
    spec: ChannelSpec,
    policy: Option<String>,
}

impl Added {
    fn spec(&self, usual: &str) -> ChannelSpec {
        let mut spec = self.spec.clone();
        spec.policy = self.policy.clone().unwrap_or_else(|| usual.to_owned());
        spec
    }
}

/// Reads `NAME` or `NAME:KEY=VALUE,…`. Whether such a channel can be is seen with the session.
fn added(text: &str) -> Result<Added, String> {
    let (name, keys) = text.split_once(':').unwrap_or((text, ""));
    let mut added = Added { spec: ChannelSpec::default().named(name), policy: None };
    let spec = &mut added.spec;
    for part in keys.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is no `KEY=VALUE`"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("`{key}` is a number, not `{value}`"));
        let told = |error: String| format!("`{key}`: {error}");
        match key {
            "policy" => added.policy = Some(value.to_owned()),
            "ring-size" => {
                spec.ring_size = usize::try_from(units::size(value).map_err(told)?).unwrap_or(usize::MAX);
            }
            "packets" => spec.packets = number()?,
            "spares" => spec.spares = number()?,
            "max-rings" => spec.max_rings = Some(number()?),
            "patience" => {
                let patience = units::duration(value).map_err(told)?;
                spec.patience_ms = Some(u32::try_from(patience.as_millis()).unwrap_or(u32::MAX));
            }
            "contexts" => spec.contexts = value.split('+').map(str::to_owned).collect(),
            _ => {
                return Err(format!(
                    "a channel has no `{key}`; there are policy, ring-size, packets, spares, max-rings, patience and contexts"
                ));
            }
        }
    }
    Ok(added)
}

/// A session's channels, a line for each.
pub(crate) fn describe(spec: &SessionSpec) -> impl Iterator<Item = String> {
    let several = !spec.channels.is_empty();
    spec.all_channels().map(move |channel| {
        let name = if several { format!("channel {}: ", channel.name) } else { String::new() };
        let with = if channel.contexts.is_empty() { "" } else { ", with " };
        let size = units::bytes(channel.ring_size as u64);
        format!("{name}rings of {size}, {}{with}{}", channel.policy, channel.contexts.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_read() -> Result<(), String> {
        assert_eq!(added("flight")?.spec("discard"), ChannelSpec::default().named("flight"));
        let all =
            "a:policy=wait,ring-size=64K,packets=4,spares=2,max-rings=9,patience=2s,contexts=thread+cpu".to_owned();
        let mut expected = ChannelSpec::default().named("a");
        (expected.ring_size, expected.packets, expected.spares) = (64 << 10, 4, 2);
        (expected.max_rings, expected.patience_ms) = (Some(9), Some(2000));
        expected.policy = "wait".to_owned();
        expected.contexts = vec!["thread".to_owned(), "cpu".to_owned()];
        assert_eq!(added(&all)?.spec("overwrite"), expected);
        for (wrong, part) in [
            ("a:size=1", "has no `size`; there are policy, ring-size"),
            ("a:packets", "`packets` is no `KEY=VALUE`"),
            ("a:packets=many", "`packets` is a number, not `many`"),
            ("a:ring-size=big", "`ring-size`: expected a size"),
            ("a:patience=long", "`patience`: expected a time"),
        ] {
            let error = added(wrong).expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
        Ok(())
    }
}
