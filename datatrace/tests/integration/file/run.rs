//! Sequences of calls, and a writer to run them on.

use crate::file::memory::Memory;
use crate::file::model::Operation;
use datatrace::{DtWriter, Error, Layout, Version};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) version: Version,
    pub(crate) logsize: u32,
    pub(crate) filesize: u32,
    pub(crate) full_size: bool,
    pub(crate) operations: Vec<Operation>,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let operation = prop_oneof![
        12 => vec(any::<u8>(), 0..30).prop_map(Operation::Trace),
        3 => any::<bool>().prop_map(Operation::Flush),
        1 => Just(Operation::EndSlot),
        1 => vec(any::<u8>(), 0..40).prop_map(Operation::Append),
        1 => vec(any::<u8>(), 0..40).prop_map(Operation::Insert),
    ];
    let layout = prop_oneof![
        (1u32..40).prop_map(|logsize| (Version::ByteStream, logsize, false)),
        (3u32..10, any::<bool>()).prop_map(|(words, full_size)| (Version::Framed, 4 * words, full_size)),
    ];
    (layout, 1u32..5, vec(operation, 0..40)).prop_map(|((version, logsize, full_size), filesize, operations)| Case {
        version,
        logsize,
        filesize,
        full_size,
        operations,
    })
}

pub(crate) fn writer(case: &Case) -> (DtWriter<Memory>, Memory) {
    let file = Memory::default();
    let layout = Layout::new(case.logsize, case.filesize).version(case.version);
    let layout = if case.full_size { layout.full_size() } else { layout };
    (DtWriter::create(file.clone(), layout).unwrap(), file)
}

pub(crate) fn run(writer: &mut DtWriter<Memory>, operation: &Operation) -> Result<(), Error> {
    match operation {
        Operation::Trace(entry) => writer.trace_buf(entry),
        Operation::Flush(postambles) => writer.flush(*postambles),
        Operation::EndSlot => writer.end_slot(),
        Operation::Append(postamble) => {
            writer.append_postamble(postamble.as_slice());
            Ok(())
        }
        Operation::Insert(postamble) => {
            writer.insert_postamble(postamble.as_slice());
            Ok(())
        }
    }
}
