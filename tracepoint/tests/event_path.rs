//! The whole path of an event through the core.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::channel::{AnonymousMemory, Channel, OpenChannel};
use tracepoint::marker::Subscriber;

/// A task.
#[derive(Debug)]
pub struct Task {
    pid: i32,
    state: i64,
    comm: String,
    addr: u64,
    port: u16,
    digest: [u8; 32],
    bytes: Vec<u8>,
    path: PathBuf,
    mode: u8,
}

tracepoint::define_trace! {
    provider = "sched";

    /// The scheduler leaves `prev` and runs `next`.
    #[level(Debug)]
    pub sched_switch(prev: &Task, next: &Task) {
        prev_pid: i32 = prev.pid,
        next_pid: i32 = next.pid,
        prev_state: i64 = prev.state,
        prev_comm: str = &prev.comm,
        addr: hex u64 = prev.addr,
        port: be u16 = prev.port,
        digest: [u8; 32] = prev.digest,
        data: [u8] = &prev.bytes,
        file: path = &prev.path,
        mode: enum u8 { Idle = 0, Run = 1, "say \"hi\"" } = prev.mode as u8,
    }

    /// A bare hook.
    pub sched_migrate(task: &Task, dest_cpu: u32);

    /// Conditional.
    pub slow_request(ns: u64) if ns > 1_000_000 { ns: u64 = ns }

    class io(fd: i32, n: u64) { fd: i32 = fd, n: u64 = n }
    pub read: io;
    pub write: io;
    nothing();
}

fn task(pid: i32) -> Task {
    Task {
        pid,
        state: 1,
        comm: "a".into(),
        addr: 0xff,
        port: 80,
        digest: [7; 32],
        bytes: vec![1, 2],
        path: "/tmp".into(),
        mode: 1,
    }
}

#[test]
fn the_whole_path() {
    let (a, b) = (task(1), task(2));
    tracepoint::trace!(sched_switch(&a, &b));
    let hits = Arc::new(AtomicU64::new(0));
    let h = Arc::clone(&hits);
    let probe = register_trace_sched_switch(move |prev, next| {
        assert_eq!((prev.pid, next.pid), (1, 2));
        h.fetch_add(1, Ordering::Relaxed);
        tracepoint::trace_mark!(
            kernel_sched_switch,
            "prev_pid %d next_pid %d prev_state %ld",
            prev.pid,
            next.pid,
            prev.state
        );
    })
    .unwrap();
    assert!(trace_sched_switch_enabled());
    let channel = OpenChannel::open(Channel::discard(1 << 16), [1; 16], 0, 16, Box::new(AnonymousMemory)).unwrap();
    let subs: Vec<_> = tracepoint::markers()
        .map(|m| {
            let id = channel.add_event().unwrap();
            println!("{} {} {:?}", m.full_name(), m.format(), m.location());
            m.subscribe(Subscriber::record(channel.clone(), id))
        })
        .collect();
    tracepoint::trace!(self::sched_switch(&a, &b));
    trace_sched_switch(&a, &b);
    tracepoint::trace!(slow_request(5));
    tracepoint::trace!(slow_request(5_000_000));
    trace_read(1, 2);
    trace_write(1, 2);
    trace_nothing();
    tracepoint::marker::Subscription::end_all(subs);
    unregister_trace_sched_switch(probe);
    assert!(!trace_sched_switch_enabled());
    assert_eq!(hits.load(Ordering::Relaxed), 2);
    let mut n = 0;
    channel.finish(|p| {
        n = n.max(p.events_after);
    });
    assert_eq!(n, 2 + 2 + 1 + 2);
    println!("{:?}", channel.account());
    channel.close();
    for t in tracepoint::tracepoints() {
        println!("{} {:?} {:?} {:?}", t.full_name(), t.arguments(), t.location(), t.doc());
    }
    fn p(_: u64) {}
    let h = tracepoint::find("sched:slow_request").unwrap().register::<fn(u64)>(p).unwrap();
    drop(h);
    let e = tracepoint::find("sched:slow_request").unwrap().register::<fn(u32)>(|_| {}).unwrap_err();
    println!("{e}");
    println!("{}", tracepoint::find("sched:slow_reqest").unwrap_err());
}
