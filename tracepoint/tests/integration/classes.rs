//! A class: one field block for several events.

use crate::common::Recorded;
use std::sync::Mutex;

tracepoint::define_trace! {
    provider = "classes";

    /// The fields of a transfer. (A class has no name in the listing.)
    class io(fd: i32, text: &str) {
        /// The file.
        fd: i32 = fd,
        text: str = text,
    }
    /// A read.
    read: io;
    alone(n: u32);
    class empty() {}
    #[level(Info)]
    pub(crate) write: io;
    nothing: empty;
    pipe: io;
    socket: io;
    #[cfg(any())]
    absent: io;
}

#[test]
fn events_of_a_class_are_independent() {
    let [read, write] = ["read", "write"].map(|name| Recorded::of(&format!("classes:{name}")));
    tracepoint::trace!(read(1, "r"));
    trace_write(2, "w");
    assert_eq!([read.all(), write.all()], [[["1", "r"]], [["2", "w"]]]);
    drop(write);
    assert!(trace_read_enabled());
    assert!(!trace_write_enabled());
}

#[test]
fn each_event_of_a_class_has_its_own_probes() {
    static SEEN: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let probe = register_trace_pipe(|fd, _| SEEN.lock().unwrap().push(fd)).unwrap();
    tracepoint::trace!(pipe(3, "p"));
    tracepoint::trace!(socket(4, "q"));
    unregister_trace_pipe(probe);
    assert_eq!(*SEEN.lock().unwrap(), [3]);
}

#[test]
fn the_listing_has_the_events_only() {
    let mut names: Vec<&str> = tracepoint::runtime::tracepoints()
        .filter(|t| t.provider() == "classes")
        .map(tracepoint::Tracepoint::name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["alone", "nothing", "pipe", "read", "socket", "write"]);
    let [read, write] = ["read", "write"].map(|name| tracepoint::find(&format!("classes:{name}")).unwrap());
    assert_eq!(read.marker().unwrap().fields(), write.marker().unwrap().fields());
    assert_eq!(read.marker().unwrap().fields()[0].doc, "The file.");
    assert_eq!(tracepoint::find("classes:nothing").unwrap().marker().unwrap().format(), "");
}
