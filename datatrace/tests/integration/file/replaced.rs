//! Replaceable postambles: after a kill, a torn write or a refused write, a reader finds the newest intact copy. Each slot has one entry.

use crate::file::memory::{Memory, Write};
use datatrace::{DtReader, DtWriter, Error, Layout, ReadError, Version};

const TAG: [u8; 4] = *b"note";

fn writer() -> (DtWriter<Memory>, Memory) {
    let file = Memory::default();
    let layout = Layout::new(64, 2).version(Version::Framed).full_size();
    (DtWriter::create(file.clone(), layout).expect("sizes that can be"), file)
}

fn found(bytes: &[u8]) -> Option<Vec<u8>> {
    let reader = DtReader::from_bytes(bytes.to_vec()).expect("a header");
    reader.tagged_postamble(TAG).expect("nothing is damaged").map(|tagged| tagged.contents)
}

/// Notes of different lengths, two of which exceed the capacity of the previous space.
fn notes() -> Vec<Vec<u8>> {
    [3, 900, 0, 3000, 1, 9000, 20].iter().zip(1..).map(|(length, byte)| vec![byte; *length]).collect()
}

#[test]
fn a_kill_leaves_the_old_or_the_new_postamble() {
    let (mut writer, file) = writer();
    writer.append_postamble(datatrace::tagged(*b"else", b"is in front"));
    let mut before = None;
    for note in notes() {
        let begin = file.0.borrow().bytes.clone();
        let earlier = file.0.borrow().writes.len();
        writer.put_postamble(TAG, &note).unwrap();
        let mut torn = begin;
        for write in &file.0.borrow().writes[earlier..] {
            if let Write::Bytes(offset, bytes) = write {
                for cut in 0..bytes.len() {
                    let mut cut_off = torn.clone();
                    Write::Bytes(*offset, bytes[..cut].to_vec()).apply(&mut cut_off);
                    // The remaining bytes may equal the old ones.
                    let now = found(&cut_off);
                    assert!(now == before || now.as_ref() == Some(&note), "{cut} of {} bytes", bytes.len());
                }
            }
            write.apply(&mut torn);
        }
        assert_eq!(found(&torn).as_ref(), Some(&note));
        before = Some(note);
    }
    let reader = DtReader::from_bytes(file.0.borrow().bytes.clone()).unwrap();
    let tags: Vec<_> = reader.tagged_postambles().map(|tagged| tagged.unwrap().tag).collect();
    assert_eq!(tags, [*b"else", TAG, TAG, TAG], "one for each room");
}

#[test]
fn the_other_copy_is_read_if_one_is_damaged() {
    let (mut writer, file) = writer();
    writer.put_postamble(TAG, b"older").unwrap();
    writer.put_postamble(TAG, b"newer").unwrap();
    let whole = file.0.borrow().bytes.clone();
    assert_eq!(found(&whole).unwrap(), b"newer");
    let damage = |bytes: &mut Vec<u8>, what: &[u8]| {
        let at = bytes.windows(what.len()).position(|window| window == what).unwrap();
        bytes[at] ^= 1;
    };
    let mut bytes = whole;
    damage(&mut bytes, b"newer");
    assert_eq!(found(&bytes).unwrap(), b"older");
    damage(&mut bytes, b"older");
    // Both copies exist, and a kill tears one at most.
    let error = DtReader::from_bytes(bytes).unwrap().tagged_postamble(TAG).unwrap_err();
    assert!(matches!(error, ReadError::Postamble { offset: 148, .. }), "{error:?}");
    assert!(error.to_string().contains("neither copy of `note` has its checksum"), "{error}");
}

#[test]
fn a_refused_postamble_changes_nothing() {
    let (mut writer, file) = writer();
    writer.put_postamble(TAG, b"there").unwrap();
    for room in [0, 10, 1000] {
        file.0.borrow_mut().room = Some(room);
        assert!(matches!(writer.put_postamble(TAG, &[7; 5000]), Err(Error::Io { .. })));
        assert_eq!(found(&file.0.borrow().bytes).unwrap(), b"there");
        writer.put_postamble(TAG, b"there").expect("what fits into its room needs no other");
    }
    file.0.borrow_mut().room = None;
    writer.reserve_postamble(TAG, 5000).unwrap();
    assert_eq!(found(&file.0.borrow().bytes).unwrap(), b"there", "room alone is no postamble");
    file.0.borrow_mut().room = Some(0);
    writer.put_postamble(TAG, &[7; 5000]).unwrap();
    assert_eq!(found(&file.0.borrow().bytes).unwrap(), [7; 5000]);

    let mut growing = DtWriter::create(Memory::default(), Layout::new(64, 2).version(Version::Framed)).unwrap();
    let error = growing.put_postamble(TAG, b"").unwrap_err();
    assert!(matches!(error, Error::FullSizeOnly { .. }), "{error}");
    let too_long = vec![0; datatrace::MAX_TAGGED as usize];
    assert!(matches!(writer.put_postamble(TAG, &too_long), Err(Error::Limit { .. })));
}

#[test]
fn inserted_postambles_move_it_unchanged() {
    let (mut writer, file) = writer();
    writer.put_postamble(TAG, b"one").unwrap();
    writer.insert_postamble(datatrace::tagged(*b"else", b"in front"));
    writer.put_postamble(TAG, b"two").unwrap();
    writer.flush(true).unwrap();
    assert_eq!(found(&file.0.borrow().bytes).unwrap(), b"two");
}

#[test]
fn outgrown_space_is_skipped() {
    let (mut writer, file) = writer();
    for note in notes() {
        writer.put_postamble(TAG, &note).unwrap();
    }
    for inserted in [b"in front".as_slice(), b"further in front"] {
        writer.insert_postamble(datatrace::tagged(*b"else", inserted));
        writer.flush(true).unwrap();
        let bytes = file.0.borrow().bytes.clone();
        assert_eq!(found(&bytes), notes().pop());
    }
    writer.put_postamble(TAG, b"goes on").unwrap();
    assert_eq!(found(&file.0.borrow().bytes).unwrap(), b"goes on");
}

#[test]
fn small_growth_does_not_move_the_postamble() {
    let (mut writer, file) = writer();
    for most in 1..200 {
        writer.reserve_postamble(TAG, most * 384).unwrap();
    }
    let length = file.0.borrow().bytes.len();
    assert!(length < 10 * 200 * 384, "{length} bytes");
    writer.put_postamble(TAG, &vec![7; 199 * 384]).unwrap();
    assert_eq!(file.0.borrow().bytes.len(), length);
}

#[test]
fn a_slot_of_one_entry_is_written_atomically() {
    let (mut writer, file) = writer();
    let slots = |file: &Memory| -> Vec<Vec<u8>> {
        let reader = DtReader::from_bytes(file.0.borrow().bytes.clone()).unwrap();
        reader.slots().map(|slot| slot.unwrap().bytes().unwrap()).collect()
    };
    writer.trace_buf(b"before").unwrap();
    writer.put_slot(&[1; 56]).expect("it fills the slot");
    assert_eq!(slots(&file), [b"before".to_vec(), vec![1; 56]]);
    assert!(matches!(writer.put_slot(&[2; 57]), Err(Error::EntryTooLarge { length: 57, most: 56 })));
    for succeed in 0..3 {
        file.0.borrow_mut().succeed = Some(succeed);
        assert!(matches!(writer.put_slot(&[3; 20]), Err(Error::Io { .. })));
        let kept = if succeed == 0 { vec![b"before".to_vec(), vec![1; 56]] } else { vec![vec![1; 56]] };
        assert_eq!(slots(&file), kept, "refused at write {succeed}");
        writer.flush(true).unwrap();
        assert_eq!(slots(&file), kept, "it does not come later");
    }
    writer.put_slot(&[4; 20]).unwrap();
    assert_eq!(slots(&file), [vec![1; 56], vec![4; 20]]);
}

#[test]
fn stale_bytes_of_an_overwritten_slot_are_not_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.dt");
    let storage = datatrace::FileStorage::begin(&path).unwrap();
    let mut writer = DtWriter::create(storage, Layout::new(64, 2).version(Version::Framed).full_size()).unwrap();
    assert!(!path.exists(), "it has no name yet");
    writer.publish(false).unwrap();
    writer.put_slot(b"one").unwrap();
    let reader = DtReader::open(&path).unwrap();
    let slot = reader.slots().next().unwrap().unwrap().place();
    assert_eq!(reader.bytes_at(&slot).unwrap().unwrap(), b"one");
    writer.put_slot(b"two").unwrap();
    assert_eq!(reader.bytes_at(&slot).unwrap().unwrap(), b"one");
    writer.put_slot(b"six").unwrap();
    assert_eq!(reader.bytes_at(&slot).unwrap(), None);

    let another = || {
        let storage = datatrace::FileStorage::begin(&path).unwrap();
        DtWriter::create(storage, Layout::new(64, 2).version(Version::Framed)).unwrap()
    };
    assert!(matches!(another().publish(true), Err(Error::InUse { .. })));
    drop(writer);
    assert!(matches!(another().publish(false), Err(Error::Exists { .. })));
    another().publish(true).unwrap();
    assert_eq!(DtReader::open(&path).unwrap().header().number_buffers(), 0);
}
