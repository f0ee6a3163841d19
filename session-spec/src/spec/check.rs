//! Checks of a session's description.

use super::{BudgetSpec, ChannelSpec, DrainedBy, Rule, SessionSpec, SinkSpec, SpecError, State};

/// Maximum number of channels of a session; all sessions of a process have at most 32.
const MAX_CHANNELS: usize = 16;

/// The ages at which packets may be closed, in ms.
const FLUSH_AGES: std::ops::RangeInclusive<u64> = 10..=500;

impl SessionSpec {
    /// Checks the description: all parts must be known and consistent.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn check(&self) -> Result<(), SpecError> {
        self.sinks.iter().try_for_each(SinkSpec::check)?;
        self.check_in_process()
    }

    /// Like [`check`](Self::check), for a session of this process, whose sinks may be objects.
    #[doc(hidden)]
    pub fn check_in_process(&self) -> Result<(), SpecError> {
        self.sinks.iter().filter(|sink| !sink.is_object()).try_for_each(SinkSpec::check)?;
        self.check_numbers()?;
        check_one_cap(&self.sinks)?;
        if let Some(age) = self.flush_ms.filter(|age| !FLUSH_AGES.contains(age)) {
            return Err(SpecError::invalid(format!("`flush_ms` is {age}; it must be from 10 to 500")));
        }
        self.check_names()?;
        self.check_triggers()?;
        self.drain.check(self)?;
        for channel in self.all_channels() {
            let has_rule = self.rules.is_empty() || self.rules().any(|rule| rule.map_or(true, Rule::records));
            let is_used = has_rule && self.state != State::Destroyed;
            if is_used && self.drain == DrainedBy::Process && self.sinks.is_empty() && !channel.keeps_newest() {
                return Err(SpecError::NoSink { channel: channel.name.clone(), policy: channel.policy.clone() });
            }
            self.sinks.iter().try_for_each(|sink| sink.check_room(channel.packet_size()))?;
            channel.check()?;
        }
        self.budget.as_ref().map_or(Ok(()), BudgetSpec::check)
    }

    /// Checks that the sinks of a remote consumer fit the session's packets.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn check_sinks(&self, sinks: &[SinkSpec]) -> Result<(), SpecError> {
        sinks.iter().try_for_each(SinkSpec::check)?;
        check_one_cap(sinks)?;
        for channel in self.all_channels() {
            sinks.iter().try_for_each(|sink| sink.check_room(channel.packet_size()))?;
        }
        check_all(sinks.iter().flat_map(SinkSpec::numbers))
    }

    /// Checks that the streams of the session can send its packets at this cap of the run directory, in bytes per second.
    #[doc(hidden)]
    pub fn check_bandwidth(&self, name: &str, rate: u64) -> Result<(), SpecError> {
        // The sinks of a recorder are not in the description. The description has the age at which packets are closed for a stream.
        let is_streamed_by_recorder = self.drain == DrainedBy::Recorder && self.flush_ms.is_some();
        let is_streamed = is_streamed_by_recorder || self.sinks.iter().any(|sink| sink.stream_settings().is_some());
        let largest = self.all_channels().map(ChannelSpec::packet_size).max().unwrap_or_default() as u64;
        let least = largest.div_ceil(10);
        if !is_streamed || rate >= least {
            return Ok(());
        }
        Err(SpecError::invalid(format!(
            "the session `{name}` streams packets of {largest} bytes, each of which would take more than 10 s at a cap of the run directory of \
             {rate} bytes per second; give at least {least} to `tracectl bandwidth`, or use smaller rings"
        )))
    }

    /// Checks that channel names are unique, and that rules name existing channels.
    fn check_names(&self) -> Result<(), SpecError> {
        let names = self.channel_names();
        if names.len() > MAX_CHANNELS {
            return Err(SpecError::invalid(format!(
                "the session has {} channels, and may have at most {MAX_CHANNELS}; use fewer channels for more events each",
                names.len()
            )));
        }
        if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            return Err(SpecError::invalid(format!(
                "two channels are called `{}`; give each entry of `[[channels]]` a `name` of its own, different from that of `[channel]`, \
                 which is `{}`",
                names[twice], names[0]
            )));
        }
        self.rules().flatten().try_for_each(|rule| rule.check_channel(&names)).map_err(SpecError::Rule)
    }

    /// Checks that all numbers fit into TOML's 63 bits.
    fn check_numbers(&self) -> Result<(), SpecError> {
        let Self { limits, .. } = self;
        let ours = [
            ("generation", self.generation),
            ("rotations", self.rotations),
            ("memory", limits.memory),
            ("memory_cap", limits.memory_cap.unwrap_or(0)),
            ("keep_dead", limits.keep_dead as u64),
            ("keep_dead_bytes", limits.keep_dead_bytes),
            ("max_events", limits.max_events.unwrap_or(0) as u64),
        ];
        let of_channels = self.all_channels().flat_map(ChannelSpec::numbers);
        let of_sinks = self.sinks.iter().flat_map(SinkSpec::numbers);
        check_all(ours.into_iter().chain(of_channels).chain(of_sinks))
    }
}

/// Checks that all streams have the same cap; it applies to the session.
fn check_one_cap(sinks: &[SinkSpec]) -> Result<(), SpecError> {
    let mut caps = sinks.iter().filter_map(|sink| Some(sink.stream_settings()?.max_bandwidth));
    match caps.next() {
        Some(first) if caps.any(|cap| cap != first) => Err(SpecError::invalid(
            "the streams of a session share its cap on the bandwidth; give each of them the same `max_bandwidth`",
        )),
        _ => Ok(()),
    }
}

fn check_all<'a>(mut numbers: impl Iterator<Item = (&'a str, u64)>) -> Result<(), SpecError> {
    match numbers.find(|(_, number)| i64::try_from(*number).is_err()) {
        Some((key, number)) => {
            let most = i64::MAX;
            Err(SpecError::invalid(format!("`{key}` is {number}; the maximum is {most}")))
        }
        None => Ok(()),
    }
}
