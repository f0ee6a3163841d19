//! Samples of the processor (`tracectl record --samples`): the functions that threads ran.

use std::collections::{BTreeMap, HashMap};

use tracepoint_reader::metadata::Module;
use tracepoint_reader::{Event, Item, Value};

use crate::symbols::SymbolTable;

/// The event of a sample, with its call stack in a field of this name; and of code that is mapped from then on.
pub(crate) const SAMPLE: &str = "perf:sample";
const CALL_STACK: &str = "callstack";
pub(crate) const MAPPING: &str = "perf:mmap";
/// Maximum number of mappings of a process. Older ones are forgotten.
const MAX_MAPPINGS: usize = 4096;
/// Maximum number of different call stacks. Further ones are counted together.
const MAX_STACKS: usize = 1 << 17;

/// Returns the addresses of a sample, from the innermost one; `None` for another event.
pub(crate) fn stack(event: &Event) -> Option<Vec<u64>> {
    match field(event, CALL_STACK).filter(|_| event.name() == SAMPLE)? {
        Value::Array(addresses) => addresses.iter().map(Value::as_u64).collect(),
        _ => None,
    }
}

/// Returns whether an item is about code that is mapped in a process. Later samples need it for the names of functions.
pub fn maps_code(item: &Item) -> bool {
    matches!(item, Item::Event(event) if event.name() == MAPPING)
}

fn field<'e>(event: &'e Event, name: &str) -> Option<&'e Value> {
    event.fields.as_ref()?.get(name)
}

/// Returns the code in an event about a mapping; `None` for another event.
fn mapping(event: &Event) -> Option<Module> {
    let number = |name| field(event, name).and_then(Value::as_u64);
    let text = |name| Some(String::from_utf8_lossy(field(event, name)?.as_bytes()?).into_owned());
    let start = number("address").filter(|_| event.name() == MAPPING)?;
    let build_id = text("build_id").filter(|id| !id.is_empty());
    Some(Module::new(start..start.saturating_add(number("length")?), number("offset")?, build_id, text("path")?.into()))
}

/// The code of sampled processes, by their indices in [`Sources`](crate::sources::Sources).
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The newest mapping first.
    mapped: HashMap<u32, Vec<Module>>,
    symbols: SymbolTable,
}

impl Code {
    fn map(&mut self, process: u32, module: Module) {
        let mapped = self.mapped.entry(process).or_default();
        if !mapped.contains(&module) {
            mapped.insert(0, module);
            mapped.truncate(MAX_MAPPINGS);
        }
    }

    /// Notes the code in an event about a mapping. Returns whether it is one.
    pub(crate) fn note(&mut self, event: &Event, process: u32) -> bool {
        let module = mapping(event);
        module.map(|module| self.map(process, module)).is_some()
    }

    /// Returns the functions of a call stack, outermost first. Those in the kernel are one frame, and those outside of known files another one.
    pub(crate) fn functions(&mut self, process: u32, stack: &[u64]) -> Vec<String> {
        let mapped = self.mapped.get(&process).map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for (depth, address) in stack.iter().enumerate().rev() {
            // A return address is the address after the call, which may already belong to the next function.
            let address = if depth == 0 { *address } else { address.saturating_sub(1) };
            let is_known = mapped.iter().any(|module| module.place(address).is_some());
            let one = match address.cast_signed() {
                ..0 => "[kernel]",
                _ if !is_known => "[unknown]",
                _ => {
                    names.extend_from_slice(self.symbols.functions(mapped, address));
                    continue;
                }
            };
            if names.last().is_none_or(|last| last != one) {
                names.push(one.to_owned());
            }
        }
        names
    }
}

/// The number of samples of each call stack.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    code: Code,
    /// By process, and addresses from the innermost to the outermost.
    stacks: HashMap<(u32, Vec<u64>), u64>,
    /// By process, and functions from the outermost to the innermost.
    folded: BTreeMap<(u32, Vec<String>), u64>,
    /// Samples with further stacks.
    more: u64,
}

impl Samples {
    /// Notes an event, if it is a mapping or, where `is_selected`, a sample.
    pub(crate) fn add(&mut self, event: &Event, process: u32, is_selected: bool) {
        if let Some(module) = mapping(event) {
            let mapped = self.code.mapped.get(&process).into_iter().flatten();
            // Samples before are of the code that was there before.
            if mapped.into_iter().any(|known| known.is_replaced_by(&module)) {
                self.fold();
            }
            self.code.map(process, module);
        } else if let Some(stack) = stack(event).filter(|_| is_selected) {
            let key = (process, stack);
            if let Some(count) = self.stacks.get_mut(&key) {
                *count += 1;
            } else if self.stacks.len() < MAX_STACKS {
                self.stacks.insert(key, 1);
            } else {
                self.more += 1;
            }
        }
    }

    fn fold(&mut self) {
        for ((process, stack), count) in self.stacks.drain() {
            *self.folded.entry((process, self.code.functions(process, &stack))).or_default() += count;
        }
    }

    /// Returns the stacks of functions by process, with the number of their samples; and the number of samples with further stacks.
    pub(crate) fn folded(&mut self) -> (&BTreeMap<(u32, Vec<String>), u64>, u64) {
        self.fold();
        (&self.folded, self.more)
    }
}
