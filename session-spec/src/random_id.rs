//! Random ids of sessions, traces and requests.

use rustix::rand::{GetRandomFlags, getrandom};
use std::hash::{BuildHasher, RandomState};
use uuid::{Builder, Uuid};

/// A random UUID.
pub fn random_id() -> Uuid {
    let mut bytes = [0; 16];
    if getrandom(&mut bytes, GetRandomFlags::empty()) != Ok(bytes.len()) {
        // A sandbox may deny the call. The standard library has other sources for its seeds.
        let halves = [(); 2].map(|()| RandomState::new().hash_one(0).to_le_bytes());
        bytes.copy_from_slice(halves.as_flattened());
    }
    Builder::from_random_bytes(bytes).into_uuid()
}
