//! Whether the description of a session can be.

use super::{BudgetSpec, ChannelSpec, DrainedBy, SessionSpec, SinkSpec, SpecError};

/// The most channels of a session: a process has room for 32, of all sessions.
const MAX_CHANNELS: usize = 16;

impl SessionSpec {
    /// Whether it can be: what is in it is known, and fits together.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        self.sinks.iter().try_for_each(SinkSpec::check)?;
        self.check_in_process()
    }

    /// The same for a session of this process, which may have sinks that are objects.
    pub(crate) fn check_in_process(&self) -> Result<(), SpecError> {
        self.sinks.iter().filter(|sink| !sink.is_object()).try_for_each(SinkSpec::check)?;
        self.check_numbers()?;
        self.check_names()?;
        self.drain.check(self)?;
        for channel in self.all_channels() {
            if self.drain == DrainedBy::Process && self.sinks.is_empty() && !channel.keeps_newest() {
                return Err(SpecError::NoSink { channel: channel.name.clone(), policy: channel.policy.clone() });
            }
            self.sinks.iter().try_for_each(|sink| sink.check_room(channel.packet_size()))?;
            channel.check()?;
        }
        self.budget.as_ref().map_or(Ok(()), BudgetSpec::check).map_err(SpecError::invalid)
    }

    /// Whether these sinks, of whoever drains it from outside, fit to the session's packets.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn check_sinks(&self, sinks: &[SinkSpec]) -> Result<(), SpecError> {
        sinks.iter().try_for_each(SinkSpec::check)?;
        for channel in self.all_channels() {
            sinks.iter().try_for_each(|sink| sink.check_room(channel.packet_size()))?;
        }
        check_all(sinks.iter().flat_map(SinkSpec::numbers))
    }

    /// Whether its channels can be told apart, and rules name those that there are.
    fn check_names(&self) -> Result<(), SpecError> {
        let names = self.channel_names();
        if names.len() > MAX_CHANNELS {
            return Err(SpecError::invalid(format!(
                "it has {} channels, and a session has {MAX_CHANNELS} at most; send more events into each",
                names.len()
            )));
        }
        if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            return Err(SpecError::invalid(format!(
                "two channels are called `{}`; give each of `[[channels]]` a `name` of its own, other than that of `[channel]`, which is \
                 `{}`",
                names[twice], names[0]
            )));
        }
        self.rules().flatten().try_for_each(|rule| rule.check_channel(&names)).map_err(SpecError::Rule)
    }

    /// Whether TOML, whose numbers have 63 bits, can hold all of them.
    fn check_numbers(&self) -> Result<(), SpecError> {
        let Self { limits, .. } = self;
        let ours = [
            ("generation", self.generation),
            ("rotations", self.rotations),
            ("memory_cap", limits.memory_cap),
            ("keep_dead", limits.keep_dead as u64),
            ("keep_dead_bytes", limits.keep_dead_bytes),
            ("max_events", limits.max_events.unwrap_or(0) as u64),
        ];
        let of_channels = self.all_channels().flat_map(ChannelSpec::numbers);
        let of_sinks = self.sinks.iter().flat_map(SinkSpec::numbers);
        check_all(ours.into_iter().chain(of_channels).chain(of_sinks))
    }
}

fn check_all<'a>(mut numbers: impl Iterator<Item = (&'a str, u64)>) -> Result<(), SpecError> {
    match numbers.find(|(_, number)| i64::try_from(*number).is_err()) {
        Some((key, number)) => {
            let most = i64::MAX;
            Err(SpecError::invalid(format!("`{key}` is {number}, and a session has no number beyond {most}")))
        }
        None => Ok(()),
    }
}
