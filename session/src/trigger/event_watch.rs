//! The condition `event`: an event that a rule matches.
//!
//! An aggregate, in addition to the session's channel, sees the event after its commit, so that a snapshot contains it. The rule's filter
//! is compiled for each event; the core tests a comparison of an integer field at its beginning before it calls the aggregate.

use super::capture::{Capture, CaptureSlots};
use super::error::WatchError;
use super::words::Word;
use crate::event::Program;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tracepoint_core::marker::{Aggregate, FieldView, Subscriber, Subscription};
use tracepoint_core::{Marker, clock};
use tracepoint_session_io::trigger::{Detail, Occurrence};
use tracepoint_session_spec::{Rule, TriggerCondition, filter};

/// The events that a rule matches.
#[derive(Debug)]
pub(super) struct EventWatch {
    captured: Arc<CaptureSlots>,
    markers: Vec<&'static Marker>,
    /// Empty once it is disabled.
    subscriptions: Mutex<Vec<Subscription>>,
}

/// One of these events, at its sites.
struct Watch {
    captured: Arc<CaptureSlots>,
    word: Word,
    event: u32,
    filter: Option<filter::Program>,
}

impl Aggregate for Watch {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        if self.filter.as_ref().is_none_or(|filter| filter.accepts(|index| event.get(index))) {
            self.captured.push(self.event, time, event);
            self.word.wake();
        }
    }
}

impl EventWatch {
    /// Enables the events of this program that the rule matches, whether or not the session records them. It is no error if none matches,
    /// but it is one if the rule's filter fits none of the events that the rest of the rule matches.
    pub(super) fn start(rule: &Rule, program: Program<'_>, word: Word) -> Result<Self, WatchError> {
        let captured = Arc::new(CaptureSlots::new());
        let (mut markers, mut subscribers, mut unfit) = (Vec::new(), Vec::new(), None);
        let is_for_this = rule.is_for(program.key, program.executable);
        let matches = |name: &str, level| is_for_this && rule.selects(name, level);
        for event in program.events.iter().filter(|event| matches(&event.declared(), event.level())) {
            // The markers of an event have the same fields.
            for marker in &event.markers {
                let filter = match rule.filter.as_ref().map(|filter| filter.compile(marker.fields())).transpose() {
                    Ok(filter) => filter,
                    Err(error) => {
                        unfit = Some(error.to_string());
                        continue;
                    }
                };
                let range = filter.as_ref().and_then(filter::Program::first_range);
                let watch = Watch { captured: Arc::clone(&captured), word, event: markers.len() as u32, filter };
                let subscriber = Subscriber::aggregate(Arc::new(watch));
                subscribers.push((*marker, range.map_or(subscriber.clone(), |range| subscriber.in_range(range))));
                markers.push(*marker);
            }
        }
        if let Some(reason) = unfit.filter(|_| markers.is_empty()) {
            return Err(WatchError::new(reason));
        }
        let subscriptions = Subscription::start_all(subscribers).map_err(WatchError::new)?;
        Ok(Self { captured, markers, subscriptions: Mutex::new(subscriptions) })
    }

    /// Returns the number of events that it watches.
    pub(super) fn len(&self) -> usize {
        self.markers.len()
    }

    /// Disables the events; returns when no thread is processing one of them.
    pub(super) fn switch_off(&self) {
        let subscriptions = std::mem::take(&mut *self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner));
        Subscription::end_all(subscriptions);
    }

    pub(super) fn is_pending(&self) -> bool {
        self.captured.is_pending()
    }

    /// Returns the events that have matched since the last call.
    pub(super) fn take(&self, when: &TriggerCondition) -> Vec<Occurrence> {
        let (captures, missed) = self.captured.take();
        let mut occurrences: Vec<_> = captures.iter().filter_map(|capture| self.occurrence(when, capture)).collect();
        match occurrences.last_mut() {
            Some(last) => last.skipped = missed,
            None if missed > 0 => {
                let mut occurrence = Occurrence::new(when, process::id(), SystemTime::now());
                occurrence.skipped = missed - 1;
                occurrences.push(occurrence);
            }
            None => {}
        }
        occurrences
    }

    fn occurrence(&self, when: &TriggerCondition, capture: &Capture) -> Option<Occurrence> {
        let marker = self.markers.get(capture.event as usize)?;
        let age = Duration::from_nanos(clock::now().saturating_sub(capture.time));
        let now = SystemTime::now();
        let mut occurrence = Occurrence::new(when, process::id(), now.checked_sub(age).unwrap_or(now));
        occurrence.add("trigger_event", Detail::Text(marker.full_name()));
        for (name, detail) in capture.entries(marker.descriptor()) {
            occurrence.add(name, detail);
        }
        Some(occurrence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::all_events;
    use std::path::Path;
    use tracepoint_reader::process::ProcessKey;

    tracepoint_core::define_trace! {
        provider = "event_watch";
        paid(n: i64, by: &str, rate: f64, bytes: &[u8], path: &Path) {
            n: i64 = n, by: str = by, ok: bool = n > 0, rate: f64 = rate, bytes: [u8] = bytes, path: path = path,
        }
        other(n: i64) { n: i64 = n }
    }

    fn watch(rule: &Rule) -> Result<EventWatch, WatchError> {
        let events = all_events(tracepoint_core::markers(), &mut Vec::new());
        let program = Program { key: ProcessKey::of_this_process(), executable: "/bin/shop", events: &events };
        EventWatch::start(rule, program, Word::take().expect("a word"))
    }

    fn entries(occurrence: &Occurrence) -> Vec<(&str, &Detail)> {
        let fields = occurrence.entries.iter().filter(|(name, _)| name.starts_with("field_"));
        fields.map(|(name, detail)| (name.as_str(), detail)).collect()
    }

    fn pay(n: i64, by: &str) {
        tracepoint_core::trace!(paid(n, by, -0.5, b"xyz", Path::new("/a/b")));
    }

    #[test]
    fn fields_are_captured_in_their_order() -> Result<(), WatchError> {
        let when = TriggerCondition::Event(Rule::new("event_watch:paid").filter("n != 7"));
        let TriggerCondition::Event(rule) = &when else { return Err(WatchError::new("no rule")) };
        let watch = watch(rule)?;
        let text = "é".repeat(100);
        for (n, by) in [(-3, "card"), (7, "not"), (i64::MAX, &text), (7, "not"), (1, "")] {
            pay(n, by);
        }
        let taken = watch.take(&when);
        assert!(!watch.is_pending() && watch.take(&when).is_empty());
        let number = |number: u64| Detail::Number(number);
        let text = |text: &str| Detail::Text(text.to_owned());
        let cut = text(&"é".repeat(64));
        let expected = [
            [text("-3"), text("card"), number(0), text("-0.5"), text("/a/b")],
            [number(i64::MAX as u64), cut, number(1), text("-0.5"), text("/a/b")],
            [number(1), text(""), number(1), text("-0.5"), text("/a/b")],
        ];
        assert_eq!(taken.len(), expected.len());
        for (taken, expected) in taken.iter().zip(&expected) {
            let names = ["field_n", "field_by", "field_ok", "field_rate", "field_path"];
            assert_eq!(entries(taken), names.into_iter().zip(expected).collect::<Vec<_>>());
            assert_eq!(taken.skipped, 0);
        }
        watch.switch_off();
        pay(8, "off");
        assert!(!watch.is_pending());
        Ok(())
    }

    #[test]
    fn events_without_a_slot_are_counted() -> Result<(), WatchError> {
        let when = TriggerCondition::Event(Rule::new("event_watch:o*"));
        let TriggerCondition::Event(rule) = &when else { return Err(WatchError::new("no rule")) };
        let watch = watch(rule)?;
        (0..20).for_each(|n| tracepoint_core::trace!(other(n)));
        let taken = watch.take(&when);
        assert_eq!(taken.len() as u64 + taken.iter().map(|occurrence| occurrence.skipped).sum::<u64>(), 20);
        assert_eq!((taken.len(), taken[0].skipped, taken[7].skipped), (8, 0, 12));
        tracepoint_core::trace!(other(20));
        assert_eq!(watch.take(&when).len(), 1, "the slots are free again");
        Ok(())
    }

    #[test]
    fn a_rule_may_match_nothing_but_its_filter_must_fit_something() -> Result<(), WatchError> {
        assert_eq!(watch(&Rule::new("event_watch:none"))?.len(), 0);
        assert_eq!(watch(&Rule::new("event_watch:*").exe("other"))?.len(), 0);
        assert_eq!(watch(&Rule::new("event_watch:*").filter("by == \"card\""))?.len(), 1);
        let error = watch(&Rule::new("event_watch:*").filter("price > 1")).expect_err("there is no such field");
        assert!(error.to_string().contains("no field is called `price`"), "{error}");
        Ok(())
    }
}
