//! After each write, a file on disk has the same contents as a file in memory, whichever way its header is written.

use crate::file::memory::Write;
use crate::file::run::{case, run, writer};
use datatrace::{FileStorage, Storage};
use proptest::prelude::*;
use std::fs;

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn the_file_equals_the_model_in_memory(case in case(), mapped: bool) {
        let (mut writer, file) = writer(&case);
        for operation in &case.operations {
            let _ = run(&mut writer, operation);
        }
        drop(writer);
        let place = tempfile::tempdir().unwrap();
        let storage = FileStorage::begin(&place.path().join("x.dt")).unwrap();
        let mut storage = if mapped { storage.map_header() } else { storage };
        let path = fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
        let mut expected = Vec::new();
        for write in &file.0.borrow().writes {
            match write {
                Write::Bytes(offset, bytes) => storage.write_at(*offset, bytes).unwrap(),
                Write::Length(length) => storage.set_length(*length).unwrap(),
            }
            write.apply(&mut expected);
            prop_assert_eq!(&fs::read(&path).unwrap(), &expected);
        }
    }
}
