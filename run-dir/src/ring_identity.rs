//! The identity page of a ring file: process, session and channel.

use crate::own_process;
use std::path::Path;
use tracepoint_reader::internal::boot_id;
use tracepoint_reader::process;
use tracepoint_ring::channel::RING_IDENTITY;

/// Offsets of the fields from the beginning of the file; see `docs/format-ring.md`.
const PID: usize = 1024;
const STARTED: usize = 1032;
const BOOT_ID: usize = 1040;
const PID_NAMESPACE: usize = 1056;
const EXECUTABLE: Text = Text { at: 1088, limit: 1022 };
const HOSTNAME: Text = Text { at: 2112, limit: 254 };
const SESSION: Text = Text { at: 2368, limit: 254 };
const METADATA: Text = Text { at: 2624, limit: 1022 };
const CHANNEL: Text = Text { at: 3648, limit: 64 };

const SIZE: usize = RING_IDENTITY.end - RING_IDENTITY.start;

/// A text field: its length as u16, then at most `limit` bytes.
struct Text {
    at: usize,
    limit: usize,
}

/// The identity page shared by all rings of a session, without the name of the channel.
#[derive(Clone)]
pub(crate) struct Identity([u8; SIZE]);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Describes this process in the session called `session`, with metadata at `metadata`. Unknown fields stay zero.
    pub(crate) fn of_this_process(session: &str, metadata: &Path) -> Self {
        let mut page = Self([0; SIZE]);
        page.put(PID, &std::process::id().to_le_bytes());
        page.put(STARTED, &process::started().to_le_bytes());
        page.put(BOOT_ID, &boot_id().unwrap_or_default());
        page.put(PID_NAMESPACE, &process::own_pid_namespace().to_le_bytes());
        page.put_text(&EXECUTABLE, own_process::executable().as_encoded_bytes());
        page.put_text(&HOSTNAME, &own_process::hostname());
        page.put_text(&SESSION, session.as_bytes());
        page.put_text(&METADATA, metadata.as_os_str().as_encoded_bytes());
        page
    }

    /// Returns the identity page ([`RING_IDENTITY`]) for a ring of `channel`.
    pub(crate) fn page(&self, channel: &str) -> [u8; SIZE] {
        let mut page = self.clone();
        page.put_text(&CHANNEL, channel.as_bytes());
        page.0
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = at - RING_IDENTITY.start;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_text(&mut self, text: &Text, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(text.limit)];
        self.put(text.at, &(bytes.len() as u16).to_le_bytes());
        self.put(text.at + 2, bytes);
    }
}

/// Returns the pid namespace of the process whose ring is in `file`; 0 if unknown.
#[cfg(target_os = "linux")]
pub(crate) fn pid_namespace_of(file: &std::fs::File) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, PID_NAMESPACE as u64)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap_and_long_texts_are_cut() {
        let texts = [EXECUTABLE, HOSTNAME, SESSION, METADATA, CHANNEL];
        assert!(texts.windows(2).all(|pair| pair[0].at + 2 + pair[0].limit <= pair[1].at));
        const { assert!(CHANNEL.at + 2 + CHANNEL.limit <= RING_IDENTITY.end) };

        let page = Identity::of_this_process(&"s".repeat(1000), Path::new("/m")).page("net");
        let text = |text: &Text| {
            let at = text.at - RING_IDENTITY.start;
            let len = usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
            String::from_utf8_lossy(&page[at + 2..at + 2 + len]).into_owned()
        };
        assert_eq!((text(&SESSION), text(&METADATA), text(&CHANNEL)), ("s".repeat(254), "/m".into(), "net".into()));
        assert_eq!(page[..4], std::process::id().to_le_bytes());
        assert!(text(&EXECUTABLE).starts_with('/'));
    }
}
