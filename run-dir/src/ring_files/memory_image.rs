//! The rings of a recording without ring files, with their descriptions, for snapshots by this process.

use super::mapping::{Mapping, SharedMapping};
use crate::ring_identity::Identity;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tracepoint_reader::internal::{Bytes, MemoryRings};
use tracepoint_ring::channel::{RING_IDENTITY, RingRequest};

/// A ring: its class, its index in the channel (`u64::MAX` for threads without a ring), and its memory, which lives as long as the channel
/// uses it.
type Entry = ((u64, u32), Weak<Mapping>);

/// The contents that the directory of a process would have if the rings were in files.
#[derive(Debug)]
pub struct MemoryImage {
    session: String,
    identity: Identity,
    /// The metadata of the trace, and the list of the sinks' outputs. The lock is held only while they are copied.
    described: Mutex<(Vec<u8>, Vec<u8>)>,
    rings: Mutex<Vec<Entry>>,
}

impl MemoryImage {
    /// Creates an image of the session of this name, without rings.
    pub fn new(session: &str) -> Arc<Self> {
        let identity = Identity::of_this_process(session, Path::new(""));
        let session = session.to_owned();
        Arc::new(Self { session, identity, described: Mutex::default(), rings: Mutex::default() })
    }

    /// Replaces the metadata and the list of outputs.
    pub fn describe(&self, metadata: &str, outputs: &[u8]) {
        let described = (metadata.as_bytes().to_vec(), outputs.to_vec());
        *self.described.lock().unwrap_or_else(PoisonError::into_inner) = described;
    }

    /// Adds the memory of a ring, and writes its identity page.
    pub(super) fn add(&self, request: RingRequest<'_>, mut mapping: Mapping) -> SharedMapping {
        if request.len >= RING_IDENTITY.end {
            mapping.write(RING_IDENTITY.start, &self.identity.page(request.channel));
        }
        let mapping = Arc::new(mapping);
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.retain(|(_, mapping)| mapping.strong_count() > 0);
        rings.push(((request.index.unwrap_or(u64::MAX), request.class), Arc::downgrade(&mapping)));
        SharedMapping(mapping)
    }

    /// Returns the current rings.
    pub fn rings(&self) -> MemoryRings {
        let (metadata, outputs) = self.described.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Sorted like files: the pseudo-rings of threads without a ring come last.
        rings.sort_by_key(|(key, _)| *key);
        let ring = |((index, class), mapping): (_, Weak<Mapping>)| {
            let name = if index == u64::MAX { format!("{class}-orphans") } else { format!("{class}-{index}") };
            Some((name, mapping.upgrade()? as Arc<dyn Bytes + Sync>))
        };
        let name = PathBuf::from(format!("memory of {}", self.session));
        MemoryRings { name, metadata, outputs, rings: rings.into_iter().filter_map(ring).collect() }
    }
}
