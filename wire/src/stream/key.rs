//! The shared key of senders and collectors, and the codes with which each side proves to the other that it has the key.

use super::AUTHENTICATED;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// A key shared by senders and their collector.
#[derive(Clone)]
pub struct SharedKey(Arc<[u8]>);

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(..)")
    }
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sender, in `AUTH`.
    Sender,
    /// The collector, in `WELCOME`.
    Collector,
    /// A live viewer.
    Viewer,
    /// The collector, to a live viewer.
    Viewed,
}

/// The input of a connection's authentication codes, which makes them useless for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The key of the session, in `HELLO`; zero for a viewer.
    pub session: [u8; 16],
    /// The random number of the sender, in `HELLO`, or of the viewer.
    pub sender: [u8; 32],
    /// The random number of the collector, in `CHALLENGE`.
    pub collector: [u8; 32],
}

impl SharedKey {
    /// Minimum and maximum size of a key, in bytes.
    pub const SIZES: std::ops::RangeInclusive<usize> = 16..=4096;

    /// A key with these bytes; `None` for fewer than 16 or more than 4096.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        Self::SIZES.contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// The key in a file: its bytes, without a line feed at the end.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, can on Unix be read or written by others than its owner, or has fewer than 16 or more than 4096 bytes.
    pub fn read(path: &Path) -> io::Result<Self> {
        let shown = path.display();
        let with_path = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {shown}: {error}"));
        let file = File::open(path).map_err(with_path)?;
        if is_shared(&file).map_err(with_path)? {
            let why = format!("others than its owner can use the key in {shown}; `chmod 600 {shown}` keeps them out");
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let mut bytes = Vec::new();
        file.take(*Self::SIZES.end() as u64 + 2).read_to_end(&mut bytes).map_err(with_path)?;
        let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let wrong = || {
            let why = format!("a shared key has 16 to 4096 bytes, and that in {shown} has {}", key.len());
            io::Error::new(ErrorKind::InvalidData, why)
        };
        Self::new(key).ok_or_else(wrong)
    }

    fn mac(&self, side: Side, handshake: &Handshake) -> Option<Hmac<Sha256>> {
        // HMAC accepts keys of any length.
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.0).ok()?;
        let text = AUTHENTICATED[side as usize];
        for part in [text, &handshake.session, &handshake.sender, &handshake.collector] {
            mac.update(part);
        }
        Some(mac)
    }

    /// The code with which this side proves that it has the key.
    pub fn code(&self, side: Side, handshake: &Handshake) -> [u8; 32] {
        self.mac(side, handshake).map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }

    /// True if the code is that of this side. Takes constant time.
    pub fn verifies(&self, side: Side, handshake: &Handshake, code: &[u8; 32]) -> bool {
        self.mac(side, handshake).is_some_and(|mac| mac.verify_slice(code).is_ok())
    }
}

/// Returns whether others than the file's owner can read or write it. On Windows its list of rights decides that, which is not looked at.
fn is_shared(file: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(file.metadata()?.mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    file.metadata().map(|_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn codes_are_those_of_the_format() {
        let key = SharedKey::new(b"0123456789abcdef").expect("a key");
        let handshake = Handshake { session: [1; 16], sender: [2; 32], collector: [3; 32] };
        // Computed with Python's `hmac`.
        let hex = |code: [u8; 32]| code.map(|byte| format!("{byte:02x}")).concat();
        let (sender, collector) = (key.code(Side::Sender, &handshake), key.code(Side::Collector, &handshake));
        assert_eq!(hex(sender), "566c5396758cef18884174e64182a195a930d07d05f92b0f2d99b863f06868e1");
        assert_eq!(hex(collector), "aed6c653e1bf94c534b1ef78c8c2154c77eacb1194ff56698dbb7d878c1b59df");
        assert!(key.verifies(Side::Sender, &handshake, &sender) && !key.verifies(Side::Collector, &handshake, &sender));
        let other = Handshake { collector: [4; 32], ..handshake };
        assert!(!key.verifies(Side::Sender, &other, &sender), "a code is for one connection");
        let wrong = SharedKey::new(b"0123456789abcdeg").expect("a key");
        assert!(!wrong.verifies(Side::Sender, &handshake, &sender));
        assert_eq!(format!("{key:?}"), "SharedKey(..)");
    }

    #[test]
    fn keys_are_read_from_files_of_their_owner() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("key");
        let read = |bytes: &[u8], mode: u32| {
            std::fs::write(&path, bytes).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
            SharedKey::read(&path).map(|key| key.0.to_vec()).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"0123456789abcdef\n", 0o600).expect("a key"), b"0123456789abcdef");
        assert!(read(b"0123456789abcdef", 0o640).expect_err("others").contains("chmod 600"));
        assert!(read(b"0123456789abcde\n", 0o600).expect_err("short").contains("has 15"));
        assert!(read(&[7; 5000], 0o600).is_err());
        assert!(SharedKey::read(&place.path().join("none")).expect_err("none").to_string().contains("cannot read"));
    }
}
