//! Which events of this process a session records, and through which gates.

use super::context::Context;
use crate::ack::RuleAck;
use crate::gate::{self, Door, Way};
use crate::limit::Bucket;
use crate::session::{Notice, PlannedEvent};
use crate::spec::{Compiled, RuleEntry, RuleError, SessionSpec, select_with};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the rules of a session choose here.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) events: Vec<PlannedEvent>,
    /// For each rule what became of it.
    pub(super) rules: Vec<Option<RuleAck>>,
    pub(super) notices: Vec<String>,
}

/// The buckets of a session's limits, by their rules' text: a rule that stays keeps its bucket, whatever happens to the others.
#[derive(Debug, Default)]
pub(super) struct Buckets(BTreeMap<String, Arc<Bucket>>);

impl Buckets {
    /// Asks the rules about the events of the process.
    pub(super) fn choose(&mut self, spec: &SessionSpec, context: &Context) -> Chosen {
        let mut kept = BTreeMap::new();
        let channels = spec.all_channels().count();
        // For each channel, and in it for each event.
        let mut ways: Vec<Vec<Vec<Way>>> =
            (0..channels).map(|_| context.events.iter().map(|_| Vec::new()).collect()).collect();
        let mut misfits = vec![vec![None; context.events.len()]; channels];
        let take = |entry: &RuleEntry, rule: &Compiled, channel: usize, matched: Vec<usize>| {
            let (ways, misfits) = (&mut ways[channel], &mut misfits[channel]);
            let bucket = self.of(entry, rule).transpose()?;
            kept.extend(bucket.iter().map(|bucket| (entry.table.clone(), Arc::clone(bucket))));
            let mut door = Door::new(rule.filter.clone(), bucket);
            let (mut taken, mut others) = (Vec::new(), Vec::new());
            for index in matched {
                match door.way(&context.events[index]) {
                    Ok(way) => {
                        way.add_to(&mut ways[index]);
                        taken.push(index);
                    }
                    Err(error) => others.push((index, error.reason().to_owned())),
                }
            }
            if let Some(error) = door.misfit() {
                return Err(format!("the filter cannot be used: {error}"));
            }
            for (index, reason) in others {
                misfits[index] = Some(reason);
            }
            Ok(taken)
        };
        let selected = select_with(spec, context.key(), &context.info.executable, &context.candidates, take);
        self.0 = kept;
        let (mut events, mut notices) = (Vec::new(), Vec::new());
        for (class, (channel, ways)) in (0..).zip(ways.into_iter().enumerate()) {
            for (index, (event, ways)) in context.events.iter().zip(ways).enumerate() {
                if selected.chosen[channel][index] {
                    events.push(PlannedEvent { gate: gate::gate(ways), channel: class, ..event.clone() });
                } else if let Some(reason) =
                    misfits[channel][index].take().filter(|_| !selected.left_out[channel][index])
                {
                    notices.push(Notice::FilterDoesNotFit { event: event.name.clone(), reason }.to_string());
                }
            }
        }
        let told = |rule: Result<usize, RuleError>| {
            rule.map_or_else(|error| RuleAck::Unsupported(error.reason), RuleAck::Events)
        };
        Chosen { events, rules: selected.rules.into_iter().map(|rule| rule.map(told)).collect(), notices }
    }

    /// The rule's bucket: the one that it has had, or a full one. `None`: it has no limit.
    fn of(&self, entry: &RuleEntry, rule: &Compiled) -> Option<Result<Arc<Bucket>, String>> {
        let limit = rule.limit?;
        let known = self.0.get(&entry.table).cloned();
        Some(known.map_or_else(|| gate::bucket(limit).map_err(|error| error.to_string()), Ok))
    }
}
