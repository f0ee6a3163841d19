//! The tracer's own counts of traces, in sum over all their accounts.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tracepoint_reader::account::Account;
use tracepoint_reader::{ReadError, Trace};

/// Maximum number of loss reasons that are listed by name.
const REASONS: usize = 100;
/// The name under which all further reasons are summed.
const FURTHER: &str = "others";

/// Counts of fired events by outcome.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) fired: u64,
    /// Committed to a ring; some may have been lost after that.
    pub(crate) recorded: u64,
    pub(crate) filtered: u64,
    pub(crate) suppressed: u64,
    /// By reason, whether lost before or after the ring.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Traces whose account is missing or not final.
    pub(crate) incomplete: u64,
    /// The part of `lost` that had been recorded.
    #[serde(skip)]
    lost_behind_rings: u64,
    /// Recorded events in chunks that were removed when newer ones were written.
    #[serde(skip)]
    pub(crate) removed: u64,
}

impl Counts {
    /// The sum over traces; `None` if no account says how many events fired.
    ///
    /// # Errors
    ///
    /// If an account cannot be read.
    pub(crate) fn of(trace: &Trace) -> Result<Option<Self>, ReadError> {
        let (mut sum, mut found) = (Self::default(), false);
        for path in trace.metadata().map(|(path, _)| path) {
            if trace.dt_files().all(|dt| dt.path() != path) {
                found |= sum.add_found(Account::open(path))?;
            }
        }
        for dt in trace.dt_files() {
            match dt.account()? {
                Some(account) => found |= sum.add(&account),
                None => sum.incomplete += 1,
            }
        }
        Ok(found.then_some(sum))
    }

    fn add_found(&mut self, account: Result<Account, ReadError>) -> Result<bool, ReadError> {
        match account {
            Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                self.incomplete += 1;
                Ok(false)
            }
            account => Ok(self.add(&account?)),
        }
    }

    /// Adds an account. Of a trace in chunks, the account of the last chunk covers all of them.
    fn add(&mut self, account: &Account) -> bool {
        if account.chunk.as_ref().is_some_and(|chunk| !chunk.last) {
            return false;
        }
        self.incomplete += u64::from(!account.complete && !account.snapshot);
        let removed = account.chunk.as_ref().map_or(0, |chunk| chunk.removed.events);
        self.removed = self.removed.saturating_add(removed);
        for channel in &account.channels {
            for event in &channel.events {
                self.fired = self.fired.saturating_add(event.fired);
                self.recorded = self.recorded.saturating_add(event.recorded);
                self.filtered = self.filtered.saturating_add(event.filtered);
                self.suppressed = self.suppressed.saturating_add(event.suppressed);
                event.lost.iter().for_each(|(reason, count)| self.lose(reason, *count));
            }
            for stream in &channel.streams {
                let named = stream.sink_lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
                stream.sink_lost.iter().for_each(|(reason, count)| self.lose(reason, *count));
                self.lose("overwritten", stream.overwritten);
                self.lose("sink", stream.sink.saturating_sub(named));
                let lost = stream.overwritten.saturating_add(stream.sink);
                self.lost_behind_rings = self.lost_behind_rings.saturating_add(lost);
            }
        }
        true
    }

    fn lose(&mut self, reason: &str, count: u64) {
        if count > 0 {
            let reason = if self.lost.len() < REASONS { reason } else { FURTHER };
            let lost = self.lost.entry(reason.to_owned()).or_default();
            *lost = lost.saturating_add(count);
        }
    }

    /// All counts in one sentence: `371 fired = 53 recorded + 318 filtered; nothing lost`. Events lost after the ring do not count as recorded here.
    pub(crate) fn sentence(&self) -> String {
        let lost = self.lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let recorded = self.recorded.saturating_sub(self.lost_behind_rings);
        let parts = [(self.filtered, "filtered"), (self.suppressed, "suppressed"), (lost, "lost")];
        let sum = parts.iter().fold(recorded, |sum, (count, _)| sum.saturating_add(*count));
        let mut text =
            format!("{} fired {} {recorded} recorded", self.fired, if sum == self.fired { "=" } else { "≠" });
        for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, " + {count} {what}");
        }
        if lost == 0 {
            text.push_str("; nothing lost");
        } else {
            let reasons: Vec<_> = self.lost.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let _ = write!(text, " ({})", reasons.join(", "));
        }
        if self.removed > 0 {
            let _ = write!(text, "; {} recorded ones were in chunks that newer ones have replaced", self.removed);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn account(event: &Value, stream: &Value) -> Account {
        let mut channel =
            json!({ "id": 0, "name": "channel0", "policy": "overwrite", "events": [event], "streams": [stream] });
        let defaults = [
            (
                "events",
                json!({ "id": 0, "name": "e", "fired": 0, "recorded": 0, "filtered": 0, "suppressed": 0, "lost": {} }),
            ),
            (
                "streams",
                json!({ "instance": 0, "file": "", "recorded": 0, "packets": 0, "written": 0, "overwritten": 0, "sink": 0, "discarded": 0 }),
            ),
        ];
        for (part, default) in defaults {
            let given = channel[part][0].take();
            channel[part][0] = default;
            channel[part][0].as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        }
        let mut whole: Value = serde_json::from_slice(&Account::new([0; 16], "s", 1).to_json()).unwrap();
        whole["channels"] = json!([channel]);
        whole["complete"] = true.into();
        Account::parse(whole.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn one_sentence_has_all_events() {
        let mut counts = Counts::default();
        assert!(counts.add(&account(&json!({ "fired": 371, "recorded": 53, "filtered": 318 }), &json!({}))));
        assert_eq!(counts.sentence(), "371 fired = 53 recorded + 318 filtered; nothing lost");

        // Another trace, with losses before, in and after its ring.
        let event = json!({ "fired": 100, "recorded": 90, "suppressed": 8, "lost": { "ring_full": 2 } });
        let stream = json!({ "overwritten": 10, "sink": 6, "sink_lost": { "network": 5 } });
        counts.add(&account(&event, &stream));
        let expected = "471 fired = 127 recorded + 318 filtered + 8 suppressed + 18 lost \
                        (5 network, 10 overwritten, 2 ring_full, 1 sink)";
        assert_eq!(counts.sentence(), expected);

        let mut counts = Counts::default();
        counts.add(&account(&json!({ "fired": 3, "recorded": 4 }), &json!({})));
        assert_eq!(counts.sentence(), "3 fired ≠ 4 recorded; nothing lost");
    }
}
