//! A kill between any two writes, or within one: the slots counted by the header are intact, and no torn slot is returned as intact.

use crate::file::independent;
use crate::file::memory::Write;
use crate::file::model::{Model, Operation};
use crate::file::round_trip;
use crate::file::run::{Case, case, run, writer};
use datatrace::Version;
use proptest::prelude::*;

/// The states that a kill can leave: every prefix of the writes; and for each write longer than a header, any number of its words (of its
/// bytes in a byte stream).
fn states(writes: &[Write], word: usize, mut judge: impl FnMut(&[u8])) {
    let mut file = Vec::new();
    for write in writes {
        if let Write::Bytes(offset @ 1.., bytes) = write {
            for cut in (word..bytes.len()).step_by(word) {
                let mut torn = file.clone();
                Write::Bytes(*offset, bytes[..cut].to_vec()).apply(&mut torn);
                judge(&torn);
            }
        }
        write.apply(&mut file);
        judge(&file);
    }
}

/// Follows the headers of a file, and checks the covered slots against the history of the model.
struct Promise {
    history: Vec<Vec<u8>>,
    frame: usize,
    postambles: Vec<u8>,
    /// Number of slots begun.
    begun: usize,
    header: [i32; 5],
}

impl Promise {
    fn judge(&mut self, file: &[u8], case: &Case) -> Result<(), TestCaseError> {
        let decoded = independent::decode(file);
        prop_assert_eq!(&round_trip::read(file), &decoded, "both decoders");
        prop_assert_eq!(&decoded.torn, &Vec::<usize>::new(), "no listed slot is torn");
        let [_, _, _, last, size] = decoded.header;
        if decoded.header != self.header && size == 0 && last >= 0 {
            self.begun += 1;
        }
        self.header = decoded.header;
        let in_progress = usize::from(size == 0 && last >= 0);
        let whole = self.begun - in_progress;
        let oldest = self.begun.saturating_sub(case.filesize as usize);
        let kept: Vec<_> = (oldest..whole).map(|number| number % case.filesize as usize).collect();
        prop_assert_eq!(decoded.slots.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), kept, "all of them");
        for ((_, bytes), number) in decoded.slots.iter().zip(oldest..) {
            let all = &self.history[number];
            if number + 1 < self.begun {
                prop_assert_eq!(bytes, all, "a slot that was left is full");
            } else {
                prop_assert!(bytes.len() + self.frame >= usize::try_from(size).unwrap(), "all that the header tells");
                prop_assert!(all.starts_with(bytes), "nothing else");
            }
        }
        prop_assert!(self.postambles.starts_with(&decoded.postambles), "no slot passes for postambles");
        Ok(())
    }
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn torn_slots_are_detected(mut case in case()) {
        // An inserted postamble moves the others; a kill during that is not covered by the promise.
        case.operations.retain(|operation| !matches!(operation, Operation::Insert(_)));
        let (mut writer, file) = writer(&case);
        let mut model = Model::new(case.version, case.logsize as usize, case.filesize as usize, case.full_size);
        for operation in &case.operations {
            let _ = run(&mut writer, operation);
            model.run(operation);
        }
        drop(writer);
        let mut promise = Promise {
            frame: case.logsize as usize - model.capacity(),
            postambles: model.list.iter().flatten().copied().collect(),
            history: model.finished.iter().cloned().chain([model.buffer.clone()]).collect(),
            begun: 0,
            header: [0; 5],
        };
        let word = if case.version == Version::Framed { 4 } else { 1 };
        let writes = file.0.borrow().writes.clone();
        // The file has its name once its header is written.
        let named = writes.iter().position(|write| matches!(write, Write::Bytes(0, _))).unwrap();
        let mut outcome = Ok(());
        let mut seen = 0;
        states(&writes, word, |state| {
            seen += 1;
            if seen > named && outcome.is_ok() {
                outcome = promise.judge(state, &case);
            }
        });
        outcome?;
        prop_assert!(seen > named);
    }
}

/// The writer restores the bytes if it can; entries that were acknowledged before stay.
#[test]
fn a_refused_write_leaves_acknowledged_entries() {
    for refused in 0..3 {
        let case =
            Case { version: Version::Framed, logsize: 40, filesize: 2, full_size: false, operations: Vec::new() };
        let (mut writer, file) = writer(&case);
        writer.trace_buf(b"first").unwrap();
        writer.flush(false).unwrap();
        let flushed = file.0.borrow().bytes.clone();
        writer.trace_buf(b"more").unwrap();
        file.0.borrow_mut().succeed = Some(refused);
        let error = writer.flush(false).unwrap_err();
        assert!(error.to_string().starts_with("memory: cannot write"), "{error}");
        let before = file.0.borrow().bytes.clone();
        assert_eq!(independent::decode(&before).slots, [(0, b"first".to_vec())], "write {refused}");
        assert_eq!(flushed[..32], before[..32], "header, frame and entries");
        let done = file.0.borrow().writes.len();
        writer.trace_buf(b"still").unwrap();
        writer.flush(false).unwrap();
        let mut seen = Vec::new();
        let (earlier, later) = (file.0.borrow().writes[..done].to_vec(), file.0.borrow().writes[done..].to_vec());
        let mut state = Vec::new();
        for write in &earlier {
            write.apply(&mut state);
        }
        for write in later {
            write.apply(&mut state);
            let decoded = independent::decode(&state);
            assert_eq!((decoded.slots.len(), decoded.torn), (1, vec![]), "write {refused}");
            seen.push(decoded.slots[0].1.clone());
        }
        assert_eq!(seen, [&b"first"[..], b"firstmorestill", b"firstmorestill"]);
    }
}
