//! The same events on two paths that share only the site: typed probes that keep plain values, and the recording as read by
//! babeltrace2. A single test, because sessions and probes affect the whole process.

use crate::common::tree::Tree;
use crate::common::{Plain, assert_same, babeltrace, bytes, expected, sorted};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tracepoint::{Channel, Session, sinks::CtfSink};
use treehash::progress::Progress;
use treehash::trace;
use treehash::walk::{Work, hash_tree};

/// The events seen by the probes.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Plain>>>);

impl Seen {
    fn push(&self, event: Plain) {
        self.0.lock().unwrap().push(event);
    }
}

#[test]
fn probes_and_babeltrace2_agree() {
    let tree = Tree::new();
    // A file that disappears before it is opened: its directory has been listed, and the event of a link before it removes it.
    let gone = tree.root.join("zz/late");
    fs::create_dir(tree.root.join("zz")).unwrap();
    fs::write(&gone, "soon gone").unwrap();
    symlink("nowhere", tree.root.join("zz/before")).unwrap();

    let out = tree.out("trace");
    let channel = Channel::discard(1 << 20).spares(10);
    let sink = CtfSink::create(&out).unwrap();
    let session = Session::builder("probes").events("treehash:*").channel(channel).sink(sink).start().unwrap();
    let seen = Seen::default();
    let [s1, s2, s3, s4, s5, s6] = [(); 6].map(|()| seen.clone());
    let p1 = trace::register_trace_dir_entered(move |path, depth| {
        s1.push(Plain::DirEntered { path: bytes(path), depth });
    });
    let p2 = trace::register_trace_file_opened(move |path, size| {
        s2.push(Plain::FileOpened { path: bytes(path), size });
    });
    let p3 = trace::register_trace_chunk_read(move |fd, offset, len| s3.push(Plain::ChunkRead { fd, offset, len }));
    let p4 = trace::register_trace_file_hashed(move |path, size, digest| {
        s4.push(Plain::FileHashed { path: bytes(path), size, digest: *digest });
    });
    let removed = gone.clone();
    let p5 = trace::register_trace_link_skipped(move |path| {
        if path.with_file_name("late") == removed {
            fs::remove_file(&removed).unwrap();
        }
        s5.push(Plain::LinkSkipped { path: bytes(path) });
    });
    let p6 = trace::register_trace_error(move |path, kind, message| {
        s6.push(Plain::Error { path: bytes(path), kind: kind.name().to_owned(), message: message.to_owned() });
    });

    let work = Work { root: PathBuf::from(&tree.root), threads: 8, follow: false };
    let totals = hash_tree(&work, Progress::new(false));
    let summary = session.stop().unwrap();
    trace::unregister_trace_dir_entered(p1.unwrap());
    trace::unregister_trace_file_opened(p2.unwrap());
    trace::unregister_trace_chunk_read(p3.unwrap());
    trace::unregister_trace_file_hashed(p4.unwrap());
    trace::unregister_trace_link_skipped(p5.unwrap());
    trace::unregister_trace_error(p6.unwrap());

    assert!(!gone.exists());
    let seen = sorted(std::mem::take(&mut *seen.0.lock().unwrap()));
    let recorded = sorted(babeltrace::events(&out));
    assert_same("babeltrace2 against the probes", &recorded, &seen);
    assert_eq!(recorded.len() as u64, summary.events().iter().map(|event| event.recorded).sum::<u64>());

    // Compare both with the tree itself; the tests' user can read everything if it is root.
    let hashed = |events: &[Plain]| -> Vec<Plain> {
        events.iter().filter(|event| matches!(event, Plain::FileHashed { .. })).cloned().collect()
    };
    let expected = hashed(&sorted(expected::events(&tree.root, !crate::common::tree::is_root())));
    assert_same("the files", &hashed(&recorded), &expected);
    assert_eq!(totals.files, expected.len() as u64);
    let late = |event: &&Plain| matches!(event, Plain::Error { path, .. } if *path == bytes(&gone));
    let late: Vec<_> = recorded.iter().filter(late).collect();
    assert!(matches!(late[..], [Plain::Error { kind, .. }] if kind == "vanished"), "{late:?}");
}
