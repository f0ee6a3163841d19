//! Random ids of sessions, traces and requests.

use std::hash::{BuildHasher, RandomState};

/// A random UUID.
pub fn random_id() -> [u8; 16] {
    let mut bytes = [0; 16];
    if !fill(&mut bytes) {
        let halves = [(); 2].map(|()| RandomState::new().hash_one(0).to_le_bytes());
        bytes.copy_from_slice(halves.as_flattened());
    }
    // Version 4, in the variant of RFC 9562.
    (bytes[6], bytes[8]) = (bytes[6] & 0x0F | 0x40, bytes[8] & 0x3F | 0x80);
    bytes
}

/// Fills the bytes from the kernel; a sandbox may deny the call.
#[cfg(target_os = "linux")]
fn fill(bytes: &mut [u8]) -> bool {
    use rustix::rand::{GetRandomFlags, getrandom};
    getrandom(&mut *bytes, GetRandomFlags::empty()) == Ok(bytes.len())
}

/// Leaves it to the standard library, whose seeds come from the system.
#[cfg(not(target_os = "linux"))]
fn fill(_bytes: &mut [u8]) -> bool {
    false
}
