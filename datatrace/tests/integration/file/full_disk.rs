//! A disk that is full at any byte, and has room again later: an entry is accepted or refused completely, and no accepted entry is lost.

use crate::file::independent;
use crate::file::model::{Model, Operation};
use crate::file::run::{case, run, writer};
use datatrace::{DtWriter, Error, Layout};
use proptest::prelude::*;

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn accepted_entries_survive_a_full_disk(case in case(), room in 0usize..120, frees in 0usize..40) {
        let (mut writer, file) = writer(&case);
        file.0.borrow_mut().room = Some(room);
        let mut model = Model::new(case.version, case.logsize as usize, case.filesize as usize, case.full_size);
        for (number, operation) in case.operations.iter().enumerate() {
            if number == frees {
                file.0.borrow_mut().room = None;
            }
            let mut next = model.clone();
            let accepted = next.run(operation);
            match run(&mut writer, operation) {
                Ok(()) => {
                    prop_assert!(accepted);
                    model = next;
                }
                Err(Error::Io { .. }) => {
                    prop_assert!(accepted && file.0.borrow().room.is_some());
                    // The file has the complete result of the operation, or is unchanged.
                    let buffered = writer.buffered();
                    prop_assert!(buffered == model.buffer.len() || buffered == next.buffer.len());
                    if matches!(operation, Operation::Trace(_)) && writer.header().last().is_some() {
                        // A framed buffer may have been ended before the entry was refused.
                        if buffered == 0 && !model.buffer.is_empty() {
                            model.finished.push(std::mem::take(&mut model.buffer));
                            model.flushed = 0;
                        }
                    }
                }
                Err(_) => prop_assert!(!accepted),
            }
            let decoded = independent::decode(&file.0.borrow().bytes);
            prop_assert_eq!(&decoded.torn, &Vec::<usize>::new());
        }
        file.0.borrow_mut().room = None;
        writer.flush(true).unwrap();
        model.run(&Operation::Flush(true));
        let (decoded, expected) = (independent::decode(&file.0.borrow().bytes), model.decoded());
        prop_assert_eq!(decoded.slots, expected.slots);
    }
}

#[test]
fn a_file_that_cannot_be_created_is_an_error() {
    let file = crate::file::memory::Memory::default();
    file.0.borrow_mut().room = Some(19);
    let error = DtWriter::create(file, Layout::new(100, 3)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory: cannot write the header: no storage space; make room, or name another directory"
    );
}
