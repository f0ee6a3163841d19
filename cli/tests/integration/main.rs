//! `tracectl` run as a user would.
#![forbid(unsafe_code)]

#[cfg(target_arch = "x86_64")]
#[path = "../../../tracepoint/tests/common/fixture.rs"]
mod fixture;
#[path = "../../../reader/tests/hand/mod.rs"]
mod hand;
#[path = "../../../tests/support/lttng.rs"]
mod lttng;
#[path = "../prometheus/mod.rs"]
mod prometheus;
#[path = "../../../reader/tests/ring_file/mod.rs"]
mod ring_file;
#[path = "../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../tests/support/skip.rs"]
mod skip;
#[path = "../../../export/tests/integration/threads.rs"]
mod threads;
#[path = "../tmux/mod.rs"]
mod tmux;

#[cfg(target_arch = "x86_64")]
mod call_stack;
mod collect;
mod convert;
mod dt;
mod export;
mod live;
mod output;
mod query;
mod read;
mod record_on;
mod recover;
mod report;
mod serve;
mod statistics;
mod systemd;
mod top;
mod tracectl;
#[cfg(target_arch = "x86_64")]
mod usdt;
mod view;
