//! The collector of this command, on a thread of its own.

use crate::failure::Failure;
use crate::progress::LiveLine;
use crate::{collect, message};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use tracepoint_collector::{Addresses, CollectError, Collector, Counts, IpNet, Options};
use tracepoint_wire::stream::SharedKey;

#[derive(Debug)]
pub(super) struct CollectorThread {
    pub(super) addresses: Addresses,
    thread: JoinHandle<Result<Counts, CollectError>>,
    /// Set by this command, read by the collector.
    is_over: Arc<AtomicBool>,
    /// Set by the collector when the traces have the maximum size.
    is_full: Arc<AtomicBool>,
}

impl CollectorThread {
    /// Collects below `output` from hosts that have this key. Viewers run on this machine and need no key.
    pub(super) fn start(
        output: &Path,
        [control, data]: [SocketAddr; 2],
        key: SharedKey,
        max_size: u64,
    ) -> Result<Self, Failure> {
        let viewers = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let collector = Collector::bind(Options {
            control,
            data,
            live: viewers,
            key: Some(key),
            allow_stock_viewers: vec![IpNet::from(viewers.ip())],
            ..Options::new(output)
        })?;
        let addresses = collector.addresses();
        let (is_over, is_full) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (over, full) = (Arc::clone(&is_over), Arc::clone(&is_full));
        // Relaxed, here and below: the flags publish no other memory.
        let thread = thread::Builder::new().spawn(move || {
            let mut line = LiveLine::new();
            collector.run(|report| {
                report.messages.iter().for_each(|text| message::note(text));
                line.show("packets", report.counts.stored, || collect::status(report));
                if report.disk >= max_size {
                    full.store(true, Ordering::Relaxed);
                }
                !over.load(Ordering::Relaxed)
            })
        })?;
        Ok(Self { addresses, thread, is_over, is_full })
    }

    /// True if the traces have the maximum size, or the collector has failed.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// True if the traces have the maximum size.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Stops the collector and completes the files.
    pub(super) fn finish(self) -> Result<Counts, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        Ok(ended.map_err(|_| Failure::Refused("the collector has failed by a panic".to_owned()))??)
    }
}
