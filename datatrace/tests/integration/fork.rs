//! A forked child has a copy of its parent's buffers, and access to the parent's files; it must not touch them. The only test of its program, so that
//! no other thread holds a lock when the process forks.

use datatrace::{DtReader, DtWriter, Error, FileStorage, Layout, TraceOptions, close_all, get_trace_object};
use std::fs;

/// Runs `child` in a forked process, and returns its result.
fn in_a_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: no other thread of this program holds a lock; the child ends at once after `child`.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let right = child();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: `status` is a valid place, and the process a child of ours.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    status == 0
}

#[test]
fn a_child_does_not_write_to_its_parents_files() {
    own_process!();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let options = TraceOptions::new(Layout::new(100, 3)).directory(place.path());
    let dropped = options.clone().create("dropped").unwrap();
    let kept = options.clone().create("kept").unwrap();
    kept.keep();
    for object in [&dropped, &kept] {
        object.trace_buf(b"first ").unwrap();
        object.append_postamble(b"last".as_slice()).unwrap();
        object.register_close_func(|object, ()| object.trace_buf(b"closed").unwrap(), ()).unwrap();
    }
    let unnamed = DtWriter::create(FileStorage::begin(&path("unnamed.dt")).unwrap(), Layout::new(100, 3)).unwrap();
    let content = || ["dropped.dt", "kept.dt"].map(|name| fs::read(path(name)).unwrap());
    let before = (content(), fs::read_dir(place.path()).unwrap().count());

    let (mut dropped, mut unnamed) = (Some(dropped), Some(unnamed));
    let left_alone = in_a_child(|| {
        drop((dropped.take(), unnamed.take()));
        let closed = matches!(kept.close(), Err(Error::Closed { .. }));
        let refused = matches!(kept.trace_buf(b"no more"), Err(Error::Closed { .. }));
        closed && refused && close_all().is_ok() && get_trace_object("dropped").is_none()
    });
    assert!(left_alone);
    assert_eq!((content(), fs::read_dir(place.path()).unwrap().count()), before);

    unnamed.unwrap().publish(false).unwrap();
    assert!(path("unnamed.dt").exists());
    drop(dropped);
    kept.close().unwrap();
    for name in ["dropped.dt", "kept.dt"] {
        let file = DtReader::open(&path(name)).unwrap();
        let entries: Vec<u8> = file.slots().flat_map(|slot| slot.unwrap().bytes().unwrap()).collect();
        assert_eq!((entries, file.postamble_size()), (b"first closed".to_vec(), 4), "{name}");
    }
}
