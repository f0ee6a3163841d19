//! Table names of events: the event's name, with a number if events of the same name have different columns.
//!
//! A store numbers them in the order of arrival. A trace must have the same names as a store that contains only this trace, so the order is
//! determined from its packets if a name has several versions. Most traces have no such names, and no packets are read.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracepoint_reader::metadata::{EventClass, StreamClass};
use tracepoint_reader::{Damage, EventView, Loss, Packet, Stream, Trace, TraceVisitor};

use crate::accounts::declared_by_accounts;
use crate::layout::Layout;
use crate::names::base;

/// The events that share a name but have different columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// The columns of each version, by unnumbered name. Only names with several versions are present.
    versions: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// Determines the table names of a trace. If a name has several versions, reads packets until all versions have occurred.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut declared: BTreeMap<String, HashSet<String>> = BTreeMap::new();
        for class in trace.metadata().flat_map(|(_, metadata)| metadata.streams()) {
            for event in class.events.values() {
                let columns = Layout::of(event, class).description();
                declared.entry(base(&event.name).to_owned()).or_default().insert(columns);
            }
        }
        declared.retain(|_, versions| versions.len() > 1);
        if declared.is_empty() {
            return Self::default();
        }
        let unseen = declared.values().map(HashSet::len).sum();
        let mut order = Order { names: Self::default(), declared: &declared, unseen, known: HashSet::new() };
        trace.visit_packets(&mut order, &mut |_, _| {});
        for (event, class) in declared_by_accounts(trace) {
            order.add(&event, &class);
        }
        let mut names = order.names;
        for (name, versions) in declared {
            let known = names.versions.entry(name).or_default();
            let mut rest: Vec<_> = versions.into_iter().filter(|columns| !known.contains(columns)).collect();
            rest.sort();
            known.extend(rest);
        }
        names
    }

    /// The table name of an event with these columns.
    pub fn name(&self, event: &str, layout: &Layout) -> String {
        let base = base(event);
        let versions = self.versions.get(base);
        let number = versions.map(|versions| {
            let columns = layout.description();
            // A version added to the trace since it was opened.
            versions.iter().position(|known| *known == columns).unwrap_or(versions.len())
        });
        match number {
            None | Some(0) => base.to_owned(),
            Some(number) => format!("{base}#{}", number + 1),
        }
    }
}

/// Determines the order in which versions occur.
struct Order<'a> {
    names: Names,
    declared: &'a BTreeMap<String, HashSet<String>>,
    unseen: usize,
    /// By the addresses of the event's and the stream's class.
    known: HashSet<(usize, usize)>,
}

impl Order<'_> {
    fn add(&mut self, event: &Arc<EventClass>, class: &Arc<StreamClass>) {
        if !self.known.insert((Arc::as_ptr(event) as usize, Arc::as_ptr(class) as usize)) {
            return;
        }
        let base = base(&event.name);
        if self.declared.contains_key(base) {
            let versions = self.names.versions.entry(base.to_owned()).or_default();
            let columns = Layout::of(event, class).description();
            if !versions.contains(&columns) {
                versions.push(columns);
                self.unseen = self.unseen.saturating_sub(1);
            }
        }
    }
}

impl TraceVisitor for Order<'_> {
    fn loss(&mut self, _: &Loss) {}

    fn packet(&mut self, _: &Arc<Stream>, _: &Packet) -> ControlFlow<()> {
        if self.unseen == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn event(&mut self, event: &EventView<'_>) {
        self.add(event.class(), &event.stream().class);
    }

    fn damage(&mut self, _: &Damage) {}
}
