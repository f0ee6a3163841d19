//! Trace objects and their list: names, owners, the order of steps in a close, many threads.

use datatrace::{
    DtReader, Error, Layout, TraceObject, TraceOptions, Version, close_all, get_trace_object,
    get_trace_object_instance, top_trace_object, trace_objects,
};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;

/// Serialises tests, because the list belongs to the process, and gives each a directory.
pub(crate) fn alone() -> (MutexGuard<'static, ()>, TempDir) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    (alone, tempfile::tempdir().unwrap())
}

fn options(place: &TempDir) -> TraceOptions {
    TraceOptions::new(Layout::new(100, 3)).directory(place.path())
}

fn files(place: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(place.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn entries(path: &Path) -> Vec<u8> {
    DtReader::open(path).unwrap().slots().flat_map(|slot| slot.unwrap().bytes().unwrap()).collect()
}

fn postambles(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut DtReader::open(path).unwrap().postambles(), &mut bytes).unwrap();
    bytes
}

#[test]
fn files_are_named_after_their_objects() {
    let (_alone, place) = alone();
    let ip = options(&place).create("ip").unwrap();
    let host = options(&place).instance("host1").create("ip").unwrap();
    assert_eq!(ip.path(), place.path().join("ip.dt"));
    assert_eq!((host.name(), host.instance()), (Some("ip"), Some("host1")));
    assert_eq!(files(&place), ["ip.dt", "ip_host1.dt"], "and nothing else");
    assert!(Arc::ptr_eq(&get_trace_object("ip").unwrap(), &ip), "of several instances the first");
    assert!(Arc::ptr_eq(&get_trace_object_instance("ip", "host1").unwrap(), &host));
    assert!(get_trace_object("tcp").is_none());
}

#[test]
fn invalid_names_are_refused() {
    let (_alone, place) = alone();
    let refused = |name: &str| options(&place).create(name).unwrap_err().to_string();
    assert_eq!(
        refused("a/b"),
        "\"a/b\" cannot name a trace file: it is a path; the directory is chosen by `TraceOptions::directory`"
    );
    assert_eq!(
        refused(""),
        "\"\" cannot name a trace file: it is empty; an object without a name is made by `create_unnamed`"
    );
    assert!(refused("a\0b").ends_with("it contains a NUL"));
    assert!(refused(&"x".repeat(250)).ends_with("it is longer than a file name may be"));
    assert!(matches!(options(&place).instance("../x").create("a"), Err(Error::Name { .. })));
    assert!(matches!(options(&place).instance("").create("a"), Err(Error::Name { .. })));
    assert!(files(&place).is_empty() && trace_objects().is_empty());
    let longest = "y".repeat(242);
    options(&place).create(&longest).unwrap().trace1(1u8).unwrap();
    assert_eq!(files(&place), [format!("{longest}.dt")]);
}

#[test]
fn a_second_object_of_one_name_is_refused() {
    let (_alone, place) = alone();
    let first = options(&place).create("ip").unwrap();
    first.trace1(1u8).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let error = options(&elsewhere).create("ip").unwrap_err();
    assert!(matches!(error, Error::Duplicate { .. }), "{error}");
    // A different name with the same file name.
    let spelt = options(&place).instance("b_c").create("a").unwrap();
    let error = options(&place).instance("c").create("a_b").unwrap_err();
    assert!(matches!(&error, Error::InUse(path) if path == spelt.path()), "{error}");
    first.trace1(2u8).unwrap();
    first.close().unwrap();
    assert_eq!(entries(&place.path().join("ip.dt")), [1, 2]);
    options(&place).create("ip").unwrap();
    assert_eq!(entries(&place.path().join("ip.dt")), [], "an older file is replaced");
    assert_eq!(files(&place), ["a_b_c.dt", "ip.dt"]);
}

#[test]
fn only_regular_files_are_replaced() {
    let (_alone, place) = alone();
    fs::create_dir(place.path().join("ip.dt")).unwrap();
    let error = options(&place).create("ip").unwrap_err();
    assert!(
        error.to_string().ends_with("ip.dt: cannot replace the older trace file: it is not a regular file"),
        "{error}"
    );
    std::os::unix::fs::symlink("/dev/null", place.path().join("tcp.dt")).unwrap();
    assert!(options(&place).create("tcp").is_err());
    let error = options(&place).directory(place.path().join("missing")).create("udp").unwrap_err();
    assert!(error.to_string().contains("missing: cannot create a trace file"), "{error}");
    assert_eq!(files(&place), ["ip.dt", "tcp.dt"]);
    assert!(trace_objects().is_empty());
}

#[test]
fn a_file_beyond_any_disk_size_is_refused() {
    let (_alone, place) = alone();
    let layout = Layout::new(1 << 20, 1 << 24).version(Version::Framed).full_size();
    let error = TraceOptions::new(layout).directory(place.path()).create("huge").unwrap_err();
    assert!(
        error.to_string().ends_with(
            "huge.dt: cannot make room for all slots: no storage space; make room, or name another directory"
        ),
        "{error}"
    );
    assert!(files(&place).is_empty() && trace_objects().is_empty());
}

#[test]
fn a_file_larger_than_memory_is_read() {
    const SIZE: u32 = 1 << 20;
    const NUMBER: u32 = 100 << 10;
    let place = tempfile::tempdir().unwrap();
    for version in [1i32, 2] {
        // 100 GiB of holes, and one entry in slot 1.
        let path = place.path().join(format!("{version}.dt"));
        let file = fs::File::create(&path).unwrap();
        let header = [version, SIZE.cast_signed(), NUMBER.cast_signed(), 1, if version == 1 { 5 } else { 13 }];
        let header: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        file.write_all_at(&header, 0).unwrap();
        let slot = if version == 1 { b"hello".to_vec() } else { b"\x05\0\0\0\x86\xA6\x10\x36hello".to_vec() };
        file.write_all_at(&slot, 20 + u64::from(SIZE)).unwrap();
        file.set_len(20 + u64::from(SIZE) * u64::from(NUMBER)).unwrap();
        let reader = DtReader::open(&path).unwrap();
        assert_eq!(reader.file_size() >> 30, 100);
        let slots: Vec<_> = reader.slots().map(Result::unwrap).collect();
        assert_eq!(slots.len(), if version == 1 { NUMBER as usize } else { 1 });
        assert_eq!(slots.last().unwrap().bytes().unwrap(), b"hello");
    }
}

#[test]
fn unnamed_objects_have_their_own_files() {
    let (_alone, place) = alone();
    let process = std::process::id();
    fs::write(place.path().join(format!("unnamed-{process}-1.dt")), "somebody's").unwrap();
    let objects: Vec<_> = (0..3).map(|_| options(&place).create_unnamed().unwrap()).collect();
    let names: Vec<_> = objects.iter().map(|object| object.path().file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, [0, 2, 3].map(|n| format!("unnamed-{process}-{n}.dt")));
    assert_eq!(fs::read(place.path().join(format!("unnamed-{process}-1.dt"))).unwrap(), b"somebody's");
    assert_eq!(objects[0].name(), None);
    assert!(get_trace_object("").is_none());
    assert!(Arc::ptr_eq(&top_trace_object().unwrap(), &objects[0]));
}

#[test]
fn the_close_function_runs_before_closing() {
    let (_alone, place) = alone();
    let object = options(&place).create("ip").unwrap();
    object.trace1(1u8).unwrap();
    object.append_postamble(*b"last").unwrap();
    object.register_close_func(|_, ()| panic!("another one takes its place"), ()).unwrap();
    object
        .register_close_func(
            |object, argument: String| {
                assert!(get_trace_object("ip").is_some(), "still in the list");
                assert_eq!(entries(object.path()), [], "nothing flushed yet");
                object.trace1(2u8).unwrap();
                object.insert_postamble(argument).unwrap();
                assert!(matches!(object.close(), Err(Error::Closed { .. })), "closed once");
            },
            "first ".to_owned(),
        )
        .unwrap();
    object.close().unwrap();
    assert!(get_trace_object("ip").is_none());
    assert_eq!(entries(object.path()), [1, 2]);
    assert_eq!(postambles(object.path()), b"first last");
    let refused = [
        object.trace1(3u8),
        object.trace_buf(b"x"),
        object.flush(true),
        object.append_postamble(*b"late"),
        object.insert_postamble(*b"late"),
        object.register_close_func(|_, ()| (), ()),
        object.close(),
    ];
    assert!(refused.iter().all(|answer| matches!(answer, Err(Error::Closed { .. }))));
    assert_eq!(
        refused[3].as_ref().unwrap_err().to_string(),
        format!("{}: the trace object is closed; trace, and add postambles, before it is", object.path().display())
    );
    assert_eq!((entries(object.path()), postambles(object.path())), (vec![1, 2], b"first last".to_vec()));
}

#[test]
fn a_panicking_close_function_loses_no_entry() {
    let (_alone, place) = alone();
    let object = options(&place).create("ip").unwrap();
    object.trace1(1u8).unwrap();
    object.register_close_func(|_, ()| panic!("on purpose"), ()).unwrap();
    let closed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| object.close()));
    assert!(closed.is_err());
    assert!(get_trace_object("ip").is_none());
    assert_eq!(entries(object.path()), [1]);
}

#[test]
fn dropping_the_last_handle_closes_unless_the_list_keeps_it() {
    let (_alone, place) = alone();
    let dropped = options(&place).create("dropped").unwrap();
    let again = Arc::clone(&dropped);
    dropped.trace1(1u8).unwrap();
    drop(dropped);
    assert!(get_trace_object("dropped").is_some());
    let path = again.path().to_owned();
    drop(again);
    assert!(get_trace_object("dropped").is_none());
    assert_eq!(entries(&path), [1]);

    let kept = options(&place).create("kept").unwrap();
    let path = kept.path().to_owned();
    kept.keep();
    drop(kept);
    get_trace_object("kept").unwrap().trace1(2u8).unwrap();
    close_all().unwrap();
    assert!(get_trace_object("kept").is_none());
    assert_eq!(entries(&path), [2]);
}

#[test]
fn close_all_closes_in_the_order_of_the_list() {
    let (_alone, place) = alone();
    let closed = Arc::new(Mutex::new(Vec::new()));
    let objects: Vec<_> = ["c", "a", "b"].map(|name| options(&place).create(name).unwrap()).into();
    for object in &objects {
        let note =
            |object: &TraceObject, closed: Arc<Mutex<Vec<_>>>| closed.lock().unwrap().push(object.path().to_owned());
        object.register_close_func(note, Arc::clone(&closed)).unwrap();
    }
    assert!(trace_objects().iter().zip(&objects).all(|(one, other)| Arc::ptr_eq(one, other)));
    close_all().unwrap();
    let expected: Vec<_> = objects.iter().map(|object| object.path().to_owned()).collect();
    assert_eq!(*closed.lock().unwrap(), expected);
    assert!(top_trace_object().is_none());
}

#[test]
fn entries_of_concurrent_threads_are_not_mixed() {
    const EACH: u64 = 20_000;
    let (_alone, place) = alone();
    for version in [Version::ByteStream, Version::Framed] {
        let options = TraceOptions::new(Layout::new(1000, 2000).version(version)).directory(place.path());
        let object = options.create("threads").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let object = &object;
                scope.spawn(move || {
                    for number in 0..EACH / 2 {
                        object.trace3(thread, number, thread ^ number).unwrap();
                    }
                    for number in EACH / 2..EACH {
                        object.lock().unwrap().trace3(thread, number, thread ^ number).unwrap();
                        if number % 1000 == 0 {
                            object.flush(false).unwrap();
                        }
                    }
                });
            }
        });
        object.close().unwrap();
        let mut next = [0; 4];
        for entry in DtReader::open(object.path()).unwrap().entries(24, 0) {
            let bytes = entry.unwrap().bytes;
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            assert_eq!(word(0) ^ word(8), word(16));
            assert_eq!(word(8), next[word(0) as usize]);
            next[word(0) as usize] += 1;
        }
        assert_eq!(next, [EACH; 4]);
    }
}
